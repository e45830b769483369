import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ledger import events as ev
from ledger.state import RunState
from ledger.view import Blobs
from runtime.attempts import Attempt
from runtime.contracts import AttemptContext, StageError, Task
from runtime.interrupt import StopSignal
from tests.fake_plugins import Listed, Ran, Rooms, evaluate, task
from tests.ledger_checks import check_ledger


def numbers(ran: Ran, task_id: str = "t") -> list[int]:
    return [event.attempt for event in ran.of(ev.AttemptStarted, task_id)]


def answers(*by_attempt: Any) -> Any:
    """Gives the n-th answer in attempt n; an exception is raised."""

    def act(t: Task, context: AttemptContext) -> Any:
        answer = by_attempt[context.attempt - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return act


def test_all_attempts_are_made_under_all(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, answers("right", "wrong", "right"), [task("t")], k=3)
    assert sorted(numbers(ran)) == [1, 2, 3]
    (end,) = ran.of(ev.TaskFinished)
    assert (end.reason, end.error) == ("all_attempts", False)


def test_the_first_right_answer_ends_the_task_under_stop_on_correct(tmp_path: Path) -> None:
    act = answers("wrong", "right", "right")
    ran = evaluate(tmp_path, act, [task("t")], k=3, strategy="stop_on_correct")
    assert numbers(ran) == [1, 2]
    assert ran.of(ev.TaskFinished)[0].reason == "stopped_early"


def test_a_right_answer_at_the_last_attempt_stops_nothing_early(tmp_path: Path) -> None:
    ran = evaluate(
        tmp_path, answers("wrong", "right"), [task("t")], k=2, strategy="stop_on_correct"
    )
    assert ran.of(ev.TaskFinished)[0].reason == "all_attempts"


@pytest.mark.parametrize("first", [RuntimeError("no"), StageError("x", "y", fatal=True)])
def test_an_error_never_stops_the_task(tmp_path: Path, first: Exception) -> None:
    ran = evaluate(tmp_path, answers(first, "right"), [task("t")], k=2, strategy="stop_on_correct")
    assert numbers(ran) == [1, 2]
    assert ran.of(ev.TaskFinished)[0].error is True


def test_a_right_answer_of_an_attempt_with_an_error_stops_nothing(tmp_path: Path) -> None:
    class Generous(Listed):
        async def evaluate(self, task: Task, result: Any, context: AttemptContext) -> Any:
            result.final_answer = "right"
            return await super().evaluate(task, result, context)

    act = answers(RuntimeError("no"), "right", "right")
    found = Generous([task("t")])
    ran = evaluate(tmp_path, act, benchmark=found, k=3, strategy="stop_on_correct")
    assert numbers(ran) == [1, 2]


def test_attempts_of_one_task_run_side_by_side_where_that_is_safe(tmp_path: Path) -> None:
    together = asyncio.Barrier(3)

    async def act(t: Task, context: AttemptContext) -> str:
        await asyncio.wait_for(together.wait(), 60)
        return "right"

    ran = evaluate(tmp_path, act, [task("t")], k=3)
    assert [event.status for event in ran.of(ev.AttemptFinished)] == ["completed"] * 3


def test_attempts_run_one_by_one_where_it_is_not(tmp_path: Path) -> None:
    class Careful(Listed):
        parallel_attempts_safe: ClassVar[bool] = False

    running: list[int] = []

    async def act(t: Task, context: AttemptContext) -> str:
        running.append(context.attempt)
        await asyncio.sleep(0)
        assert running == [context.attempt]
        running.remove(context.attempt)
        return "right"

    ran = evaluate(tmp_path, act, benchmark=Careful([task("t")]), k=3)
    assert [event.status for event in ran.of(ev.AttemptFinished)] == ["completed"] * 3


def test_as_many_attempts_are_made_at_once_as_there_are_slots(tmp_path: Path) -> None:
    now = 0
    most = 0
    two = asyncio.Barrier(2)

    async def act(t: Task, context: AttemptContext) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.wait_for(two.wait(), 30)
        now -= 1
        return "right"

    tasks = [task(f"t{number}") for number in range(6)]
    ran = evaluate(tmp_path, act, tasks, k=3, task_concurrency=2)
    assert most == 2
    assert ran.state.counts().correct == 6


def test_tasks_are_begun_in_order(tmp_path: Path) -> None:
    tasks = [task(f"t{number}") for number in range(6)]
    ran = evaluate(tmp_path, lambda t, c: "right", tasks, task_concurrency=2)
    assert [event.task for event in ran.of(ev.TaskStarted)] == [t.task_id for t in tasks]


def test_a_pause_before_another_try_holds_no_slot(tmp_path: Path) -> None:
    order: list[str] = []

    def act(t: Task, context: AttemptContext) -> str:
        order.append(f"{t.task_id}.{context.retry}")
        if t.task_id == "a" and context.retry == 0:
            raise StageError("sandbox_failed", "no process")
        return "right"

    evaluate(tmp_path, act, [task("a"), task("b")], task_concurrency=2, max_retries=1)
    assert sorted(order) == ["a.0", "a.1", "b.0"]


# -- told to stop -------------------------------------------------------------------------------


def stopped(tmp_path: Path, **more: Any) -> tuple[Ran, Rooms]:
    """A run that is told to stop while the second task is at work."""
    stop, rooms = StopSignal(), Rooms()

    async def act(t: Task, context: AttemptContext) -> str:
        if t.task_id == "b":
            stop.request("SIGINT")
            await asyncio.sleep(60)
        return "right"

    tasks = [task(name) for name in "abcd"]
    ran = evaluate(tmp_path, act, tasks, stop=stop, environment=rooms, task_concurrency=1, **more)
    return ran, rooms


def test_a_stopped_run_says_what_was_cancelled(tmp_path: Path) -> None:
    ran, rooms = stopped(tmp_path)
    assert (ran.outcome.status, ran.outcome.exit_code) == ("cancelled", 130)
    (asked,) = ran.of(ev.InterruptRequested)
    assert (asked.signal, asked.count) == ("SIGINT", 1)
    assert [event.task for event in ran.of(ev.TaskCancelled)] == ["b", "c", "d"]
    (end,) = ran.of(ev.AttemptFinished, "b")
    assert (end.status, end.correct) == ("cancelled", None)
    assert ran.of(ev.RunFinished)[0].exit_code == 130
    assert all(room.closed == 1 for room in rooms.opened)
    assert ran.types[-1] == "ledger.sealed"
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


def test_a_cancelled_attempt_counts_nothing(tmp_path: Path) -> None:
    ran, _ = stopped(tmp_path)
    counts = ran.state.counts()
    assert (counts.evaluated, counts.missing, counts.error) == (1, 3, 0)
    assert not ran.state.tasks["b"].has_detail


def test_what_ignores_its_cancellation_is_left_behind_and_recorded(tmp_path: Path) -> None:
    stop = StopSignal()
    outlasted: list[bool] = []
    over = False

    async def act(t: Task, context: AttemptContext) -> str:
        stop.request("SIGTERM")
        for _ in range(3000):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
            if over:
                break
        outlasted.append(over)
        return "right"

    def look(state: RunState, blobs: Blobs) -> None:
        nonlocal over
        over = over or state.finished is not None

    ran = evaluate(tmp_path, act, [task("t")], stop=stop, grace=0.05, projectors=[lambda _: look])
    assert outlasted == [True]
    assert ran.outcome.exit_code == 143
    assert [event.status for event in ran.of(ev.AttemptFinished)] == ["cancelled"]
    assert ran.of(ev.TaskCancelled) != []


def test_a_run_that_is_stopped_before_its_first_task_does_nothing(tmp_path: Path) -> None:
    stop = StopSignal()
    stop.request("SIGTERM")
    ran = evaluate(tmp_path, lambda t, c: "right", [task("a"), task("b")], stop=stop)
    assert ran.of(ev.AttemptStarted) == []
    assert [event.task for event in ran.of(ev.TaskCancelled)] == ["a", "b"]


def test_an_attempt_that_waits_for_its_next_try_is_cancelled_too(tmp_path: Path) -> None:
    stop = StopSignal()

    def act(t: Task, context: AttemptContext) -> str:
        if context.retry == 1:
            stop.request("SIGTERM")
        raise StageError("sandbox_failed", "no process")

    ran = evaluate(tmp_path, act, [task("t")], stop=stop, max_retries=1000)
    (end,) = ran.of(ev.AttemptFinished)
    assert end.status == "cancelled"
    assert end.retries == len(ran.of(ev.AttemptRetried)) >= 1


def test_a_stop_that_comes_when_all_is_done_cancels_nothing(tmp_path: Path) -> None:
    stop = StopSignal()

    def act(t: Task, context: AttemptContext) -> str:
        return "right"

    class Late(Listed):
        def aggregate_metrics(self, state: Any, metrics: Any) -> Any:
            stop.request("SIGTERM")
            return metrics

    ran = evaluate(tmp_path, act, benchmark=Late([task("t")]), stop=stop)
    assert (ran.outcome.status, ran.outcome.exit_code) == ("completed", 0)


def test_a_fault_of_the_runtime_fails_its_task_and_the_request_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Attempt._keep

    async def faulty(self: Attempt, tried: Any) -> None:
        if self.trail.task.task_id == "a":
            raise AssertionError("a bug")
        await keep(self, tried)

    monkeypatch.setattr(Attempt, "_keep", faulty)
    ran = evaluate(tmp_path, lambda t, c: "right", [task("a"), task("b")], task_concurrency=1)
    assert (ran.outcome.status, ran.outcome.exit_code) == ("failed", 1)
    assert ran.outcome.error is not None
    assert ran.outcome.error.code == "AssertionError"
    assert [(c.task, c.reason) for c in ran.of(ev.TaskCancelled)] == [
        ("a", "given up: AssertionError")
    ]
    assert ran.of(ev.AttemptFinished, "b")[0].correct is True
    assert ran.of(ev.MetricsComputed) != []
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)
