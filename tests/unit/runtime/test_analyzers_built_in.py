"""The analyzers that ship, alone and in a run."""

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from exporters.analysis import analysis_files
from ledger import LedgerView
from ledger import events as ev
from runtime.analyzers.bad_case import (
    ERROR_ANSWER,
    NO_ANSWER,
    REPEATED_ACTIONS,
    RUN_ERROR,
    STOPPED_BY_LIMIT,
    BadCase,
)
from runtime.analyzers.trajectory_statistics import TrajectoryStatistics
from runtime.contracts import Analysis, AttemptContext, BaseAnalyzer, Task
from runtime.plugins import Plugins
from runtime.provider_error import CONTEXT_WINDOW
from runtime.results import ErrorInfo, Evaluation, RunResult
from tests.fake_plugins import JUDGE, evaluate, task

STEP = {"action": "look", "at": "x"}
SAY = {"role": "assistant", "content": "hm"}


def look(analyzer: BaseAnalyzer, result: RunResult, **verdict: Any) -> Analysis:
    evaluation = Evaluation(JUDGE, **{"correct": False, **verdict})
    return asyncio.run(analyzer.analysis(task("t"), result, evaluation))


def flags(correct: bool | None = False, **fields: Any) -> list[str]:
    score = fields.pop("score", None)
    given = {"final_answer": "42", **fields}
    found = look(BadCase(), RunResult("t", **given), correct=correct, score=score)
    assert found.is_badcase is bool(found.details["flags"])
    told = found.details["value_counts"]["flags"]
    assert told == (" + ".join(found.details["flags"]) or "none")
    return list(found.details["flags"])


def failed(code: str) -> ErrorInfo:
    return ErrorInfo(code=code, message="no")


@pytest.mark.parametrize("answer", [None, "", " \n", [], {}])
def test_no_answer_is_flagged_where_it_is_not_right(answer: Any) -> None:
    assert flags(final_answer=answer) == [NO_ANSWER]
    assert flags(True, final_answer=answer) == []
    assert flags(None, score=1.0, final_answer=answer) == []
    assert flags(None, score=0.0, final_answer=answer) == [NO_ANSWER]


@pytest.mark.parametrize("answer", [0, False, "0", "none"])
def test_an_answer_that_looks_like_nothing_is_one(answer: Any) -> None:
    assert flags(final_answer=answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Traceback (most recent call last):\n  ...",
        "openai.BadRequestError: context window",
        "  Error: no such file",
        "HTTP 502 Bad Gateway",
        "Exception : x",
    ],
)
def test_an_answer_that_is_an_error_message_is_flagged(answer: str) -> None:
    assert flags(final_answer=answer) == [ERROR_ANSWER]
    assert flags(True, final_answer=answer) == []


@pytest.mark.parametrize(
    "answer",
    ["Errors are values", "An error: none", "def error(): ...", "HTTP 200 OK", "httpd 404"],
)
def test_an_answer_that_speaks_of_errors_is_none(answer: str) -> None:
    assert flags(final_answer=answer) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"error": failed("run_timeout")},
        {"error": failed(CONTEXT_WINDOW)},
        {"telemetry": {"finish_reason": "length"}},
        {"telemetry": {"agent": {"stop_reason": "MAX_TURNS"}}},
    ],
)
def test_what_was_stopped_by_a_limit_is_flagged_even_if_right(fields: dict[str, Any]) -> None:
    assert flags(**fields) == flags(True, **fields) == [STOPPED_BY_LIMIT]


def test_an_end_that_is_no_limit_is_no_flag() -> None:
    assert flags(telemetry={"finish_reason": "stop", "length": "length"}) == []


def test_three_times_the_same_is_a_repetition() -> None:
    assert flags(trajectory=[STEP, STEP]) == []
    assert flags(trajectory=[STEP, STEP, STEP]) == [REPEATED_ACTIONS]
    assert flags(trajectory=[SAY, SAY, SAY]) == [REPEATED_ACTIONS]
    assert flags(trajectory=[STEP, STEP, SAY, STEP]) == []
    found = look(BadCase(), RunResult("t", final_answer="x", trajectory=[STEP] * 5))
    assert found.details["repeated"] == {"times": 5, "tool": "look"}


def test_another_error_of_the_run_is_flagged() -> None:
    assert flags(error=failed("boom")) == [RUN_ERROR]


def test_several_flags_stand_together() -> None:
    found = flags(final_answer=None, trajectory=[STEP] * 3, error=failed("run_timeout"))
    assert found == [NO_ANSWER, STOPPED_BY_LIMIT, REPEATED_ACTIONS]


def test_statistics_count_what_there_is_and_call_nothing_bad() -> None:
    trajectory = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}] * 2},
        {"role": "assistant", "content": "done"},
    ]
    found = look(
        TrajectoryStatistics(),
        RunResult("t", trajectory=trajectory, final_answer="four"),
        score=0.5,
    )
    assert (found.is_badcase, found.score) == (None, None)
    assert found.details == {
        "value_counts": {"form": "messages", "outcome": "wrong", "most_used_tool": "ls"},
        "numeric_stats": {
            "steps": 3,
            "messages": 3,
            "tool_calls": 2,
            "longest_repetition": 2,
            "trajectory_characters": len("userhelloassistantls{}ls{}assistantdone"),
            "answer_characters": 4,
        },
        "tools": {"ls": 2},
    }


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        ({"correct": True}, "correct"),
        ({"correct": None, "score": 0.0}, "scored"),
        ({"correct": None}, "none"),
    ],
)
def test_the_outcome_is_the_verdict(verdict: dict[str, Any], outcome: str) -> None:
    found = look(TrajectoryStatistics(), RunResult("t", trajectory=[]), **verdict)
    assert found.details["value_counts"]["outcome"] == outcome


def test_without_a_trajectory_there_is_nothing_to_count() -> None:
    assert TrajectoryStatistics().should_skip(RunResult("t"))
    assert not TrajectoryStatistics().should_skip(RunResult("t", trajectory=[]))


def test_both_are_installed_and_of_families_of_their_own() -> None:
    found = {one.id: one.base_analyzer for one in Plugins().analyzers()}
    assert found["trajectory-statistics"] == "trajectory"
    assert found["bad-case"] == "bad-case"


# -- in a run ---------------------------------------------------------------------------------------

SHIPPED = [TrajectoryStatistics(), BadCase()]
TASKS = [task("a", category="x"), task("b", category="x"), task("c")]


def act(t: Task, context: AttemptContext) -> RunResult:
    answers = {"a": "right", "b": "", "c": "Error: no"}
    return RunResult(t.task_id, final_answer=answers[t.task_id], trajectory=[STEP] * 4)


def found_in(tmp_path: Path, **how: Any) -> dict[tuple[str, str], Any]:
    ran = evaluate(tmp_path, act, TASKS, **{"also": SHIPPED, **how})
    assert [end.status for end in ran.of(ev.AttemptFinished)] == ["completed"] * 3
    return {(event.task, event.analyzer): event for event in ran.of(ev.AnalysisFinished)}


def test_every_judged_attempt_is_looked_at_by_default(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    assert sorted(found) == [(t, a) for t in "abc" for a in ("bad-case", "trajectory-statistics")]
    assert all(event.is_badcase for (_, name), event in found.items() if name == "bad-case")
    assert found["b", "bad-case"].details["flags"] == [NO_ANSWER, REPEATED_ACTIONS]


@pytest.mark.parametrize(
    "execution", [{"exclude_analyzers": ["bad-case"]}, {"analyzers": ["trajectory-statistics"]}]
)
def test_one_can_be_left_out(tmp_path: Path, execution: dict[str, Any]) -> None:
    assert {name for _, name in found_in(tmp_path, **execution)} == {"trajectory-statistics"}


def test_all_can_be_turned_off(tmp_path: Path) -> None:
    assert found_in(tmp_path, enable_analysis=False) == {}


class Better(BadCase):
    id: ClassVar[str] = "better"
    priority: ClassVar[int] = 1


def test_another_of_the_family_with_more_priority_takes_its_place(tmp_path: Path) -> None:
    names = {name for _, name in found_in(tmp_path, also=[*SHIPPED, Better()])}
    assert names == {"better", "trajectory-statistics"}


def test_a_failure_of_one_fails_nothing_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RecursionError("too deep")

    monkeypatch.setattr("runtime.analyzers.bad_case._flags", fail)
    found = found_in(tmp_path)
    assert found["a", "bad-case"].error.code == "RecursionError"
    assert found["a", "trajectory-statistics"].error is None


def test_they_see_the_error_of_the_attempt(tmp_path: Path) -> None:
    def slow(t: Task, context: AttemptContext) -> None:
        raise RuntimeError("broke")

    ran = evaluate(tmp_path, slow, TASKS[:1], also=[BadCase()])
    (found,) = ran.of(ev.AnalysisFinished)
    assert found.details["flags"] == [NO_ANSWER, RUN_ERROR]
    (end,) = ran.of(ev.AttemptFinished)
    assert (end.status, end.error.code) == ("run_error", "RuntimeError")


def test_the_summary_of_a_run_adds_them_up(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, act, TASKS, also=SHIPPED)
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        files = {file.path: file.data for file in analysis_files(ran.state, view)}
    told = json.loads(files["analysis_summary.json"])  # type: ignore[arg-type]
    rows = {row["analyzer"]: row for row in told["overall"]}
    assert (rows["bad-case"]["badcase_count"], rows["bad-case"]["badcase_ratio"]) == (3, 1.0)
    assert rows["trajectory-statistics"]["badcase_ratio"] is None
    assert rows["trajectory-statistics"]["reasons"]["badcase_ratio"] == (
        "the analyzer does not say what is a bad case"
    )
    counted = told["distributions"]["bad-case"]["value_counts"]["flags"]
    assert {one["value"]: one["count"] for one in counted} == {
        "repeated_actions": 1,
        "no_answer + repeated_actions": 1,
        "error_answer + repeated_actions": 1,
    }
    steps = told["distributions"]["trajectory-statistics"]["numeric_stats"]["steps"]
    assert (steps["count"], steps["min"], steps["max"]) == (3, 4, 4)
