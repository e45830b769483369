"""The table `calls`: one row a physical model call, those of discarded tries too.

What was sent and answered is not in it; the events hold that.
"""

from collections.abc import Iterator
from typing import Final

from exporters.jobs.calls import Call, calls_of
from exporters.reading import Reading
from exporters.tables.cells import moment
from exporters.tables.columns import Cells, Column, Table, always
from ledger import events as ev
from ledger.state import AttemptState, RunState
from ledger.view import Blobs

_TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_tokens",
    "reasoning_tokens",
)
_OF_END: Final = ("cost_usd", "cost_source", "duration_ms", "ttft_ms", "provider_request_id")

_COLUMNS: Final = (
    always("task_id", "string", "the task"),
    always("attempt", "int64", "number of the attempt, from 1"),
    Column("call_index", "int64", "number of the call in the attempt, from 0; null if erased"),
    Column("call_id", "string", "its id; null if erased"),
    Column("retry", "int64", "tries of the attempt discarded before it; null if erased"),
    Column("counted", "bool", "it is of the counted try; null if erased"),
    Column("provider", "string", "who was asked"),
    Column("model", "string", "for which model"),
    always("state", "string", "succeeded, failed, lost, open; erased if its end is, or may be"),
    *(
        Column(name, "int64", "as the provider counted; null if it did not say", "tokens")
        for name in _TOKENS
    ),
    Column("usage_estimated", "bool", "the tokens were estimated"),
    Column("cost_usd", "float64", "null where unknown", "USD"),
    Column("cost_source", "string", "who says what it cost"),
    Column("started_at", "timestamp", "as the caller told, else when it was recorded"),
    Column("finished_at", "timestamp", "as the caller told, else when it was recorded"),
    Column("duration_ms", "float64", "how long the call took", "ms"),
    Column("ttft_ms", "float64", "time to the first token", "ms"),
    Column("provider_request_id", "string", "the provider's id of it"),
    Column("error_code", "string", "what it failed of"),
    Column("error_message", "string", "the same in words"),
    always("flags", "list<string>", "what else was noticed"),
    always("copied", "bool", "its attempt ran in another run"),
    Column("started_event", "int64", "number of the event of its start"),
    Column("finished_event", "int64", "number of the event of its end"),
    always("address", "string", "SHA-256 of the body of its last event, hex"),
    always("erased", "list<string>", "types of its events that were erased"),
)


def _rows(state: RunState, blobs: Blobs) -> Iterator[Cells]:
    for task, attempt in state.attempts():
        if not attempt.calls and not attempt.call_ends:
            continue
        reading = Reading(state, blobs)
        tries = _Tries(attempt, reading, blobs)
        for call in calls_of(attempt, reading, blobs):
            told = {"task_id": task.id, "attempt": attempt.number, "copied": attempt.copied}
            yield told | _row(call, tries) | _times(call, is_import=state.imported is not None)


class _Tries:
    """Which calls of an attempt are of the counted try, and where events of it are erased."""

    def __init__(self, attempt: AttemptState, reading: Reading, blobs: Blobs) -> None:
        self._erased = [(seq, blobs.event(seq).type) for seq in attempt.erased]
        self._began = -1
        for seq in attempt.retries:
            event = reading.event(seq, ev.AttemptRetried)
            if event is not None and event.scope == "attempt":
                self._began = seq

    def counts(self, call: Call) -> bool | None:
        if call.start_seq is None:
            return None
        if call.start_seq < self._began:
            return False
        # Whether an erased retry discarded the try or only its verdict, nobody can tell.
        return None if self.lost(call, "attempt.retried") else True

    def lost(self, call: Call, *types: str) -> list[str]:
        """The types, of these, of erased events of the attempt after the start of a call."""
        start = -1 if call.start_seq is None else call.start_seq
        return sorted({kind for seq, kind in self._erased if kind in types and seq > start})


def _row(call: Call, tries: _Tries) -> dict[str, object]:
    start, end = call.start, call.end
    usage = call.usage
    error = end.error if end else None
    unended = end is None and not call.lost
    erased = tries.lost(call, "call.finished", "call.lost") if unended else []
    if start is None:
        erased.append("call.started")
    return {
        "call_index": start.call_index if start else None,
        "call_id": start.call_id if start else end.call_id if end else None,
        "retry": call.retry if start else None,
        "counted": tries.counts(call),
        "provider": start.provider if start else None,
        "model": start.model if start else None,
        "state": _state(call, erased=unended and bool(erased)),
        **{name: getattr(usage, name) if usage else None for name in _TOKENS},
        "usage_estimated": usage.estimated if usage else None,
        **{name: getattr(end, name) if end else None for name in _OF_END},
        "error_code": error.code if error else None,
        "error_message": error.message if error else None,
        "flags": end.flags if end else (),
        "started_event": call.start_seq,
        "finished_event": call.end_seq,
        "address": call.address,
        "erased": erased,
    }


def _state(call: Call, *, erased: bool) -> str:
    if call.end is not None:
        return "succeeded" if call.end.success else "failed"
    if call.lost:
        return "lost"
    return "erased" if erased else "open"


def _times(call: Call, *, is_import: bool) -> dict[str, object]:
    """Times of an import are those of reading the files, which say nothing of the call."""
    told = call.end
    started: object = told.started_at if told else None
    ended: object = told.finished_at if told else None
    if not is_import:
        if started is None and call.start_ns is not None:
            started = moment(call.start_ns)
        if ended is None and call.end_ns is not None:
            ended = moment(call.end_ns)
    return {"started_at": started, "finished_at": ended}


CALLS: Final = Table("calls", "one row a model call, those of discarded tries too", _COLUMNS, _rows)
