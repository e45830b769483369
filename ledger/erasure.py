"""What an erasure takes away: which events, which pieces of large values, and where they stand.

An event loses its body, and each piece that no other event refers to. A piece that others share is
kept, unless it is to go everywhere: then they lose it too. Nothing is changed here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger import canonical
from ledger.canonical import SpilledList
from ledger.codec import decode_event
from ledger.errors import LedgerDamaged, RunNotFound, UsageError
from ledger.events import (
    BY_CODE,
    TYPE_NAMES,
    AnyEvent,
    LedgerSealed,
    PayloadErased,
    RegistryOpened,
    RegistrySealed,
    RunCreated,
    RunFinished,
    RunImported,
)
from ledger.records import Place, Record, Records
from ledger.schema import BLOB_STREAM, EVENT_STREAM

KEPT: Final[dict[type[AnyEvent], str]] = {
    RunCreated: "without it there would be no run that the other events are of",
    RunImported: "without it an imported run would pass for one that ran here",
    RunFinished: "without it a run that ended would pass for one that was interrupted",
    PayloadErased: "it is the record of what was erased",
    LedgerSealed: "it holds nothing",
    RegistryOpened: "without it a run could vanish from the registry",
    RegistrySealed: "without it a run could vanish from the registry",
}
"""Types of events whose body cannot be erased, and why."""
_LEAST_DIGITS: Final = 16
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be erased.

    `bodies` are the events that lose their body, `sequence` all that lose something, `blobs` the
    pieces that go. `shared` are pieces that were named by the bodies and stay, each with the first
    other event that refers to it.
    """

    bodies: tuple[int, ...]
    sequence: tuple[int, ...]
    blobs: tuple[bytes, ...]
    shared: dict[bytes, int]
    places: tuple[Place, ...]


def plan_erasure(
    records: Records, sequence: Iterable[int], blobs: Iterable[str] = (), *, everywhere: bool
) -> Plan:
    """Find out what goes with the bodies of the events `sequence` and with the `blobs`.

    Blobs are named by their digest in hex, or the first 16 digits and more. `everywhere` takes
    shared pieces too. Raises RunNotFound for what is not there, UsageError for what cannot be
    erased, was erased already, or is shared and named itself. Reads the whole ledger.
    """
    bodies = sorted(set(sequence))
    wanted = [_find_blob(records, name) for name in dict.fromkeys(blobs)]
    if not bodies and not wanted:
        raise UsageError("nothing was named to erase", hint="name event numbers, or --blob DIGEST")
    erased_by = _Erasers(records)
    places = [_body_place(records, seq, erased_by) for seq in bodies]
    for digest in wanted:
        _require_blob(records, digest, erased_by)
    scan = _Scan(records, bodies, wanted)
    shared = {digest: seqs[0] for digest, seqs in scan.users.items() if seqs}
    if not everywhere:
        _refuse_shared(scan, wanted)
        going = [digest for digest in scan.pieces if digest not in shared or digest in wanted]
    else:
        going, shared = list(scan.pieces), {}
    losing = set(bodies).union(*(scan.users[digest] for digest in going))
    for digest in going:
        places += [Place(BLOB_STREAM, *place) for place in records.blob_places(digest)]
    return Plan(
        bodies=tuple(bodies),
        sequence=tuple(sorted(losing)),
        blobs=tuple(going),
        shared={digest: seq for digest, seq in shared.items() if digest not in going},
        places=tuple(dict.fromkeys(places)),
    )


def _body_place(records: Records, seq: int, erased_by: "_Erasers") -> Place:
    record = records.record(seq)
    kind = BY_CODE[record.header.code]
    name = TYPE_NAMES[record.header.code]
    if kind in KEPT:
        raise UsageError(f"event {seq} ({name}) cannot be erased: {KEPT[kind]}")
    if record.body is None:
        raise UsageError(f"the body of event {seq} was erased already, by {erased_by.told(seq)}")
    segment, offset = records.place(seq)
    return Place(EVENT_STREAM, segment, offset + len(record.head), len(record.body))


def _find_blob(records: Records, name: str) -> bytes:
    """The digest that `name` begins; it may be of a piece that is erased."""
    text = name.lower()
    if len(text) < _LEAST_DIGITS or set(text) - set("0123456789abcdef"):
        raise UsageError(f"{name!r} is no digest", hint=f"give {_LEAST_DIGITS} to 64 hex digits")
    found = {one for one in records.digests() if one.hex().startswith(text)}
    if not found:
        raise RunNotFound(f"there is no blob {name}")
    if len(found) > 1:
        raise UsageError(f"{len(found)} blobs begin with {name}", hint="give more digits")
    return found.pop()


def _require_blob(records: Records, digest: bytes, erased_by: "_Erasers") -> None:
    try:
        records.blob(digest)
    except RunNotFound as error:
        by = erased_by.told_of_blob(digest)
        raise UsageError(f"blob {digest.hex()} was erased already, by {by}") from error


def _refuse_shared(scan: "_Scan", wanted: Sequence[bytes]) -> None:
    """A piece that is named itself and has several users goes from all of them, or stays."""
    for digest in wanted:
        users = scan.users[digest]
        if len(users) > 1:
            shown = ", ".join(map(str, users[:_SHOWN]))
            more = f" and {len(users) - _SHOWN} more" if users[_SHOWN:] else ""
            raise UsageError(
                f"blob {digest.hex()} belongs to events {shown}{more}",
                hint="with --everywhere all of them lose it",
            )


class _Erasers:
    """Which event says that something was erased."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def told(self, seq: int) -> str:
        """The event that tells of event `seq`, in words."""
        return self._named(one.header.seq for one, event in self._all() if seq in event.sequence)

    def told_of_blob(self, digest: bytes) -> str:
        """The event that tells of a piece, in words."""
        return self._named(
            one.header.seq for one, event in self._all() if digest.hex() in event.blobs
        )

    def _all(self) -> Iterator[tuple[Record, PayloadErased]]:
        for record in self._records.scan(0, self._records.size()):
            if record.header.code == PayloadErased.code and record.body is not None:
                event = decode_event(record.header, record.body)
                assert isinstance(event, PayloadErased)
                yield record, event

    def _named(self, found: Iterator[int]) -> str:
        first = next(found, None)
        return "an event that is gone" if first is None else f"event {first}"


class _Reach:
    """What values need, directly or through pieces of lists; each list piece is read once."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._inner: dict[bytes, _Needs] = {}

    def of_event(self, record: Record, stop: frozenset[bytes] = frozenset()) -> set[bytes]:
        """The digests that an event needs; what stands below pieces in `stop` is left out."""
        if record.body is None or not canonical.has_envelopes(record.body):
            return set()
        return self._all(_needs(dict(decode_event(record.header, record.body))), stop)

    def of_blob(self, digest: bytes) -> set[bytes]:
        """The digests that a piece needs, if it is one of a list."""
        return self._all(self._below(digest), frozenset())

    def _all(self, needs: "_Needs", stop: frozenset[bytes]) -> set[bytes]:
        found = {*needs.pieces, *needs.lists}
        waiting, seen = [*needs.lists], set(stop)
        while waiting:
            digest = waiting.pop()
            if digest not in seen:
                seen.add(digest)
                below = self._below(digest)
                found.update(below.pieces, below.lists)
                waiting += below.lists
        return found

    def _below(self, digest: bytes) -> "_Needs":
        if digest not in self._inner:
            try:
                data = self._records.blob(digest)
            except RunNotFound:
                data = b""  # it was erased: what only it referred to went with it
            is_list = data.startswith(b"[") and canonical.has_envelopes(data)
            self._inner[digest] = _needs(_decoded(data)) if is_list else _Needs((), ())
        return self._inner[digest]


class _Needs(NamedTuple):
    """What a value itself refers to: pieces of texts and bytes, and pieces of lists."""

    pieces: tuple[bytes, ...]
    lists: tuple[bytes, ...]


def _needs(value: object) -> _Needs:
    plain: dict[bytes, None] = {}
    lists: dict[bytes, None] = {}
    for reference in canonical.references(value):
        (lists if isinstance(reference, SpilledList) else plain).update(
            dict.fromkeys(reference.pieces)
        )
    return _Needs(tuple(plain), tuple(lists))


def _decoded(data: bytes) -> object:
    try:
        return canonical.decode(data)
    except LedgerDamaged:
        return None  # a text may begin like a list


def _is_held(records: Records, digest: bytes) -> bool:
    try:
        records.blob(digest)
    except RunNotFound:
        return False
    return True


class _Scan:
    """One pass over all events: `pieces` are those that may go, `users` which others need each."""

    def __init__(self, records: Records, bodies: Sequence[int], wanted: Sequence[bytes]) -> None:
        reach = _Reach(records)
        pieces = dict.fromkeys(wanted)
        for digest in wanted:
            pieces |= dict.fromkeys(sorted(reach.of_blob(digest)))
        for seq in bodies:
            pieces |= dict.fromkeys(sorted(reach.of_event(records.record(seq))))
        # What was erased before cannot go once more.
        pieces = {digest: None for digest in pieces if _is_held(records, digest)}
        self.pieces = tuple(pieces)
        self.users: dict[bytes, list[int]] = {digest: [] for digest in pieces}
        if pieces:
            self._find_users(records, reach, frozenset(bodies), frozenset(wanted))

    def _find_users(
        self, records: Records, reach: _Reach, bodies: frozenset[int], wanted: frozenset[bytes]
    ) -> None:
        for record in records.scan(0, records.size()):
            if record.header.seq not in bodies:
                for digest in reach.of_event(record, stop=wanted) & self.users.keys():
                    self.users[digest].append(record.header.seq)
