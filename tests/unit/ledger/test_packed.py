from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.attempt_state import AttemptState, Origin, Spend
from ledger.state import TaskState

NUMBERS = st.none() | st.integers(0, 2**64 - 2)
DIGESTS = st.none() | st.binary(min_size=32, max_size=32)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "started": NUMBERS,
    "plan": NUMBERS,
    "result": NUMBERS,
    "artifacts": NUMBERS,
    "evaluation": NUMBERS,
    "finished": NUMBERS,
    "started_ns": st.integers(0, 2**64 - 1),
    "finished_ns": st.integers(0, 2**64 - 1),
    "answer": DIGESTS,
    "result_address": DIGESTS,
    "evaluation_address": DIGESTS,
    "finished_address": DIGESTS,
    "status": st.sampled_from([None, "completed", "run_error", "skipped"]),
    "phase": st.sampled_from([None, "run_harness", "evaluate"]),
    "correct": st.sampled_from([None, True, False]),
    "score": st.none() | st.floats(allow_nan=False) | st.integers(),
    "copied": st.booleans(),
    "anew": st.booleans(),
    "fatal": st.booleans(),
    "origin_erased": st.booleans(),
    "metrics": st.dictionaries(st.text(), st.integers(), max_size=2),
    "calls": st.lists(st.integers(0), max_size=3),
}
ORIGIN = Origin(run_id="r", path=None, ledger_id="00", size=1, root="00", seq=4)


def task(**fields: object) -> TaskState:
    return TaskState("t", 3, "c", None, {}, **fields)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(sorted(FIELDS)), max_size=12), st.data())
def test_every_field_holds_what_it_was_last_set_to(names: list[str], data: st.DataObject) -> None:
    attempt = AttemptState(1)
    told: dict[str, object] = {}
    for name in names:
        told[name] = data.draw(FIELDS[name])
        setattr(attempt, name, told[name])
    for name in FIELDS:
        expected = told[name] if name in told else getattr(AttemptState(1), name)
        found = getattr(attempt, name)
        assert (found, type(found)) == (expected, type(expected))
    assert attempt == AttemptState(1, **told)


def test_a_new_attempt_knows_nothing() -> None:
    new = AttemptState(7)
    assert (new.number, new.status, new.correct, new.score, new.phase) == (
        7,
        None,
        None,
        None,
        None,
    )
    assert (new.started, new.started_ns, new.answer, new.origin) == (None, 0, None, None)
    assert (new.phases, new.calls, new.lost, new.metrics) == ([], [], {}, {})
    assert (new.spend, new.discarded, new.elsewhere) == (Spend(), Spend(), None)
    assert (new.copied, new.anew, new.fatal, new.origin_erased) == (False,) * 4


def test_a_list_that_was_asked_for_can_be_added_to() -> None:
    attempt = AttemptState(1)
    attempt.calls.append(5)
    attempt.calls.append(9)
    attempt.spend.calls += 2
    assert (attempt.calls, attempt.spend, attempt.tools) == ([5, 9], Spend(calls=2), [])


def test_looking_at_a_field_makes_no_difference() -> None:
    seen, unseen = AttemptState(1), AttemptState(1)
    assert (seen.calls, seen.spend, seen.lost) == ([], Spend(), {})
    assert seen == unseen
    seen.spend.calls += 1
    assert seen != unseen


def test_phases_stand_in_their_order_and_go_with_the_try() -> None:
    attempt = AttemptState(1)
    attempt.enter("prepare_task", 3)
    attempt.enter("run_harness", 2**40)
    assert (attempt.phase, attempt.phases) == ("run_harness", [3, 2**40])
    attempt.finished = 11
    attempt.begin_anew(copied=False)
    assert (attempt.phase, attempt.phases, attempt.finished) == (None, [], 11)
    attempt.enter("run_harness", 12)
    assert attempt.phases == [12]


@pytest.mark.parametrize(
    "change",
    [{"number": 2}, {"score": 1.0}, {"evaluator": ("a", "1")}, {"plan": 0}, {"origin": ORIGIN}],
)
def test_attempts_that_differ_in_one_field_are_not_equal(change: dict[str, Any]) -> None:
    other = AttemptState(1)
    for name, value in change.items():
        setattr(other, name, value)
    assert other != AttemptState(1)


def test_there_is_no_field_of_another_name() -> None:
    with pytest.raises(AttributeError):
        AttemptState(1, verdicts=3)


def test_the_attempts_of_a_task_keep_the_order_in_which_they_began() -> None:
    one = task()
    assert one.attempts == {}
    second = one.attempt(2)
    assert one.attempt(2) is second
    assert list(one.attempts) == [2]
    first = one.attempt(1)
    assert list(one.attempts) == [2, 1]
    assert one.in_order() == [first, second]
    assert one.attempts[2] is second


def test_tasks_are_equal_where_all_their_fields_and_attempts_are() -> None:
    one, other = task(), task(stage="pending", erased=[])
    assert one == other
    one.attempt(1).plan = 4
    assert one != other
    other.attempts = {1: AttemptState(1, plan=4)}
    assert one == other
    one.last = 8
    assert one != other
