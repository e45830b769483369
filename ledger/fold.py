"""The one fold: events in, RunState out. Progress, resume, metrics and exports all use it."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, assert_never, get_args

from ledger import canonical
from ledger import events as ev
from ledger.codec import Header
from ledger.gaps import fold_erased, unnamed_task
from ledger.state import AttemptState, Origin, RunState, Spend, TaskState
from ledger.view import Recorded

# What most attempts and tasks have; nobody changes what an event told.
_NOTHING: Final[dict[str, Any]] = {}
# So many leaves go into the tree at once.
_LEAVES: Final = 1024


def fold(events: Iterable[Recorded], state: RunState | None = None) -> RunState:
    """Fold `events` into `state` (a new one by default) and return it; the argument is used up.

    `fold(a + b)` equals `fold(b, fold(a))`. Events must come in order and be legal, as a reader
    of a ledger gives them. An erased event counts with its type, task and attempt only.
    """
    state = RunState() if state is None else state
    leaves: list[bytes] = []
    try:
        for recorded in events:
            _take(state, recorded)
            leaves.append(recorded.leaf)
            if len(leaves) >= _LEAVES:
                state.frontier.extend(leaves)
                leaves.clear()
    finally:
        # The tree is of what was folded, also where an event cannot be read.
        state.frontier.extend(leaves)
    return state


def _take(state: RunState, recorded: Recorded) -> None:
    state.last_ns = recorded.header.wall_ns
    task = _touch(state, recorded.header)
    state.recent.append(None if task is None else task.id)
    event = recorded.event
    if event is None:
        fold_erased(state, task, recorded)
        return
    if event.redactions:
        state.redactions += event.redactions
    _OF_GROUP[type(event)](state, task, recorded, event)


def _touch(state: RunState, header: Header) -> TaskState | None:
    if header.task is None:
        return None
    task = state.tasks.get(header.task) or unnamed_task(state, header.task)
    if task.first is None:
        task.first = header.seq
    task.last = header.seq
    return task


def _run(state: RunState, _: TaskState | None, recorded: Recorded, event: ev.RunEvent) -> None:
    match event:
        case ev.RunCreated():
            state.created = event
            state.ledger_id = recorded.header.ledger_id.hex()
            state.created_at = recorded.at
        case ev.RunImported():
            state.imported = event
        case ev.ReuseFrozen():
            state.frozen = event
        case ev.TasksSelected():
            _select(state, event)
        case ev.MetricsComputed():
            state.metrics.append((recorded.seq, recorded.at, event))
        case ev.InterruptRequested():
            state.interrupts.append(event.signal)
        case ev.RunFinished():
            state.finished = event
            state.finished_at = recorded.at
        case ev.OriginalRecorded() | ev.SourceRecorded():
            is_original = isinstance(event, ev.OriginalRecorded)
            (state.originals if is_original else state.sources).append(recorded.seq)
        case ev.RunStarted() | ev.SummaryStarted():
            pass
        case _:
            assert_never(event)


def _select(state: RunState, event: ev.TasksSelected) -> None:
    state.benchmark = event.benchmark
    state.benchmark_version = event.benchmark_version
    for index, ref in enumerate(event.tasks, start=len(state.tasks)):
        state.tasks[ref.task_id] = TaskState(
            id=ref.task_id,
            index=index,
            category=ref.category,
            checksum=ref.checksum,
            metadata=ref.metadata or _NOTHING,
        )


def _book(state: RunState, _: TaskState | None, recorded: Recorded, event: ev.BookEvent) -> None:
    match event:
        case ev.PayloadErased():
            state.erasures.append(recorded.seq)
            state.erased.update(event.sequence)
        case ev.AnnotationAdded():
            state.annotations.append(recorded.seq)
        case ev.LedgerSealed():
            state.sealed_size = recorded.seq + 1
        case ev.ExtensionRecorded():
            state.extensions.append(recorded.seq)
        case ev.RegistryOpened() | ev.RegistrySealed():
            state.ledger_id = recorded.header.ledger_id.hex()
            state.registry.append(recorded.seq)
        case _:
            assert_never(event)


def _origin(recorded: Recorded, event: ev.TaskReused | ev.AttemptReused) -> Origin:
    return Origin(
        run_id=event.source_run_id,
        path=event.source_path,
        ledger_id=event.source_ledger_id,
        size=event.size,
        root=event.root,
        seq=recorded.seq,
        claim=event.claim if isinstance(event, ev.TaskReused) else None,
    )


def _task(_: RunState, task: TaskState | None, recorded: Recorded, event: ev.OneTaskEvent) -> None:
    assert task is not None
    match event:
        case ev.TaskStarted():
            task.stage = "running"
            task.claim = event.claim
        case ev.TaskFinished():
            task.stage = "error" if event.error else "done"
            task.stopped_early = event.reason == "stopped_early"
            task.finished_address = recorded.address
        case ev.TaskReused():
            task.origin = _origin(recorded, event)
            task.source_checksum = event.source_checksum
        case ev.TaskCancelled():
            task.stage = "cancelled"
        case _:
            assert_never(event)


def _attempt(
    state: RunState, task: TaskState | None, recorded: Recorded, event: ev.OneAttemptEvent
) -> None:
    header = recorded.header
    assert task is not None
    assert header.attempt is not None
    attempt = task.attempt(header.attempt)
    if attempt.rare is not None and attempt.origin is not None and not header.copied:
        _gone_on_with(attempt, event)
    if isinstance(event, ev.AttemptStarted):
        attempt.claim = event.claim
        attempt.copied = header.copied or bool(event.claim or task.claim)
        attempt.started = header.seq
        attempt.started_ns = header.wall_ns
    elif type(event) in _OF_CALLS:
        _OF_CALLS[type(event)](state, attempt, recorded, event)
    else:
        _OF_ATTEMPT[type(event)](attempt, recorded, event)


def _gone_on_with(attempt: AttemptState, event: ev.OneAttemptEvent) -> None:
    """Remember what was spent elsewhere on an attempt that came alone, once this run goes on."""
    # That calls of the copies are lost is still told of where they were made.
    if attempt.elsewhere is None and not isinstance(event, ev.CallLost):
        attempt.elsewhere = replace(attempt.spend), replace(attempt.discarded)


def _reused(attempt: AttemptState, recorded: Recorded, event: ev.AttemptReused) -> None:
    attempt.origin = _origin(recorded, event)


def _planned(attempt: AttemptState, recorded: Recorded, _: ev.PlanResolved) -> None:
    attempt.plan = recorded.seq


def _entered(attempt: AttemptState, recorded: Recorded, event: ev.PhaseEntered) -> None:
    attempt.enter(event.phase, recorded.seq)


def _result(attempt: AttemptState, recorded: Recorded, event: ev.ResultRecorded) -> None:
    attempt.result = recorded.seq
    attempt.result_address = recorded.address
    attempt.measures = event.metrics
    attempt.answer = _answer(event.final_answer)


def _collected(attempt: AttemptState, recorded: Recorded, _: ev.ArtifactsCollected) -> None:
    attempt.artifacts = recorded.seq


@lru_cache(maxsize=16)
def _same(evaluator: str, version: str) -> tuple[str, str]:
    """One object for what many attempts have in common."""
    return evaluator, version


def _judged(attempt: AttemptState, recorded: Recorded, event: ev.EvaluationFinished) -> None:
    attempt.evaluation = recorded.seq
    attempt.evaluation_address = recorded.address
    attempt.evaluator = _same(event.evaluator.id, event.evaluator.version)
    attempt.correct = event.correct
    attempt.score = event.score
    attempt.metrics = event.metrics


def _analysed(attempt: AttemptState, recorded: Recorded, _: ev.AnalysisFinished) -> None:
    attempt.analyses.append(recorded.seq)


def _drop(*_: bytes) -> None:
    """Pieces are stored already, or will be; only their addresses matter here."""


def _answer(value: object) -> bytes | None:
    # Of a cut answer its piece addresses are hashed: equal answers have equal pieces.
    return None if value is None else hashlib.sha256(canonical.encode(value, _drop)).digest()


def _retried(attempt: AttemptState, recorded: Recorded, event: ev.AttemptRetried) -> None:
    attempt.retries.append(recorded.seq)
    attempt.forget_verdict()
    if event.scope == "attempt":
        attempt.begin_anew(copied=recorded.copied)


def _finished(attempt: AttemptState, recorded: Recorded, event: ev.AttemptFinished) -> None:
    attempt.status = event.status
    attempt.fatal = event.error is not None and event.error.fatal
    attempt.finished = recorded.seq
    attempt.finished_address = recorded.address
    attempt.finished_ns = recorded.wall_ns


def _call_started(
    _: RunState, attempt: AttemptState, recorded: Recorded, __: ev.CallStarted
) -> None:
    attempt.spend.calls += 1
    attempt.spend.open_calls += 1
    attempt.calls.append(recorded.seq)


def _call_finished(
    state: RunState, attempt: AttemptState, recorded: Recorded, event: ev.CallFinished
) -> None:
    spend = attempt.spend
    # One that was given up, though the event that said so may be erased.
    if event.call_id in attempt.lost or not spend.open_calls:
        spend = attempt.lost.pop(event.call_id, spend)
        _unlose(spend)
        state.late_calls += 1
    else:
        spend.open_calls -= 1
    spend.failed_calls += not event.success
    _usage(spend, event)
    attempt.call_ends.append(recorded.seq)


def _call_lost(_: RunState, attempt: AttemptState, recorded: Recorded, event: ev.CallLost) -> None:
    spend = attempt.spend
    spend.open_calls -= 1
    spend.lost_calls += 1
    spend.unknown_usage += 1
    spend.unknown_cost += 1
    attempt.lost[event.call_id] = spend
    attempt.call_ends.append(recorded.seq)


def _tool_finished(
    _: RunState, attempt: AttemptState, recorded: Recorded, __: ev.ToolFinished
) -> None:
    attempt.tools.append(recorded.seq)


def _unlose(spend: Spend) -> None:
    spend.lost_calls -= 1
    spend.unknown_usage -= 1
    spend.unknown_cost -= 1


def _usage(spend: Spend, event: ev.CallFinished) -> None:
    usage = event.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        spend.unknown_usage += 1
    else:
        spend.input_tokens += usage.input_tokens
        spend.output_tokens += usage.output_tokens
    if event.cost_usd is None:
        spend.unknown_cost += 1
    else:
        spend.cost_usd += event.cost_usd


# By type: an event is looked up at once, where a chain of patterns asks pydantic for each of them.
_OF_GROUP: Final[
    dict[type[ev.Event], Callable[[RunState, TaskState | None, Recorded, Any], None]]
] = {
    **dict.fromkeys(get_args(ev.RunEvent), _run),
    **dict.fromkeys(get_args(ev.BookEvent), _book),
    **dict.fromkeys(get_args(ev.OneTaskEvent), _task),
    **dict.fromkeys(get_args(ev.OneAttemptEvent), _attempt),
}
_OF_CALLS: Final[dict[type[ev.Event], Callable[[RunState, AttemptState, Recorded, Any], None]]] = {
    ev.CallStarted: _call_started,
    ev.CallFinished: _call_finished,
    ev.CallLost: _call_lost,
    ev.ToolFinished: _tool_finished,
}
_OF_ATTEMPT: Final[dict[type[ev.Event], Callable[[AttemptState, Recorded, Any], None]]] = {
    ev.AttemptReused: _reused,
    ev.PlanResolved: _planned,
    ev.PhaseEntered: _entered,
    ev.ResultRecorded: _result,
    ev.ArtifactsCollected: _collected,
    ev.EvaluationFinished: _judged,
    ev.AnalysisFinished: _analysed,
    ev.AttemptRetried: _retried,
    ev.AttemptFinished: _finished,
}
assert set(_OF_GROUP) == set(ev.BY_CODE.values()), "every event type is of one group"
assert {ev.AttemptStarted, *_OF_CALLS, *_OF_ATTEMPT} == set(get_args(ev.OneAttemptEvent)), (
    "every event of an attempt is folded"
)
