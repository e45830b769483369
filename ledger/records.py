"""Stored events and blobs by number and digest, each checked against its commitment when read."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from ledger.codec import HEADER_BYTES, Header, header_length, is_header_of
from ledger.errors import AclError, LedgerDamaged, RunNotFound, VersionUnsupported
from ledger.schema import BLOB_STREAM, EVENT_STREAM
from ledger.segment import BLOBS, EVENTS, MAX_RECORD, Query, SegmentReader, part_hash

_CHUNK: Final = 1000
# As many values as one statement may have.
_TOGETHER: Final = 10
_SOME_PLACES: Final = f"SELECT seq, seg, off FROM event WHERE seq IN ({', '.join('?' * _TOGETHER)})"  # noqa: S608


class Place(NamedTuple):
    """Bytes of a segment of one of the two streams."""

    stream: int
    segment: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Record:
    """One event as stored: its decoded header, the header's exact bytes, and the body's.

    `body` is None if it was erased.
    """

    header: Header
    head: bytes
    body: bytes | None


class Records:
    """The content of a ledger through `query`, a runner of SQL that reads.

    No read transaction outlives a call: long scans go by chunks, so that a reader never holds the
    writer's -wal open. Raises LedgerDamaged with the number of the first event concerned.
    """

    def __init__(self, query: Query, *, indexed: bool) -> None:
        self._query = query
        self._events = SegmentReader(query, EVENTS)
        self._blobs = SegmentReader(query, BLOBS)
        self._places = None if indexed else _Places(query)

    def size(self) -> int:
        """How many events are committed now."""
        ((last,),) = list(self._query("SELECT max(seq) FROM event", ()))
        return 0 if last is None else last + 1

    def scan(self, since: int, until: int) -> Iterator[Record]:
        """Yield the events with `since` <= number < `until` in order; all must be there.

        Each must stand behind the one before it: else a reader could be sent from one large
        segment to another for ever.
        """
        wanted = since
        behind: tuple[int, int] | None = None
        while wanted < until:
            for seq, segment, offset in self._places_of(wanted, until):
                if seq != wanted:
                    raise LedgerDamaged(f"event {wanted} is missing", seq=wanted)
                if behind is not None and (segment, offset) not in (behind, (behind[0] + 1, 0)):
                    why = f"event {seq} does not stand behind the one before it"
                    raise LedgerDamaged(why, seq=seq)
                record = self._read(seq, segment, offset)
                behind = segment, offset + len(record.head) + record.header.body_length
                yield record
                wanted += 1

    def _places_of(self, wanted: int, until: int) -> list[tuple[Any, ...]]:
        """The next rows, at least one, as far as they can be read."""
        rows: list[tuple[Any, ...]] = []
        try:
            for row in self._query(
                "SELECT seq, seg, off FROM event WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?",
                (wanted, until, _CHUNK),
            ):
                rows.append(row)  # noqa: PERF402 - what came before an error is kept
        except LedgerDamaged as error:
            # The row before a damaged page comes only if it is asked for alone.
            rows = rows or self._place_of(wanted, error)
        if not rows:
            raise LedgerDamaged(f"event {wanted} is missing", seq=wanted)
        return rows

    def _place_of(self, wanted: int, error: LedgerDamaged) -> list[tuple[Any, ...]]:
        try:
            return list(self._query("SELECT seq, seg, off FROM event WHERE seq = ?", (wanted,)))
        except LedgerDamaged:
            raise LedgerDamaged(f"event {wanted}: {error.message}", seq=wanted) from error

    def record(self, seq: int) -> Record:
        """Return event `seq`; RunNotFound if there is none."""
        rows = list(self._query("SELECT seg, off FROM event WHERE seq = ?", (seq,)))
        if not rows:
            raise RunNotFound(f"there is no event {seq}")
        return self._read(seq, *rows[0])

    def records(self, sequence: Iterable[int]) -> Iterator[Record]:
        """Yield these events in this order; RunNotFound at the first that there is not."""
        left = iter(sequence)
        while some := tuple(islice(left, _TOGETHER)):
            rows = self._query(_SOME_PLACES, some + (None,) * (_TOGETHER - len(some)))
            places = {seq: (segment, offset) for seq, segment, offset in rows}
            for seq in some:
                if seq not in places:
                    raise RunNotFound(f"there is no event {seq}")
                yield self._read(seq, *places[seq])

    def _read(self, seq: int, segment: int, offset: int) -> Record:
        try:
            head = self._events.read(segment, offset, HEADER_BYTES)
            length = header_length(head)
            if length > HEADER_BYTES:
                head = self._events.read(segment, offset, length)
            header = _decode(head, seq)
            if header.seq != seq:
                raise LedgerDamaged(f"in its place stands event {header.seq}")
            if header.body_length > MAX_RECORD:
                raise LedgerDamaged(f"it claims a body of {header.body_length} bytes")
            body = self._events.read(segment, offset + length, header.body_length)
        except LedgerDamaged as error:
            raise LedgerDamaged(f"event {seq}: {error.message}", seq=seq) from error
        if hashlib.sha256(body).digest() == header.address:
            return Record(header, head, body)
        if self._erased(EVENT_STREAM, segment, offset + length):
            return Record(header, head, None)
        raise LedgerDamaged(f"the body of event {seq} is not what its header commits to", seq=seq)

    def place(self, seq: int) -> tuple[int, int]:
        """Where event `seq` stands: its segment, and its offset there; RunNotFound if nowhere."""
        for segment, offset in self._query("SELECT seg, off FROM event WHERE seq = ?", (seq,)):
            return segment, offset
        raise RunNotFound(f"there is no event {seq}")

    def blob_places(self, digest: bytes) -> list[tuple[int, int, int]]:
        """Segment, offset and length of each stored copy of a piece, erased ones included."""
        return self._find(digest)

    def blob(self, digest: bytes) -> bytes:
        """Return the piece with this SHA-256.

        Raises RunNotFound if it is absent or was erased, LedgerDamaged if no stored copy has the
        digest.
        """
        fault: AclError = RunNotFound(f"there is no blob {digest.hex()}")
        for segment, offset, length in self._find(digest):
            try:
                data = self._blobs.read(segment, offset, length)
            except LedgerDamaged as error:
                fault = LedgerDamaged(f"blob {digest.hex()}: {error.message}")
                continue
            if hashlib.sha256(data).digest() == digest:
                return data
            if self._erased(BLOB_STREAM, segment, offset):
                fault = RunNotFound(f"blob {digest.hex()} was erased")
            else:
                fault = LedgerDamaged(f"blob {digest.hex()} has another content")
        raise fault

    def _find(self, digest: bytes) -> list[tuple[int, int, int]]:
        if self._places is not None:
            return self._places.find(digest)
        rows = self._query("SELECT seg, off, len FROM blob WHERE digest = ?", (digest,))
        return [(segment, offset, length) for segment, offset, length in rows]

    def digests(self) -> Iterator[bytes]:
        """Yield the digest of each blob row, oldest first, erased ones included."""
        since = 0
        while rows := list(
            self._query(
                "SELECT id, digest FROM blob WHERE id >= ? ORDER BY id LIMIT ?", (since, _CHUNK)
            )
        ):
            since = rows[-1][0] + 1
            for _, digest in rows:
                yield digest

    def recent_digests(self, most: int) -> Iterator[bytes]:
        """Yield the digests of the last `most` blob rows that are not erased, oldest first."""
        ((last,),) = list(self._query("SELECT max(id) FROM blob", ()))
        first = max(0, (last or 0) + 1 - most)
        rows = self._query(
            "SELECT digest FROM blob WHERE id >= ? AND NOT EXISTS (SELECT id FROM erasure WHERE"
            " stream = ? AND erasure.seg = blob.seg AND erasure.off = blob.off) ORDER BY id",
            (first, BLOB_STREAM),
        )
        for (digest,) in rows:
            yield digest

    def last_checkpoint(self) -> tuple[int, int, str] | None:
        """Return (how many there are, size, note) with the last one's size and note."""
        ((last,),) = list(self._query("SELECT max(id) FROM checkpoint", ()))
        for size, note in () if last is None else self.checkpoints(since=last):
            return last + 1, size, note
        return None

    def checkpoints(self, since: int = 0) -> Iterator[tuple[int, str]]:
        """Yield (size, note) of each stored checkpoint from row `since` on, oldest first."""
        next_id = since
        while True:
            rows = list(
                self._query(
                    "SELECT id, size, hash, note FROM checkpoint WHERE id >= ? ORDER BY id LIMIT ?",
                    (next_id, _CHUNK),
                )
            )
            for row_id, size, checksum, note in rows:
                if row_id != next_id:
                    raise LedgerDamaged(f"checkpoint {next_id} is missing")
                if part_hash(note.encode()) != checksum:
                    raise LedgerDamaged(f"checkpoint {next_id} fails its check")
                next_id += 1
                yield size, note
            if len(rows) < _CHUNK:
                return

    def close(self) -> None:
        """Let go of the map of blobs; may be called again."""
        if self._places is not None:
            self._places.close()

    def _erased(self, stream: int, segment: int, offset: int) -> bool:
        return any(
            True
            for _ in self._query(
                "SELECT id FROM erasure WHERE stream = ? AND seg = ? AND off = ?",
                (stream, segment, offset),
            )
        )


def _decode(head: bytes, seq: int) -> Header:
    try:
        return Header.decode(head)
    except VersionUnsupported as error:
        if is_header_of(head, seq):
            raise
        raise LedgerDamaged("what stands in its place is no header") from error


class _Places:
    """Where each blob stands, for a ledger whose index is not made yet.

    A private database of SQLite's own, which goes to a temporary file when it grows; filled on the
    first need, and with what has come since when a digest is not found.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._next = 0
        self._map: sqlite3.Connection | None = None

    def find(self, digest: bytes) -> list[tuple[int, int, int]]:
        """Return (segment, offset, length) of each stored copy."""
        return self._look_up(digest) or (self._fill() and self._look_up(digest)) or []

    def close(self) -> None:
        """Forget everything."""
        if self._map is not None:
            self._map.close()
            self._map = None
            self._next = 0

    def _look_up(self, digest: bytes) -> list[tuple[int, int, int]]:
        if self._map is None:
            return []
        return self._map.execute(
            "SELECT seg, off, len FROM place WHERE digest = ?", (digest,)
        ).fetchall()

    def _fill(self) -> bool:
        """Take in the rows that have come since; tell whether there were any."""
        if self._map is None:
            self._map = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            self._map.execute("PRAGMA journal_mode = OFF")
            self._map.execute(
                "CREATE TABLE place(digest BLOB, id INTEGER, seg INTEGER, off INTEGER, len INTEGER,"
                " PRIMARY KEY (digest, id)) WITHOUT ROWID"
            )
        before = self._next
        while True:
            rows = list(
                self._query(
                    "SELECT digest, id, seg, off, len FROM blob WHERE id >= ? ORDER BY id LIMIT ?",
                    (self._next, _CHUNK),
                )
            )
            if [row[1] for row in rows] != list(range(self._next, self._next + len(rows))):
                raise LedgerDamaged(f"blob row {self._next} or one of the next is missing")
            # In one transaction: each row by itself would be written out by itself.
            self._map.execute("BEGIN")
            self._map.executemany("INSERT INTO place VALUES (?, ?, ?, ?, ?)", rows)
            self._map.execute("COMMIT")
            self._next += len(rows)
            if len(rows) < _CHUNK:
                return self._next > before
