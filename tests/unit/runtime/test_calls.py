from typing import Any

from ledger import events as ev
from runtime.calls import Moves, OpenCalls

HERE: dict[str, Any] = {"task": "t", "attempt": 1}
START_A = ev.CallStarted(**HERE, call_id="a", call_index=0)
END_A = ev.CallFinished(**HERE, call_id="a", success=True)
OVER = ev.AttemptFinished(**HERE, status="cancelled")


def follow(calls: OpenCalls, *events: ev.AnyEvent) -> tuple[list[str], Moves]:
    moves = Moves()
    return [event.type for event in calls.follow(events, moves)], moves


def test_a_call_that_ended_is_not_lost() -> None:
    types, _ = follow(OpenCalls(), START_A, END_A, OVER)
    assert types == ["call.started", "call.finished", "attempt.finished"]


def test_an_open_call_is_lost_before_its_attempt_ends() -> None:
    calls = OpenCalls()
    follow(calls, START_A)
    assert follow(calls, OVER)[0] == ["call.lost", "attempt.finished"]
    assert follow(calls, OVER)[0] == ["attempt.finished"]


def test_calls_of_another_attempt_are_none_of_its_business() -> None:
    calls = OpenCalls()
    follow(calls, START_A)
    other = ev.AttemptFinished(task="t", attempt=2, status="cancelled")
    assert follow(calls, other)[0] == ["attempt.finished"]


def test_a_batch_that_was_not_stored_is_taken_back() -> None:
    calls = OpenCalls()
    follow(calls, START_A)
    _, moves = follow(calls, ev.CallStarted(**HERE, call_id="b", call_index=1), OVER)
    calls.undo(moves)
    types, _ = follow(calls, OVER)
    assert types == ["call.lost", "attempt.finished"]
