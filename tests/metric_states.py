"""Run states made by hand, for tests of metrics and replay."""

import hashlib
from collections.abc import Sequence

from ledger import events as ev
from ledger.state import AttemptState, RunState, TaskState
from tests.events_of import created

ERROR = "run_error"


def judged(value: bool | float | None, **fields: object) -> AttemptState:
    """An attempt that ended well with this verdict: a truth value, a score, or none."""
    truth = value if isinstance(value, bool) else None
    score = None if isinstance(value, bool) else value
    return AttemptState(0, **{"status": "completed", "correct": truth, "score": score, **fields})


def failed(status: ev.AttemptStatus = ERROR, **fields: object) -> AttemptState:
    """An attempt that ended in an error, without a verdict."""
    return AttemptState(0, status=status, **fields)


def answered(correct: bool, answer: str | None) -> AttemptState:
    digest = None if answer is None else hashlib.sha256(answer.encode()).digest()
    return judged(correct, answer=digest)


def task(task_id: str, attempts: Sequence[AttemptState], **fields: object) -> TaskState:
    """A task whose attempts are numbered as they stand."""
    for number, attempt in enumerate(attempts, 1):
        attempt.number = number
    numbered = {attempt.number: attempt for attempt in attempts}
    plain = {"category": None, "checksum": None, "metadata": {}, "stage": "done"}
    return TaskState(**{"id": task_id, "index": 0, **plain, "attempts": numbered, **fields})


def run(*tasks: TaskState, k: int = 1, strategy: str = "all") -> RunState:
    """A run of these tasks."""
    state = RunState(created=created(k=k, strategy=strategy), benchmark="bench")
    for index, each in enumerate(tasks):
        each.index = index
        assert each.id not in state.tasks
        state.tasks[each.id] = each
    return state


def run_of(
    *rows: Sequence[bool | float | None], k: int | None = None, strategy: str = "all"
) -> RunState:
    """A run with one task a row: truth values, scores, and None for an attempt that failed."""
    tasks = [
        task(f"t{i}", [failed() if value is None else judged(value) for value in row])
        for i, row in enumerate(rows)
    ]
    longest = max((len(row) for row in rows), default=1) or 1
    return run(*tasks, k=longest if k is None else k, strategy=strategy)
