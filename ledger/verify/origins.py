"""Events copied from another ledger, compared with the leaves that they had there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ledger import canonical, note, sidefile, tlog
from ledger.codec import Header
from ledger.errors import ProofInvalid
from ledger.events import AnyEvent, AttemptReused, AttemptStarted, TaskReused, TaskStarted
from ledger.verify.finding import Finding, broken, remark, unproven

_Key = tuple[str | None, int | None]
_NO_LEAVES: Final = b""


@dataclass(slots=True)
class _Reuse:
    """A `task.reused` or `attempt.reused`, and how many of its copies have come."""

    event: TaskReused | AttemptReused
    seq: int
    leaves: bytes
    done: int = 0


class Origins:
    """Follows copies through a ledger; `resolve` gives a value whole, or None."""

    def __init__(
        self, resolve: Callable[[object], object], verifiers: Sequence[note.Verifier]
    ) -> None:
        self._resolve = resolve
        self._verifiers = verifiers
        self._open: dict[_Key, _Reuse] = {}
        self._cached: tuple[object, bytes] = (None, _NO_LEAVES)

    def take(self, header: Header, event: AnyEvent) -> Iterator[Finding]:
        """Look at the next event."""
        if header.copied:
            yield from self._compare(header)
        elif isinstance(event, TaskReused | AttemptReused):
            key = (event.task, event.attempt if isinstance(event, AttemptReused) else None)
            leaves = self._leaves(event)
            self._open[key] = _Reuse(event, header.seq, leaves)
            yield from self._judge(event, header.seq, leaves)
        elif isinstance(event, TaskStarted | AttemptStarted) and event.claim is not None:
            source = f"ledger {event.claim.ledger_id[:16]}… (run {event.claim.run_id!r})"
            why = f"that this ran in {source} is a claim of what was imported"
            yield unproven("origin_claim", why, header.seq, event.task)

    def _leaves(self, event: TaskReused | AttemptReused) -> bytes:
        # All reuses of one materialisation name one blob.
        if self._cached[0] != event.leaves:
            whole = self._resolve(event.leaves)
            data = whole.data if isinstance(whole, canonical.Binary) else _NO_LEAVES
            self._cached = event.leaves, data
        return self._cached[1]

    def _judge(
        self, event: TaskReused | AttemptReused, seq: int, leaves: bytes
    ) -> Iterator[Finding]:
        source = f"ledger {event.source_ledger_id[:16]}… (run {event.source_run_id!r})"
        if len(leaves) != tlog.HASH_BYTES * event.size:
            yield broken("origin", f"event {seq} lacks the leaves of its source", seq, event.task)
            return
        if tlog.root_of(leaves).hex() != event.root:
            why = f"event {seq}: the leaves of its source have another root than it names"
            yield broken("origin", why, seq, event.task)
            return
        if event.checkpoint is None:
            why = f"that this task ran in {source} is a claim: it held no checkpoint"
            yield unproven("origin_claim", why, seq, event.task)
            return
        try:
            claim = sidefile.parse(event.checkpoint.encode())
            if tlog.root_of(leaves, claim.checkpoint.size) != claim.checkpoint.root:
                raise ProofInvalid("it has another root than the source's leaves")
            if not claim.is_of(bytes.fromhex(event.source_ledger_id)):
                raise ProofInvalid("it is of another ledger")
        except (ProofInvalid, ValueError) as error:
            why = f"event {seq}: the checkpoint of its source does not hold: {error}"
            yield broken("origin", why, seq, event.task)
            return
        yield self._judge_signer(event, seq, claim, source)

    def _judge_signer(
        self, event: TaskReused | AttemptReused, seq: int, claim: sidefile.Claim, source: str
    ) -> Finding:
        covered = all(number < claim.checkpoint.size for number in event.sequence)
        signer = self._signer(claim.signed)
        if signer is None or not covered:
            why = "no given key signed it" if signer is None else "its checkpoint is older"
            return unproven(
                "origin_claim", f"that this task ran in {source} is a claim: {why}", seq, event.task
            )
        return remark("origin_signed", f"ran in {source}, signed by {signer}", seq, event.task)

    def _signer(self, signed: note.SignedNote | None) -> str | None:
        for line in () if signed is None else signed.signatures:
            for verifier in self._verifiers:
                if (line.name, line.key_id) == (verifier.name, verifier.key_id) and verifier.verify(
                    signed.text if signed else b"", line.signature
                ):
                    return verifier.name
        return None

    def _compare(self, header: Header) -> Iterator[Finding]:
        seq = header.seq
        reuse = self._open.get((header.task, None)) or self._open.get((header.task, header.attempt))
        if reuse is None or reuse.done >= len(reuse.event.sequence):
            why = f"event {seq} is a copy that no reuse names"
            yield broken("copy_unnamed", why, seq, header.task)
            return
        source_seq = reuse.event.sequence[reuse.done]
        reuse.done += 1
        try:
            source_id = bytes.fromhex(reuse.event.source_ledger_id)
        except ValueError:
            source_id = b""
        at = source_seq * tlog.HASH_BYTES
        leaf = reuse.leaves[at : at + tlog.HASH_BYTES]
        # There, it may have been a copy as well.
        originals = (
            replace(header, ledger_id=source_id, seq=source_seq, copied=copied)
            for copied in (False, True)
        )
        if len(source_id) != len(header.ledger_id) or leaf not in (
            tlog.leaf_hash(original.encode()) for original in originals
        ):
            why = f"event {seq} is not event {source_seq} of the ledger that it is said to be from"
            yield broken("copy_altered", why, seq, header.task)

    def finish(self) -> Iterator[Finding]:
        """Tell of copies that were announced and did not come."""
        for reuse in self._open.values():
            missing = len(reuse.event.sequence) - reuse.done
            if missing:
                why = f"event {reuse.seq} names {missing} copies more than there are"
                yield broken("copies_missing", why, reuse.seq, reuse.event.task)
