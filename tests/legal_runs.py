"""Random runs that are legal: events are proposed, and those that the state machines admit stay."""

from hypothesis import strategies as st

from ledger import events as ev
from ledger.errors import LedgerStateError
from ledger.machine import PHASES, Machine
from tests import events_of as say

_TASKS = ("t", "u", "v")
_CALLS = ("c", "d")
_ERROR = ev.ErrorInfo(code="boom", message="it broke")
_TOLD = st.sampled_from([(True, None), (False, 0.0), (None, 0.5), (None, None), (True, 1.0)])


@st.composite
def _of_attempts(draw: st.DrawFn) -> ev.AnyEvent:
    at = {"task": draw(st.sampled_from(_TASKS)), "attempt": draw(st.integers(1, 2))}
    correct, score = draw(_TOLD)
    call = draw(st.sampled_from(_CALLS))
    retry = draw(st.integers(1, 2))
    text = draw(st.sampled_from(["42", "ab" * 3000, "x" * 9000]))
    return draw(
        st.sampled_from(
            [
                ev.AttemptStarted(**at),
                ev.PlanResolved(**at, plan={"n": 1}, plan_hash="00"),
                ev.PhaseEntered(**at, phase=draw(st.sampled_from(PHASES))),
                say.result(*at.values(), final_answer=text, metrics={"tokens": 3}),
                ev.ArtifactsCollected(**at, artifacts=(), contents={"a": text}),
                say.verdict(*at.values(), correct=correct, score=score),
                ev.AnalysisFinished(**at, analyzer="a", family="f"),
                ev.AttemptRetried(
                    **at,
                    retry=retry,
                    max_retries=2,
                    retry_delay_seconds=0.0,
                    stage="evaluate",
                    scope=draw(st.sampled_from(["attempt", "evaluate"])),
                    error=_ERROR,
                ),
                ev.AttemptFinished(
                    **at,
                    status=draw(st.sampled_from(["completed", "run_error", "skipped"])),
                    correct=correct,
                    score=score,
                    retries=draw(st.integers(0, 2)),
                ),
                ev.CallStarted(**at, call_id=call, call_index=0, messages=[{"content": text}]),
                ev.CallFinished(**at, call_id=call, success=True, response=text, cost_usd=0.5),
                ev.CallLost(**at, call_id=call),
                ev.ToolFinished(**at, name="tool", output=text),
            ]
        )
    )


_ANY = st.one_of(
    *[_of_attempts()] * 6,
    st.builds(ev.TaskStarted, task=st.sampled_from(_TASKS)),
    st.builds(
        ev.TaskFinished,
        task=st.sampled_from(_TASKS),
        reason=st.just("all_attempts"),
        error=st.booleans(),
    ),
    st.builds(ev.TaskCancelled, task=st.sampled_from(_TASKS), reason=st.just("no time")),
    st.just(say.selected("v")),
    st.just(ev.InterruptRequested(signal="SIGINT", count=1)),
    st.just(ev.ExtensionRecorded(name="a.b", payload={"text": "ab" * 3000})),
    st.just(ev.SummaryStarted()),
    st.just(ev.RunFinished(status="failed", exit_code=1)),
)


@st.composite
def legal_runs(draw: st.DrawFn, most: int = 60) -> list[ev.AnyEvent]:
    """The events of a run, from its creation to anywhere."""
    opening: list[ev.AnyEvent] = [*say.opening("t", "u")]
    for task in ("t", "u"):
        opening += [ev.TaskStarted(task=task), ev.AttemptStarted(task=task, attempt=1)]
    machine = Machine()
    machine.commit(machine.admit((event, False) for event in opening))
    events = list(opening)
    for event in draw(st.lists(_ANY, max_size=most)):
        try:
            pending = machine.admit([(event, False)])
        except LedgerStateError:
            continue
        machine.commit(pending)
        events.append(event)
    return events
