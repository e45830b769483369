"""Events copied from another ledger, compared with the leaves that they had there.

A reuse names the ledger that was read and, where that had the events from another one, that one
too, and so on: every copy is looked for in all of them. With the sources gone, what a signature
covers is proven all the same; the rest is told as the claim that it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ledger import note
from ledger.codec import Header
from ledger.events import (
    AnyEvent,
    ArtifactsCollected,
    AttemptReused,
    AttemptStarted,
    Claim,
    TaskReused,
    TaskStarted,
)
from ledger.machine import Unknown
from ledger.verify.ancestors import Ancestor, Family, Resolve
from ledger.verify.finding import Finding, broken, remark, unproven
from ledger.view import LedgerView

_Key = tuple[str | None, int | None]
_TELLING: Final = frozenset(
    {TaskReused, AttemptReused, TaskStarted, AttemptStarted, ArtifactsCollected}
)


@dataclass(slots=True)
class _Reuse:
    """A `task.reused` or `attempt.reused`, and how many of its copies have come."""

    event: TaskReused | AttemptReused
    seq: int
    ancestors: list[Ancestor]
    done: int = 0

    @property
    def missing(self) -> int:
        """How many copies are still to come."""
        return len(self.event.sequence) - self.done


class Origins:
    """Follows copies through a ledger; `resolve` gives a value whole, or None.

    `sources` are ledgers that are at hand.
    """

    def __init__(
        self,
        resolve: Resolve,
        verifiers: Sequence[note.Verifier],
        sources: Iterable[LedgerView] = (),
    ) -> None:
        self._family = Family(resolve)
        self._sources = {source.ledger_id: source for source in sources}
        self._roots: dict[tuple[bytes, int], bytes | None] = {}
        self._verifiers = verifiers
        self._open: dict[_Key, _Reuse] = {}
        # Attempts that came alone to a ledger from which their whole task was copied.
        self._inner: dict[_Key, _Reuse] = {}
        # What says where they come from was erased.
        self._untold: set[_Key] = set()

    def take(self, header: Header, event: AnyEvent | Unknown) -> Iterable[Finding]:
        """Look at the next event, or at what is left of it."""
        if isinstance(event, Unknown):
            return self._take_unknown(header, event)
        if header.copied or type(event) in _TELLING:
            return self._take_known(header, event)
        return ()

    def _take_known(self, header: Header, event: AnyEvent) -> Iterator[Finding]:
        if header.copied:
            yield from self._compare(header)
        match event:
            case TaskReused() | AttemptReused():
                yield from self._begin(header, event)
            case TaskStarted(claim=Claim() as claim) | AttemptStarted(claim=Claim() as claim):
                yield _claimed(claim, header)
            case ArtifactsCollected(source_seq=int() as seq):
                why = (
                    f"that the files of attempt {header.attempt} are those of event {seq} of its"
                    " source is a claim: they are told anew"
                )
                yield unproven("files_claim", why, header.seq, header.task)
            case _:
                pass

    def _take_unknown(self, header: Header, event: Unknown) -> Iterator[Finding]:
        if header.copied:
            # The header is what is compared, and that is still there.
            yield from self._compare(header)
        if event.kind in (TaskReused, AttemptReused) and not header.copied:
            self._untold.add((header.task, header.attempt))
            what = "this task" if header.attempt is None else f"attempt {header.attempt}"
            why = f"where {what} comes from was erased: its copies can be compared with nothing"
            yield unproven("origin_erased", why, header.seq, header.task)

    def _begin(self, header: Header, event: TaskReused | AttemptReused) -> Iterator[Finding]:
        key = (event.task, event.attempt)
        reuse = _Reuse(event, header.seq, self._family.ancestors(event))
        (self._inner if header.copied else self._open)[key] = reuse
        yield from self._judge(reuse)
        if isinstance(event, TaskReused) and event.claim is not None:
            yield _claimed(event.claim, header)

    def _judge(self, reuse: _Reuse) -> Iterator[Finding]:
        """Say of each ancestor what is proven of it; an inconsistent one ends it."""
        seq, task = reuse.seq, reuse.event.task
        what = "this task" if reuse.event.attempt is None else f"attempt {reuse.event.attempt}"
        for number, ancestor in enumerate(reuse.ancestors):
            fault = ancestor.fault
            if fault is None and len(ancestor.sequence) != len(reuse.event.sequence):
                fault = "its lineage is of other events"
            if fault is not None:
                yield broken("origin", fault, seq, task)
                return
            is_last = number == len(reuse.ancestors) - 1
            where = f"{'ran in' if is_last else 'was held by'} {ancestor.name}"
            doubt = ancestor.doubt(self._verifiers)
            if ancestor.ledger_id in self._sources:
                yield self._compare_source(ancestor, f"{what} {where}", seq, task)
            elif doubt is not None:
                yield unproven(
                    "origin_claim", f"that {what} {where} is a claim: {doubt}", seq, task
                )
            else:
                signer = ancestor.signer(self._verifiers)
                yield remark("origin_signed", f"{what} {where}, signed by {signer}", seq, task)

    def _compare_source(self, ancestor: Ancestor, what: str, seq: int, task: str | None) -> Finding:
        """Say whether the ledger that is at hand is the one whose events were copied."""
        at = ancestor.ledger_id, ancestor.size
        if at not in self._roots:
            source = self._sources[ancestor.ledger_id]
            held = ancestor.size <= source.size
            self._roots[at] = source.root(ancestor.size) if held else None
        if self._roots[at] == ancestor.leaves.root(ancestor.size):
            return remark("origin_at_hand", f"{what}, which is at hand and agrees", seq, task)
        return broken("origin_differs", f"{what}, says the reuse; that ledger disagrees", seq, task)

    def _compare(self, header: Header) -> Iterator[Finding]:
        seq, attempt = header.seq, (header.task, header.attempt)
        if not self._untold.isdisjoint({attempt, (header.task, None)}):
            return
        reuse = self._open.get((header.task, None)) or self._open.get(attempt)
        if reuse is None or not reuse.missing:
            why = "it is a copy that no reuse names"
            yield broken("copy_unnamed", why, seq, header.task)
            return
        yield from _next_of(reuse, header)
        inner = self._inner.get(attempt)
        if inner is not None and inner.missing:
            yield from _next_of(inner, header)

    def finish(self) -> Iterator[Finding]:
        """Tell of copies that were announced and did not come."""
        for reuse in (*self._open.values(), *self._inner.values()):
            if reuse.missing:
                why = f"it names {reuse.missing} copies more than there are"
                yield broken("copies_missing", why, reuse.seq, reuse.event.task)


def _next_of(reuse: _Reuse, header: Header) -> Iterator[Finding]:
    """Look for the next copy of a reuse in each ledger that is said to have held it."""
    position = reuse.done
    reuse.done += 1
    for ancestor in reuse.ancestors:
        if not ancestor.held(position, header):
            known = position < len(ancestor.sequence)
            there = f"event {ancestor.sequence[position]}" if known else "an event"
            why = f"it is not {there} of {ancestor.name}, as it is said to be"
            yield broken("copy_altered", why, header.seq, header.task)
            return


def _claimed(claim: Claim, header: Header) -> Finding:
    source = f"ledger {claim.ledger_id[:16]}… (run {claim.run_id!r})"
    why = f"that this ran in {source} is a claim of what was imported"
    return unproven("origin_claim", why, header.seq, header.task)
