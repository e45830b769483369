"""The table `events`: one row an event, read one at a time."""

from collections.abc import Iterator
from typing import Final, Protocol, runtime_checkable

from exporters.tables.cells import moment
from exporters.tables.columns import Cells, Column, Table, always
from ledger import events as ev
from ledger.state import RunState
from ledger.view import Blobs, Recorded

_COLUMNS: Final = (
    always("seq", "int64", "number of the event, from 0"),
    always("recorded_at", "timestamp", "when it was recorded"),
    always("type", "string", "the name of its type"),
    Column("task_id", "string", "the task that it is of"),
    Column("attempt", "int64", "the attempt that it is of, from 1"),
    always("lease", "int64", "the lease of the worker"),
    always("copied", "bool", "it happened in another ledger"),
    always("wall_ns", "int64", "the same as recorded_at, exactly: since 1970, UTC", "ns"),
    always("monotonic_ns", "int64", "clock of the session, which nobody sets", "ns"),
    always("body_bytes", "int64", "length of its body", "bytes"),
    always("address", "string", "SHA-256 of its body, hex"),
    always("leaf", "string", "its leaf hash in the tree, hex"),
    always("erased", "bool", "its body was erased: body is null"),
    Column("body", "json", "its own fields, without the salt; large values are references"),
)
_IN_COLUMNS: Final = frozenset({"type", "task", "attempt", "lease"})
_SCALARS: Final = frozenset({str, int, float, bool})


@runtime_checkable
class _Stream(Protocol):
    """What gives events in order faster than one by one; a `LedgerView` does."""

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Recorded]:
        """Yield the events from `since` on, before `until`."""
        ...


def _events(size: int, blobs: Blobs) -> Iterator[Recorded]:
    if isinstance(blobs, _Stream):
        return blobs.events(until=size)
    return (blobs.event(seq) for seq in range(size))


def _rows(state: RunState, blobs: Blobs) -> Iterator[Cells]:
    for recorded in _events(state.size, blobs):
        header = recorded.header
        yield {
            "seq": recorded.seq,
            "recorded_at": moment(recorded.wall_ns),
            "type": recorded.type,
            "task_id": recorded.task,
            "attempt": recorded.attempt,
            "lease": recorded.lease,
            "copied": recorded.copied,
            "wall_ns": header.wall_ns,
            "monotonic_ns": header.mono_ns,
            "body_bytes": header.body_length,
            "address": header.address.hex(),
            "leaf": recorded.leaf.hex(),
            "erased": recorded.event is None,
            "body": None if recorded.event is None else _fields(recorded.event),
        }


def _fields(part: ev.Part) -> dict[str, object]:
    """The fields of an event that are no columns, absent ones left out."""
    top = _IN_COLUMNS if isinstance(part, ev.Event) else ()
    return {
        name: value if type(value) in _SCALARS else _plain(value)
        for name, value in part.__dict__.items()
        if value is not None and name not in top
    }


def _plain(value: object) -> object:
    match value:
        case ev.Part():
            return _fields(value)
        case tuple():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value


EVENTS: Final = Table("events", "one row an event", _COLUMNS, _rows)
