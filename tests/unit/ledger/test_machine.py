from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings

from ledger import events as ev
from ledger.errors import LedgerStateError
from ledger.machine import PHASES, Machine
from tests import events_of as say
from tests.legal_runs import legal_runs


def run(
    events: Iterable[ev.AnyEvent], machine: Machine | None = None, *, copied: bool = False
) -> Machine:
    machine = machine or Machine()
    for event in events:
        machine.commit(machine.admit([(event, copied)]))
    return machine


def refused(machine: Machine, *events: ev.AnyEvent, copied: bool = False) -> str:
    with pytest.raises(LedgerStateError) as caught:
        machine.admit([(event, copied) for event in events])
    return str(caught.value)


def running(*tasks: str) -> Machine:
    return run(say.opening(*(tasks or ("t",))))


def in_attempt(*, plan: bool = True) -> Machine:
    machine = run([ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1)], running())
    plan_event = ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash="h")
    return run([plan_event], machine) if plan else machine


def test_a_whole_run_goes_from_created_to_terminal() -> None:
    machine = run([*say.opening("t"), *say.whole_task("t", say.attempt("t")), *say.ending()])
    assert machine.stage == "terminal"
    assert machine.open_attempts() == []


@pytest.mark.parametrize(
    "event",
    [
        ev.RunStarted(),
        say.selected("t"),
        ev.SummaryStarted(),
        ev.RunFinished(status="completed", exit_code=0),
        ev.AnnotationAdded(text="x", author="y"),
        ev.LedgerSealed(),
        ev.TaskStarted(task="t"),
    ],
    ids=lambda event: event.type,
)
def test_a_run_begins_with_run_created(event: ev.AnyEvent) -> None:
    assert event.type in refused(Machine(), event)


def test_run_created_comes_once() -> None:
    refused(run([say.created()]), say.created())


def test_two_tasks_with_one_id_are_refused_with_the_id() -> None:
    assert "'t'" in refused(run([say.created(), ev.RunStarted()]), say.selected("t", "u", "t"))


def test_summary_waits_for_every_task() -> None:
    machine = run(say.whole_task("t", say.attempt("t")), running("t", "u"))
    assert "1 tasks" in refused(machine, ev.SummaryStarted())


def test_completed_needs_a_summary_but_failed_does_not() -> None:
    machine = running()
    refused(machine, ev.RunFinished(status="completed", exit_code=0))
    run([ev.RunFinished(status="failed", exit_code=1)], machine)
    assert machine.stage == "terminal"


def test_an_unknown_task_is_refused() -> None:
    assert "not selected" in refused(running("t"), ev.TaskStarted(task="u"))


def test_a_refused_batch_changes_nothing() -> None:
    machine = running()
    refused(machine, ev.TaskStarted(task="t"), ev.TaskStarted(task="t"))
    run([ev.TaskStarted(task="t")], machine)


def test_an_admitted_batch_changes_nothing_until_it_is_committed() -> None:
    machine = running()
    machine.admit([(ev.TaskStarted(task="t"), False)])
    machine.commit(machine.admit([(ev.TaskStarted(task="t"), False)]))


@given(legal_runs())
@settings(max_examples=40, deadline=None)
def test_an_event_that_is_taken_alone_does_what_a_batch_of_it_does(
    events: list[ev.AnyEvent],
) -> None:
    taken, admitted = Machine(), Machine()
    # Told again, most of them are refused.
    for event in (*events, *events):
        assert refusal(lambda: taken.take(event, False)) == refusal(  # noqa: B023 - called at once
            lambda: admitted.commit(admitted.admit([(event, False)]))  # noqa: B023
        )
    for name in ("stage", "sealed"):
        assert getattr(taken, name) == getattr(admitted, name)
    assert taken.open_calls() == admitted.open_calls()
    for event in events:
        if event.task is not None and event.attempt is not None:
            key = event.task, event.attempt
            assert taken.task(event.task) == admitted.task(event.task)
            assert taken.attempt(key) == admitted.attempt(key)


def refusal(act: Callable[[], object]) -> str | None:
    try:
        act()
    except LedgerStateError as error:
        return error.message
    return None


def test_an_event_that_is_refused_alone_changes_nothing() -> None:
    machine = running()
    machine.take(ev.TaskStarted(task="t"), False)
    before = machine.task("t")
    for _ in range(2):
        with pytest.raises(LedgerStateError):
            machine.take(say.selected("u", "t"), False)
        assert (machine.task("t"), machine.task("u")) == (before, None)
    machine.take(say.selected("u"), False)


def test_an_attempt_starts_once() -> None:
    refused(in_attempt(), ev.AttemptStarted(task="t", attempt=1))
    machine = run(
        [say.result("t"), ev.AttemptFinished(task="t", attempt=1, status="completed")], in_attempt()
    )
    refused(machine, ev.AttemptStarted(task="t", attempt=1))


def test_phases_only_go_forward() -> None:
    machine = in_attempt()
    for phase in PHASES:
        run([ev.PhaseEntered(task="t", attempt=1, phase=phase)], machine)
        refused(machine, ev.PhaseEntered(task="t", attempt=1, phase=phase))
    refused(machine, ev.PhaseEntered(task="t", attempt=1, phase="open_environment"))


def test_a_phase_needs_a_plan() -> None:
    refused(in_attempt(plan=False), ev.PhaseEntered(task="t", attempt=1, phase="evaluate"))


def test_a_verdict_needs_a_result_and_comes_once() -> None:
    machine = in_attempt()
    refused(machine, say.verdict("t"))
    run([say.result("t"), say.verdict("t")], machine)
    refused(machine, say.verdict("t"))
    refused(machine, say.result("t"))


def test_the_end_of_an_attempt_repeats_its_verdict() -> None:
    machine = run([say.result("t"), say.verdict("t", correct=False, score=0.5)], in_attempt())
    wrong = ev.AttemptFinished(task="t", attempt=1, status="completed", correct=True, score=0.5)
    refused(machine, wrong)
    right = wrong.model_copy(update={"correct": False})
    run([right], machine)


def retried(scope: str, retry: int = 1) -> ev.AttemptRetried:
    return ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=retry,
        max_retries=2,
        retry_delay_seconds=0.5,
        stage="run",
        scope=scope,
        error=ev.ErrorInfo(code="x", message="y"),
    )


def test_a_retried_attempt_begins_again_with_a_plan() -> None:
    machine = run([say.result("t"), retried("attempt")], in_attempt())
    refused(machine, ev.PhaseEntered(task="t", attempt=1, phase="evaluate"))
    run([ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash="h"), say.result("t")], machine)


def test_a_retried_evaluation_keeps_the_result() -> None:
    refused(in_attempt(), retried("evaluate"))
    machine = run([say.result("t"), say.verdict("t"), retried("evaluate")], in_attempt())
    refused(machine, say.result("t"))
    refused(machine, ev.PhaseEntered(task="t", attempt=1, phase="run_harness"))
    run(
        [ev.PhaseEntered(task="t", attempt=1, phase="evaluate"), say.verdict("t", correct=False)],
        machine,
    )


def test_retries_are_counted_without_a_gap_and_the_end_says_how_many() -> None:
    machine = in_attempt()
    refused(machine, retried("attempt", retry=2))
    run([retried("attempt"), retried("attempt", retry=2), say.result("t")], machine)
    end = ev.AttemptFinished(task="t", attempt=1, status="completed", retries=1)
    refused(machine, end)
    run([end.model_copy(update={"retries": 2})], machine)


def test_an_attempt_does_not_end_while_a_call_is_open() -> None:
    call = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
    machine = run([call, say.result("t")], in_attempt())
    end = ev.AttemptFinished(task="t", attempt=1, status="completed")
    assert "1 model calls" in refused(machine, end)
    refused(machine, retried("attempt"))
    run([ev.CallLost(task="t", attempt=1, call_id="c"), end], machine)


def test_a_lost_call_may_still_tell_its_end_once() -> None:
    call = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
    end = ev.AttemptFinished(task="t", attempt=1, status="completed")
    machine = run(
        [call, ev.CallLost(task="t", attempt=1, call_id="c"), say.result("t"), end], in_attempt()
    )
    late = ev.CallFinished(task="t", attempt=1, call_id="c", success=True)
    run([late], machine)
    refused(machine, late)


def test_a_call_that_was_not_started_cannot_finish() -> None:
    refused(in_attempt(), ev.CallFinished(task="t", attempt=1, call_id="c", success=True))


def test_a_task_does_not_finish_with_an_open_attempt() -> None:
    finish = ev.TaskFinished(task="t", reason="all_attempts", error=False)
    assert "open" in refused(in_attempt(), finish)


def test_a_task_says_truly_whether_it_holds_an_error() -> None:
    machine = run([ev.TaskStarted(task="t"), *say.failed_attempt("t")], running())
    refused(machine, ev.TaskFinished(task="t", reason="all_attempts", error=False))
    run([ev.TaskFinished(task="t", reason="all_attempts", error=True)], machine)


def test_a_cancelled_task_is_over() -> None:
    machine = run([ev.TaskCancelled(task="t", reason="stop")], running())
    refused(machine, ev.TaskStarted(task="t"))
    run([ev.RunFinished(status="cancelled", exit_code=130)], machine)


PLAN = ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash="h")
REUSED = {
    "source_run_id": "s",
    "source_ledger_id": "00",
    "size": 9,
    "root": "00",
    "leaves": None,
    "sequence": (3, 4),
}


def test_a_reused_task_holds_copies_only() -> None:
    machine = run([ev.TaskReused(task="t", **REUSED)], running())
    refused(machine, ev.TaskStarted(task="t"))
    copies = say.whole_task("t", say.attempt("t"))
    run(copies, machine, copied=True)
    run(say.ending(), machine)
    assert machine.stage == "terminal"


def test_copies_need_a_task_reused_before_them() -> None:
    refused(running(), ev.TaskStarted(task="t"), copied=True)
    refused(running(), ev.RunFinished(status="failed", exit_code=1), copied=True)


def test_a_reused_attempt_is_evaluated_and_not_run_again() -> None:
    machine = run(
        [ev.TaskStarted(task="t"), ev.AttemptReused(task="t", attempt=1, **REUSED)], running()
    )
    refused(machine, say.result("t"))
    run([ev.AttemptStarted(task="t", attempt=1), say.result("t")], machine, copied=True)
    refused(machine, say.verdict("t"), copied=True)
    refused(machine, ev.PhaseEntered(task="t", attempt=1, phase="run_harness"))
    done = ev.AttemptFinished(task="t", attempt=1, status="completed", correct=True)
    run([ev.PhaseEntered(task="t", attempt=1, phase="evaluate"), say.verdict("t"), done], machine)


def test_a_reused_attempt_begins_once_and_with_a_copy() -> None:
    machine = run(
        [ev.TaskStarted(task="t"), ev.AttemptReused(task="t", attempt=1, **REUSED)], running()
    )
    start = ev.AttemptStarted(task="t", attempt=1)
    refused(machine, start)
    assert "not open" in refused(machine, say.result("t"), copied=True)
    run([start], machine, copied=True)
    refused(machine, start, copied=True)


def test_copies_of_a_reused_attempt_may_hold_discarded_tries() -> None:
    machine = run(
        [ev.TaskStarted(task="t"), ev.AttemptReused(task="t", attempt=1, **REUSED)], running()
    )
    copies = [
        ev.AttemptStarted(task="t", attempt=1),
        PLAN,
        retried("attempt"),
        PLAN,
        say.result("t"),
    ]
    run(copies, machine, copied=True)
    done = ev.AttemptFinished(task="t", attempt=1, status="completed", correct=True, retries=1)
    run([ev.PhaseEntered(task="t", attempt=1, phase="evaluate"), say.verdict("t"), done], machine)


def test_a_reused_attempt_that_cannot_be_evaluated_is_tried_anew() -> None:
    machine = run(
        [ev.TaskStarted(task="t"), ev.AttemptReused(task="t", attempt=1, **REUSED)], running()
    )
    run([ev.AttemptStarted(task="t", attempt=1), say.result("t")], machine, copied=True)
    again = [ev.PhaseEntered(task="t", attempt=1, phase="evaluate"), retried("attempt")]
    run([*again, PLAN, say.result("t"), say.verdict("t")], machine)
    refused(machine, say.result("t"), copied=True)


def test_a_copied_task_may_hold_an_attempt_that_came_alone_to_its_source() -> None:
    machine = run([ev.TaskReused(task="t", **REUSED)], running())
    copies = [
        ev.TaskStarted(task="t"),
        ev.AttemptReused(task="t", attempt=1, **REUSED),
        ev.AttemptStarted(task="t", attempt=1),
        say.result("t"),
        ev.PhaseEntered(task="t", attempt=1, phase="evaluate"),
        say.verdict("t"),
        ev.AttemptFinished(task="t", attempt=1, status="completed", correct=True),
        ev.TaskFinished(task="t", reason="all_attempts", error=False),
    ]
    run(copies, machine, copied=True)
    run(say.ending(), machine)


def test_after_the_seal_only_erasures_and_annotations_follow() -> None:
    machine = run([ev.LedgerSealed()], running())
    for event in (
        ev.LedgerSealed(),
        ev.TaskStarted(task="t"),
        ev.RunFinished(status="failed", exit_code=1),
    ):
        assert "sealed" in refused(machine, event)
    run(
        [ev.AnnotationAdded(text="x", author="y"), ev.PayloadErased(sequence=(1,), reason="z")],
        machine,
    )


def test_an_interrupt_and_an_extension_are_legal_while_the_run_is_open() -> None:
    extra = [ev.InterruptRequested(signal="SIGINT", count=1), ev.ExtensionRecorded(name="a.b")]
    machine = run(extra, running())
    run([ev.RunFinished(status="cancelled", exit_code=130)], machine)
    for event in extra:
        refused(machine, event)


def test_a_registry_is_a_ledger_of_its_own_kind() -> None:
    opened = ev.RegistryOpened(
        run_id="r", path="p", ledger_id="00", request_digest="00", planned_tasks=1, k=1
    )
    machine = run([opened, opened])
    refused(machine, say.created())
    refused(run([say.created()]), opened)


def test_open_attempts_and_calls_are_listed() -> None:
    call = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
    machine = run([call], in_attempt())
    assert machine.open_attempts() == [("t", 1)]
    assert machine.open_calls() == [("t", 1, "c")]


def test_further_tasks_may_be_selected_while_the_run_goes_on() -> None:
    machine = run([*say.whole_task("t", say.attempt("t")), say.selected("u")], running())
    assert "1 tasks are not finished" in refused(machine, ev.SummaryStarted())
    run([*say.whole_task("u", say.attempt("u")), *say.ending()], machine)
    assert machine.stage == "terminal"


def test_a_task_is_not_selected_again_in_a_later_event() -> None:
    assert "two tasks have the id 't'" in refused(running(), say.selected("t"))
