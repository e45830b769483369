"""One verification: the order in which everything is looked at, and what is known afterwards."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ledger import lock, note
from ledger.errors import LedgerDamaged, VersionUnsupported
from ledger.opening import Source, ledger_file
from ledger.verify.brevity import brief
from ledger.verify.claims import Claims
from ledger.verify.finding import Finding, broken, remark, unproven
from ledger.verify.origins import Origins
from ledger.verify.pieces import Pieces
from ledger.verify.signatures import Policy
from ledger.verify.tables import check_file, measure, unread_commits
from ledger.verify.walk import Walk
from ledger.view import LedgerView, Recorded

# What a run does at each stage before its end.
_DOING: Final = {
    "created": "about to start",
    "preparing": "preparing its tasks",
    "running": "running its tasks",
    "summarizing": "computing its metrics",
}

Tree = Callable[[LedgerView], Iterable[Finding]]
Outside = note.Checkpoint | bytes
OnProgress = Callable[[int, int], object]
"""Told how many events were read, and how many there are."""
OnEvent = Callable[[Recorded], object]
"""Given the events in order, up to the first that cannot be read or was not legal."""


class Verification(Iterator[Finding]):
    """The findings about one ledger; once they all came, `size` and `root` are what was read.

    They are None where damage leaves no tree to speak of. `sealed_at` is the number of events up
    to the seal, if the ledger is sealed.
    """

    size: int | None = None
    root: bytes | None = None
    sealed_at: int | None = None
    on_event: OnEvent | None = None
    """Set it before the first finding is asked for, to have the events without reading them again.
    What it was given is good once it is known that nothing is broken."""

    def __init__(
        self,
        ledger: LedgerView | str | Path,
        *,
        verifiers: Sequence[note.Verifier],
        policy: Policy | None,
        outside: Iterable[Outside],
        min_size: int,
        sources: Iterable[LedgerView],
        tree: Tree | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._ledger = ledger
        self._verifiers = (*verifiers, *(policy.verifiers if policy else ()))
        self._claims = Claims(verifiers, policy, outside)
        self._min_size = min_size
        self._sources = tuple(sources)
        self._tree = tree
        self._on_progress = on_progress
        self._newer: list[str] = []
        self._findings = brief(self._run())

    def __next__(self) -> Finding:
        return next(self._findings)

    def _run(self) -> Iterator[Finding]:
        ledger = self._ledger
        path = ledger.path if isinstance(ledger, LedgerView) else ledger_file(ledger)
        yield from self._claims.load_beside(path)
        try:
            unread = unread_commits(path)
            source = ledger.source if isinstance(ledger, LedgerView) else Source(path)
        except LedgerDamaged as error:
            yield broken("schema", error.message)
            return
        try:
            yield from self._judge_versions(self._everything(source, unread))
        finally:
            if not isinstance(ledger, LedgerView):
                source.close()
        if self._tree is not None:
            yield from self._compare_tree(self._tree)

    def _compare_tree(self, tree: Tree) -> Iterator[Finding]:
        if isinstance(self._ledger, LedgerView):
            yield from tree(self._ledger)
            return
        with LedgerView.open(self._ledger) as view:
            yield from tree(view)

    def _judge_versions(self, findings: Iterator[Finding]) -> Iterator[Finding]:
        any_broken = False
        for finding in findings:
            any_broken = any_broken or finding.severity == "broken"
            yield finding
        if self._newer and not any_broken:
            raise VersionUnsupported(self._newer[0])
        for message in self._newer:
            yield broken("version", message)

    def _everything(self, source: Source, unread: str | None) -> Iterator[Finding]:
        yield from check_file(source)
        extent, faults = measure(source)
        yield from faults
        if unread is not None:
            yield broken("wal_damaged", unread, extent.events)
        yield from self._claims.load(source, extent)
        pieces = Pieces(source, extent)
        try:
            yield from pieces.scan()
            origins = Origins(pieces.resolve, self._verifiers, self._sources)
            walk = Walk(
                source,
                extent,
                pieces,
                self._claims,
                origins,
                on_progress=self._on_progress,
                on_event=self.on_event,
            )
            yield from walk.findings()
            self._newer += walk.newer
            if walk.whole:
                # Else what a reuse names may be there and not readable, which is told already.
                yield from origins.finish()
            yield from pieces.finish()
        finally:
            pieces.close()
        if walk.intact:
            self.size, self.root = walk.tree.size, walk.tree.root()
        if walk.sealed_at is not None:
            self.sealed_at = walk.sealed_at + 1
        if extent.events < self._min_size:
            why = f"the ledger has {extent.events} events, at least {self._min_size} were wanted"
            yield broken("too_small", why, extent.events)
        yield from _state(walk, source)
        yield from self._claims.rest(extent.events, intact=walk.intact)
        if self.sealed_at is not None:
            yield from self._claims.seal(self.sealed_at, folded=source.indexed)
        yield from self._claims.finish(extent.events)


def _is_written(source: Source) -> bool:
    try:
        return lock.holder(source.path) is not None
    except (LedgerDamaged, OSError):
        return False


def _state(walk: Walk, source: Source) -> Iterator[Finding]:
    """Say how far the run got."""
    if walk.sealed_at is None:
        yield remark("not_sealed", "the ledger is not sealed: events can still follow")
    else:
        size = walk.sealed_at + 1
        later = walk.tree.size - size
        more = f"; {later} more, of what was erased or remarked, came after" if later > 0 else ""
        yield remark("sealed", f"sealed at {size} events{more}", walk.sealed_at)
    if not walk.whole:
        return
    doing = _DOING.get(walk.machine.stage)
    if not walk.tree.size:
        yield remark("empty", "the ledger holds no event yet")
    elif doing is not None and walk.sealed_at is None and _is_written(source):
        yield remark("running", f"the run has not finished: it is {doing}")
    elif doing is not None:
        yield remark("interrupted", f"the run did not finish: it was {doing} when it stopped")
    for task, number in walk.machine.open_attempts():
        why = f"attempt {number} of task {task!r} was started and never ended"
        yield unproven("attempt_open", why, task=task)
    calls = Counter((task, number) for task, number, _ in walk.machine.open_calls())
    for (task, number), count in calls.items():
        why = f"{count} model calls of attempt {number} of task {task!r} never ended"
        yield unproven("calls_open", why, task=task)
