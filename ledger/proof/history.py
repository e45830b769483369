"""Two checkpoints of one log in one file: the later extends the earlier, or contradicts it.

    acl/consistency-proof@v1          acl/fork-report@v1
    <base64 hash>                     root <base64 hash>
    <empty line>                      <base64 hash>
    <older checkpoint>                <empty line>
    <empty line>                      <one checkpoint, of m events>
    <newer checkpoint>                <empty line>
                                      <the other, of as many or more>

Checkpoints stand with their signatures, as they were published. The hashes are the consistency
proof of RFC 6962 2.1.2 between their sizes. A fork report proves that the tree of the other
checkpoint has `root` at m events, and so that it is not one that the first was made of: whoever
signed both showed two histories. Nothing but the two notes and the hashes is needed to see it.
"""

import re
from dataclasses import dataclass
from typing import Final

from ledger import note, sidefile
from ledger.errors import ProofInvalid, UsageError
from ledger.proof.lines import (
    Tree,
    format_hashes,
    parse_claim,
    parse_hash,
    parse_hashes,
    split_head,
    take_checkpoint,
)

CONSISTENCY: Final = b"acl/consistency-proof@v1\n"
FORK: Final = b"acl/fork-report@v1\n"

_ROOT: Final = b"root "
_OURS: Final = re.compile(r"acl/.+/([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Consistency:
    """That the tree of `new` begins with that of `old`; both are the exact bytes of checkpoints."""

    old: bytes
    new: bytes
    path: tuple[bytes, ...]

    @property
    def claims(self) -> tuple[sidefile.Claim, sidefile.Claim]:
        """The two checkpoints, read."""
        return parse_claim(self.old), parse_claim(self.new)


@dataclass(frozen=True, slots=True)
class Fork:
    """That the tree of `new` has `root` at the size of `old`, which names another one."""

    old: bytes
    new: bytes
    root: bytes
    path: tuple[bytes, ...]

    @property
    def claims(self) -> tuple[sidefile.Claim, sidefile.Claim]:
        """The two checkpoints, read."""
        return parse_claim(self.old), parse_claim(self.new)


def parse_consistency(data: bytes) -> Consistency:
    """Read exactly what `format_consistency` writes; ProofInvalid for anything else."""
    lines, rest = split_head(data, CONSISTENCY)
    proof = Consistency(*_pair(rest), parse_hashes(lines))
    _check_spelling(bool(proof.claims) and format_consistency(proof) == data)
    return proof


def format_consistency(proof: Consistency) -> bytes:
    """Write the file."""
    return CONSISTENCY + format_hashes(proof.path) + b"\n" + proof.old + b"\n" + proof.new


def parse_fork(data: bytes) -> Fork:
    """Read exactly what `format_fork` writes; ProofInvalid for anything else."""
    lines, rest = split_head(data, FORK)
    if not lines or not lines[0].startswith(_ROOT):
        raise ProofInvalid("a fork report has a line with a root")
    root = parse_hash(lines[0].removeprefix(_ROOT))
    report = Fork(*_pair(rest), root, parse_hashes(lines[1:]))
    _check_spelling(bool(report.claims) and format_fork(report) == data)
    return report


def format_fork(report: Fork) -> bytes:
    """Write the file."""
    head = FORK + _ROOT + format_hashes((report.root,)) + format_hashes(report.path)
    return head + b"\n" + report.old + b"\n" + report.new


def consistency(tree: Tree, old: bytes, new: bytes) -> bytes:
    """Prove by the ledger that its checkpoint `new` extends its checkpoint `old`.

    Each is a signed note or a bare text. Raises UsageError if one is of another ledger or they
    are in the wrong order; ProofInvalid if the ledger does not extend one of them: `fork` says
    how.
    """
    first, second = _of(tree, old), _of(tree, new)
    _ordered(first, second)
    for claim in (first, second):
        if not extends(tree, claim):
            raise ProofInvalid(_differs(claim), hint="two histories were shown under one name")
    proof = tree.prove_prefix(first.checkpoint.size, second.checkpoint.size)
    return format_consistency(Consistency(old, new, proof.path))


def fork(tree: Tree, old: bytes, new: bytes) -> bytes:
    """Report by the ledger, which extends `new`, that `old` is of another history.

    `old` has no more events than `new`. Raises UsageError where the two do not contradict each
    other or the ledger cannot tell.
    """
    first, second = _of(tree, old), _of(tree, new)
    _ordered(first, second)
    if not extends(tree, second):
        raise UsageError(
            "the ledger is of neither history", hint="report the fork from a ledger of one of them"
        )
    root = tree.root(first.checkpoint.size)
    if root == first.checkpoint.root:
        raise UsageError("there is no fork: the ledger extends both checkpoints")
    proof = tree.prove_prefix(first.checkpoint.size, second.checkpoint.size)
    return format_fork(Fork(old, new, root, proof.path))


def extends(tree: Tree, claim: sidefile.Claim) -> bool:
    """Tell whether the ledger reaches to a checkpoint and has its root there."""
    size = claim.checkpoint.size
    return size <= tree.size and tree.root(size) == claim.checkpoint.root


def same_log(first: note.Checkpoint, second: note.Checkpoint) -> bool:
    """Tell whether two checkpoints are of one log: of one ledger, whoever signed, or one origin."""
    return first.origin == second.origin or (
        ledger_of(first.origin) == ledger_of(second.origin) is not None
    )


def ledger_of(origin: str) -> str | None:
    """The ledger id in an origin of ours, in hex; None for any other log's."""
    ours = _OURS.fullmatch(origin)
    return ours[1] if ours else None


def _pair(data: bytes) -> tuple[bytes, bytes]:
    old, rest = take_checkpoint(data)
    new, rest = take_checkpoint(rest)
    if not new or rest:
        raise ProofInvalid("two checkpoints are wanted")
    return old, new


def _check_spelling(same: bool) -> None:
    if not same:
        raise ProofInvalid("the file is not spelled as it must be")


def _of(tree: Tree, data: bytes) -> sidefile.Claim:
    claim = parse_claim(data)
    if ledger_of(claim.checkpoint.origin) != tree.ledger_id.hex():
        raise UsageError(
            f"the checkpoint is of another log, {claim.checkpoint.origin}",
            hint=f"this is ledger {tree.ledger_id.hex()}",
        )
    return claim


def _ordered(first: sidefile.Claim, second: sidefile.Claim) -> None:
    sizes = first.checkpoint.size, second.checkpoint.size
    if sizes[0] > sizes[1]:
        raise UsageError(f"the older checkpoint has {sizes[0]} events, the newer one {sizes[1]}")


def _differs(claim: sidefile.Claim) -> str:
    size = claim.checkpoint.size
    return f"the ledger does not extend the checkpoint: at {size} events it has another root"
