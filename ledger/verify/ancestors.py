"""The ledgers that a reuse says it has its events from, nearest first, and their trees."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ledger import canonical, note, sidefile, tlog
from ledger.codec import Header
from ledger.errors import ProofInvalid
from ledger.events import AttemptReused, TaskReused

Resolve = Callable[[object], object]
_ID_BYTES: Final = 16
_KEPT: Final = 8


@dataclass(slots=True)
class Leaves:
    """The leaf hashes of a ledger, 32 bytes each, and the roots that were asked for."""

    data: bytes
    _roots: dict[int, bytes] = field(default_factory=dict)

    def root(self, size: int) -> bytes:
        """The root of the tree over the first `size` leaves; there must be as many."""
        if size not in self._roots:
            self._roots[size] = tlog.root_of(self.data[: size * tlog.HASH_BYTES])
        return self._roots[size]

    def holds(self, size: int) -> bool:
        """Whether these are `size` leaves, and nothing but zeros behind them."""
        end = size * tlog.HASH_BYTES
        return len(self.data) >= end and not any(self.data[end:])

    def at(self, seq: int) -> bytes:
        """The leaf of event `seq`; empty if there is none."""
        return self.data[seq * tlog.HASH_BYTES : (seq + 1) * tlog.HASH_BYTES]


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A ledger that held the events at `sequence`, as it was then: `size` events with `root`.

    `fault` says what is wrong with the description itself, if anything is.
    """

    run_id: str
    ledger_id: bytes
    size: int
    leaves: Leaves
    sequence: tuple[int, ...]
    claim: sidefile.Claim | None
    fault: str | None = None

    @property
    def name(self) -> str:
        """How findings call it."""
        return f"ledger {self.ledger_id.hex()[:16]}… (run {self.run_id!r})"

    def held(self, position: int, header: Header) -> bool:
        """Whether the copy with this header was its event number `sequence[position]`."""
        if position >= len(self.sequence) or len(self.ledger_id) != _ID_BYTES:
            return False
        seq = self.sequence[position]
        if not 0 <= seq < self.size:
            return False
        # There, it may have been a copy as well.
        originals = (
            header._replace(ledger_id=self.ledger_id, seq=seq, copied=copied)
            for copied in (False, True)
        )
        return self.leaves.at(seq) in [tlog.leaf_hash(one.encode()) for one in originals]

    def signer(self, verifiers: Sequence[note.Verifier]) -> str | None:
        """Which of `verifiers`, if they are of logs, signed its checkpoint."""
        signed = None if self.claim is None else self.claim.signed
        if signed is None:
            return None
        try:
            good = note.good_lines(signed, verifiers)
        except ProofInvalid:
            return None
        logs = (one.name for one, line in good if one.time_of(line.signature) is None)
        return next(logs, None)

    def doubt(self, verifiers: Sequence[note.Verifier]) -> str | None:
        """Why nothing proves that it held the events; None if a signature does."""
        if self.claim is None:
            return "it held no checkpoint"
        if self.signer(verifiers) is None:
            return "no given key signed it"
        covered = all(seq < self.claim.checkpoint.size for seq in self.sequence)
        return None if covered else "its checkpoint is older"


class Family:
    """Reads what reuses say of their sources; the leaves of the last few are kept."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._kept: list[tuple[object, Leaves]] = []

    def ancestors(self, event: TaskReused | AttemptReused) -> list[Ancestor]:
        """The sources of a reuse: the one that was read, the one that had it before, and so on."""
        return list(self._follow(dict(event)))

    def _follow(self, told: Mapping[str, Any]) -> Iterator[Ancestor]:
        """The source, and what the lineage tells of its source, until nothing is told any more."""
        lineage = told["lineage"]
        before = dict(lineage) if isinstance(lineage, Mapping) else {}
        yield self._ancestor(told)
        while isinstance(told := before.pop(str(told.get("source_ledger_id")), None), Mapping):
            yield self._ancestor(told)
        if told is not None or before or not isinstance(lineage, Mapping | None):
            yield Ancestor("", b"", 0, Leaves(b""), (), None, "its lineage is malformed")

    def _ancestor(self, told: Mapping[str, Any]) -> Ancestor:
        run_id, ledger_id, size, root, note_ = (
            self._resolve(told.get(name))
            for name in ("source_run_id", "source_ledger_id", "size", "root", "checkpoint")
        )
        found = Ancestor(
            run_id=str(run_id),
            ledger_id=_id(ledger_id),
            size=size if type(size) is int and size >= 0 else 0,
            leaves=self._leaves(told.get("leaves")),
            sequence=_numbers(self._resolve(told.get("sequence"))),
            claim=None,
        )
        if not found.leaves.holds(found.size):
            return replace(found, fault="lacks the leaves of its source")
        if found.leaves.root(found.size).hex() != root:
            return replace(found, fault="names another root than the leaves of its source have")
        if note_ is None:
            return found
        try:
            return replace(found, claim=_claim(note_, found))
        except (ProofInvalid, ValueError) as error:
            return replace(found, fault=f"the checkpoint of its source does not hold: {error}")

    def _leaves(self, value: object) -> Leaves:
        # All reuses of one materialisation name one blob.
        for known, leaves in self._kept:
            if known == value:
                return leaves
        whole = self._resolve(value)
        leaves = Leaves(whole.data if isinstance(whole, canonical.Binary) else b"")
        self._kept = [*self._kept[1 - _KEPT :], (value, leaves)]
        return leaves


def _claim(text: object, of: Ancestor) -> sidefile.Claim:
    if not isinstance(text, str):
        raise ProofInvalid("it is no text")
    claim = sidefile.parse(text.encode("utf-8", "surrogatepass"))
    if claim.checkpoint.size > of.size:
        raise ProofInvalid("it is of more events than there were")
    if of.leaves.root(claim.checkpoint.size) != claim.checkpoint.root:
        raise ProofInvalid("it has another root than the source's leaves")
    if not claim.is_of(of.ledger_id):
        raise ProofInvalid("it is of another ledger")
    return claim


def _id(value: object) -> bytes:
    try:
        return bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        return b""


def _numbers(value: object) -> tuple[int, ...]:
    given = value if isinstance(value, list | tuple) else ()
    return tuple(one if type(one) is int and one >= 0 else -1 for one in given)
