"""The reading side: a ledger as it is committed now, checked while it is read."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, Self

from ledger import canonical, lock, sidefile, tlog
from ledger.closing import Closing
from ledger.codec import Header, decode_event
from ledger.erasure import Plan, plan_erasure
from ledger.errors import LedgerDamaged, LedgerRolledBack, RunNotFound
from ledger.events import TYPE_NAMES, AnnotationAdded, AnyEvent, LedgerSealed, PayloadErased
from ledger.opening import Source, inode, ledger_file
from ledger.records import Record, Records
from ledger.refusals import told_as_failure

_AFTER_A_SEAL: Final = frozenset({AnnotationAdded.code, PayloadErased.code})
# More than any table can hold.
_NO_SIZE: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def spell_time(wall_ns: int) -> str:
    """Spell nanoseconds since 1970 as ISO-8601, UTC, microseconds."""
    moment = _EPOCH + timedelta(microseconds=wall_ns // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event with its place in the ledger; `event` is None if its body was erased.

    `leaf` is the Merkle leaf hash. Large values of the event may be `canonical.Spilled*` objects,
    which `LedgerView.resolve` fills in.
    """

    header: Header
    event: AnyEvent | None
    leaf: bytes

    @property
    def seq(self) -> int:
        """The number of the event, from 0."""
        return self.header.seq

    @property
    def wall_ns(self) -> int:
        """When it was recorded: nanoseconds since 1970, UTC."""
        return self.header.wall_ns

    @property
    def at(self) -> str:
        """When it was recorded: ISO-8601, UTC, microseconds."""
        return spell_time(self.header.wall_ns)

    @property
    def type(self) -> str:
        """The name of the event type."""
        return TYPE_NAMES[self.header.code]

    @property
    def task(self) -> str | None:
        """The task that the event is of."""
        return self.header.task

    @property
    def attempt(self) -> int | None:
        """The attempt that the event is of, from 1."""
        return self.header.attempt

    @property
    def lease(self) -> int:
        """The lease of the worker."""
        return self.header.lease

    @property
    def copied(self) -> bool:
        """Whether it happened in another ledger and was copied."""
        return self.header.copied

    @property
    def address(self) -> bytes:
        """The SHA-256 of the body."""
        return self.header.address

    @property
    def erased(self) -> bool:
        """Whether the body was erased."""
        return self.event is None


class Blobs(Protocol):
    """What an exporter may fetch from a ledger."""

    def event(self, seq: int) -> Recorded:
        """Return one event."""
        ...

    def blob(self, digest: bytes) -> bytes:
        """Return one piece of a large value."""
        ...

    def resolve(self, value: object) -> object:
        """Return a value with its pieces put back in."""
        ...


class LedgerView(Closing):
    """A ledger open for reading; a context manager, for one thread at a time.

    Everything returned was checked against the commitments in the file. Raises LedgerDamaged with
    the first event concerned wherever a stored byte is not what was stored.
    """

    def __init__(self, path: Path, source: Source) -> None:
        self.path = path
        self.source = source
        """The file itself, for `verify`, which trusts nothing in between."""
        self._records = Records(source.query, indexed=source.indexed)
        self._frontier = tlog.Frontier()
        self._ledger_id = b""

    @classmethod
    def open(cls, path: str | Path, *, pristine: bool = False) -> Self:
        """Open the ledger of a run directory, or a ledger file, alive or not.

        With `pristine` not a byte changes beside the source: it is copied to a temporary folder
        where reading it in place would make files. Raises NotALedger, VersionUnsupported,
        LedgerDamaged, LedgerRolledBack where the checkpoint file beside the ledger knows of more
        events than the ledger, RunNotFound where there is no event and nobody writes one, and
        StorageFailed where the system refuses to read.
        """
        file = ledger_file(path)
        with told_as_failure(file):
            inode(file)
            # Before the ledger itself: a writer writes it after what it covers.
            beside = sidefile.read(file)
            view = cls(file, Source(file, pristine=pristine))
            try:
                view._compare(beside)
            except BaseException:
                view.close()
                raise
            return view

    def _compare(self, beside: list[sidefile.Beside]) -> None:
        try:
            size = self.size
        except LedgerDamaged:
            # How many there are cannot be read; what precedes the damage can, and then is it told.
            return
        for found in beside:
            if found.claim.checkpoint.size > size:
                raise LedgerRolledBack(
                    f"{self.path} has {size} events, {found.path.name} knows of"
                    f" {found.claim.checkpoint.size}"
                )
        if not size and self.writer() is None and not self.size:
            raise RunNotFound(f"{self.path} holds no event yet", hint="its run never began")

    @property
    def ledger_id(self) -> bytes:
        """The 16 bytes that name this ledger; empty while it holds no event."""
        if not self._ledger_id:
            with suppress(RunNotFound):
                self._ledger_id = self._records.record(0).header.ledger_id
        return self._ledger_id

    @property
    def size(self) -> int:
        """How many events are committed now."""
        return self._records.size()

    @property
    def sealed(self) -> bool:
        """Whether the ledger was sealed."""
        for seq in range(self.size - 1, -1, -1):
            code = self._records.record(seq).header.code
            if code not in _AFTER_A_SEAL:
                return code == LedgerSealed.code
        return False

    def writer(self) -> str | None:
        """Who writes to the ledger now."""
        return lock.holder(self.path)

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Recorded]:
        """Yield the events from `since` on, as many as are committed now, or before `until`."""
        try:
            size = self.size
        except LedgerDamaged:
            # Go on to the damage itself: that names the event.
            size = _NO_SIZE
        for record in self._records.scan(since, size if until is None else min(until, size)):
            yield _recorded(record)

    def event(self, seq: int) -> Recorded:
        """Return event `seq`; RunNotFound if there is none."""
        return _recorded(self._records.record(seq))

    def raw(self, seq: int) -> tuple[bytes, bytes]:
        """Return the exact bytes of header and body; RunNotFound if absent or erased."""
        record = self._records.record(seq)
        return record.head, _body(record)

    def stored(self, sequence: Iterable[int]) -> Iterator[tuple[Header, bytes]]:
        """Yield header and exact body of these events; RunNotFound at one absent or erased."""
        for record in self._records.records(sequence):
            yield record.header, _body(record)

    def blob(self, digest: bytes) -> bytes:
        """Return the piece of a large value that has this SHA-256.

        Raises RunNotFound if it is absent or was erased.
        """
        return self._records.blob(digest)

    def resolve(self, value: object) -> object:
        """Return a value of an event as it was recorded, its pieces put back in."""
        return canonical.resolve(value, self.blob)

    def plan_erasure(
        self, sequence: Iterable[int], blobs: Iterable[str] = (), *, everywhere: bool = False
    ) -> Plan:
        """Say what an erasure would take away, as `Ledger.erase` does it; nothing is changed."""
        return plan_erasure(self._records, sequence, blobs, everywhere=everywhere)

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the tree over the first `size` events, all by default."""
        wanted = self._bounded(size)
        frontier = self._frontier if wanted >= self._frontier.size else tlog.Frontier()
        for record in self._records.scan(frontier.size, wanted):
            frontier.append(tlog.leaf_hash(record.head))
        return frontier.root()

    def leaves(self, size: int | None = None) -> bytes:
        """Return the leaf hashes of the first `size` events one after another, 32 bytes each."""
        found = bytearray()
        for record in self._records.scan(0, self._bounded(size)):
            found += tlog.leaf_hash(record.head)
        return bytes(found)

    def prove(self, seq: int, size: int | None = None) -> tlog.InclusionProof:
        """Prove that event `seq` stands in the tree of the first `size` events."""
        wanted = self._bounded(size)
        if not 0 <= seq < wanted:
            raise RunNotFound(f"there is no event {seq} among the first {wanted}")
        return tlog.prove_inclusion(seq, wanted, tlog.subtrees(self.leaves(wanted)))

    def prove_prefix(self, old: int, new: int | None = None) -> tlog.ConsistencyProof:
        """Prove that the tree of the first `new` events begins with the first `old` ones."""
        wanted = self._bounded(new)
        return tlog.prove_consistency(old, wanted, tlog.subtrees(self.leaves(wanted)))

    def checkpoints(self) -> Iterator[tuple[int, str]]:
        """Yield (size, note) of each checkpoint that the ledger holds, oldest first."""
        return self._records.checkpoints()

    def published(self) -> Iterator[tuple[int, str]]:
        """Yield (size, note) of the checkpoints in the ledger, then of those beside it.

        Beside it may stand one that others signed after the ledger was sealed. LedgerDamaged if
        what stands there is no checkpoint.
        """
        yield from self.checkpoints()
        held = self.size
        for found in sidefile.read(self.path):
            size = found.claim.checkpoint.size
            if size <= held:
                yield size, found.data.decode()

    def copy_into(self, target: sqlite3.Connection) -> None:
        """Copy the whole ledger, as it is committed now, into an empty database."""
        self.source.copy_into(target)

    def _bounded(self, size: int | None) -> int:
        held = self.size
        if size is None:
            return held
        if not 0 <= size <= held:
            raise RunNotFound(f"the ledger has {held} events, not {size}")
        return size

    def close(self) -> None:
        """Close the file; may be called again."""
        self._records.close()
        self.source.close()


def _body(record: Record) -> bytes:
    if record.body is None:
        raise RunNotFound(f"the body of event {record.header.seq} was erased")
    return record.body


def _recorded(record: Record) -> Recorded:
    event = None if record.body is None else decode_event(record.header, record.body)
    return Recorded(record.header, event, tlog.leaf_hash(record.head))
