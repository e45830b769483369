"""What checkpoints claim about the tree: those in the ledger, beside it, and from outside."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import xxhash

from ledger import note, sidefile, tlog
from ledger.errors import LedgerDamaged, ProofInvalid
from ledger.opening import Source
from ledger.verify.finding import Finding, broken, remark, unproven
from ledger.verify.signatures import Policy, Signatures
from ledger.verify.tables import Extent, rows


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
        self._beside: list[Found] = []
        self._waiting: dict[int, list[Found]] = {}
        self._agreed = 0
        self._outside_agreed: int | None = None

    def load_beside(self, ledger: Path) -> Iterator[Finding]:
        """Read those beside the ledger: before its size is taken, as it may grow meanwhile."""
        try:
            for beside in sidefile.read(ledger):
                self._beside.append(Found(beside.path.name, beside.claim))
                self._add(self._beside[-1])
        except LedgerDamaged as error:
            yield broken("checkpoint", error.message)

    def load(self, source: Source, extent: Extent) -> Iterator[Finding]:
        """Read those in the ledger and those given; tell of what is no checkpoint."""
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
            self._last_stored = max(self._last_stored, claim.checkpoint.size)
            self._add(Found(name, claim))
        if wanted < extent.checkpoints:
            yield broken("checkpoint_missing", f"checkpoints from {wanted} on cannot be read")
        yield from self._lost(extent.events)
        yield from self._load_outside()

    def _lost(self, events: int) -> Iterator[Finding]:
        """Tell of a row that is gone, or a line: one beside was stored in the ledger before.

        Witnesses and other keys may have signed since.
        """
        for found in self._beside:
            checkpoint = found.claim.checkpoint
            if checkpoint.size > events:
                continue
            stored = [
                one.claim
                for one in self._waiting[checkpoint.size]
                if one not in self._beside and one.claim.checkpoint.root == checkpoint.root
            ]
            if not stored:
                yield _missing(found, "of this size and root")
            same = [_lines(one) for one in stored if one.checkpoint == checkpoint]
            if same and not any(lines <= _lines(found.claim) for lines in same):
                yield _missing(found, "with these signatures")

    def _load_outside(self) -> Iterator[Finding]:
        for given in self._outside:
            name = "the given checkpoint"
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
        """Judge the claims about a tree of this size."""
        for found in self._waiting.pop(tree.size, ()):
            size, name, claim = tree.size, found.name, found.claim
            origin = claim.checkpoint.origin
            of_this = (
                origin.endswith(f"/{ledger_id.hex()}") if found.bare else claim.is_of(ledger_id)
            )
            if not of_this:
                yield broken("checkpoint_origin", f"{name} is of another ledger: {origin}")
                if found.outside:
                    continue
            if claim.checkpoint.root != tree.root():
                span = f"events {self._agreed} to {size - 1}"
                yield broken(
                    "checkpoint_root",
                    f"{name} at {size} events has another root: one of {span} or it was altered",
                    self._agreed,
                )
                continue
            self._agreed = size
            if found.outside:
                self._outside_agreed = size
            if claim.signed is not None:
                yield from self._signatures.judge(name, size, claim.signed)

    def seal(self, size: int, *, folded: bool) -> Iterator[Finding]:
        """Ask for the checkpoint that a seal writes before the file is folded."""
        if self._last_stored < size:
            why = f"the ledger was sealed at {size} events, and holds no checkpoint of them"
            yield (broken if folded else unproven)("seal_checkpoint", why, size - 1)

    def finish(self, size: int, *, intact: bool) -> Iterator[Finding]:
        """Judge the claims that the tree never reached, and say what is proven."""
        for claimed in sorted(self._waiting):
            for found in self._waiting[claimed]:
                if claimed > size:
                    yield broken(
                        "rolled_back",
                        f"the ledger has {size} events, {found.name} knows of {claimed}",
                        size,
                    )
                elif not intact:
                    yield unproven(
                        "checkpoint_unreachable",
                        f"{found.name} at {claimed} events cannot be compared: an event before"
                        " it cannot be read",
                    )
                elif claimed == 0:
                    yield broken("checkpoint", f"{found.name} is of no event")
        yield from self._summarize(size)

    def _summarize(self, size: int) -> Iterator[Finding]:
        if self._agreed < size:
            why = f"events {self._agreed} to {size - 1} are covered by no checkpoint"
            yield unproven("uncovered", why, self._agreed)
        yield from self._signatures.summarize()
        if self._outside_agreed is None:
            yield unproven(
                "no_outside_checkpoint",
                "consistent, but events may have been dropped or replaced as a whole:"
                " no checkpoint from outside the ledger was given",
            )
        else:
            at = self._outside_agreed
            yield remark("outside_checkpoint", f"the first {at} events are as the given one says")
