"""The fold past erased events: what headers tell counts, the rest is unknown and named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import LedgerView, RunState, fold
from ledger import events as ev
from ledger.attempt_state import Spend
from ledger.errors import LedgerDamaged
from ledger.store import Ledger
from ledger.view import Recorded
from tests import events_of as say
from tests.legal_runs import legal_runs

Fold = Callable[..., RunState]
ERROR = ev.ErrorInfo(code="boom", message="it broke")


def recorded(path: Path, events: list[ev.AnyEvent]) -> list[Recorded]:
    with Ledger.create(path) as ledger:
        ledger.append(*events)
    with LedgerView.open(path) as view:
        return list(view.events())


def without(events: list[Recorded], *gone: int) -> list[Recorded]:
    return [Recorded(e.header, None, e.leaf) if e.seq in gone else e for e in events]


@pytest.fixture
def folded(tmp_path: Path) -> Fold:
    def folded(events: list[ev.AnyEvent], *gone: int) -> RunState:
        return fold(without(recorded(tmp_path / "ledger.sqlite", events), *gone))

    return folded


def test_an_erased_selection_leaves_the_tasks_that_events_are_of(folded: Fold) -> None:
    state = folded([*say.opening("t", "u", "v"), *say.whole_task("u", say.attempt("u"))], 2)
    assert list(state.tasks) == ["u"]
    assert (state.tasks["u"].index, state.tasks["u"].category) == (0, None)
    assert state.any_task
    assert state.gaps == [2]
    assert state.benchmark is None


def test_the_parts_of_a_task_are_known_by_their_headers(folded: Fold) -> None:
    events = [*say.opening("t", "u"), *say.whole_task("t", say.attempt("t"))]
    events += [ev.TaskCancelled(task="u", reason="no time")]
    state = folded(events, 3, 8, 9)
    task = state.tasks["t"]
    assert (task.stage, task.erased, task.correct) == ("done", [3, 8], True)
    assert task.finished_address is not None
    assert state.tasks["u"].stage == "cancelled"


def test_a_task_that_ended_in_an_error_is_told_by_its_attempts(folded: Fold) -> None:
    events = say.whole_task("t", say.failed_attempt("t"), error=True)
    assert folded([*say.opening("t"), *events], 7).tasks["t"].stage == "error"


def test_an_erased_end_is_an_end_of_unknown_kind(folded: Fold) -> None:
    state = folded([*say.opening("t"), *say.whole_task("t", say.attempt("t"))], 7)
    attempt = state.tasks["t"].attempts[1]
    assert (attempt.status, attempt.finished, attempt.end_erased) == (None, 7, True)
    assert attempt.finished_ns > 0
    assert attempt.correct is True


def test_a_verdict_before_an_erased_retry_does_not_count(folded: Fold) -> None:
    retry = ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=1,
        max_retries=1,
        retry_delay_seconds=0,
        stage="evaluate",
        scope="evaluate",
        error=ERROR,
    )
    begun = [ev.TaskStarted(task="t"), *say.attempt("t")[:3], retry]
    state = folded([*say.opening("t"), *begun, say.verdict("t", correct=False)], 7)
    attempt = state.tasks["t"].attempts[1]
    assert attempt.correct is False
    assert attempt.result == 5
    assert attempt.retries == []


def test_a_verdict_before_an_erased_retry_is_gone_if_none_follows(folded: Fold) -> None:
    retry = ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=1,
        max_retries=1,
        retry_delay_seconds=0,
        stage="evaluate",
        scope="attempt",
        error=ERROR,
    )
    begun = [ev.TaskStarted(task="t"), *say.attempt("t")[:3], retry]
    attempt = folded([*say.opening("t"), *begun], 7).tasks["t"].attempts[1]
    assert (attempt.correct, attempt.evaluation) == (None, None)


def calls(*events: ev.AnyEvent) -> list[ev.AnyEvent]:
    begun = [ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1)]
    return [*say.opening("t"), *begun, *events]


STARTED = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
ENDED = ev.CallFinished(
    task="t",
    attempt=1,
    call_id="c",
    success=True,
    cost_usd=0.25,
    usage=ev.Usage(input_tokens=3, output_tokens=4),
)
LOST = ev.CallLost(task="t", attempt=1, call_id="c")


@pytest.mark.parametrize(
    ("events", "gone", "spend"),
    [
        ((STARTED, ENDED), 5, Spend(calls=1, input_tokens=3, output_tokens=4, cost_usd=0.25)),
        ((STARTED, ENDED), 6, Spend(calls=1, unknown_usage=1, unknown_cost=1)),
        ((STARTED, LOST), 6, Spend(calls=1, lost_calls=1, unknown_usage=1, unknown_cost=1)),
        (
            (STARTED, LOST, ENDED),
            6,
            Spend(calls=1, input_tokens=3, output_tokens=4, cost_usd=0.25),
        ),
        ((STARTED, LOST, ENDED), 7, Spend(calls=1, lost_calls=1, unknown_usage=1, unknown_cost=1)),
    ],
)
def test_what_an_erased_call_cost_is_unknown_and_not_zero(
    folded: Fold, events: tuple[ev.AnyEvent, ...], gone: int, spend: Spend
) -> None:
    assert folded(calls(*events), gone).tasks["t"].attempts[1].spend == spend


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), events=legal_runs(most=40))
def test_folding_in_two_parts_is_folding_in_one_whatever_was_erased(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, events: list[ev.AnyEvent]
) -> None:
    whole = recorded(tmp_path_factory.mktemp("run") / "ledger.sqlite", events)
    gone = data.draw(st.sets(st.integers(1, len(events) - 1)))
    cut = data.draw(st.integers(0, len(events)))
    left = without(whole, *gone)
    state = fold(left)
    assert fold(left[cut:], fold(left[:cut])) == state
    assert state.gaps == sorted(gone)
    known = fold(whole)
    assert state.root == known.root
    for task_id, task in state.tasks.items():
        for number, attempt in task.attempts.items():
            # Nothing is made up: a verdict is the one that was told, or there is none.
            told = known.tasks[task_id].attempts[number]
            assert attempt.correct in (told.correct, None)
            assert attempt.status in (told.status, None)
            assert attempt.spend.calls + attempt.discarded.calls == (
                told.spend.calls + told.discarded.calls
            )


def test_events_of_a_task_that_nobody_selected_are_damage(tmp_path: Path) -> None:
    found = recorded(tmp_path, [*say.opening("t"), *say.whole_task("t", say.attempt("t"))])
    with pytest.raises(LedgerDamaged, match="never selected"):
        fold(event for event in found if event.type != "tasks.selected")


def test_an_erased_event_of_the_run_that_names_a_task_is_damage(tmp_path: Path) -> None:
    found = recorded(tmp_path, say.opening("t"))
    header = found[1].header._replace(task="t")
    with pytest.raises(LedgerDamaged, match="which it cannot be") as caught:
        fold([found[0], found[2], Recorded(header, None, found[1].leaf)])
    assert caught.value.seq == 1
