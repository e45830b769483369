"""What each attempt says about one metric: a number, or why there is none."""

import sys
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from ledger.state import AttemptState, RunState
from runtime.metrics import reasons

Value = bool | int | float

# What counts are made of besides verdicts.
_COUNTING = frozenset({"tasks.selected", "task.finished", "attempt.retried", "attempt.finished"})


class Observation(NamedTuple):
    """One attempt seen through one metric; exactly one of `value` and `reason` is None.

    `answer` is the SHA-256 of the canonical final answer, None where there is none.
    """

    value: Value | None
    reason: str | None
    fatal: bool = False
    answer: bytes | None = None
    answer_erased: bool = False


class TaskObservations(NamedTuple):
    """One task, its attempts in the order of their numbers.

    `stopping`: attempts ended with the first correct one, as the run's strategy has it, or as
    that of the run had it that the task is reused from.
    """

    category: str
    attempts: tuple[Observation, ...]
    stopping: bool = False
    has_error: bool = False


def likeness(task: TaskObservations) -> Hashable:
    """All of a task that an estimate depends on: of answers, which of them are equal."""
    answers = [attempt.answer for attempt in task.attempts]
    return task.stopping, tuple(
        [
            (
                type(one.value),
                one.value,
                one.reason,
                one.fatal,
                one.answer_erased,
                None if one.answer is None else answers.index(one.answer),
            )
            for one in task.attempts
        ]
    )


# Stands for tasks that were selected and of which nothing is left: how many is not known.
_UNTOLD = TaskObservations("__uncategorized__", (Observation(None, reasons.ERASED),))


def observe(state: RunState, metric: str) -> Iterator[TaskObservations]:
    """See every task of `state`, in task order, through `metric`.

    `correct` and `score` are the verdict; any other name is looked up in what the evaluation
    measured. A recorded verdict counts whatever became of the attempt afterwards. Copies of one
    attempt are one attempt: the first, in task order and by number, counts. Where tasks may have
    been selected that no event names any more, the first element stands for them.
    """
    seen: set[bytes] = set()
    stopping = state.strategy == "stop_on_correct"
    if state.any_task and not _all_began(state):
        yield _UNTOLD
    for task in state.tasks.values():
        attempts = task.in_order()
        yield TaskObservations(
            category=label(task.category),
            attempts=tuple([_observe(attempt, metric, seen) for attempt in attempts]),
            stopping=stopping or task.stopped_early,
            has_error=any(attempt.error for attempt in attempts),
        )


def _all_began(state: RunState) -> bool:
    """Whether every selected task was begun, so that its events name it."""
    ended = state.finished is not None and state.finished.status == "completed"
    return ended or bool(state.metrics)


def label(category: str | None) -> str:
    """The name that stands for a category in results."""
    return "__uncategorized__" if category is None else category


def measured(state: RunState) -> list[str]:
    """The names of what evaluations measured besides the verdict, sorted."""
    names = {name for _, attempt in state.attempts() for name in attempt.metrics}
    return sorted(names - {"correct", "score"})


def counts_are_erased(state: RunState) -> bool:
    """Whether so much was erased that counts and metrics cannot be what they were."""
    lost = not _COUNTING.isdisjoint(state.lost_types)
    return lost or any(attempt.verdict_erased for _, attempt in state.attempts())


def _observe(attempt: AttemptState, metric: str, seen: set[bytes]) -> Observation:
    identity = attempt.identity
    if identity is not None:
        if identity in seen:
            return Observation(None, reasons.DUPLICATE)
        seen.add(identity)
    value = None if attempt.verdict_erased else _value(attempt, metric)
    if value is not None and not _fits_a_float(value):
        return Observation(None, reasons.TOO_LARGE)
    return Observation(
        value=value,
        reason=_why(attempt) if value is None else None,
        fatal=attempt.fatal,
        answer=attempt.answer,
        answer_erased=attempt.misses(attempt.result),
    )


def _value(attempt: AttemptState, metric: str) -> Value | None:
    if metric == "correct":
        return attempt.correct
    if metric == "score":
        return attempt.score
    return attempt.metrics.get(metric)


def _fits_a_float(value: Value) -> bool:
    # Stored integers have no bound.
    return isinstance(value, float) or abs(value) <= sys.float_info.max


def _why(attempt: AttemptState) -> str:
    """Why an attempt has no value. An error that was judged all the same is no error here."""
    if attempt.verdict_erased or (attempt.end_erased and not attempt.verdict):
        return reasons.ERASED
    if attempt.verdict or attempt.status == "completed":
        return reasons.NO_VALUE
    return attempt.status or reasons.OPEN
