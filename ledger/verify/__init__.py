"""Re-derives everything in a ledger from its stored bytes, and says what that proves.

Trusts nothing stored, shares with the writer nothing but the formats, and goes on after a fault: a
damaged segment costs what stood in it, and everything else is still looked at.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ledger import note
from ledger.verify.finding import Finding, Severity
from ledger.verify.signatures import Policy
from ledger.verify.verification import OnProgress, Outside, Tree, Verification
from ledger.view import LedgerView

__all__ = ["Finding", "Policy", "Severity", "Verification", "verify"]


def verify(
    ledger: LedgerView | str | Path,
    *,
    verifiers: Sequence[note.Verifier] = (),
    policy: Policy | None = None,
    checkpoint: Outside | Iterable[Outside] | None = None,
    min_size: int = 0,
    sources: Iterable[LedgerView] = (),
    tree: Tree | None = None,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Yield everything found in a ledger, as it is found; a healthy one has nothing `broken`.

    `ledger` is a view, a run directory, or a ledger file; by path, one that was rolled back or
    whose schema was forged is a finding too. `verifiers` are the keys that the auditor trusts,
    `policy` says whose signatures are required, `checkpoint` is one or several kept from earlier,
    `min_size` the events there must be at least. `sources` are ledgers that tasks were reused
    from, as far as they are at hand; they are not verified themselves. `tree` compares an exported
    directory, and is asked last. `on_progress` is told of events read, and of how many.

    Raises NotALedger, and VersionUnsupported if all is well but for what only a newer release can
    read.
    """
    given: Iterable[Outside]
    if checkpoint is None:
        given = ()
    else:
        given = [checkpoint] if isinstance(checkpoint, note.Checkpoint | bytes) else checkpoint
    return Verification(
        ledger,
        verifiers=verifiers,
        policy=policy,
        outside=given,
        min_size=min_size,
        sources=sources,
        tree=tree,
        on_progress=on_progress,
    )
