"""Verdicts again, over the answers that a ledger holds."""

import asyncio
import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ledger import events as ev
from ledger.errors import RunNotFound, UsageError
from ledger.store import Ledger
from ledger.view import LedgerView
from runtime.contracts import AttemptContext, Benchmark, StageError, Task
from runtime.metrics.comparison import Difference
from runtime.reevaluation import (
    ERASED,
    FAILED,
    MIXED,
    NO_VERDICT,
    REPLACED,
    TASK_CHANGED,
    TASK_MISSING,
    Reevaluation,
    compare_verdicts,
    reevaluate,
)
from runtime.results import Evaluation, RunResult
from tests import events_of as say
from tests.fake_plugins import Listed, Ran, Room, Rooms, evaluate, task

TASKS = [task("a"), task("b"), task("c")]


def answers(t: Task, context: AttemptContext) -> str:
    """`b` is answered wrong."""
    return "wrong" if t.task_id == "b" else "right"


def again(ran: Ran | Path, benchmark: Benchmark, **options: Any) -> Reevaluation:
    path = ran if isinstance(ran, Path) else ran.outcome.path
    assert path is not None
    with LedgerView.open(path) as view:
        return asyncio.run(reevaluate(view, benchmark, **options))


class Lenient(Listed):
    """Takes every answer."""

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        return Evaluation(ev.Evaluator(id="listed", version="1"), correct=True, score=1.0)


class Second(Listed):
    """The same rule in another version."""

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        found = await super().evaluate(task, result, context)
        found.evaluator = ev.Evaluator(id="listed", version="2")
        return found


def test_equal_verdicts_are_counted_and_give_the_recorded_metrics(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers, TASKS, k=2)
    found = again(ran, Listed(TASKS))
    assert (found.attempts, found.compared, found.equal, found.verdicts_equal) == (6, 6, 6, True)
    assert found.not_comparable == found.different == ()
    assert found.metrics.metrics == dict(ran.state.metrics[-1][2].metrics)


def test_a_verdict_that_differs_is_named_with_its_fields(tmp_path: Path) -> None:
    found = again(evaluate(tmp_path, answers, TASKS), Lenient(TASKS))
    (changed,) = found.different
    assert (changed.task, changed.attempt) == ("b", 1)
    assert changed.differences == (
        Difference("correct", False, True),
        Difference("score", 0.0, 1.0),
    )
    assert (found.equal, found.verdicts_equal) == (2, False)
    assert found.metrics.metrics["correct.accuracy"] == 1.0


def test_the_ledger_is_not_touched(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers, TASKS)
    assert ran.outcome.path is not None

    def digests() -> dict[str, str]:
        files = sorted(ran.outcome.path.rglob("*"))
        return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files if f.is_file()}

    before = digests()
    again(ran, Lenient(TASKS))
    assert digests() == before


def test_another_version_of_the_evaluator_is_said_and_its_verdicts_are_compared(
    tmp_path: Path,
) -> None:
    found = again(evaluate(tmp_path, answers, TASKS), Second(TASKS))
    assert (found.rejudged, found.equal) == (3, 3)
    assert (found.recorded_by, found.verdicts_by) == ({"listed 1": 3}, {"listed 2": 3})
    assert found.evaluator == "listed 2"


def test_a_part_that_is_judged_by_another_version_makes_the_verdicts_mixed(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers, TASKS)
    found = again(ran, Second([*TASKS[:2], Task("c", ground_truth="right", checksum="another")]))
    assert (found.compared, found.reasons) == (2, {TASK_CHANGED: 1})
    assert found.evaluator == MIXED
    assert found.metrics.extra["evaluator"] == MIXED
    assert found.metrics.counts.evaluated == 3


def test_a_task_that_changed_or_is_gone_is_named_and_not_compared(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers, TASKS)
    changed = Task("b", ground_truth="wrong", checksum="another sum")
    found = again(ran, Listed([TASKS[0], changed]))
    assert [(one.task, one.reason) for one in found.not_comparable] == [
        ("b", TASK_CHANGED),
        ("c", TASK_MISSING),
    ]
    assert found.equal == 1


def test_attempts_with_replacements_are_not_comparable(tmp_path: Path) -> None:
    def act(t: Task, context: AttemptContext) -> str:
        return "sk-" + "a" * 48 if t.task_id == "b" else "right"

    ran = evaluate(tmp_path, act, TASKS)
    found = again(ran, Listed(TASKS))
    assert [(one.task, one.reason) for one in found.not_comparable] == [("b", REPLACED)]
    assert found.equal == 2


def test_attempts_without_a_verdict_are_not_comparable(tmp_path: Path) -> None:
    def act(t: Task, context: AttemptContext) -> str:
        raise StageError("boom", "no", fatal=True)

    found = again(evaluate(tmp_path, act, TASKS[:1]), Listed(TASKS))
    assert (found.reasons, found.verdicts_equal) == ({NO_VERDICT: 1}, None)


class Failing(Listed):
    def __init__(self, tasks: list[Task], error: Exception) -> None:
        super().__init__(tasks)
        self.error = error

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        if task.task_id == "b":
            raise self.error
        return await super().evaluate(task, result, context)


def test_an_evaluator_that_fails_is_named_and_stops_nothing(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers, TASKS)
    found = again(ran, Failing(TASKS, ValueError("no judge")))
    (one,) = found.not_comparable
    assert (one.task, one.reason, one.message) == ("b", FAILED, "ValueError: no judge")
    assert found.equal == 2


def test_an_evaluator_that_does_not_end_is_stopped_by_the_recorded_limit(tmp_path: Path) -> None:
    class Endless(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            await asyncio.sleep(60)
            raise AssertionError

    ran = evaluate(tmp_path, answers, TASKS[:1], evaluation_timeout_seconds=0.05)
    (one,) = again(ran, Endless(TASKS)).not_comparable
    assert one.reason == FAILED
    assert "0.05 s" in str(one.message)


def test_no_model_and_no_command_is_used_again(tmp_path: Path) -> None:
    class Asking(Listed):
        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            assert context.session is not None
            if task.task_id == "a":
                await context.calls.started(None)
            elif task.task_id == "b":
                await context.session.exec(["true"])
            else:
                await context.session.write_text("x", "y")
            raise AssertionError

    found = again(evaluate(tmp_path, answers, TASKS), Asking(TASKS))
    assert found.reasons == {FAILED: 3}
    assert all(str(one.message).startswith("offline: ") for one in found.not_comparable)


class Reading(Listed):
    """Judges a file that the agent left, and keeps it as an artifact."""

    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        return ["answer.txt", "raw.bin"]

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        assert context.session is not None
        text = await context.session.read_text("answer.txt")
        data = await context.session.read_bytes("raw.bin")
        found = await context.session.files()
        correct = text == "right" and data == b"\xff" and found == ["answer.txt", "raw.bin"]
        return Evaluation(ev.Evaluator(id="listed", version="1"), correct=correct)


def test_the_evaluator_reads_the_files_that_were_collected(tmp_path: Path) -> None:
    async def act(t: Task, context: AttemptContext) -> str:
        assert isinstance(context.session, Room)
        context.session.contents |= {"answer.txt": b"right", "raw.bin": b"\xff"}
        return "see answer.txt"

    ran = evaluate(tmp_path, act, benchmark=Reading(TASKS[:1]), environment=Rooms())
    assert ran.state.tasks["a"].correct is True
    assert again(ran, Reading(TASKS)).equal == 1


def test_the_evaluator_gets_the_result_as_it_was(tmp_path: Path) -> None:
    long = ["step " * 2000, {"nan": math.nan}]

    class Looking(Listed):
        seen: ClassVar[list[RunResult]] = []

        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            self.seen.append(result)
            return await super().evaluate(task, result, context)

    def act(t: Task, context: AttemptContext) -> RunResult:
        return RunResult(
            t.task_id,
            final_answer="right",
            trajectory=long,
            artifacts={"log": "x" * 5000},
            metrics={"tokens": 3},
            telemetry={"model": "m"},
            meta={"a": 1},
            extra={"b": 2},
        )

    benchmark = Looking([task("a", category="math")])
    assert again(evaluate(tmp_path, act, benchmark=benchmark), benchmark).equal == 1
    first, second = Looking.seen
    for name in RunResult.__slots__:
        assert repr(getattr(first, name)) == repr(getattr(second, name)), name


def test_the_parameters_of_the_benchmark_are_those_of_the_run(tmp_path: Path) -> None:
    class Asked(Listed):
        seen: ClassVar[list[Mapping[str, Any]]] = []

        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            self.seen.append(dict(params))
            return super().load_tasks(params)

    created = say.created()
    created.request["benchmark"] = {"id": "listed", "params": {"seed": 7, "limit": 1}}
    with Ledger.create(tmp_path) as ledger:
        ledger.append(created, ev.RunStarted(), say.selected("a"))
        ledger.append(*say.whole_task("a", say.attempt("a", answer="right")))
    assert again(tmp_path, Asked([Task("a", ground_truth="right"), Task("b")])).compared == 1
    assert Asked.seen == [{"seed": 7, "limit": 1}]


def test_an_erased_answer_is_not_comparable(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.mkdir()
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("a", "b"))
        for name in ("a", "b"):
            ledger.append(*say.whole_task(name, say.attempt(name, answer="right")))
        with LedgerView.open(path) as view:
            results = [r for r in view.events() if r.type == "result.recorded"]
        seq = next(r.seq for r in results if r.task == "a")
        ledger.append(ev.PayloadErased(sequence=(seq,), reason="asked to"))
        size = ledger.size
    tasks = [Task("a", ground_truth="right"), Task("b", ground_truth="right")]
    for at in (None, size - 2):
        found = again(path, Listed(tasks), at=at)
        assert [(one.task, one.reason) for one in found.not_comparable] == [("a", ERASED)]


def test_a_prefix_is_judged_as_it_was(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers, TASKS, task_concurrency=1)
    ends = [r.seq for r in ran.events if r.type == "task.finished"]
    found = again(ran, Listed(TASKS), at=ends[0])
    assert (found.attempts, found.equal) == (1, 1)
    with pytest.raises(RunNotFound):
        again(ran, Listed(TASKS), at=ran.state.size)


def test_no_more_evaluations_than_asked_for_run_at_once(tmp_path: Path) -> None:
    class Counting(Listed):
        running = most = 0

        async def evaluate(
            self, task: Task, result: RunResult, context: AttemptContext
        ) -> Evaluation:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            return await super().evaluate(task, result, context)

    tasks = [task(f"t{n}") for n in range(9)]
    ran = evaluate(tmp_path, answers, tasks)
    counting = Counting(tasks)
    seen: list[tuple[int, int]] = []
    found = again(ran, counting, concurrency=3, on_judged=lambda *now: seen.append(now))
    assert counting.most == 3
    assert seen[-1] == (9, 9)
    assert found.equal == 9


def test_tasks_that_cannot_be_loaded_are_wrong_use(tmp_path: Path) -> None:
    class Broken(Listed):
        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            raise OSError("no file")

    ran = evaluate(tmp_path, answers, TASKS)
    with pytest.raises(UsageError, match="no file"):
        again(ran, Broken(TASKS))


def verdict(**fields: Any) -> ev.EvaluationFinished:
    return say.verdict("t", **fields)


def test_verdicts_are_compared_field_by_field() -> None:
    recorded = verdict(score=0.5, metrics={"a": 1, "b": 2.0}, tests_status={"P": {"ok": ["x"]}})
    now = verdict(score=0.5 + 1e-12, metrics={"a": 1}, tests_status={"P": {"ok": ("x",)}})
    assert compare_verdicts(recorded, now) == (Difference("metrics/b", 2.0, None),)
    moved = verdict(score=0.5, metrics=recorded.metrics, tests_status={"P": {"ok": []}})
    assert compare_verdicts(recorded, moved) == (Difference("tests_status/P/ok", ["x"], []),)


def test_words_are_not_compared_and_nan_is_nan() -> None:
    recorded = verdict(reason="one", stdout="a", tests_status={"t": math.nan})
    assert compare_verdicts(recorded, verdict(reason="two", tests_status={"t": math.nan})) == ()


def test_test_names_are_not_compared_where_something_in_them_was_replaced() -> None:
    recorded = verdict(tests_status={"ok": ["********"]}, redactions=1)
    assert compare_verdicts(recorded, verdict(tests_status={"ok": ["secret"]})) == ()
