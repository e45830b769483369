"""Copies of a source's events, with the events that say where they come from."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ledger import canonical
from ledger import events as ev
from ledger.canonical import BINARY_PIECE, Binary, SpilledBinary
from ledger.codec import decode_event
from ledger.errors import AclError, StorageFailed
from ledger.machine import Machine
from ledger.state import AttemptState, Origin, TaskState
from ledger.store import Copy
from ledger.transitions import Pending, RunStage, Step, TaskStep
from ledger.view import LedgerView
from runtime.reuse_source import ReuseSource

R = TypeVar("R", ev.TaskReused, ev.AttemptReused)
Item = ev.AnyEvent | Copy

_NOT_LINEAGE: Final = frozenset({"type", "lease", "task", "attempt", "redactions", "lineage"})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AttemptEvents:
    """Which events of an attempt that ran are taken over: `sequence` ends with its result.

    `lost` are the calls that were open then; `files` is the event that holds what it left. The
    rest is what whoever goes on with it must know: how many retries and calls there were, and the
    plan of the last try.
    """

    number: int
    sequence: tuple[int, ...]
    lost: tuple[str, ...] = ()
    files: int | None = None
    retries: int = 0
    calls: int = 0
    plan_hash: str | None = None
    applied_recipes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Which pieces a stream brings for the streams behind it, and which it counts on.

    `there` are those that streams of the same takeover brought to their end; all share it.
    """

    there: set[tuple[bytes, ...]]
    brings: frozenset[tuple[bytes, ...]]
    needs: frozenset[tuple[bytes, ...]]

    def through(self, items: Iterator[Item]) -> Iterator[Item]:
        """Pass the items on; StorageFailed where a stream that this one counts on broke off."""
        # All streams are read again where the disk was full.
        self.there.difference_update(self.brings)
        if not self.needs <= self.there:
            raise StorageFailed("what tells of its source broke off with a task before it")
        yield from items
        self.there.update(self.brings)


class TaskCopies:
    """Called, gives `task.reused` and then the copies of one task's events."""

    def __init__(self, view: LedgerView, reused: ev.TaskReused) -> None:
        self.task = reused.task
        self.delivery: Delivery | None = None
        self.reused = reused
        self._view = view

    def __call__(self) -> Iterator[Item]:
        """Yield the items; raises LedgerDamaged where the source is, RunNotFound if erased."""
        return self._items() if self.delivery is None else self.delivery.through(self._items())

    def _items(self) -> Iterator[Item]:
        yield self.reused
        yield from _copies(self._view, self.reused.sequence)


class AttemptCopies:
    """Called, gives a task's start, then `attempt.reused` and the copies of each of `attempts`.

    Behind the copies stand, as events of this run, what else is known: calls whose end was not
    told, and the files, which no copy can bring as they were recorded after the result.
    """

    def __init__(
        self,
        view: LedgerView,
        task: str,
        attempts: Sequence[tuple[ev.AttemptReused, AttemptEvents]],
    ) -> None:
        self.task = task
        self.attempts = attempts
        self.delivery: Delivery | None = None
        self._view = view

    def __call__(self) -> Iterator[Item]:
        """Yield the items; raises LedgerDamaged where the source is, RunNotFound if erased."""
        return self._items() if self.delivery is None else self.delivery.through(self._items())

    def _items(self) -> Iterator[Item]:
        yield ev.TaskStarted(task=self.task)
        for reused, taken in self.attempts:
            yield reused
            yield from _copies(self._view, taken.sequence)
            for call_id in taken.lost:
                yield ev.CallLost(task=self.task, attempt=taken.number, call_id=call_id)
            if taken.files is not None:
                yield self._files(taken.files)

    def _files(self, seq: int) -> ev.ArtifactsCollected:
        event = self._view.event(seq).event
        assert isinstance(event, ev.ArtifactsCollected)
        contents = self._view.resolve(event.contents)
        return event.model_copy(update={"contents": contents, "source_seq": seq})


def _copies(view: LedgerView, sequence: Iterable[int]) -> Iterator[Copy]:
    for header, body in view.stored(sequence):
        # A piece of a list is asked for twice: for what it refers to, and to be stored.
        yield Copy(header, body, _Fetched(view.blob).__getitem__)


class _Fetched(dict[bytes, bytes]):
    """The pieces that one event needs, each fetched when it is first asked for."""

    def __init__(self, fetch: canonical.Fetch) -> None:
        super().__init__()
        self._fetch = fetch

    def __missing__(self, digest: bytes) -> bytes:
        piece = self[digest] = self._fetch(digest)
        return piece


def can_be_stored(stream: TaskCopies | AttemptCopies, view: LedgerView) -> bool:
    """Read all that a stream is to bring; tell whether it is whole, and legal where it goes."""
    selected = Pending(RunStage("running", unfinished=1), {stream.task: TaskStep()})
    step = Step(Machine(), selected)
    try:
        for item in stream():
            event = decode_event(item.header, item.body) if isinstance(item, Copy) else item
            if isinstance(item, Copy):
                for digest in canonical.reachable(dict(event), view.blob):
                    view.blob(digest)
            step.take(event, isinstance(item, Copy))
    except AclError as error:
        _log.warning("task %s runs again: %s", stream.task, error.message)
        return False
    return True


class Provenance:
    """Writes the events that name the source; its leaf hashes go into the first of them.

    The others refer to the same blobs, so the first must not fail: after each event `brings`
    tells whether it is such a one, and `used` says that it will be stored.
    """

    def __init__(self, source: ReuseSource) -> None:
        self._source = source
        size = source.state.size
        self._leaves: Any = Binary(_whole_pieces(bytes(source.index.leaves)))
        self._leaves_spilled = _spilled(self._leaves)
        self._root = source.state.root.hex()
        self._stored: set[tuple[bytes, ...]] = set()
        self._bringing: set[tuple[bytes, ...]] = set()
        self._needing: set[tuple[bytes, ...]] = set()
        self._there: set[tuple[bytes, ...]] = set()
        notes = [note for covered, note in source.view.checkpoints() if covered <= size]
        self._checkpoint = notes[-1] if notes else None

    @property
    def brings(self) -> bool:
        """True if events were made since the last `used` that bring leaf hashes."""
        return bool(self._bringing)

    def used(self, stream: TaskCopies | AttemptCopies) -> None:
        """Say that the events since the last call are those of a stream that is to be stored."""
        brings, needs = frozenset(self._bringing), frozenset(self._needing)
        stream.delivery = Delivery(self._there, brings, needs)
        self._stored |= self._bringing
        self.dropped()

    def dropped(self) -> None:
        """Say that the events since the last call are not stored."""
        self._bringing = set()
        self._needing = set()

    def of_task(
        self, task: TaskState, sequence: Sequence[int], checksum: str | None
    ) -> ev.TaskReused:
        """The event of a whole task; `checksum` is that of its input now."""
        other = None not in (task.checksum, checksum) and task.checksum != checksum
        return ev.TaskReused(
            task=task.id,
            sequence=tuple(sequence),
            source_checksum=task.checksum if other else None,
            claim=self._source.exported_from,
            **self._fields(task.origin, ev.TaskReused),
        )

    def of_attempt(
        self, task: str, attempt: AttemptState, sequence: Sequence[int]
    ) -> ev.AttemptReused:
        """The event of an attempt that comes alone."""
        return ev.AttemptReused(
            task=task,
            attempt=attempt.number,
            sequence=tuple(sequence),
            **self._fields(attempt.origin, ev.AttemptReused),
        )

    def _fields(self, origin: Origin | None, kind: type[R]) -> dict[str, Any]:
        source = self._source
        lineage = None
        if origin is not None:
            before = source.view.event(origin.seq).event
            # Where that was erased, only that there was something is left to tell.
            if before is not None:
                assert isinstance(before, kind)
                lineage = self._lineage(before)
        return {
            "source_run_id": source.run_id,
            "source_path": source.path,
            "source_ledger_id": source.state.ledger_id,
            "size": source.state.size,
            "root": self._root,
            "leaves": self._referring(self._leaves_spilled, self._leaves),
            "checkpoint": self._checkpoint,
            "chained": origin is not None,
            "lineage": lineage,
        }

    def _lineage(self, before: ev.TaskReused | ev.AttemptReused) -> dict[str, Any]:
        """By its ledger id, what the source tells of its own source, and so on as it was told."""
        names = (name for name in type(before).model_fields if name not in _NOT_LINEAGE)
        fields = {name: getattr(before, name) for name in names}
        own = {name: self._whole(value) for name, value in fields.items() if value is not None}
        return {self._source.state.ledger_id: own, **(self._whole(before.lineage) or {})}

    def _whole(self, value: Any) -> Any:
        if isinstance(value, ev.Claim):
            return value.model_dump()
        if isinstance(value, dict):
            return {name: self._whole(item) for name, item in value.items()}
        if isinstance(value, SpilledBinary):
            return self._referring(value, None)
        return self._source.view.resolve(value)

    def _referring(self, spilled: Any, whole: Any) -> Any:
        """The reference if its pieces are stored already, else the value that brings them."""
        if not isinstance(spilled, SpilledBinary):
            return spilled
        if spilled.pieces in self._stored:
            self._needing.add(spilled.pieces)
            return spilled
        self._bringing.add(spilled.pieces)
        return self._source.view.resolve(spilled) if whole is None else whole


def _whole_pieces(leaves: bytes) -> bytes:
    """The leaves with zeros behind them, so that no rest of them stands in every event.

    A single piece would not be cut out, so there are at least two.
    """
    return leaves + bytes(max(-len(leaves) % BINARY_PIECE, 2 * BINARY_PIECE - len(leaves)))


def _spilled(value: Any) -> Any:
    """The form in which `value` stands in an event once its pieces were cut out."""
    return canonical.decode(canonical.encode(value, lambda *_: None))
