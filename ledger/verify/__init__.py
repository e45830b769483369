"""Re-derives everything in a ledger from its stored bytes, and says what that proves.

Trusts nothing stored, shares with the writer nothing but the formats, and goes on after a fault: a
damaged segment costs what stood in it, and everything else is still looked at.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ledger import lock, note
from ledger.errors import LedgerDamaged, VersionUnsupported
from ledger.opening import Source, ledger_file
from ledger.verify.claims import Claims, Policy
from ledger.verify.finding import Finding, Severity, broken, remark, unproven
from ledger.verify.origins import Origins
from ledger.verify.pieces import Pieces
from ledger.verify.tables import check_file, measure, unread_commits
from ledger.verify.walk import Walk
from ledger.view import LedgerView

__all__ = ["Finding", "Policy", "Severity", "verify"]

# What a run does at each stage before its end.
_DOING: Final = {
    "created": "about to start",
    "preparing": "preparing its tasks",
    "running": "running its tasks",
    "summarizing": "computing its metrics",
}

Tree = Callable[[LedgerView], Iterable[Finding]]
Outside = note.Checkpoint | bytes


def verify(
    ledger: LedgerView | str | Path,
    *,
    verifiers: Sequence[note.Verifier] = (),
    policy: Policy | None = None,
    checkpoint: Outside | Iterable[Outside] | None = None,
    min_size: int = 0,
    tree: Tree | None = None,
) -> Iterator[Finding]:
    """Yield everything found in a ledger, as it is found; a healthy one has nothing `broken`.

    `ledger` is a view, a run directory, or a ledger file; by path, one that was rolled back or
    whose schema was forged is a finding too. `verifiers` are the keys that the auditor trusts,
    `checkpoint` one or several kept from earlier, `min_size` the events there must be at least.
    `tree` compares an exported directory, and is asked last.

    Raises NotALedger, and VersionUnsupported if all is well but for what only a newer release can
    read.
    """
    claims = Claims(verifiers, policy, _several(checkpoint))
    path = ledger.path if isinstance(ledger, LedgerView) else ledger_file(ledger)
    yield from claims.load_beside(path)
    try:
        unread = unread_commits(path)
        source = ledger.source if isinstance(ledger, LedgerView) else Source(path)
    except LedgerDamaged as error:
        yield broken("schema", error.message)
        return
    try:
        yield from _verify(source, claims, verifiers, min_size, unread)
    finally:
        if not isinstance(ledger, LedgerView):
            source.close()
    if tree is not None:
        yield from _compare_tree(ledger, tree)


def _several(checkpoint: Outside | Iterable[Outside] | None) -> Iterable[Outside]:
    if checkpoint is None:
        return ()
    return [checkpoint] if isinstance(checkpoint, note.Checkpoint | bytes) else checkpoint


def _compare_tree(ledger: LedgerView | str | Path, tree: Tree) -> Iterator[Finding]:
    if isinstance(ledger, LedgerView):
        yield from tree(ledger)
        return
    with LedgerView.open(ledger) as view:
        yield from tree(view)


def _verify(
    source: Source,
    claims: Claims,
    verifiers: Sequence[note.Verifier],
    min_size: int,
    unread: str | None,
) -> Iterator[Finding]:
    any_broken = False
    newer: list[str] = []
    for finding in _everything(source, claims, verifiers, min_size, newer, unread):
        any_broken = any_broken or finding.severity == "broken"
        yield finding
    if newer and not any_broken:
        raise VersionUnsupported(newer[0])
    for message in newer:
        yield broken("version", message)


def _everything(
    source: Source,
    claims: Claims,
    verifiers: Sequence[note.Verifier],
    min_size: int,
    newer: list[str],
    unread: str | None,
) -> Iterator[Finding]:
    yield from check_file(source)
    extent, faults = measure(source)
    yield from faults
    if unread is not None:
        yield broken("wal_damaged", unread, extent.events)
    yield from claims.load(source, extent)
    pieces = Pieces(source, extent)
    try:
        yield from pieces.scan()
        origins = Origins(pieces.resolve, verifiers)
        walk = Walk(source, extent, pieces, claims, origins)
        yield from walk.findings()
        newer += walk.newer
        if walk.whole:
            # Else what a reuse names may be there and not readable, which is told already.
            yield from origins.finish()
        yield from pieces.finish()
    finally:
        pieces.close()
    if extent.events < min_size:
        why = f"the ledger has {extent.events} events, at least {min_size} were wanted"
        yield broken("too_small", why, extent.events)
    yield from _state(walk, source)
    if walk.sealed_at is not None:
        yield from claims.seal(walk.sealed_at + 1, folded=source.indexed)
    yield from claims.finish(extent.events, intact=walk.intact)


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
        yield remark("sealed", f"sealed at {walk.sealed_at + 1} events", walk.sealed_at)
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
