"""What counts, and what is resolved: one truth for the job, its analysis and its archive.

An attempt is countable once it ended, unless it was cancelled. It is resolved where the benchmark
said that it is correct, or, where the benchmark gives scores alone, where its score reaches the
threshold: the number `resolve_threshold` in the task's metadata, or 1.
"""

import math
from collections.abc import Iterator
from typing import Final, Literal

from ledger.state import AttemptState, RunState, TaskState

Group = Literal["resolved", "failed"]

DEFAULT_THRESHOLD: Final = 1.0
THRESHOLD: Final = "resolve_threshold"
"""The key of a task's metadata that holds the least score of a resolved attempt."""


def threshold(task: TaskState) -> float:
    """The least score with which an attempt at the task is resolved, where only scores are told."""
    declared = task.metadata.get(THRESHOLD)
    if isinstance(declared, int | float) and not isinstance(declared, bool):
        return float(declared) if math.isfinite(declared) else DEFAULT_THRESHOLD
    return DEFAULT_THRESHOLD


def is_ended(attempt: AttemptState) -> bool:
    """Whether the attempt has its terminal event."""
    return attempt.finished is not None


def is_countable(attempt: AttemptState) -> bool:
    """Whether the attempt counts: it ended, and nobody cancelled it."""
    return is_ended(attempt) and attempt.status != "cancelled"


def is_resolved(task: TaskState, attempt: AttemptState) -> bool:
    """Whether a countable attempt solved its task."""
    if not is_countable(attempt):
        return False
    if attempt.correct is not None:
        return attempt.correct
    return attempt.score is not None and attempt.score >= threshold(task)


def countable_attempts(task: TaskState) -> list[AttemptState]:
    """The attempts at a task that count, by number."""
    return [attempt for attempt in _ended(task) if is_countable(attempt)]


def is_task_resolved(task: TaskState) -> bool:
    """Whether any countable attempt solved the task."""
    return any(is_resolved(task, attempt) for attempt in task.attempts.values())


def selected_attempt(task: TaskState) -> AttemptState | None:
    """The attempt that stands for its task: the first resolved, else the last countable one.

    Where none is countable it is the last that was cancelled; None where none ended.
    """
    ended = _ended(task)
    countable = [attempt for attempt in ended if is_countable(attempt)]
    resolved = [attempt for attempt in countable if is_resolved(task, attempt)]
    if resolved:
        return resolved[0]
    return (countable or ended)[-1] if ended else None


def trials(state: RunState) -> Iterator[tuple[TaskState, AttemptState]]:
    """The attempts that are trials, in task order, then by number: those that have a directory."""
    for task in state.tasks.values():
        for attempt in trials_of(task, state.k):
            yield task, attempt


def trials_of(task: TaskState, k: int) -> Iterator[AttemptState]:
    """The attempts at one task that are trials, by number, where `k` are made of each.

    With one attempt a task, that is its trial however it ended; of several, those that count.
    """
    ended = _ended(task)
    single = k == 1 and len(task.in_order()) == 1
    return (attempt for attempt in ended if single or is_countable(attempt))


def _ended(task: TaskState) -> list[AttemptState]:
    return [attempt for attempt in task.in_order() if is_ended(attempt)]
