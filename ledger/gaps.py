"""What a fold still knows of an event whose body was erased: what its header tells.

Nothing is made up for the rest: a verdict, a cost or a category that is gone is unknown, and the
event is named among the erased ones of its attempt, its task or the run.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ledger.attempt_state import AttemptState
from ledger.errors import LedgerDamaged
from ledger.state import RunState, TaskState
from ledger.view import Recorded


def fold_erased(state: RunState, task: TaskState | None, recorded: Recorded) -> None:
    """Take an erased event into `state`; `task` is the one that it is of."""
    state.gaps.append(recorded.seq)
    state.lost_types.add(recorded.type)
    if task is None:
        if recorded.type == "tasks.selected":
            state.any_task = True
        return
    if recorded.attempt is None:
        task.erased.append(recorded.seq)
        if recorded.type not in _OF_TASK:
            why = f"event {recorded.seq} ({recorded.type}) is of a task, which it cannot be"
            raise LedgerDamaged(why, seq=recorded.seq)
        _OF_TASK[recorded.type](task, recorded)
        return
    attempt = task.attempt(recorded.attempt)
    attempt.erased.append(recorded.seq)
    if attempt.origin is not None and not recorded.copied and attempt.elsewhere is None:
        attempt.elsewhere = replace(attempt.spend), replace(attempt.discarded)
    _OF_ATTEMPT.get(recorded.type, _nothing)(attempt, recorded)


def unnamed_task(state: RunState, task_id: str) -> TaskState:
    """A task that events are of, and that only a selection which was erased can have named.

    LedgerDamaged if there was none.
    """
    if not state.any_task:
        raise LedgerDamaged(f"an event is of task {task_id!r}, which was never selected")
    task = TaskState(task_id, len(state.tasks), category=None, checksum=None, metadata={})
    state.tasks[task_id] = task
    return task


def _nothing(_: AttemptState, __: Recorded) -> None:
    """All that the header tells of it is that it happened."""


def _reused(task: TaskState, _: Recorded) -> None:
    task.origin_erased = True


def _started(task: TaskState, _: Recorded) -> None:
    task.stage = "running"


def _over(task: TaskState, recorded: Recorded) -> None:
    task.stage = "error" if task.has_error else "done"
    task.finished_address = recorded.address


def _cancelled(task: TaskState, _: Recorded) -> None:
    task.stage = "cancelled"


_OF_TASK: Final[dict[str, Callable[[TaskState, Recorded], None]]] = {
    "task.reused": _reused,
    "task.started": _started,
    "task.finished": _over,
    "task.cancelled": _cancelled,
}


def _attempt_reused(attempt: AttemptState, _: Recorded) -> None:
    attempt.origin_erased = True


def _attempt_started(attempt: AttemptState, recorded: Recorded) -> None:
    attempt.copied = recorded.copied
    attempt.started = recorded.seq
    attempt.started_ns = recorded.wall_ns


def _planned(attempt: AttemptState, recorded: Recorded) -> None:
    attempt.plan = recorded.seq


def _result(attempt: AttemptState, recorded: Recorded) -> None:
    attempt.result = recorded.seq
    attempt.result_address = recorded.address
    attempt.measures = {}
    attempt.answer = None


def _artifacts(attempt: AttemptState, recorded: Recorded) -> None:
    attempt.artifacts = recorded.seq


def _evaluation(attempt: AttemptState, recorded: Recorded) -> None:
    attempt.evaluation = recorded.seq
    attempt.evaluation_address = recorded.address


def _retried(attempt: AttemptState, recorded: Recorded) -> None:
    """Whether the result went too is not known: it stays until there is another."""
    attempt.forget_verdict()
    if attempt.result is None:
        attempt.begin_anew(copied=recorded.copied)


def _finished(attempt: AttemptState, recorded: Recorded) -> None:
    attempt.finished = recorded.seq
    attempt.finished_address = recorded.address
    attempt.finished_ns = recorded.wall_ns


def _call_started(attempt: AttemptState, _: Recorded) -> None:
    attempt.spend.calls += 1
    attempt.spend.open_calls += 1


def _call_finished(attempt: AttemptState, _: Recorded) -> None:
    # What it cost is unknown, of an open call as of one that was given up and counted so.
    if attempt.spend.open_calls:
        attempt.spend.open_calls -= 1
        attempt.spend.unknown_usage += 1
        attempt.spend.unknown_cost += 1


def _call_lost(attempt: AttemptState, _: Recorded) -> None:
    attempt.spend.open_calls -= 1
    attempt.spend.lost_calls += 1
    attempt.spend.unknown_usage += 1
    attempt.spend.unknown_cost += 1


_OF_ATTEMPT: Final[dict[str, Callable[[AttemptState, Recorded], None]]] = {
    "attempt.reused": _attempt_reused,
    "attempt.started": _attempt_started,
    "plan.resolved": _planned,
    "result.recorded": _result,
    "artifacts.collected": _artifacts,
    "evaluation.finished": _evaluation,
    "attempt.retried": _retried,
    "attempt.finished": _finished,
    "call.started": _call_started,
    "call.finished": _call_finished,
    "call.lost": _call_lost,
}
