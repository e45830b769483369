"""When the parts of a trial began and ended, as Harbor divides it."""

from typing import Final

from exporters.reading import Reading
from ledger import events as ev
from ledger.state import AttemptState, RunState
from ledger.view import Blobs

Span = dict[str, object]

PARTS: Final = ("environment_setup", "agent_setup", "agent_execution", "verifier")

_PART_OF: Final[dict[ev.Phase, str | None]] = {
    "open_environment": "environment_setup",
    "prepare_task": "environment_setup",
    "start_harness": "agent_setup",
    "run_harness": "agent_execution",
    "run_task": "agent_execution",
    "collect_result": None,
    "collect_artifacts": None,
    "evaluate": "verifier",
    "analyze": None,
}


def whole(state: RunState, attempt: AttemptState, blobs: Blobs) -> Span:
    """When the attempt began and ended; null where it ran elsewhere and nothing tells."""
    if state.imported is not None:
        return {"started_at": None, "finished_at": None}
    return {"started_at": _at(attempt.started, blobs), "finished_at": ended_at(attempt, blobs)}


def ended_at(attempt: AttemptState, blobs: Blobs) -> str | None:
    """When the end of the attempt was recorded."""
    return _at(attempt.finished, blobs)


def parts(attempt: AttemptState, reading: Reading, blobs: Blobs) -> dict[str, Span | None]:
    """The parts of the counted try, each from its first phase to what followed it; None: none ran.

    A verdict that was asked for again counts from the first time it was.
    """
    spans: dict[str, Span | None] = dict.fromkeys(PARTS)
    current: str | None = None
    for seq in attempt.phases:
        event = reading.event(seq, ev.PhaseEntered)
        if event is None:
            continue
        part = _PART_OF[event.phase]
        at = blobs.event(seq).at
        if current is not None and current != part:
            _close(spans, current, at)
        if part is not None and spans[part] is None:
            spans[part] = {"started_at": at, "finished_at": None}
        current = part
    if current is not None:
        _close(spans, current, ended_at(attempt, blobs))
    return spans


def _close(spans: dict[str, Span | None], part: str, at: str | None) -> None:
    span = spans[part]
    assert span is not None
    span["finished_at"] = at


def _at(seq: int | None, blobs: Blobs) -> str | None:
    return None if seq is None else blobs.event(seq).at
