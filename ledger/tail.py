"""The growing end of a ledger in memory: what the next event needs to know of all before it."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ledger import canonical, sidefile, tlog
from ledger.codec import SALT_BYTES, Header, decode_event, encode_body
from ledger.database import Rows
from ledger.errors import (
    LedgerDamaged,
    LedgerRolledBack,
    LedgerStateError,
    ProofInvalid,
    ValueRefused,
)
from ledger.events import BY_CODE, TYPE_NAMES, AnyEvent
from ledger.machine import Machine, Pending, Unknown
from ledger.records import Record, Records
from ledger.resume import Start
from ledger.schema import PART_BITS
from ledger.segment import BLOBS, EVENTS, MAX_RECORD, Packing, Query, SegmentWriter
from ledger.transitions import RunStage

Clock = Callable[[], tuple[int, int]]
Entropy = Callable[[int], bytes]
# Recent pieces that are not stored again; 32,768 of at least 4 KiB are 128 MiB of content.
_REMEMBERED: Final = 32_768
_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Copy:
    """An event of another ledger, to be stored verbatim.

    Its header keeps everything but ledger id and sequence number and says that it is a copy.
    `fetch` gives the pieces of large values that `body` refers to.
    """

    header: Header
    body: bytes
    fetch: canonical.Fetch


@dataclass(frozen=True, slots=True)
class Receipt:
    """Events `first` <= seq < `size` are on disk; `root` is that of the tree of `size` leaves."""

    first: int
    tree: tlog.Frontier
    """Nobody changes it; the root is computed for who asks."""

    @property
    def size(self) -> int:
        """Events on disk up to these."""
        return self.tree.size

    @property
    def root(self) -> bytes:
        """The root of the tree over them."""
        return self.tree.root()


@dataclass(slots=True)
class _Staged:
    """One event ready to be written: header, body, and the pieces that it brings."""

    event: AnyEvent
    header: Header
    head: bytes
    body: bytes


class _Claims:
    """The checkpoints in a ledger and beside it, to be compared with the tree as it grows."""

    def __init__(
        self, records: Records, beside: Iterable[sidefile.Beside], start: Start | None
    ) -> None:
        self._by_size: dict[int, list[tuple[str, sidefile.Claim]]] = {}
        self.stored = 0
        self.last_note = b""
        self.last_size = 0
        if start is not None:
            self.stored = start.checkpoints
            self.last_note, self.last_size = start.note, start.tree.size
        for _, text in records.checkpoints(since=self.stored):
            try:
                claim = sidefile.parse(text.encode())
            except ProofInvalid as error:
                raise LedgerDamaged(f"checkpoint {self.stored}: {error.message}") from error
            self._add(f"checkpoint {self.stored}", claim)
            self.stored += 1
            self.last_note, self.last_size = text.encode(), claim.checkpoint.size
        for found in beside:
            # What is older than where the tail goes on from was overtaken: it is not reached.
            if start is None or found.claim.checkpoint.size >= start.tree.size:
                self._add(found.path.name, found.claim)

    def _add(self, name: str, claim: sidefile.Claim) -> None:
        self._by_size.setdefault(claim.checkpoint.size, []).append((name, claim))

    def compare(self, tree: tlog.Frontier, ledger_id: bytes) -> None:
        """Raise LedgerDamaged if a checkpoint of this size is not of this tree and ledger."""
        for name, claim in self._by_size.pop(tree.size, ()):
            if claim.checkpoint.root != tree.root():
                raise LedgerDamaged(f"{name} has another root at {tree.size} events")
            if not claim.is_of(ledger_id):
                raise LedgerDamaged(f"{name} is of another ledger: {claim.checkpoint.origin}")

    def finish(self, size: int) -> None:
        """Raise LedgerRolledBack if a checkpoint knows of more events than there are."""
        for claimed, claims in self._by_size.items():
            raise LedgerRolledBack(
                f"the ledger has {size} events, {claims[0][0]} knows of {claimed}"
            )


class Tail:
    """Size, tree frontier, state machines and open segments; only `stage` moves them.

    What was staged must be stored with `take_rows`, or the tail dropped and read anew.
    """

    def __init__(
        self,
        query: Query,
        clock: Clock,
        entropy: Entropy,
        beside: Iterable[sidefile.Beside] = (),
        start: Start | None = None,
        *,
        packing: Packing,
    ) -> None:
        """Rebuild the end from what is stored, all of it or from `start` on, for a new session.

        Compares the tree with every checkpoint in the ledger and `beside` it. Raises
        LedgerRolledBack if one knows of more events, LedgerDamaged if one has another root.
        """
        self._clock = clock
        self._entropy = entropy
        self._packing = packing
        self.machine = Machine()
        self.frontier = tlog.Frontier()
        self.session = 0
        records = Records(query, indexed=False)
        claims = _Claims(records, beside, start)
        self.checkpoints = claims.stored
        self.last_note, self.last_size = claims.last_note, claims.last_size
        self.ledger_id = b""
        if start is not None:
            self._go_on(start)
            claims.compare(self.frontier, self.ledger_id)
        for record in records.scan(self.frontier.size, records.size()):
            self._replay(record)
            claims.compare(self.frontier, self.ledger_id)
        claims.finish(self.frontier.size)
        if not self.ledger_id:
            self.ledger_id = entropy(_ID_BYTES)
        self._known = OrderedDict.fromkeys(records.recent_digests(_REMEMBERED))
        self._next_blob = _next_id(query, "blob")
        self._rows = Rows()
        self.begin_segments(query)

    def begin_segments(self, query: Query) -> None:
        """Write what comes to new segments: those there may be written anew. Nothing is staged."""
        self._events = SegmentWriter(_next_segment(query, EVENTS), self._packing)
        self._blobs = SegmentWriter(_next_segment(query, BLOBS), self._packing)

    def _go_on(self, start: Start) -> None:
        self.frontier = start.tree.copy()
        self.ledger_id = start.ledger_id
        self.session = start.session
        self.machine.commit(Pending(RunStage("registry")))

    def _replay(self, record: Record) -> None:
        """Feed a stored event to the tree and the machines."""
        header = record.header
        if not self.ledger_id:
            self.ledger_id = header.ledger_id
        if header.ledger_id != self.ledger_id:
            raise LedgerDamaged(f"event {header.seq} is of another ledger", seq=header.seq)
        self.frontier.append(tlog.leaf_hash(record.head))
        if not header.copied:
            self.session = max(self.session, header.session + 1)
        event: AnyEvent | Unknown
        if record.body is None:
            event = Unknown(BY_CODE[header.code], header.task, header.attempt)
        else:
            event = decode_event(header, record.body)
        try:
            self.machine.take(event, header.copied)
        except LedgerStateError as error:
            why = f"event {header.seq} was never legal: {error.message}"
            raise LedgerDamaged(why, seq=header.seq) from error

    @property
    def size(self) -> int:
        """Events stored and staged."""
        return self.frontier.size

    @property
    def root(self) -> bytes:
        """The root of the tree over all of them."""
        return self.frontier.root()

    def stage(self, items: Iterable[AnyEvent | Copy]) -> Receipt:
        """Take a batch; return the receipt that is true once its rows are stored.

        Raises ValueRefused, LedgerStateError or LedgerDamaged (a copy that is not what its header
        says) before anything has moved.
        """
        first = self.size
        pieces: dict[bytes, bytes] = {}
        staged = [self._prepare(item, first + n, pieces) for n, item in enumerate(items)]
        pending = self.machine.admit((one.event, one.header.copied) for one in staged)
        self.machine.commit(pending)
        for digest in list(pieces):
            # Each goes as it is compressed: they can be as large as the event.
            self._write_blob(digest, pieces.pop(digest))
        if staged and not self._rows.events:
            self._rows.first_type = TYPE_NAMES[staged[0].header.code]
        for one in staged:
            segment, offset = self._events.write(one.head + one.body)
            self._rows.events.append((one.header.seq, segment, offset))
            self.frontier.append(tlog.leaf_hash(one.head))
        return Receipt(first, self.frontier.copy())

    def _prepare(self, item: AnyEvent | Copy, seq: int, pieces: dict[bytes, bytes]) -> _Staged:
        def spill(digest: bytes, piece: bytes) -> None:
            if digest in self._known:
                self._known.move_to_end(digest)
            else:
                pieces[digest] = piece

        if isinstance(item, Copy):
            header = item.header.copied_to(self.ledger_id, seq)
            event = decode_event(item.header, item.body)
            body = item.body
            if hashlib.sha256(body).digest() != header.address:
                raise LedgerDamaged(f"a copied body is not what event {item.header.seq} commits to")
            if canonical.has_envelopes(body):
                for digest in canonical.reachable(dict(event), item.fetch):
                    spill(digest, _checked(digest, item.fetch(digest)))
        else:
            event = item
            body = encode_body(event, self._entropy(SALT_BYTES), spill)
            header = self._header(event, seq, body)
        if len(body) > MAX_RECORD:
            raise ValueRefused("$", f"the event has {len(body)} bytes after its texts were cut out")
        return _Staged(event, header, header.encode(), body)

    def _header(self, event: AnyEvent, seq: int, body: bytes) -> Header:
        wall_ns, mono_ns = self._clock()
        return Header(
            code=event.code,
            copied=False,
            ledger_id=self.ledger_id,
            seq=seq,
            wall_ns=wall_ns,
            mono_ns=mono_ns,
            session=self.session,
            lease=event.lease,
            attempt=event.attempt,
            body_length=len(body),
            address=hashlib.sha256(body).digest(),
            task=event.task,
        )

    def _write_blob(self, digest: bytes, piece: bytes) -> None:
        segment, offset = self._blobs.write(piece)
        self._rows.blobs.append((self._next_blob, digest, segment, offset, len(piece)))
        self._next_blob += 1
        self._known[digest] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def take_rows(self) -> Rows:
        """Return the rows of all that was staged since the last call."""
        rows, self._rows = self._rows, Rows()
        rows.segments = self._events.flush()
        rows.blobsegments = self._blobs.flush()
        return rows


def _checked(digest: bytes, piece: bytes) -> bytes:
    if hashlib.sha256(piece).digest() != digest:
        raise LedgerDamaged(f"a fetched piece is not blob {digest.hex()}")
    return piece


def _next_id(query: Query, table: str) -> int:
    ((last,),) = list(query(f"SELECT max(id) FROM {table}", ()))  # noqa: S608 - our own names
    return 0 if last is None else last + 1


def _next_segment(query: Query, table: str) -> int:
    following = _next_id(query, table)
    return (following - 1 >> PART_BITS) + 1 if following else 0
