"""What a file needs of a ledger: events by type, whole values, and which of them were erased."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeVar

from ledger.errors import LedgerDamaged, RunNotFound
from ledger.events import ErrorInfo, Event, PayloadErased
from ledger.state import RunState
from ledger.view import Blobs, Recorded

E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Event)
_KEPT: Final = 32
"""Events: those of an attempt of a few calls."""


@dataclass(frozen=True, slots=True)
class Gap:
    """An event whose body, or a large value of it, was erased by another event."""

    seq: int
    type: str
    attempt: int | None
    erased_by: int | None

    def told(self) -> dict[str, object]:
        """How an exported file names the gap."""
        by = "a later event" if self.erased_by is None else f"event {self.erased_by}"
        return {
            "event": self.seq,
            "type": self.type,
            "attempt": self.attempt,
            "reason": f"erased by {by}",
        }


class Reading:
    """Reads the events of one file; `gaps` fills up with what was erased of them."""

    def __init__(self, state: RunState, blobs: Blobs) -> None:
        self.gaps: dict[int, Gap] = {}
        self._state = state
        self._blobs = blobs

    def event(self, seq: int | None, kind: type[E]) -> E | None:
        """The event at `seq`; None where there is none, or where its body was erased."""
        if seq is None:
            return None
        event = self._blobs.event(seq).event
        if event is None:
            self.note(seq)
            return None
        assert isinstance(event, kind), f"event {seq} is {event.type}"  # the fold put it there
        return event

    def either(self, seq: int, kind: type[E], other: type[F]) -> E | F | None:
        """The event at `seq`, which is of one of two types; None where its body was erased."""
        event = self._blobs.event(seq).event
        if event is None:
            self.note(seq)
            return None
        assert isinstance(event, kind | other), f"event {seq} is {event.type}"
        return event

    def value(self, seq: int, value: object) -> object:
        """The whole of a value of event `seq`; None where a piece of it was erased.

        Raises LedgerDamaged where a piece is missing and nobody erased it.
        """
        try:
            return self._blobs.resolve(value)
        except RunNotFound as error:
            if self._erased_by(seq) is None:
                raise LedgerDamaged(f"event {seq}: {error.message}", seq=seq) from error
            self.note(seq)
            return None

    def note(self, seq: int) -> None:
        """Remember that event `seq` is a gap."""
        recorded = self._blobs.event(seq)
        self.gaps[seq] = Gap(seq, recorded.type, recorded.attempt, self._erased_by(seq))

    def told(self) -> list[dict[str, object]]:
        """All gaps in order, as an exported file names them."""
        return [self.gaps[seq].told() for seq in sorted(self.gaps)]

    def _erased_by(self, seq: int) -> int | None:
        for erasure in self._state.erasures:
            event = self._blobs.event(erasure).event
            if isinstance(event, PayloadErased) and seq in event.sequence:
                return erasure
        return None


class Passing:
    """Passes everything on; `lacks_piece` is called where a value cannot be put together."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def event(self, seq: int) -> Recorded:
        """Return one event."""
        return self._blobs.event(seq)

    def blob(self, digest: bytes) -> bytes:
        """Return one piece of a large value."""
        return self._blobs.blob(digest)

    def resolve(self, value: object) -> object:
        """Return a value with its pieces put back in."""
        try:
            return self._blobs.resolve(value)
        except RunNotFound:
            self.lacks_piece()
            raise

    def lacks_piece(self) -> None:
        """A value lacks a piece: whoever asked for it asks for its event next, to name it."""


class Recent(Passing):
    """Keeps the last events for files that tell of the same ones.

    What was erased is asked for each time, so that whoever watches what is asked sees each gap.
    """

    def __init__(self, blobs: Blobs) -> None:
        super().__init__(blobs)
        self._kept: OrderedDict[int, Recorded] = OrderedDict()

    def event(self, seq: int) -> Recorded:
        """Return one event."""
        recorded = self._kept.pop(seq, None) or super().event(seq)
        if not recorded.erased:
            self._kept[seq] = recorded
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return recorded

    def lacks_piece(self) -> None:
        """Keep no event of it."""
        self._kept.clear()


def error_text(error: ErrorInfo) -> str:
    """An error in one string: its code, and its message if it has one."""
    return f"{error.code}: {error.message}" if error.message else error.code


def error_fields(error: ErrorInfo) -> dict[str, object]:
    """All that is known of an error, absent fields left out."""
    return error.model_dump(exclude_none=True)
