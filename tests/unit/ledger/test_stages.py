"""Events whose body was erased: a rule knows their header, and refuses nothing for the rest."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import events as ev
from ledger.errors import LedgerStateError
from ledger.machine import Machine, Unknown
from tests import events_of as say
from tests.legal_runs import legal_runs

Given = ev.AnyEvent | Unknown


def unknown(event: ev.AnyEvent) -> Unknown:
    return Unknown(type(event), event.task, event.attempt)


def run(*events: Given, machine: Machine | None = None) -> Machine:
    machine = machine or Machine()
    for event in events:
        machine.commit(machine.admit([(event, False)]))
    return machine


def started(*tasks: str) -> Machine:
    machine = run(*say.opening(*tasks))
    for task in tasks:
        run(ev.TaskStarted(task=task), ev.AttemptStarted(task=task, attempt=1), machine=machine)
    return machine


def refused(machine: Machine, event: Given) -> str:
    with pytest.raises(LedgerStateError) as caught:
        machine.admit([(event, False)])
    return caught.value.message


@settings(max_examples=150, deadline=None)
@given(data=st.data(), events=legal_runs())
def test_a_legal_run_stays_legal_whatever_is_erased(
    data: st.DataObject, events: list[ev.AnyEvent]
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(events) - 1)))
    known = run(*events)
    left = run(*(unknown(event) if n in gone else event for n, event in enumerate(events)))
    assert left.stage == known.stage
    assert left.open_attempts() == known.open_attempts()


def test_what_no_content_makes_legal_is_refused_of_an_erased_event_too() -> None:
    machine = started("t")
    assert "no result" in refused(machine, Unknown(ev.EvaluationFinished, "t", 1))
    assert "no plan" in refused(machine, Unknown(ev.PhaseEntered, "t", 1))
    assert "no call" in refused(machine, Unknown(ev.CallFinished, "t", 1))
    assert "not selected" in refused(machine, Unknown(ev.TaskStarted, "u", None))
    assert "sealed" in refused(
        run(ev.LedgerSealed(), machine=machine), Unknown(ev.RunStarted, None, None)
    )


def test_tasks_of_an_erased_selection_are_known_once_they_are_named() -> None:
    machine = run(say.created(), ev.RunStarted(), Unknown(ev.TasksSelected, None, None))
    run(ev.TaskStarted(task="t"), machine=machine)
    assert "1 tasks" in refused(machine, ev.SummaryStarted())
    refused(machine, ev.TaskStarted(task="t"))
    refused(machine, say.selected("t"))
    run(ev.TaskFinished(task="t", reason="all_attempts", error=False), machine=machine)
    assert run(ev.SummaryStarted(), machine=machine).stage == "summarizing"


def test_an_erased_verdict_may_have_been_any() -> None:
    for correct in (True, False, None):
        machine = run(say.result("t"), Unknown(ev.EvaluationFinished, "t", 1), machine=started("t"))
        refused(machine, say.verdict("t"))
        end = ev.AttemptFinished(task="t", attempt=1, status="completed", correct=correct)
        run(end, machine=machine)


def test_an_erased_end_may_have_been_an_error_but_a_known_error_stays_one() -> None:
    over = Unknown(ev.AttemptFinished, "t", 1)
    for error in (True, False):
        machine = run(over, machine=started("t"))
        run(ev.TaskFinished(task="t", reason="all_attempts", error=error), machine=machine)
    machine = run(over, machine=started("t"))
    run(
        ev.AttemptStarted(task="t", attempt=2),
        ev.AttemptFinished(task="t", attempt=2, status="run_error"),
        machine=machine,
    )
    refused(machine, ev.TaskFinished(task="t", reason="all_attempts", error=False))


def test_an_erased_phase_was_at_least_the_next() -> None:
    machine = run(ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash=""), machine=started("t"))
    run(Unknown(ev.PhaseEntered, "t", 1), machine=machine)
    refused(machine, ev.PhaseEntered(task="t", attempt=1, phase="open_environment"))
    run(ev.PhaseEntered(task="t", attempt=1, phase="prepare_task"), machine=machine)


def judged() -> Machine:
    return run(
        ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash=""),
        say.result("t"),
        say.verdict("t"),
        Unknown(ev.AttemptRetried, "t", 1),
        machine=started("t"),
    )


@pytest.mark.parametrize(
    "event",
    [
        ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash=""),
        ev.PhaseEntered(task="t", attempt=1, phase="evaluate"),
        say.verdict("t", correct=False),
        say.result("t"),
    ],
)
def test_an_erased_retry_may_have_begun_anew_or_gone_on(event: ev.AnyEvent) -> None:
    run(event, machine=judged())


def test_how_it_goes_on_tells_which_retry_it_was() -> None:
    machine = run(ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash=""), machine=judged())
    assert "no result" in refused(machine, say.verdict("t"))
    assert "no result" in refused(
        machine, ev.AttemptFinished(task="t", attempt=1, status="completed", retries=1)
    )
    machine = run(say.verdict("t"), machine=judged())
    assert "has a plan" in refused(
        machine, ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash="")
    )
    assert "0 retries" in refused(
        machine, ev.AttemptFinished(task="t", attempt=1, status="completed", correct=True)
    )


def test_calls_of_which_an_event_was_erased_are_not_told_as_open() -> None:
    call = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
    machine = run(call, machine=started("t"))
    assert machine.open_calls() == [("t", 1, "c")]
    run(Unknown(ev.CallFinished, "t", 1), machine=machine)
    assert machine.open_calls() == []
    # The same id can be used again once the call has ended.
    run(call, ev.CallFinished(task="t", attempt=1, call_id="c", success=True), machine=machine)


def test_a_call_that_was_given_up_can_end_after_the_attempt_whichever_part_was_erased() -> None:
    call = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
    lost = ev.CallLost(task="t", attempt=1, call_id="c")
    end = ev.AttemptFinished(task="t", attempt=1, status="run_error")
    late = ev.CallFinished(task="t", attempt=1, call_id="c", success=True)
    run(call, unknown(lost), end, late, machine=started("t"))
    run(call, lost, end, unknown(late), machine=started("t"))
    refused(run(end, machine=started("t")), unknown(late))
