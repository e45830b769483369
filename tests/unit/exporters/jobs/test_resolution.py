"""What counts and what is resolved."""

import math

import pytest

from exporters.jobs.resolution import (
    is_countable,
    is_resolved,
    is_task_resolved,
    selected_attempt,
    threshold,
)
from ledger.state import AttemptState, TaskState


def task(*attempts: AttemptState, **metadata: object) -> TaskState:
    made = {attempt.number: attempt for attempt in attempts}
    return TaskState("t", 0, None, None, metadata, attempts=made)


def ended(number: int = 1, **fields: object) -> AttemptState:
    return AttemptState(number, finished=9, **{"status": "completed", **fields})


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (ended(correct=True), True),
        (ended(correct=False, score=1.0), False),
        (ended(correct=True, score=0.1), True),
        (ended(score=1.0), True),
        (ended(score=0.99), False),
        (ended(), False),
        (ended(correct=True, status="run_error"), True),
        (ended(correct=True, status="cancelled"), False),
        (AttemptState(1, correct=True), False),
    ],
)
def test_an_attempt_is_resolved_by_its_truth_value_or_else_by_its_score(
    attempt: AttemptState, expected: bool
) -> None:
    assert is_resolved(task(attempt), attempt) is expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [(0.5, 0.5), (2, 2.0), (None, 1.0), (True, 1.0), ("0.5", 1.0), (math.inf, 1.0)],
)
def test_a_task_may_declare_its_threshold_as_a_number(declared: object, expected: float) -> None:
    assert threshold(task(resolve_threshold=declared)) == expected


def test_a_score_that_reaches_the_declared_threshold_resolves() -> None:
    attempt = ended(score=0.5)
    assert is_resolved(task(attempt, resolve_threshold=0.5), attempt)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("completed", True),
        ("run_error", True),
        ("eval_error", True),
        ("run_error_or_eval_error", True),
        ("skipped", True),
        ("cancelled", False),
    ],
)
def test_all_that_ended_count_but_what_was_cancelled(status: str, expected: bool) -> None:
    assert is_countable(ended(status=status)) is expected


def test_the_first_resolved_attempt_stands_for_its_task() -> None:
    found = task(ended(1, correct=False), ended(2, correct=True), ended(3, correct=True))
    assert selected_attempt(found) is found.attempts[2]
    assert is_task_resolved(found)


def test_else_the_last_that_counts_does() -> None:
    found = task(
        ended(1, correct=False), ended(2, status="run_error"), ended(3, status="cancelled")
    )
    assert selected_attempt(found) is found.attempts[2]
    assert not is_task_resolved(found)


def test_where_none_counts_it_is_the_last_that_was_cancelled() -> None:
    found = task(ended(1, status="cancelled"), AttemptState(2))
    assert selected_attempt(found) is found.attempts[1]
    assert selected_attempt(task(AttemptState(1))) is None
    assert selected_attempt(task()) is None
