import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ledger import events as ev
from ledger.canonical import Binary
from runtime.contracts import (
    Analysis,
    AttemptContext,
    BaseAnalyzer,
    ExecutionPlan,
    HarnessFreeBenchmark,
    StageError,
    Task,
)
from runtime.llm import CallStart
from runtime.models import EnvironmentSpec
from runtime.results import ErrorInfo, Evaluation, RunResult
from tests.fake_plugins import JUDGE, Listed, Ran, Room, Rooms, Scripted, evaluate, task
from tests.ledger_checks import check_ledger

TASKS = [task("t")]


def finished(ran: Ran) -> ev.AttemptFinished:
    (event,) = ran.of(ev.AttemptFinished)
    assert isinstance(event, ev.AttemptFinished)
    return event


def phases(ran: Ran) -> list[str]:
    return [event.phase for event in ran.of(ev.PhaseEntered)]


def test_an_attempt_tells_every_step_in_order(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: "right", TASKS)
    attempt = [r for r in ran.events if r.attempt]
    assert [r.type for r in attempt if r.type != "phase.entered"] == [
        "attempt.started",
        "plan.resolved",
        "result.recorded",
        "evaluation.finished",
        "attempt.finished",
    ]
    assert phases(ran) == [
        "open_environment",
        "prepare_task",
        "start_harness",
        "run_harness",
        "collect_result",
        "collect_artifacts",
        "evaluate",
    ]
    end = finished(ran)
    assert (end.status, end.correct, end.score, end.error) == ("completed", True, 1.0, None)
    assert end.resolved_plan_hash == ran.of(ev.PlanResolved)[0].plan_hash
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


def test_an_attempt_is_on_disk_before_the_harness_is_called(tmp_path: Path) -> None:
    seen: list[bool] = []

    def look(t: Task, context: AttemptContext) -> str:
        seen.append(any(tmp_path.rglob("ledger.sqlite*")))
        return "right"

    ran = evaluate(tmp_path, look, TASKS)
    assert seen == [True]
    assert ran.types.index("attempt.started") < ran.types.index("result.recorded")


def test_a_wrong_answer_is_no_error(tmp_path: Path) -> None:
    end = finished(evaluate(tmp_path, lambda t, c: "wrong", TASKS))
    assert (end.status, end.correct, end.error) == ("completed", False, None)


class Unusual(BaseException):
    """Not even an Exception."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no"),
        KeyError("k"),
        SystemExit(2),
        KeyboardInterrupt(),
        GeneratorExit(),
        Unusual("hm"),
        BaseExceptionGroup("several", [KeyboardInterrupt()]),
    ],
)
def test_whatever_a_harness_raises_is_an_error_of_the_attempt(
    tmp_path: Path, error: BaseException
) -> None:
    def fail(t: Task, context: AttemptContext) -> None:
        raise error

    ran = evaluate(tmp_path, fail, [task("t"), task("u")])
    ends = ran.of(ev.AttemptFinished)
    assert [end.status for end in ends] == ["run_error", "run_error"]
    assert ends[0].error.code == type(error).__name__
    assert "Traceback" in ends[0].error.traceback
    assert ran.outcome.status == "completed"


PLACES = {
    Listed: ("build_plan", "prepare_task", "collect_artifacts", "evaluate"),
    Scripted: ("build_plan", "start_session", "collect_result", "close_session"),
    Rooms: ("open",),
    Room: ("close", "size", "read_bytes"),
}


@pytest.mark.parametrize(
    ("kind", "method", "waits"),
    [
        (kind, method, waits)
        for kind, found in PLACES.items()
        for method in found
        for waits in (True, False)
        if not waits or method != "build_plan"
    ],
)
def test_no_plug_in_ends_the_run_wherever_it_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type,
    method: str,
    waits: bool,
) -> None:
    async def fail_awaited(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    def fail_called(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    async def two_artifacts(self: Listed, task: Task, context: AttemptContext) -> list[str]:
        return ["a", "b"]

    async def act(t: Task, context: AttemptContext) -> str:
        assert isinstance(context.session, Room)
        context.session.contents = {"a": b"1", "b": b"2"}
        return "right"

    monkeypatch.setattr(Listed, "collect_artifacts", two_artifacts)
    monkeypatch.setattr(kind, method, fail_awaited if waits else fail_called)
    ran = evaluate(tmp_path, act, TASKS)
    assert ran.types[-2:] == ["run.finished", "ledger.sealed"]
    end = finished(ran)
    told = [end.error, *end.issues]
    assert any("KeyboardInterrupt" in one.message for one in told if one)


@pytest.mark.parametrize("method", ["should_skip", "analysis"])
def test_an_analyzer_that_asks_to_exit_fails_nothing(tmp_path: Path, method: str) -> None:
    class Leaving(BaseAnalyzer):
        id: ClassVar[str] = "leaving"
        base_analyzer: ClassVar[str] = "leaving"

        def should_skip(self, result: RunResult) -> bool:
            if method == "should_skip":
                raise SystemExit(3)
            return False

        async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
            raise KeyboardInterrupt

    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, also=[Leaving()])
    assert finished(ran).status == "completed"
    (found,) = ran.of(ev.AnalysisFinished)
    assert found.error.code in {"SystemExit", "KeyboardInterrupt"}


def test_a_failed_run_is_judged_by_what_it_left(tmp_path: Path) -> None:
    class Leaving(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            assert isinstance(context.session, Room)
            return Evaluation(JUDGE, correct="done" in context.session.contents)

    async def leave(t: Task, context: AttemptContext) -> None:
        assert context.session is not None
        await context.session.write_text("done", "x")
        raise RuntimeError("too late")

    end = finished(evaluate(tmp_path, leave, benchmark=Leaving(TASKS)))
    assert (end.status, end.correct) == ("run_error", True)


@pytest.mark.parametrize(
    "error",
    [StageError("lost", "it is gone", fatal=True), StageError("sandbox_failed", "no process")],
)
def test_a_fault_of_the_house_is_not_judged(tmp_path: Path, error: StageError) -> None:
    def fail(t: Task, context: AttemptContext) -> None:
        raise error

    ran = evaluate(tmp_path, fail, TASKS)
    assert ran.of(ev.EvaluationFinished) == []
    assert (finished(ran).status, finished(ran).correct) == ("run_error", None)


def test_a_run_that_takes_too_long_is_stopped_and_its_partial_result_is_judged(
    tmp_path: Path,
) -> None:
    async def slow(t: Task, context: AttemptContext) -> str:
        await asyncio.sleep(60)
        return "right"

    ran = evaluate(tmp_path, slow, TASKS, run_timeout_seconds=0.02)
    end = finished(ran)
    assert (end.status, end.correct) == ("run_error", False)
    assert end.error is not None
    assert (end.error.code, end.error.phase) == ("run_timeout", "run_harness")
    assert not end.error.fatal
    assert "collect_result" in phases(ran)
    assert ran.of(ev.PlanResolved)[0].timeouts == {"run": 0.02}


def test_a_multiplier_stretches_a_limit_and_a_phases_own_one_replaces_it(tmp_path: Path) -> None:
    ran = evaluate(
        tmp_path,
        lambda t, c: "right",
        TASKS,
        run_timeout_seconds=10,
        evaluation_timeout_seconds=20,
        timeout_multiplier=3,
        evaluation_timeout_multiplier=0.5,
    )
    assert ran.of(ev.PlanResolved)[0].timeouts == {"run": 30, "evaluation": 10}


class Collecting(Scripted):
    """Finds what is left when the run is over."""

    def __init__(self, act: Any, left: Any) -> None:
        super().__init__(act)
        self.left = left

    async def collect_result(
        self, task: Task, session: Any, result: RunResult | None, context: AttemptContext
    ) -> RunResult | None:
        if isinstance(self.left, Exception):
            raise self.left
        return RunResult(task.task_id, final_answer=self.left)


def fail(t: Task, context: AttemptContext) -> None:
    raise RuntimeError("died")


def test_what_is_left_after_an_error_is_collected_and_judged(tmp_path: Path) -> None:
    harness = Collecting(fail, "right")
    ran = evaluate(tmp_path, fail, TASKS, harness_plugin=harness)
    end = finished(ran)
    assert (end.status, end.correct) == ("run_error", True)
    assert end.error is not None
    assert end.error.message == "died"
    assert harness.closed == 1


def test_a_failure_to_collect_after_a_good_run_is_its_error(tmp_path: Path) -> None:
    harness = Collecting(lambda t, c: "right", OSError("gone"))
    end = finished(evaluate(tmp_path, harness.act, TASKS, harness_plugin=harness))
    assert end.error is not None
    assert (end.error.code, end.error.phase) == ("OSError", "collect_result")
    assert end.correct is True


def test_a_failure_to_collect_after_an_error_is_an_issue(tmp_path: Path) -> None:
    harness = Collecting(fail, OSError("gone"))
    end = finished(evaluate(tmp_path, fail, TASKS, harness_plugin=harness))
    assert end.error is not None
    assert end.error.message == "died"
    assert [issue.code for issue in end.issues] == ["OSError"]


# -- the house ----------------------------------------------------------------------------------


class NoRooms(Rooms):
    async def open(self, spec: EnvironmentSpec, plan: ExecutionPlan) -> Room:
        raise OSError("no space for rooms")


def test_an_environment_that_does_not_open_is_fatal_and_recorded(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, environment=NoRooms())
    (result,) = ran.of(ev.ResultRecorded)
    assert result.status == "run_error"
    end = finished(ran)
    assert end.error is not None
    assert (end.error.phase, end.error.fatal) == ("open_environment", True)
    assert ran.of(ev.EvaluationFinished) == []
    assert (ran.outcome.status, ran.outcome.exit_code) == ("failed", 1)
    assert ran.of(ev.MetricsComputed) != []


class BadPlan(Listed):
    def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
        plan.benchmark = {"tools": {"a", "b"}}
        return plan


class BadPreparation(Listed):
    async def prepare_task(self, task: Task, context: AttemptContext) -> None:
        raise ValueError("no such file")


@pytest.mark.parametrize(
    ("benchmark", "phase", "words"),
    [(BadPlan, "plan", "$.benchmark.tools"), (BadPreparation, "prepare_task", "no such file")],
)
def test_what_fails_before_the_agent_begins_is_fatal(
    tmp_path: Path, benchmark: type[Listed], phase: str, words: str
) -> None:
    rooms = Rooms()
    ran = evaluate(tmp_path, lambda t, c: "right", benchmark=benchmark(TASKS), environment=rooms)
    end = finished(ran)
    assert end.error is not None
    assert (end.error.phase, end.error.fatal) == (phase, True)
    assert words in end.error.message
    assert all(room.closed for room in rooms.opened)


def test_the_environment_is_released_after_the_verdict_also_after_an_error(tmp_path: Path) -> None:
    rooms = Rooms()
    open_then: list[int] = []

    class Looking(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            open_then.append(rooms.opened[0].closed)
            raise RuntimeError("the verifier broke")

    ran = evaluate(tmp_path, lambda t, c: "x", benchmark=Looking(TASKS), environment=rooms)
    assert open_then == [0]
    assert rooms.opened[0].closed == 1
    assert finished(ran).status == "eval_error"


def test_a_failure_to_clean_up_is_an_issue_and_no_error(tmp_path: Path) -> None:
    class Sticky(Room):
        async def close(self) -> None:
            raise OSError("busy")

    class StickyRooms(Rooms):
        async def open(self, spec: EnvironmentSpec, plan: ExecutionPlan) -> Room:
            return Sticky()

    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, environment=StickyRooms())
    end = finished(ran)
    assert end.status == "completed"
    assert [issue.code for issue in end.issues] == ["environment_not_released"]


# -- retries ------------------------------------------------------------------------------------


def fails_first(times: int, error: Exception) -> Any:
    def act(t: Task, context: AttemptContext) -> RunResult:
        if context.retry < times:
            raise error
        return RunResult(t.task_id, final_answer="right")

    return act


def test_a_discarded_try_is_kept_with_its_error_and_the_same_attempt_goes_on(
    tmp_path: Path,
) -> None:
    act = fails_first(2, StageError("sandbox_failed", "no process"))
    ran = evaluate(tmp_path, act, TASKS, max_retries=3, retry_min_delay_seconds=0.5)
    first, second = ran.of(ev.AttemptRetried)
    assert (first.retry, second.retry, first.max_retries) == (1, 2, 3)
    assert (first.scope, first.stage, first.matched_pattern) == ("attempt", "run_harness", None)
    assert 0.25 <= first.retry_delay_seconds <= 0.5
    assert 0.5 <= second.retry_delay_seconds <= 1.0
    assert first.error.code == "sandbox_failed"
    assert len(ran.of(ev.PlanResolved)) == 3
    assert len(ran.of(ev.ResultRecorded)) == 1
    end = finished(ran)
    assert (end.status, end.retries) == ("completed", 2)


def test_what_a_discarded_try_gave_is_kept(tmp_path: Path) -> None:
    def act(t: Task, context: AttemptContext) -> RunResult:
        error = ErrorInfo(code="flaky", message="x") if context.retry == 0 else None
        return RunResult(t.task_id, final_answer=f"try {context.retry}", error=error)

    ran = evaluate(tmp_path, act, TASKS, max_retries=1, retry_pattern_list=["flaky"])
    (retried,) = ran.of(ev.AttemptRetried)
    assert retried.discarded_result == {"final_answer": "try 0"}
    assert retried.matched_pattern == "flaky"
    assert ran.of(ev.ResultRecorded)[0].final_answer == "try 1"


def test_when_the_budget_is_spent_the_last_error_stands(tmp_path: Path) -> None:
    act = fails_first(9, StageError("provider_server_error", "503"))
    ran = evaluate(tmp_path, act, TASKS, max_retries=2)
    end = finished(ran)
    assert (end.status, end.retries) == ("run_error", 2)
    assert end.error is not None
    assert end.error.code == "provider_server_error"


def test_a_failed_verifier_is_asked_again_without_another_run(tmp_path: Path) -> None:
    runs: list[int] = []
    asked: list[int] = []

    class Flaky(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            asked.append(1)
            if len(asked) == 1:
                raise StageError("sandbox_failed", "no process")
            return await super().evaluate(task, result, context)

    def act(t: Task, context: AttemptContext) -> str:
        runs.append(1)
        return "right"

    ran = evaluate(tmp_path, act, benchmark=Flaky(TASKS), max_retries=1)
    (retried,) = ran.of(ev.AttemptRetried)
    assert (retried.scope, retried.stage) == ("evaluate", "evaluate")
    assert (len(runs), len(asked)) == (1, 2)
    assert (finished(ran).status, finished(ran).correct) == ("completed", True)


def test_run_and_verifier_share_one_budget(tmp_path: Path) -> None:
    class Broken(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            raise StageError("sandbox_failed", "no process")

    act = fails_first(1, StageError("sandbox_failed", "no process"))
    ran = evaluate(tmp_path, act, benchmark=Broken(TASKS), max_retries=2)
    assert [event.scope for event in ran.of(ev.AttemptRetried)] == ["attempt", "evaluate"]
    assert (finished(ran).status, finished(ran).retries) == ("eval_error", 2)


def test_a_time_out_of_the_agent_is_not_tried_again_by_default(tmp_path: Path) -> None:
    async def slow(t: Task, context: AttemptContext) -> None:
        await asyncio.sleep(60)

    ran = evaluate(tmp_path, slow, TASKS, run_timeout_seconds=0.02, max_retries=3)
    assert ran.of(ev.AttemptRetried) == []


# -- verdicts -----------------------------------------------------------------------------------


def test_a_verifier_that_takes_too_long_is_its_own_error_and_no_wrong_answer(
    tmp_path: Path,
) -> None:
    class Slow(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            await asyncio.sleep(60)
            raise AssertionError

    ran = evaluate(
        tmp_path, lambda t, c: "right", benchmark=Slow(TASKS), evaluation_timeout_seconds=0.02
    )
    end = finished(ran)
    assert (end.status, end.correct, end.score) == ("eval_error", None, None)
    assert end.error is not None
    assert end.error.code == "evaluation_timeout"


def test_errors_of_run_and_verifier_are_both_told(tmp_path: Path) -> None:
    class Broken(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            raise ValueError("no rubric")

    def fail(t: Task, context: AttemptContext) -> None:
        raise RuntimeError("no")

    ran = evaluate(tmp_path, fail, benchmark=Broken(TASKS))
    assert finished(ran).status == "run_error_or_eval_error"
    assert ran.of(ev.ResultRecorded)[0].error.code == "RuntimeError"
    assert ran.of(ev.EvaluationFinished)[0].evaluation_error.code == "ValueError"


def test_a_skipped_task_is_not_judged(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: RunResult("t", status="skipped"), TASKS)
    assert finished(ran).status == "skipped"
    assert ran.of(ev.EvaluationFinished) == []
    assert ran.state.counts().skipped == 1


def test_the_verifier_sees_what_is_recorded(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looking(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            seen.append(result.final_answer)
            return Evaluation(JUDGE, correct=False)

    ran = evaluate(tmp_path, lambda t, c: {"a": {1}, "b": 2}, benchmark=Looking(TASKS))
    assert seen == [{"b": 2}]
    assert ran.of(ev.ResultRecorded)[0].final_answer == {"b": 2}


# -- artifacts ----------------------------------------------------------------------------------


class Keeping(Listed):
    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        assert context.session is not None
        return await context.session.files()


def leaving(files: Mapping[str, bytes]) -> Any:
    def act(t: Task, context: AttemptContext) -> str:
        assert isinstance(context.session, Room)
        context.session.contents.update(files)
        return "right"

    return act


def test_artifacts_are_taken_with_size_and_digest(tmp_path: Path) -> None:
    files = {"a.txt": b"short", "b.txt": b"x" * 2000, "c.bin": b"\xff\xfe"}
    ran = evaluate(tmp_path, leaving(files), benchmark=Keeping(TASKS))
    (event,) = ran.of(ev.ArtifactsCollected)
    assert [(a.path, a.bytes, a.sha256 is None) for a in event.artifacts] == [
        ("a.txt", 5, True),
        ("b.txt", 2000, False),
        ("c.bin", 2, True),
    ]
    assert event.contents == {"a.txt": "short", "b.txt": "x" * 2000, "c.bin": Binary(b"\xff\xfe")}
    assert not event.truncated


def test_limits_leave_artifacts_behind_and_say_so(tmp_path: Path) -> None:
    files = {"a": b"12345", "b": b"1234567", "c": b"12"}
    ran = evaluate(
        tmp_path,
        leaving(files),
        benchmark=Keeping(TASKS),
        artifact_limits={"max_files": 10, "max_bytes": 8},
    )
    (event,) = ran.of(ev.ArtifactsCollected)
    assert [artifact.path for artifact in event.artifacts] == ["a", "c"]
    assert event.truncated
    assert [issue.code for issue in finished(ran).issues] == ["artifacts_truncated"]


def test_artifacts_that_cannot_be_taken_are_an_issue_and_no_error(tmp_path: Path) -> None:
    class Broken(Listed):
        async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
            return ["missing"]

    ran = evaluate(tmp_path, lambda t, c: "right", benchmark=Broken(TASKS))
    end = finished(ran)
    assert (end.status, end.correct) == ("completed", True)
    assert [issue.code for issue in end.issues] == ["artifacts_failed"]


def test_artifacts_that_take_too_long_are_left_behind(tmp_path: Path) -> None:
    class Slow(Listed):
        async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
            await asyncio.sleep(60)
            return []

    ran = evaluate(
        tmp_path,
        lambda t, c: "right",
        benchmark=Slow(TASKS),
        artifact_collect_timeout_seconds=0.02,
    )
    end = finished(ran)
    assert (end.status, end.correct) == ("completed", True)
    assert [issue.code for issue in end.issues] == ["artifacts_timeout", "artifacts_truncated"]
    assert ran.of(ev.ArtifactsCollected)[0].truncated


# -- calls, tools, analyzers --------------------------------------------------------------------


def test_calls_and_tools_are_told_and_an_open_call_is_lost(tmp_path: Path) -> None:
    async def act(t: Task, context: AttemptContext) -> str:
        await context.calls.started(CallStart("c", 0, "p", "m", {}, [{"role": "user"}]))
        await context.tool("grep", arguments={"q": "x"}, output="found", exit_code=0)
        return "right"

    ran = evaluate(tmp_path, act, TASKS)
    types = [r.type for r in ran.events if r.type.startswith(("call", "tool"))]
    assert types == ["call.started", "tool.finished", "call.lost"]
    assert ran.state.tasks["t"].attempts[1].spend.lost_calls == 1


def test_a_tools_values_that_no_ledger_holds_are_the_agents_error(tmp_path: Path) -> None:
    async def act(t: Task, context: AttemptContext) -> str:
        await context.tool("grep", output={"lines": {1}, "n": 1})
        return "right"

    ran = evaluate(tmp_path, act, TASKS)
    assert ran.of(ev.ToolFinished)[0].output == {"n": 1}
    end = finished(ran)
    assert (end.status, end.correct) == ("run_error", True)
    assert end.error is not None
    assert "$.output.lines" in end.error.message


class Looker(BaseAnalyzer):
    id: ClassVar[str] = "looker"
    base_analyzer: ClassVar[str] = "looks"

    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        return Analysis(is_badcase=not evaluation.correct, score=0.5, details={"x": 1})


class Eager(Looker):
    id: ClassVar[str] = "eager"
    priority: ClassVar[int] = 5


class Broken(BaseAnalyzer):
    id: ClassVar[str] = "broken"
    base_analyzer: ClassVar[str] = "breaks"

    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        raise ValueError("no")


def test_of_each_family_the_analyzer_of_highest_priority_looks(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: "wrong", TASKS, also=[Looker(), Eager()])
    (event,) = ran.of(ev.AnalysisFinished)
    assert (event.analyzer, event.family, event.is_badcase) == ("eager", "looks", True)
    assert phases(ran)[-1] == "analyze"


def test_an_analyzer_that_fails_fails_nothing(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, also=[Broken()])
    (event,) = ran.of(ev.AnalysisFinished)
    assert event.error.code == "ValueError"
    assert finished(ran).status == "completed"


class Careless(Looker):
    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Any:
        return {"is_badcase": True}


class Modest(Looker):
    def should_skip(self, result: RunResult) -> bool:
        return result.correct is True


def test_what_is_no_analysis_is_an_error_of_the_analyzer(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, also=[Careless()])
    assert ran.of(ev.AnalysisFinished)[0].error.code == "bad_analysis"


def test_an_analyzer_may_skip_what_it_has_nothing_to_say_of(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, also=[Modest()])
    assert ran.of(ev.AnalysisFinished) == []


@pytest.mark.parametrize(
    "execution", [{"enable_analysis": False}, {"exclude_analyzers": ["looker"]}, {"analyzers": []}]
)
def test_analyzers_can_be_left_out(tmp_path: Path, execution: dict[str, Any]) -> None:
    ran = evaluate(tmp_path, lambda t, c: "right", TASKS, also=[Looker()], **execution)
    assert ran.of(ev.AnalysisFinished) == []


# -- without a harness --------------------------------------------------------------------------


class Alone(HarnessFreeBenchmark, Listed):
    async def run_task(self, task: Task, context: AttemptContext) -> RunResult:
        return RunResult(task.task_id, final_answer="right")


def test_a_benchmark_without_a_harness_runs_its_tasks_itself(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, lambda t, c: None, benchmark=Alone(TASKS), harness={"id": "none"})
    assert phases(ran)[2] == "run_task"
    assert (finished(ran).status, finished(ran).correct) == ("completed", True)


def test_secrets_of_the_environment_reach_no_event(tmp_path: Path) -> None:
    key = "a-key-of-no-known-shape"

    def fail(t: Task, context: AttemptContext) -> None:
        raise RuntimeError(f"401 for {key}")

    ran = evaluate(
        tmp_path,
        fail,
        TASKS,
        environ={"MODEL_KEY": key},
        model={
            "id": "m",
            "api_key": {"env": "MODEL_KEY"},
        },
    )
    assert ran.outcome.path is not None
    assert key not in repr([r.event for r in ran.events])
    assert key not in (ran.outcome.path / "run.log").read_text()
    assert finished(ran).error is not None
    assert ran.state.redactions > 0
