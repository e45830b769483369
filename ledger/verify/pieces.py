"""The blobs of a ledger: each checked once, then looked up by the events that refer to them."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

from ledger import canonical
from ledger.errors import LedgerDamaged, RunNotFound
from ledger.opening import Source
from ledger.schema import BLOB_STREAM
from ledger.verify.finding import Finding, broken, remark
from ledger.verify.stream import Stream
from ledger.verify.tables import Extent, rows

Kind = Literal["text", "list", "bytes"]
_USED: Final = {"text": 1, "list": 2, "bytes": 4}
# In the same number: a list that refers to further pieces.
_REFERS: Final = 8

_TABLES: Final = """
CREATE TABLE piece(id INTEGER PRIMARY KEY, digest BLOB, seg INT, off INT, len INT, good INT,
    fault TEXT, may INT, used INT DEFAULT 0);
CREATE TABLE gone(stream INT, seg INT, off INT, PRIMARY KEY (stream, seg, off)) WITHOUT ROWID;
CREATE TABLE inner(parent INT, kind TEXT, digest BLOB);
"""
# Made once all rows are there, which takes half as long as with each of them.
_INDEXES: Final = """
CREATE INDEX piece_digest ON piece(digest);
CREATE INDEX inner_parent ON inner(parent);
"""
_PIECE: Final = (
    "INSERT INTO piece(id, digest, seg, off, len, good, fault, may) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_TOGETHER: Final = 500
_MOST_OF_A_CHARACTER: Final = 4
# Most of a value are such, which refer to nothing.
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})


def references(value: object) -> Iterator[tuple[Kind, bytes]]:
    """Yield what `value` itself refers to: the kind of reference and the digest."""
    stack = [value]
    while stack:
        match stack.pop():
            case canonical.SpilledText(pieces=digests):
                yield from (("text", digest) for digest in digests)
            case canonical.SpilledBinary(pieces=digests):
                yield from (("bytes", digest) for digest in digests)
            case canonical.SpilledList(pieces=digests, rest=rest):
                yield from (("list", digest) for digest in digests)
                stack.extend(rest)
            case dict() as entries:
                stack.extend([one for one in entries.values() if type(one) not in _LEAVES])
            case list() | tuple() as items:
                stack.extend([one for one in items if type(one) not in _LEAVES])


class Pieces:
    """What is stored under which digest. Facts stand in a private database that may go to disk."""

    def __init__(self, source: Source, extent: Extent) -> None:
        self._source = source
        self._extent = extent
        self._stream = Stream(source, "blobsegment", extent.blobsegments)
        # A verification that nobody finishes may be dropped, and this closed, in any thread.
        self._facts = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._facts.execute("PRAGMA journal_mode = OFF")
        self._facts.executescript(_TABLES)
        self._scanned: list[tuple[object, ...]] = []
        self._missing: set[bytes] = set()
        self.losers: list[int] = []
        """For each erased piece, the first event that refers to it."""

    def close(self) -> None:
        """Forget the facts."""
        self._facts.close()

    def scan(self) -> Iterator[Finding]:
        """Read every blob once; what is wrong with one is told when an event refers to it."""
        expected_id = segment = offset = 0
        self._facts.execute("BEGIN")
        for _, *place in rows(self._source, "erasure", "stream, seg, off", self._extent.erasures):
            self._facts.execute("INSERT OR IGNORE INTO gone VALUES (?, ?, ?)", place)
        for row_id, digest, seg, off, length in rows(
            self._source, "blob", "digest, seg, off, len", self._extent.blobs
        ):
            if row_id != expected_id:
                yield broken("blob_rows", f"blob rows {expected_id} to {row_id - 1} are missing")
            expected_id = row_id + 1
            if (seg, off) not in ((segment, offset), (segment + 1, 0)):
                yield broken("blob_rows", f"blob row {row_id} does not follow the one before it")
            if seg != segment:
                yield from self._left_over(segment, offset)
            segment, offset = seg, off + length
            self._take(row_id, digest, seg, off, length)
            if len(self._scanned) >= _TOGETHER:
                self._note_scanned()
        self._note_scanned()
        self._facts.execute("COMMIT")
        self._facts.executescript(_INDEXES)
        if expected_id < self._extent.blobs:
            yield broken("blob_rows", f"blob rows from {expected_id} on are missing")
        yield from self._left_over(segment, offset)
        for number in self._stream.after(segment):
            yield from self._left_over(number, 0)

    def _left_over(self, segment: int, offset: int) -> Iterator[Finding]:
        """Tell what of a segment no blob row names."""
        if segment >= self._stream.segments:
            return
        found = self._stream.segment(segment)
        if len(found.plain) > offset:
            yield broken("blob_rows", f"blobsegment {segment} holds more than the blob rows name")
        for _, fault in found.faults:
            yield broken("blob_segment", fault)
        found.faults.clear()

    def _take(self, row_id: int, digest: bytes, seg: int, off: int, length: int) -> None:
        segment = self._stream.segment(seg)
        fault = ""
        while segment.faults and segment.faults[0][0] < off + length:
            fault = segment.faults.pop(0)[1]
        end = off + length
        is_there = 0 <= off < end <= len(segment.plain) and self._stream.spend(length)
        data = segment.plain[off:end] if is_there else b""
        good = is_there and hashlib.sha256(data).digest() == digest
        if not good and self.is_erased(BLOB_STREAM, seg, off) and not any(data):
            fault = "erased"
        elif not good:
            fault = fault or f"blob row {row_id} has another content than its digest names"
        may = self._examine(row_id, data) if good else 0
        self._scanned.append((row_id, digest, seg, off, length, good, fault, may))

    def _note_scanned(self) -> None:
        self._facts.executemany(_PIECE, self._scanned)
        self._scanned.clear()

    def _examine(self, row_id: int, data: bytes) -> int:
        """Return as which kinds the piece can be referred to; note what a list piece refers to."""
        may = _USED["bytes"] if len(data) == canonical.BINARY_PIECE else 0
        if canonical.PIECE <= len(data) <= _MOST_OF_A_CHARACTER * canonical.PIECE:
            with suppress(UnicodeDecodeError):
                if len(data.decode("utf-8", "surrogatepass")) == canonical.PIECE:
                    may |= _USED["text"]
        if data.startswith(b"[") and len(data) >= canonical.PIECE:
            with suppress(LedgerDamaged):
                value = canonical.decode_canonical(data)
                may |= _USED["list"]
                if canonical.has_envelopes(data):
                    inner = {(row_id, *one) for one in references(value)}
                    self._facts.executemany("INSERT INTO inner VALUES (?, ?, ?)", sorted(inner))
                    may |= _REFERS if inner else 0
        return may

    def is_erased(self, stream: int, segment: int, offset: int) -> bool:
        """Tell whether a row of `erasure` names this place."""
        found = self._facts.execute(
            "SELECT 1 FROM gone WHERE stream = ? AND seg = ? AND off = ?", (stream, segment, offset)
        )
        return found.fetchone() is not None

    def refer(self, value: object, seq: int, task: str | None) -> Iterator[Finding]:
        """Follow every reference of a value of event `seq`; tell each fault once."""
        waiting = list(dict.fromkeys(references(value)))
        while waiting:
            kind, digest = waiting.pop()
            used = self._facts.execute("SELECT used FROM piece WHERE digest = ? LIMIT 1", (digest,))
            if any(bits & _USED[kind] for (bits,) in used.fetchall()):
                continue
            found = self._facts.execute(
                "SELECT id, good, fault, may FROM piece WHERE digest = ?", (digest,)
            ).fetchall()
            self._facts.execute(
                "UPDATE piece SET used = used | ?, fault = '' WHERE digest = ?",
                (_USED[kind], digest),
            )
            yield from self._judge(kind, digest, found, seq, task)
            if kind == "list":
                waiting += self._inside(found)

    def _judge(
        self, kind: Kind, digest: bytes, found: list[Any], seq: int, task: str | None
    ) -> Iterator[Finding]:
        name = f"blob {digest.hex()[:16]}…"
        is_held = any(good for _, good, *_ in found)
        for _, good, fault, _ in found:
            if fault == "erased":
                if is_held:
                    continue  # the same was recorded again
                self.losers.append(seq)
                yield remark("erased", f"{name} was erased", seq, task)
            elif fault:
                code = "blob_segment" if good else "blob_altered"
                yield broken(code, fault, seq, task)
        goods = [row for row in found if row[1]]
        if not found and digest not in self._missing:
            self._missing.add(digest)
            yield broken("blob_missing", f"{name} is not in the ledger", seq, task)
        if goods and not goods[0][3] & _USED[kind]:
            yield broken("blob_kind", f"{name} is no piece of a {kind}", seq, task)

    def _inside(self, found: list[Any]) -> list[tuple[Kind, bytes]]:
        for row_id, good, _, may in found:
            if good and may & _REFERS:
                return self._facts.execute(
                    "SELECT kind, digest FROM inner WHERE parent = ?", (row_id,)
                ).fetchall()
        return []

    def finish(self) -> Iterator[Finding]:
        """Tell of faults and pieces that no event refers to."""
        for (fault,) in self._facts.execute(
            "SELECT fault FROM piece WHERE fault NOT IN ('', 'erased') ORDER BY id"
        ):
            yield broken("blob_altered", fault)
        ((orphans,),) = self._facts.execute("SELECT count(*) FROM piece WHERE used = 0 AND good")
        if orphans:
            yield remark("orphan_pieces", f"no event refers to {orphans} stored pieces")

    def fetch(self, digest: bytes) -> bytes:
        """Return the content of a blob; RunNotFound if no good one is stored."""
        found = self._facts.execute(
            "SELECT seg, off, len FROM piece WHERE digest = ? AND good", (digest,)
        ).fetchone()
        if found is None:
            raise RunNotFound(f"there is no good blob {digest.hex()}")
        segment, offset, length = found
        return self._stream.segment(segment).plain[offset : offset + length]

    def resolve(self, value: object) -> object:
        """Return a value whole, or None if that cannot be had."""
        try:
            return canonical.resolve(value, self.fetch)
        except (LedgerDamaged, RunNotFound):
            return None
