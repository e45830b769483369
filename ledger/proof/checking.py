"""What a proof proves, to somebody who has its bytes and perhaps keys, and no ledger.

Every function raises ProofInvalid, with the reason, for what does not hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ledger import note, sidefile, tlog
from ledger.errors import ProofInvalid
from ledger.keys import LogKey
from ledger.proof.history import Consistency, Fork, ledger_of, same_log
from ledger.proof.inclusion import Entry, Inclusion, split_extra, unpack_entry


class Policy(Protocol):
    """Whose signatures make a checkpoint good enough; `ledger.policy.Policy` is one."""

    @property
    def verifiers(self) -> tuple[note.Verifier, ...]:
        """All keys that it names."""
        ...

    def fault(self, signed: note.SignedNote) -> str | None:
        """Say why a note is not good enough, or None if it is."""
        ...


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose signatures count: keys, of which at least one of a log must have signed, and a policy.

    With neither nobody's do, and nothing is said of who signed.
    """

    verifiers: Sequence[note.Verifier] = ()
    policy: Policy | None = None

    def signers(self, claim: sidefile.Claim, *, quorum: bool = True) -> tuple[note.Verifier, ...]:
        """Return the known keys that signed a checkpoint of the log that its origin names.

        Empty where no key was brought. ProofInvalid if no known log did, a line of a known key is
        bad, the origin is not that of a log which signed, or, with `quorum`, the policy is not met.
        """
        policy = () if self.policy is None else self.policy.verifiers
        verifiers = (*self.verifiers, *policy)
        if not verifiers:
            return ()
        if claim.signed is None:
            raise ProofInvalid("nobody signed the checkpoint")
        good = note.signers_of(claim.signed, verifiers)
        logs = [one for one in good if isinstance(one, LogKey)]
        if not logs:
            raise ProofInvalid("only witnesses signed the checkpoint, not the log")
        origin = claim.checkpoint.origin
        if not any(_is_origin(origin, one.name) for one in logs):
            who = ", ".join(one.name for one in logs)
            raise ProofInvalid(f"{who} signed a checkpoint of another log: {origin}")
        fault = self.policy.fault(claim.signed) if self.policy is not None and quorum else None
        if fault is not None:
            raise ProofInvalid(f"the policy is not met: {fault}")
        return good


NOBODY: Final = Trust()


@dataclass(frozen=True, slots=True)
class ProvenEvent:
    """An event, in the tree of a checkpoint that `signers` signed; none if no key was brought."""

    entry: Entry
    checkpoint: note.Checkpoint
    signers: tuple[note.Verifier, ...]


@dataclass(frozen=True, slots=True)
class ProvenEntry:
    """An entry of any log at `index`, in the tree of a checkpoint that `signers` signed."""

    index: int
    checkpoint: note.Checkpoint
    signers: tuple[note.Verifier, ...]


@dataclass(frozen=True, slots=True)
class ProvenHistory:
    """Two checkpoints with those who signed each.

    `both` are log keys that signed both. Of a fork report, `root` is that of the second tree at
    the size of the first checkpoint, which names another one; else the second extends the first.
    """

    old: note.Checkpoint
    new: note.Checkpoint
    old_signers: tuple[note.Verifier, ...]
    new_signers: tuple[note.Verifier, ...]
    root: bytes

    @property
    def both(self) -> tuple[note.Verifier, ...]:
        """The log keys that signed both."""
        return tuple(
            one for one in self.old_signers if one in self.new_signers and isinstance(one, LogKey)
        )


def check_event(proof: Inclusion, trust: Trust = NOBODY) -> ProvenEvent:
    """Check the proof of an event, which the file brings along.

    Raises VersionUnsupported for an event of a newer release.
    """
    extra, claim = proof.extra or b"", proof.claim
    # The path first: what does not lead to the root is no event of a newer release either.
    signers = _check_path(split_extra(extra)[0], proof, claim, trust)
    entry = unpack_entry(extra)
    header = entry.header
    if header.seq != proof.index:
        raise ProofInvalid(f"at index {proof.index} stands a header of event {header.seq}")
    if not claim.is_of(header.ledger_id):
        raise ProofInvalid(
            f"the event is of ledger {header.ledger_id.hex()},"
            f" the checkpoint of {claim.checkpoint.origin}"
        )
    return ProvenEvent(entry, claim.checkpoint, signers)


def check_entry(data: bytes, proof: Inclusion, trust: Trust = NOBODY) -> ProvenEntry:
    """Check the proof of any log for the entry whose exact bytes are `data`.

    What the file brings along as extra data is not looked at.
    """
    claim = proof.claim
    return ProvenEntry(proof.index, claim.checkpoint, _check_path(data, proof, claim, trust))


def check_consistency(proof: Consistency, trust: Trust = NOBODY) -> ProvenHistory:
    """Check that the newer checkpoint extends the older one; the policy is asked of the newer."""
    old, new = (claim.checkpoint for claim in _claims(proof.claims))
    tlog.check_consistency(old.size, new.size, proof.path, old.root, new.root)
    return _history(proof.claims, trust, old.root, quorum=True)


def check_fork(report: Fork, trust: Trust = NOBODY) -> ProvenHistory:
    """Check that no tree has both checkpoints; for that the log's signature is enough."""
    old, new = (claim.checkpoint for claim in _claims(report.claims))
    tlog.check_consistency(old.size, new.size, report.path, report.root, new.root)
    if report.root == old.root:
        raise ProofInvalid("the report shows no fork: one checkpoint extends the other")
    return _history(report.claims, trust, report.root, quorum=False)


def compare(checkpoint: note.Checkpoint, outside: note.Checkpoint) -> bool:
    """Tell whether a checkpoint that was kept elsewhere is the same one.

    False where it is of another size, so that a consistency proof is needed to tell. ProofInvalid
    where it is of another log, or has another root at that size.
    """
    if not same_log(checkpoint, outside):
        raise ProofInvalid(f"the given checkpoint is of another log: {outside.origin}")
    if checkpoint.size != outside.size:
        return False
    if checkpoint.root != outside.root:
        raise ProofInvalid(
            f"the given checkpoint has another root at {outside.size} events",
            hint="two histories were shown; keep both files as evidence",
        )
    return True


def _check_path(
    entry: bytes, proof: Inclusion, claim: sidefile.Claim, trust: Trust
) -> tuple[note.Verifier, ...]:
    size, root = claim.checkpoint.size, claim.checkpoint.root
    tlog.check_inclusion(tlog.leaf_hash(entry), proof.index, size, proof.path, root)
    return trust.signers(claim)


def _claims(
    claims: tuple[sidefile.Claim, sidefile.Claim],
) -> tuple[sidefile.Claim, sidefile.Claim]:
    first, second = (claim.checkpoint.origin for claim in claims)
    if not same_log(claims[0].checkpoint, claims[1].checkpoint):
        raise ProofInvalid(f"the checkpoints are of two logs, {first} and {second}")
    return claims


def _history(
    claims: tuple[sidefile.Claim, sidefile.Claim], trust: Trust, root: bytes, *, quorum: bool
) -> ProvenHistory:
    old, new = claims
    return ProvenHistory(
        old.checkpoint,
        new.checkpoint,
        trust.signers(old, quorum=False),
        trust.signers(new, quorum=quorum),
        root,
    )


def _is_origin(origin: str, name: str) -> bool:
    """Whether a log's key `name` stands for `origin`: a ledger under it, or else its own name.

    A key that is called like the origin of somebody's ledger does not stand for that ledger.
    """
    ledger_id = ledger_of(origin)
    return origin == (name if ledger_id is None else f"acl/{name}/{ledger_id}")
