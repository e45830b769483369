"""What checkpoints claim about the tree: those in the ledger, beside it, and from outside."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import xxhash

from ledger import note, sidefile, tlog
from ledger.errors import LedgerDamaged, ProofInvalid
from ledger.opening import Source
from ledger.verify.finding import Finding, broken, remark, unproven
from ledger.verify.tables import Extent, rows


class Policy(Protocol):
    """Whose signatures make a checkpoint good enough."""

    def fault(self, signed: note.SignedNote) -> str | None:
        """Say why a note is not good enough, or None if it is."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """One checkpoint, and where it was found. `bare` ones were given without their note."""

    name: str
    claim: sidefile.Claim
    outside: bool = False
    bare: bool = False


def _passes(data: bytes, checksum: int) -> bool:
    digest = xxhash.xxh3_64_intdigest(data)
    return checksum == (digest - (1 << 64) if digest >> 63 else digest)


class Claims:
    """Every checkpoint there is, compared with the tree as the events come by."""

    def __init__(
        self,
        verifiers: Sequence[note.Verifier],
        policy: Policy | None,
        outside: Iterable[note.Checkpoint | bytes],
    ) -> None:
        self._verifiers = verifiers
        self._policy = policy
        self._outside = outside
        self._last_stored = 0
        self._waiting: dict[int, list[Found]] = {}
        self._agreed = 0
        self._outside_agreed: int | None = None
        self._signed_agreed: tuple[int, str] | None = None
        self._latest: sidefile.Claim | None = None

    def load_beside(self, ledger: Path) -> Iterator[Finding]:
        """Read those beside the ledger: before its size is taken, as it may grow meanwhile."""
        try:
            for beside in sidefile.read(ledger):
                self._add(Found(beside.path.name, beside.claim))
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
        yield from self._load_outside()

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
            yield from self._judge_signatures(found)

    def _judge_signatures(self, found: Found) -> Iterator[Finding]:
        claim = found.claim
        size = claim.checkpoint.size
        self._agreed = size
        if found.outside:
            self._outside_agreed = max(size, self._outside_agreed or 0)
        if claim.signed is None:
            return
        self._latest = claim
        for verifier in self._verifiers:
            for line in claim.signed.signatures:
                if (line.name, line.key_id) != (verifier.name, verifier.key_id):
                    continue
                if verifier.verify(claim.signed.text, line.signature):
                    self._signed_agreed = size, verifier.name
                else:
                    yield broken(
                        "signature", f"{found.name} at {size} events: {verifier.name} did not sign"
                    )

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
        if self._policy is not None:
            signed = self._latest.signed if self._latest else None
            fault = self._policy.fault(signed) if signed else "no checkpoint is signed"
            if fault:
                yield unproven("policy", f"the policy is not met: {fault}")
        if self._signed_agreed is None:
            why = "no given key signed a checkpoint"
            if self._latest is None:
                why = "it holds no signature"
            elif not self._verifiers:
                why = "no key was given"
            yield unproven("unsigned", f"who wrote this ledger is not proven: {why}")
        else:
            at, name = self._signed_agreed
            yield remark("signed", f"the first {at} events are signed by {name}")
        if self._outside_agreed is None:
            yield unproven(
                "no_outside_checkpoint",
                "consistent, but events may have been dropped or replaced as a whole:"
                " no checkpoint from outside the ledger was given",
            )
        else:
            at = self._outside_agreed
            yield remark("outside_checkpoint", f"the first {at} events are as the given one says")
        if size > self._agreed:
            yield unproven(
                "uncovered", f"events from {self._agreed} on are in no checkpoint", self._agreed
            )
