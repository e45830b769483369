"""Every event in order: its place, header, body, meaning, and its leaf in the tree."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ledger import canonical, tlog
from ledger.codec import (
    HEADER_BYTES,
    Header,
    decode_event_strictly,
    header_length,
    is_canonical_body,
    is_header_of,
)
from ledger.errors import LedgerDamaged, LedgerStateError, VersionUnsupported
from ledger.events import BY_CODE, TYPE_NAMES, AnyEvent, LedgerSealed, PayloadErased
from ledger.machine import Machine, Unknown
from ledger.opening import Source
from ledger.schema import EVENT_STREAM
from ledger.verify.claims import Claims
from ledger.verify.finding import Finding, broken, remark
from ledger.verify.origins import Origins
from ledger.verify.pieces import Pieces
from ledger.verify.stream import Segment, Stream
from ledger.verify.tables import Extent, rows
from ledger.view import Recorded

_NOWHERE: Final = (-1, 0)
_TOLD_EVERY: Final = 1024
# So many leaves go into the tree at once, where no claim is about a smaller one.
_LEAVES: Final = 1024


# Of so many tasks the first event is told that was not legal; ids of tasks can be long.
_REFUSED_TOLD: Final = 1000
_OF_EVENTS: Final = ("event_", "body_", "blob_", "copy_", "illegal")


class _Rest:
    """What follows a damaged part within its segment: told as one finding, not as hundreds.

    Bytes are decompressed by what came before them, so that one damaged byte alters much of what
    follows. The first altered event is told by itself.
    """

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self._damaged = False
        self._first: int | None = None
        self._further: list[int] = []

    def condense(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Pass findings on until the segment is known to be damaged and one event to be altered."""
        for finding in findings:
            self._damaged = self._damaged or finding.code == "segment"
            of_event = finding.severity == "broken" and finding.code.startswith(_OF_EVENTS)
            if not self._damaged or not of_event or finding.seq is None:
                yield finding
            elif self._first in (None, finding.seq):
                self._first = finding.seq
                yield finding
            else:
                self._further.append(finding.seq)

    def told(self) -> Iterator[Finding]:
        """The one finding about the rest, if there is anything to tell."""
        if self._further:
            first, last = min(self._further), max(self._further)
            yield broken(
                "segment_rest",
                f"events {first} to {last}, stored behind it in segment {self.segment}, cannot be"
                f" read or are altered too ({len(self._further)} findings)",
                first,
            )


class Walk:
    """One pass over the events; afterwards `size`, `machine` and the rest say how it went."""

    def __init__(
        self,
        source: Source,
        extent: Extent,
        pieces: Pieces,
        claims: Claims,
        origins: Origins,
        on_progress: Callable[[int, int], object] | None = None,
        on_event: Callable[[Recorded], object] | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._on_event = on_event
        self._found: list[Finding] = []
        self._source = source
        self._extent = extent
        self._pieces = pieces
        self._claims = claims
        self._origins = origins
        self._stream = Stream(source, "segment", extent.segments)
        self._segment = Segment()
        self._rest = _Rest(-1)
        self._place: tuple[int, int] | None = (0, 0)
        self._at = -1
        self._session = 0
        self._mono = 0
        self._refused: set[str | None] = set()
        self._erased: list[tuple[int, str | None]] = []
        self._erasures: set[int] = set()
        self._erasers: set[int] = set()
        self.ledger_id = b""
        self.tree = tlog.Frontier()
        self._leaves: list[bytes] = []
        self.machine = Machine()
        self.intact = True
        """False once a header could not be read: then the tree knows too little."""
        self._replaying = True
        self._damaged = False
        self.sealed_at: int | None = None
        self.newer: list[str] = []
        """What only a newer release can read."""

    def findings(self) -> Iterator[Finding]:
        """Walk through all events."""
        wanted = 0
        for seq, segment, offset in rows(self._source, "event", "seg, off", self._extent.events):
            if seq != wanted:
                yield self._gap(wanted, seq)
            wanted = seq + 1
            if self._on_progress is not None and not wanted % _TOLD_EVERY:
                self._on_progress(wanted, self._extent.events)
            if segment != self._rest.segment:
                yield from self._rest.told()
                self._rest = _Rest(segment)
            self._follow(seq, segment, offset)
            self._event(seq, offset)
            if self._found:
                found, self._found = self._found, []
                yield from self._rest.condense(found)
        yield from self._rest.told()
        self._grow()
        if wanted < self._extent.events:
            yield self._gap(wanted, self._extent.events)
        yield from self._finish()

    def _gap(self, first: int, following: int) -> Finding:
        self.intact = self._replaying = False
        self._place = None
        return broken("event_missing", f"events {first} to {following - 1} are missing", first)

    def _broken(self, code: str, why: str, seq: int | None, task: str | None = None) -> None:
        self._found.append(broken(code, why, seq, task))

    def _follow(self, seq: int, segment: int, offset: int) -> None:
        """Go to where the event is said to stand, which is right behind the one before it."""
        if self._place is not None:
            before, end = self._place
            follows = offset == end if segment == before else (segment, offset) == (before + 1, 0)
            if not follows:
                self._broken("event_place", "it does not stand behind the event before it", seq)
        if segment != self._at:
            self._found += self._left_over(seq)
            self._at = segment
            self._segment = self._stream.segment(segment)

    def _left_over(self, seq: int | None) -> Iterator[Finding]:
        """Tell of bytes behind the last event of the present segment."""
        if self._at < 0:
            return
        for _, fault in self._segment.faults:
            yield broken("segment", fault, seq)
        self._segment.faults.clear()
        if self._place is not None and len(self._segment.plain) > self._place[1]:
            yield broken("segment_hidden", f"segment {self._at} holds what no event names", seq)

    def _event(self, seq: int, offset: int) -> None:
        self._place = None
        plain = self._segment.plain
        fixed = plain[offset : offset + HEADER_BYTES] if offset >= 0 else b""
        try:
            length = header_length(fixed) if len(fixed) == HEADER_BYTES else 0
        except LedgerDamaged:
            length = 0
        head = plain[offset : offset + length]
        if not length or len(head) != length:
            self._unreadable(seq, offset, "its header")
            return
        leaf = tlog.leaf_hash(head)
        self._content(seq, offset, head, leaf)
        if self.intact:
            self._leaves.append(leaf)
            if self.tree.size + len(self._leaves) >= self._claims.due:
                self._grow()
                self._found += self._claims.compare(self.tree, self.ledger_id)
            elif len(self._leaves) >= _LEAVES:
                self._grow()

    def _grow(self) -> None:
        self.tree.extend(self._leaves)
        self._leaves.clear()

    def _content(self, seq: int, offset: int, head: bytes, leaf: bytes) -> None:
        try:
            header = Header.decode(head)
        except (LedgerDamaged, VersionUnsupported) as error:
            self._segment_faults(seq, offset + len(head))
            if isinstance(error, VersionUnsupported) and not is_header_of(head, seq):
                error = LedgerDamaged("what stands in its place is no header")
            self._unknown(seq, error)
            return
        start = offset + len(head)
        end = start + header.body_length
        if self._segment.faults:
            self._segment_faults(seq, end)
        self._place = self._at, end
        self._header(seq, header)
        is_there = end <= len(self._segment.plain) and self._stream.spend(end - offset)
        if not is_there:
            self._replaying = False
            why = f"{TYPE_NAMES[header.code]}: its body cannot be read"
            self._broken("event_unreadable", why, seq, header.task)
            return
        self._body(seq, header, start, self._segment.plain[start:end], leaf)

    def _segment_faults(self, seq: int, end: int) -> None:
        """Tell of what is wrong with the stored bytes up to `end`, once."""
        while self._segment.faults and self._segment.faults[0][0] < end:
            fault = self._segment.faults.pop(0)[1]
            self._damaged = True
            self._broken("segment", fault, seq)

    @property
    def whole(self) -> bool:
        """True if every event could be read, so that what is missing was never there."""
        return self._replaying and not self._damaged

    def _unreadable(self, seq: int, offset: int, what: str) -> None:
        self.intact = self._replaying = False
        self._segment_faults(seq, offset + HEADER_BYTES)
        self._broken("event_unreadable", f"{what} cannot be read", seq)

    def _unknown(self, seq: int, error: LedgerDamaged | VersionUnsupported) -> None:
        self._replaying = False
        if isinstance(error, VersionUnsupported) and not self._damaged:
            self.newer.append(error.message)
        else:
            self._broken("event_header", _without_number(error.message, seq), seq)

    def _header(self, seq: int, header: Header) -> None:
        if not self.ledger_id:
            self.ledger_id = header.ledger_id
        if header.seq != seq:
            why = f"in its place stands event {header.seq}"
            self._broken("event_misplaced", why, seq, header.task)
        if header.ledger_id != self.ledger_id:
            why = f"it is of another ledger, {header.ledger_id.hex()}"
            self._broken("event_foreign", why, seq, header.task)
        if header.copied:
            return
        if header.session < self._session:
            why = f"it is of writing session {header.session}, after {self._session}"
            self._broken("event_session", why, seq, header.task)
        elif header.session == self._session and header.mono_ns < self._mono:
            self._found.append(remark("clock", "the monotonic clock went back", seq, header.task))
        self._session, self._mono = header.session, header.mono_ns

    def _body(self, seq: int, header: Header, start: int, body: bytes, leaf: bytes) -> None:
        task = header.task
        if hashlib.sha256(body).digest() != header.address:
            self._other_body(header, start, body, leaf)
            return
        try:
            event, is_canonical = decode_event_strictly(header, body)
        except (VersionUnsupported, LedgerDamaged) as error:
            if not is_canonical_body(body):
                self._misspelled(seq, header)
            if isinstance(error, VersionUnsupported):
                self._unknown(seq, error)
                return
            self._replaying = False
            self._broken("body_invalid", _without_number(error.message, seq), seq, task)
            return
        if not is_canonical:
            self._misspelled(seq, header)
        if canonical.has_envelopes(body):
            self._found += self._pieces.refer(dict(event), header.seq, task)
        self._meaning(header, event, leaf)

    def _misspelled(self, seq: int, header: Header) -> None:
        why = f"{TYPE_NAMES[header.code]}: the body is not in canonical form"
        self._broken("body_spelling", why, seq, header.task)

    def _other_body(self, header: Header, start: int, body: bytes, leaf: bytes) -> None:
        """Judge a body that is not the one recorded: erased, or altered."""
        seq, task = header.seq, header.task
        if not self._pieces.is_erased(EVENT_STREAM, self._at, start):
            self._replaying = False
            why = f"{TYPE_NAMES[header.code]}: the body is not the one recorded"
            self._broken("body_altered", why, seq, task)
            return
        self._erased.append((seq, task))
        if any(body):
            why = "its body is said to be erased, and bytes stand there"
            self._broken("erasure", why, seq, task)
        self._meaning(header, Unknown(BY_CODE[header.code], task, header.attempt), leaf)

    def _meaning(self, header: Header, event: AnyEvent | Unknown, leaf: bytes) -> None:
        seq = header.seq
        self._found += self._origins.take(header, event)
        if isinstance(event, PayloadErased):
            self._erasures.update(event.sequence)
            self._erasers.add(seq)
        if header.code == LedgerSealed.code:
            self.sealed_at = seq
        self._legal(header, event)
        if self._on_event is not None and self._replaying and not self._refused:
            known = None if isinstance(event, Unknown) else event
            self._on_event(Recorded(header, known, leaf))

    def _legal(self, header: Header, event: AnyEvent | Unknown) -> None:
        """Ask the state machines whether the event could stand here."""
        if not self._replaying:
            return
        try:
            self.machine.take(event, header.copied)
        except LedgerStateError as error:
            # What follows from it in the same task is not told again.
            task = header.task
            if task not in self._refused and len(self._refused) < _REFUSED_TOLD:
                self._refused.add(task)
                self._broken("illegal", error.message, header.seq, task)

    def _finish(self) -> Iterator[Finding]:
        yield from self._left_over(None)
        for number in self._stream.after(self._at):
            yield broken("segment_hidden", f"no event names anything in segment {number}")
        for row_id, by_seq in rows(self._source, "erasure", "by_seq", self._extent.erasures):
            if by_seq not in self._erasers:
                yield broken("erasure", f"erasure {row_id} is by no event", by_seq)
        for seq, task in self._erased:
            if seq in self._erasures:
                yield remark("erased", "its body was erased", seq, task)
            else:
                why = "its body is gone, and no event says that it was erased"
                yield broken("erased_silently", why, seq, task)
        for seq in self._pieces.losers:
            if seq not in self._erasures:
                why = "a large value of it is gone, and no event says that it was erased"
                yield broken("erased_silently", why, seq)


def _without_number(message: str, seq: int) -> str:
    """A message of an error, which names the event, for a finding, which has its number."""
    return message.replace(f" of event {seq}", "").replace(f"event {seq} ", "it ", 1)
