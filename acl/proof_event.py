"""Which event shows what somebody wants to show of a task."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger import LedgerView
    from ledger.state import AttemptState, TaskState


def event_of(view: "LedgerView", task: str, attempt: int | None, type_name: str | None) -> int:
    """Return the number of the event that tells how an attempt ended.

    That is the evaluation of its last try, which holds the verdict; `attempt.finished` where there
    is none. With `type_name` the last event of that type of the task, or of its attempt. Raises
    RunNotFound where there is no such event, UsageError where several attempts could be meant.
    """
    from ledger import fold
    from ledger.errors import RunNotFound

    if type_name is not None:
        return _last_of(view, task, attempt, type_name)
    found = fold(view.events()).tasks.get(task)
    if found is None:
        raise RunNotFound(f"there is no task {task!r}", hint="`acl show RUN --tasks` lists them")
    chosen = _attempt_of(found, attempt)
    seq = chosen.evaluation if chosen.evaluation is not None else chosen.finished
    if seq is None:
        raise RunNotFound(
            f"attempt {chosen.number} of task {task!r} has not ended",
            hint="--event attempt.started proves that it was begun",
        )
    return seq


def _attempt_of(task: "TaskState", number: int | None) -> "AttemptState":
    from ledger.errors import RunNotFound, UsageError

    made = ", ".join(map(str, sorted(task.attempts))) or "none"
    if number is None:
        if len(task.attempts) > 1:
            raise UsageError(
                f"task {task.id!r} has the attempts {made}", hint="name one with --attempt"
            )
        number = next(iter(task.attempts), 1)
    if number not in task.attempts:
        raise RunNotFound(f"task {task.id!r} has no attempt {number}; it has {made}")
    return task.attempts[number]


def _last_of(view: "LedgerView", task: str, attempt: int | None, type_name: str) -> int:
    from ledger.errors import RunNotFound, UsageError
    from ledger.events import TYPE_NAMES

    if type_name not in TYPE_NAMES.values():
        raise UsageError(
            f"there is no event type {type_name!r}", hint="`acl log RUN` shows which there are"
        )
    last = None
    for recorded in view.events():
        if (recorded.task, recorded.type) == (task, type_name) and attempt in {
            None,
            recorded.attempt,
        }:
            last = recorded.seq
    if last is None:
        number = "" if attempt is None else f" in attempt {attempt}"
        raise RunNotFound(f"task {task!r} has no {type_name}{number}")
    return last
