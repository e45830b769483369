"""Features of an attempt, from the events of its calls, tools and phases."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from exporters.job_analysis import analyze_job
from ledger import LedgerView, fold
from ledger import events as ev
from tests.analysis_runs import (
    Analysis,
    Job,
    attempt,
    call,
    options,
    phase,
    retried,
    right,
    tool,
    wrong,
)
from tests.golden.runs import create, opening

Events = list[ev.AnyEvent]


def of(path: Path, during: Events, **fields: Any) -> dict[str, Any]:
    return Job().add("t", right("t", during=during, **fields)).analyze(path).features("t")


def usage(prompt: int, completion: int, **fields: Any) -> ev.Usage:
    return ev.Usage(input_tokens=prompt, output_tokens=completion, **fields)


def test_turns_are_answers_that_say_something_or_ask_for_a_tool(tmp_path: Path) -> None:
    during = [
        *call("t", index=0, content=None, tools=[("ls", {})]),
        *call("t", index=1, content=None),
        *call("t", index=2, content="done"),
        *call("t", index=3, error="provider_timeout"),
    ]
    found = of(tmp_path, during)
    assert (found["assistant_turns"], found["llm_calls"], found["llm_calls_failed"]) == (2, 4, 1)


def test_tokens_are_sums_of_successful_calls(tmp_path: Path) -> None:
    during = [
        *call("t", index=0, usage=usage(100, 10, cached_tokens=40, reasoning_tokens=3)),
        *call("t", index=1, usage=usage(300, 5, total_tokens=305)),
        *call("t", index=2),
    ]
    found = of(tmp_path, during)
    assert (found["prompt_tokens"], found["completion_tokens"]) == (400, 15)
    assert (found["cached_tokens"], found["reasoning_tokens"]) == (40, 3)
    assert (found["total_tokens"], found["peak_context_tokens"]) == (415, 305)


def test_tokens_that_nobody_counted_are_unknown_and_not_zero(tmp_path: Path) -> None:
    found = of(tmp_path, call("t"))
    assert found["prompt_tokens"] is found["total_tokens"] is found["peak_context_tokens"] is None


def test_the_cost_is_unknown_if_that_of_one_call_is(tmp_path: Path) -> None:
    paid = call("t", index=0, cost_usd=0.0000123)
    assert of(tmp_path / "a", paid)["cost_usd"] == 0.0000123
    job = Job().add("t", right("t", during=[*paid, *call("t", index=1)]))
    found = job.analyze(tmp_path / "b")
    assert found.features("t")["cost_usd"] is None
    assert "cost_unknown" in found.instance("t")["flags"]


def test_discarded_tries_cost_and_do_not_count_as_turns(tmp_path: Path) -> None:
    first = [*call("t", index=0, cost_usd=1.0), tool("t"), retried("t")]
    where = {"task": "t", "attempt": 1}
    again = ev.PlanResolved(**where, plan={}, plan_hash="ab" * 32)
    found = of(tmp_path, [*first, again, *call("t", index=1, cost_usd=2.0), tool("t")])
    assert (found["cost_usd"], found["llm_calls"], found["retries"]) == (3.0, 2, 1)
    assert (found["assistant_turns"], found["total_tool_calls"]) == (1, 2)
    assert found["loop_length"] == 1


def test_a_lost_call_is_counted_and_flagged(tmp_path: Path) -> None:
    found = Job().add("t", right("t", during=call("t", lost=True))).analyze(tmp_path)
    assert found.features("t")["llm_calls_lost"] == 1
    one = found.instance("t")
    assert one["flags"] == ["llm_calls_lost", "missing_metadata"]
    assert one["trajectory_metadata"]["n_llm_calls_lost"] == 1
    assert one["axes"]["model_io"] == "degraded"


def test_calls_in_parallel_do_not_add_up(tmp_path: Path) -> None:
    def at(second: int) -> str:
        return f"2025-01-01T00:00:{second:02}Z"

    spans = [(0, 10), (5, 12), (6, 7), (20, 21)]
    during: Events = []
    for index, (start, end) in enumerate(spans):
        during += call("t", index=index, started_at=at(start), finished_at=at(end))
    assert of(tmp_path, during)["model_seconds"] == 13.0


def test_the_median_time_to_a_first_token_is_told(tmp_path: Path) -> None:
    during = [e for i, ms in enumerate((5.0, 100.0, 7.0)) for e in call("t", index=i, ttft_ms=ms)]
    assert of(tmp_path, during)["ttft_ms_median"] == 7.0


def test_times_of_phases_are_by_the_monotonic_clock(tmp_path: Path) -> None:
    during = [
        phase("t", "open_environment"),
        phase("t", "run_harness", "open_environment", duration_ms=100.0),
        phase("t", "collect_result", "run_harness", duration_ms=2500.0),
    ]
    found = of(tmp_path, during)
    assert found["run_seconds"] == 2.5
    assert found["evaluation_seconds"] is None


def test_a_last_phase_lasts_to_the_end_of_its_attempt(tmp_path: Path) -> None:
    # The clock of these ledgers ticks by a second with every event: result, verdict, end follow.
    assert of(tmp_path, [phase("t", "run_harness")])["run_seconds"] == 3.0


def test_three_equal_tool_calls_in_a_row_are_a_loop(tmp_path: Path) -> None:
    same = {"path": "x", "line": 1}
    turned = {"line": 1, "path": "x"}
    during = [
        tool("t", "open", {"path": "y"}),
        tool("t", "open", same),
        tool("t", "open", turned),
        tool("t", "open", same),
    ]
    job = Job().add("t", wrong("t", during=during))
    found = job.analyze(tmp_path)
    assert (found.features("t")["loop_detected"], found.features("t")["loop_length"]) == (True, 3)
    one = found.instance("t")
    assert (one["primary"], one["axes"]["tool_usage"]) == ("loop", "suboptimal")
    # created, started, selected, task, attempt, plan, then the four tools.
    assert one["evidence_events"] == [7, 8, 9]
    strict = options(features={"loop_threshold": 4})
    assert not job.analyze(tmp_path / "4", strict).features("t")["loop_detected"]


def test_tools_that_only_the_model_asked_for_are_seen_in_its_answers(tmp_path: Path) -> None:
    during = [e for i in range(3) for e in call("t", index=i, tools=[("ls", {"at": "."})])]
    found = of(tmp_path, during)
    assert (found["total_tool_calls"], found["loop_length"]) == (3, 3)
    assert found["tool_errors"] is found["tool_error_storm"] is None


def test_five_tool_errors_in_a_row_are_a_storm(tmp_path: Path) -> None:
    failing = [tool("t", "run", {"n": n}, is_error=True) for n in range(5)]
    during = [tool("t", "run", {"n": 9}, is_error=True), tool("t", "ok"), *failing]
    found = Job().add("t", wrong("t", during=during)).analyze(tmp_path)
    told = found.features("t")
    assert (told["tool_errors"], told["tool_error_storm"], told["tool_error_storm_count"]) == (
        6,
        True,
        5,
    )
    assert found.instance("t")["primary"] == "tool_error_storm"
    assert found.instance("t")["axes"]["tool_usage"] == "poor"


@pytest.mark.parametrize(
    ("turns", "correct", "stopped"), [(6, False, True), (7, False, False), (6, True, False)]
)
def test_unused_turns_are_a_premature_stop_of_the_unresolved(
    tmp_path: Path, turns: int, correct: bool, stopped: bool
) -> None:
    during = [event for i in range(turns) for event in call("t", index=i)]
    made = attempt(
        "t", correct=correct, score=float(correct), during=during, plan={"max_turns": 10}
    )
    found = Job().add("t", made).analyze(tmp_path)
    told = found.features("t")
    assert told["premature_stop"] is stopped
    assert told["iterations_used_frac"] == turns / 10
    assert told["premature_stop_remaining_frac"] == pytest.approx(1 - turns / 10)


def test_the_limit_of_turns_may_come_from_the_configuration(tmp_path: Path) -> None:
    job = Job().add("t", wrong("t", during=call("t")))
    found = job.analyze(tmp_path, options(data={"max_iterations_default": 1}))
    assert found.features("t")["max_iterations"] == 1
    assert found.instance("t")["axes"]["long_horizon"] == "max_iter_reached"
    assert found.instance("t")["primary"] == "max_iterations"


@pytest.mark.parametrize(
    "during",
    [
        call("t", finish="length"),
        call("t", error="provider_context_window"),
        call("t", flags=("context_truncated",)),
    ],
)
def test_truncation_is_told_by_the_provider_or_the_harness(tmp_path: Path, during: Events) -> None:
    found = Job().add("t", wrong("t", during=during)).analyze(tmp_path)
    assert found.features("t")["context_truncation"] is True
    one = found.instance("t")
    assert (one["axes"]["long_horizon"], one["primary"]) == ("truncation", "context_truncation")
    assert one["evidence_step_ids"] == [0]


def test_words_about_truncation_are_no_truncation(tmp_path: Path) -> None:
    during = call("t", content="the context window was exceeded, output truncated, length")
    assert of(tmp_path, during)["context_truncation"] is False


def test_steps_of_an_agent_without_a_model_are_its_turns(tmp_path: Path) -> None:
    steps = [{"step": 1, "action": "look"}, {"step": 2, "action": "submit"}]
    found = of(tmp_path, [], trajectory=steps)
    assert (found["assistant_turns"], found["llm_calls"]) == (2, 0)


def test_messages_of_a_trajectory_tell_turns_and_tools(tmp_path: Path) -> None:
    asked = {"function": {"name": "ls", "arguments": "{}"}}
    steps = [
        {"role": "user", "content": "do"},
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "content": "x"},
        {"role": "assistant", "content": "done"},
    ]
    found = of(tmp_path, [], trajectory={"messages": steps})
    assert (found["assistant_turns"], found["total_tool_calls"]) == (2, 1)


ATIF = {
    "schema_version": "ATIF-v1.8",
    "steps": [
        {"step_id": 1, "source": "user", "message": "do"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "x",
            "tool_calls": [{"function_name": "ls", "arguments": {"at": "."}}],
            "metrics": {"prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.25},
        },
        {
            "step_id": 3,
            "source": "agent",
            "message": "y",
            "metrics": {"prompt_tokens": 300, "completion_tokens": 20, "cost_usd": 0.5},
        },
    ],
}
ACTF = {
    "schema_version": "ACTF_v1.0",
    "steps": [
        {
            "step_id": index,
            "assistant_content": {
                "content": "x",
                "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]
                if not index
                else [],
            },
            "metric": {"prompt_tokens_len": size, "completion_tokens_len": 10 + 10 * index},
        }
        for index, size in enumerate((100, 300))
    ],
}


@pytest.mark.parametrize(("trajectory", "cost"), [(ATIF, 0.75), (ACTF, None)])
def test_known_trajectories_tell_tokens_where_no_call_was_recorded(
    tmp_path: Path, trajectory: dict[str, Any], cost: float | None
) -> None:
    found = of(tmp_path, [], trajectory=trajectory)
    assert (found["assistant_turns"], found["total_tool_calls"], found["llm_calls"]) == (2, 1, 0)
    assert (found["prompt_tokens"], found["completion_tokens"]) == (400, 30)
    assert (found["total_tokens"], found["peak_context_tokens"]) == (430, 320)
    assert found["cost_usd"] == cost


def test_recorded_calls_are_believed_and_not_the_trajectory(tmp_path: Path) -> None:
    found = of(tmp_path, call("t", usage=usage(7, 1)), trajectory=ATIF)
    assert (found["assistant_turns"], found["prompt_tokens"]) == (1, 7)


@pytest.mark.parametrize(
    "trajectory", [None, "text", [], [{"said": "x"}], [1, 2], {"steps": [{"source": "user"}]}]
)
def test_a_trajectory_of_unknown_shape_tells_nothing(tmp_path: Path, trajectory: object) -> None:
    found = of(tmp_path, [], trajectory=trajectory)
    assert found["assistant_turns"] is found["prompt_tokens"] is None


def test_where_nothing_was_observed_nothing_is_claimed(tmp_path: Path) -> None:
    found = of(tmp_path, [])
    for name in ("assistant_turns", "loop_detected", "tool_errors", "context_truncation"):
        assert found[name] is None


@pytest.mark.parametrize(
    ("answer", "chars"), [(None, 0), ("", 0), ("four", 4), ({"a": 1}, 7), ([], 2)]
)
def test_the_length_of_an_answer_is_that_of_its_text(
    tmp_path: Path, answer: object, chars: int
) -> None:
    assert of(tmp_path, [], answer=answer)["answer_chars"] == chars


def test_estimated_tokens_are_flagged(tmp_path: Path) -> None:
    during = call("t", usage=usage(1, 1, estimated=True))
    found: Analysis = Job().add("t", right("t", during=during)).analyze(tmp_path)
    assert "usage_estimated" in found.instance("t")["flags"]


def test_long_conversations_are_read_in_bounded_memory(tmp_path: Path) -> None:
    job = Job().add("t", right("t"))
    prompt = [{"role": "user", "content": "p" * 200_000}]
    with create(tmp_path, "long") as ledger:
        ledger.append(*opening("r", *job.refs), ev.TaskStarted(task="t"))
        ledger.append(ev.AttemptStarted(task="t", attempt=1))
        for index in range(60):
            start, end = call("t", index=index, content="a" * 100_000)
            assert isinstance(start, ev.CallStarted)
            ledger.append(start.model_copy(update={"messages": prompt}), end)
        ledger.append(*right("t")[2:])
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        tracemalloc.start()
        try:
            files = {file.path: file.data for file in analyze_job(state, view)}
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert Analysis(files).features("t")["llm_calls"] == 60
    assert peak < 8_000_000


def test_a_model_that_asked_for_no_tool_had_no_tool_error(tmp_path: Path) -> None:
    found = of(tmp_path, call("t"))
    assert (found["total_tool_calls"], found["tool_errors"]) == (0, 0)
    assert found["tool_error_storm"] is False
