"""What foreign logs tell becomes events that a ledger takes."""

import pytest

from ledger import LedgerView, fold
from ledger import events as ev
from ledger.store import Ledger
from runtime.importers.foreign import (
    ForeignAttempt,
    ForeignCall,
    ForeignVerdict,
    foreign_request,
    task_items,
)
from tests import events_of as say

JUDGE = ev.Evaluator(id="judge", version="1")
ERROR = ev.ErrorInfo(code="boom", message="it went wrong")


def recorded(tmp_path, *attempts):
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*task_items("t", attempts))
    with LedgerView.open(tmp_path) as view:
        return fold(view.events()), [one.event for one in view.events()]


@pytest.mark.parametrize(
    ("told", "status", "correct"),
    [
        (ForeignAttempt(1, verdict=ForeignVerdict(JUDGE, correct=False)), "completed", False),
        (ForeignAttempt(1, error=ERROR), "run_error", None),
        (
            ForeignAttempt(1, error=ERROR, verdict=ForeignVerdict(JUDGE, correct=True)),
            "run_error",
            True,
        ),
        (
            ForeignAttempt(1, verdict=ForeignVerdict(JUDGE, correct=True, error=ERROR)),
            "eval_error",
            None,
        ),
        (ForeignAttempt(1), "completed", None),
        (ForeignAttempt(1, status="cancelled"), "cancelled", None),
    ],
)
def test_an_attempt_ends_as_the_log_says(tmp_path, told, status, correct):
    state, events = recorded(tmp_path, told)
    attempt = state.tasks["t"].attempts[1]
    assert (attempt.status, attempt.correct) == (status, correct)
    over = events[-1]
    assert isinstance(over, ev.TaskFinished)
    assert over.error is (status in ("run_error", "eval_error"))


def test_calls_are_told_with_what_is_known_and_lost_ones_as_lost(tmp_path):
    calls = (
        ForeignCall(messages=[{"role": "user", "content": "?"}], usage=ev.Usage(input_tokens=3)),
        ForeignCall(error=ERROR),
        ForeignCall(ended=False),
    )
    _, events = recorded(tmp_path, ForeignAttempt(1, calls=calls))
    ends = [one for one in events if isinstance(one, ev.CallFinished | ev.CallLost)]
    assert [type(one) for one in ends] == [ev.CallFinished, ev.CallFinished, ev.CallLost]
    assert ends[0].usage == ev.Usage(input_tokens=3)
    assert (ends[0].success, ends[1].success) == (True, False)
    assert ends[0].cost_usd is None
    assert ends[0].cost_source is None


def test_a_task_with_an_attempt_that_never_ended_is_not_over(tmp_path):
    state, events = recorded(tmp_path, ForeignAttempt(1), ForeignAttempt(2, ended=False))
    assert not any(isinstance(one, ev.TaskFinished) for one in events)
    assert state.tasks["t"].attempts[2].status is None


def test_a_request_names_what_is_unknown_and_keeps_the_sources_words():
    values = foreign_request(benchmark="", model="m", k=3, source={"temperature": float("inf")})
    assert values["benchmark"]["id"] == "unknown"
    assert values["execution"]["k"] == 3
    assert values["source"] == {"temperature": float("inf")}
