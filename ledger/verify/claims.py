"""What checkpoints claim about the tree: those in the ledger, beside it, and from outside."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import xxhash

from ledger import note, sidefile, tlog
from ledger.errors import LedgerDamaged, ProofInvalid
from ledger.opening import Source
from ledger.verify.finding import Finding, broken, remark, unproven
from ledger.verify.signatures import Policy, Signatures
from ledger.verify.tables import Extent, rows

# More events than there can be.
_NEVER: Final = tlog.MAX_SIZE + 1


@dataclass(frozen=True, slots=True)
class Found:
    """One checkpoint, and where it was found. `bare` ones were given without their note."""

    name: str
    claim: sidefile.Claim
    outside: bool = False
    bare: bool = False


def _missing(beside: Found, what: str) -> Finding:
    size = beside.claim.checkpoint.size
    why = f"{beside.name} is of {size} events; the ledger holds none {what}"
    return broken("checkpoint_missing", why)


def _passes(data: bytes, checksum: int) -> bool:
    digest = xxhash.xxh3_64_intdigest(data)
    return checksum == (digest - (1 << 64) if digest >> 63 else digest)


def _lines(claim: sidefile.Claim) -> frozenset[note.Signature]:
    return frozenset(claim.signed.signatures if claim.signed else ())


@dataclass(slots=True)
class _Beside:
    """A checkpoint beside the ledger, and what was seen of it in the ledger.

    It was stored there before. Witnesses and other keys may have signed since.
    """

    found: Found
    is_stored: bool = False
    has_origin: bool = False
    has_lines: bool = False

    def compare(self, stored: sidefile.Claim) -> None:
        """Look at one of those in the ledger."""
        own = self.found.claim
        it, this = stored.checkpoint, own.checkpoint
        self.is_stored = self.is_stored or (it.size, it.root) == (this.size, this.root)
        if it == this:
            self.has_origin = True
            self.has_lines = self.has_lines or _lines(stored) <= _lines(own)

    def judge(self) -> Iterator[Finding]:
        """Tell of a row that is gone, or of a line."""
        if not self.is_stored:
            yield _missing(self.found, "of this size and root")
        elif self.has_origin and not self.has_lines:
            yield _missing(self.found, "with these signatures")


class Claims:
    """Every checkpoint there is, compared with the tree as the events come by."""

    def __init__(
        self,
        verifiers: Sequence[note.Verifier],
        policy: Policy | None,
        outside: Iterable[note.Checkpoint | bytes],
    ) -> None:
        self._signatures = Signatures(verifiers, policy)
        self._outside = outside
        self._last_stored = 0
        self._stored: Iterator[Found | Finding] = iter(())
        self._next: Found | Finding | None = None
        self._beside: list[_Beside] = []
        self._waiting: dict[int, list[Found]] = {}
        self._agreed = 0
        self.due = 0
        """No checkpoint is of a smaller tree and still to be compared; only `compare` moves it."""
        self._outside_given = False
        self._outside_agreed: int | None = None

    def load_beside(self, ledger: Path) -> Iterator[Finding]:
        """Read those beside the ledger: before its size is taken, as it may grow meanwhile."""
        try:
            for beside in sidefile.read(ledger):
                found = Found(beside.path.name, beside.claim)
                self._beside.append(_Beside(found))
                self._add(found)
        except LedgerDamaged as error:
            yield broken("checkpoint", error.message)

    def load(self, source: Source, extent: Extent) -> Iterator[Finding]:
        """Take those given; those in the ledger are read as the events come by."""
        self._stored = self._read(source, extent)
        yield from self._load_outside()

    def _read(self, source: Source, extent: Extent) -> Iterator[Found | Finding]:
        """Yield those in the ledger, and what is no checkpoint there."""
        wanted = least = 0
        for row_id, size, checksum, text in rows(
            source, "checkpoint", "size, hash, note", extent.checkpoints
        ):
            if row_id != wanted:
                yield broken("checkpoint_missing", f"checkpoints {wanted} to {row_id - 1} are gone")
            wanted = row_id + 1
            name = f"checkpoint {row_id}"
            if not _passes(text.encode(), checksum):
                yield broken("checkpoint", f"{name} fails its check")
            try:
                claim = sidefile.parse(text.encode())
            except ProofInvalid as error:
                yield broken("checkpoint", f"{name} is none: {error.message}")
                continue
            if not least <= size == claim.checkpoint.size:
                yield broken("checkpoint", f"{name} stands at size {size}, out of order")
            least = max(least, size)
            yield Found(name, claim)
        if wanted < extent.checkpoints:
            yield broken("checkpoint_missing", f"checkpoints from {wanted} on cannot be read")

    def _pull(self, upto: int) -> Iterator[Found | Finding]:
        """Yield the next of those in the ledger, as long as they are of at most `upto` events."""
        while True:
            one = next(self._stored, None) if self._next is None else self._next
            if isinstance(one, Found) and one.claim.checkpoint.size > upto:
                self._next = one
                return
            self._next = None
            if one is None:
                return
            if isinstance(one, Found):
                self._last_stored = max(self._last_stored, one.claim.checkpoint.size)
                for beside in self._beside:
                    beside.compare(one.claim)
            yield one

    def _load_outside(self) -> Iterator[Finding]:
        for given in self._outside:
            name = "the given checkpoint"
            self._outside_given = True
            if isinstance(given, note.Checkpoint):
                claim = sidefile.Claim(given, None)
                self._add(Found(name, claim, outside=True, bare=True))
                continue
            try:
                self._add(Found(name, sidefile.parse(given), outside=True))
            except ProofInvalid as error:
                yield broken("checkpoint", f"the given checkpoint is none: {error.message}")

    def _add(self, found: Found) -> None:
        self._waiting.setdefault(found.claim.checkpoint.size, []).append(found)

    def compare(self, tree: tlog.Frontier, ledger_id: bytes) -> Iterator[Finding]:
        """Judge the claims about a tree of this size; sizes come in order, each that is due."""
        waiting = self._waiting.pop(tree.size, ())
        for found in chain(waiting, self._pull(tree.size)):
            if isinstance(found, Finding):
                yield found
            elif found.claim.checkpoint.size == tree.size:
                yield from self._judge(found, tree, ledger_id)
        following = self._next.claim.checkpoint.size if isinstance(self._next, Found) else _NEVER
        self.due = min(following, *self._waiting, _NEVER)

    def _judge(self, found: Found, tree: tlog.Frontier, ledger_id: bytes) -> Iterator[Finding]:
        size, name, claim = tree.size, found.name, found.claim
        origin = claim.checkpoint.origin
        of_this = origin.endswith(f"/{ledger_id.hex()}") if found.bare else claim.is_of(ledger_id)
        if not of_this:
            yield broken("checkpoint_origin", f"{name} is of another ledger: {origin}")
            if found.outside:
                return
        if claim.checkpoint.root != tree.root():
            span = f"events {self._agreed} to {size - 1}"
            yield broken(
                "checkpoint_root",
                f"{name} at {size} events has another root: one of {span} or it was altered",
                self._agreed,
            )
            return
        self._agreed = size
        if found.outside:
            self._outside_agreed = size
        if claim.signed is not None:
            yield from self._signatures.judge(name, size, claim.signed)

    def rest(self, size: int, *, intact: bool) -> Iterator[Finding]:
        """Judge the claims that a tree of `size` events never reached."""
        never = chain(self._pull(tlog.MAX_SIZE), *(self._waiting[n] for n in sorted(self._waiting)))
        for found in never:
            if isinstance(found, Finding):
                yield found
            else:
                yield from self._never_reached(found, size, intact=intact)
        for beside in self._beside:
            if beside.found.claim.checkpoint.size <= size:
                yield from beside.judge()

    def _never_reached(self, found: Found, size: int, *, intact: bool) -> Iterator[Finding]:
        claimed = found.claim.checkpoint.size
        if claimed > size:
            why = f"the ledger has {size} events, {found.name} knows of {claimed}"
            yield broken("rolled_back", why, size)
        elif not intact:
            why = (
                f"{found.name} at {claimed} events cannot be compared: an event before it cannot"
                " be read"
            )
            yield unproven("checkpoint_unreachable", why)
        elif claimed == 0:
            yield broken("checkpoint", f"{found.name} is of no event")

    def seal(self, size: int, *, folded: bool) -> Iterator[Finding]:
        """Ask for the checkpoint that a seal writes before the file is folded."""
        if self._last_stored < size:
            why = f"the ledger was sealed at {size} events, and holds no checkpoint of them"
            yield (broken if folded else unproven)("seal_checkpoint", why, size - 1)

    def finish(self, size: int) -> Iterator[Finding]:
        """Say what is proven."""
        if self._agreed < size:
            why = f"events {self._agreed} to {size - 1} are covered by no checkpoint"
            yield unproven("uncovered", why, self._agreed)
        yield from self._signatures.summarize(size)
        if self._outside_agreed is None:
            why = (
                "nothing in it agrees with a checkpoint that was given"
                if self._outside_given
                else "consistent, but events may have been dropped or replaced as a whole:"
                " no checkpoint from outside the ledger was given"
            )
            yield unproven("no_outside_checkpoint", why)
        else:
            at = self._outside_agreed
            yield remark("outside_checkpoint", f"the first {at} events are as the given one says")
            if at < size:
                why = f"events {at} to {size - 1} came after the given checkpoint"
                yield unproven("outside_since", why, at)
