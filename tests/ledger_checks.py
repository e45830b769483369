"""The one check to call after each step that a test makes with a ledger."""

import hashlib
from pathlib import Path

from ledger import LedgerView, tlog
from ledger.verify import Finding, verify


def check_ledger(path: Path) -> list[Finding]:
    """Re-derive everything in a ledger that must be healthy; return what verify said."""
    findings = list(verify(path))
    assert [f for f in findings if f.severity == "broken"] == []
    with LedgerView.open(path) as view:
        leaves = view.leaves()
        size = len(leaves) // 32
        assert tlog.root_of(leaves) == view.root(size)
        for recorded in view.events(until=size):
            _check_event(view, recorded.seq, leaves)
            if recorded.event is not None:
                for _, value in recorded.event:
                    view.resolve(value)
        for seq in {0, size // 2, size - 1} if size else set():
            proof = view.prove(seq, size)
            tlog.check_inclusion(
                leaves[32 * seq : 32 * seq + 32], seq, size, proof.path, view.root(size)
            )
        for held, _ in view.checkpoints():
            path_to = view.prove_prefix(held, size).path
            tlog.check_consistency(held, size, path_to, view.root(held), view.root(size))
    return findings


def _check_event(view: LedgerView, seq: int, leaves: bytes) -> None:
    head, body = view.raw(seq)
    assert hashlib.sha256(b"\x00" + head).digest() == leaves[32 * seq : 32 * seq + 32]
    assert hashlib.sha256(body).digest() == head[64:96]


def broken(path: Path, **how: object) -> list[Finding]:
    """Return what verify finds broken in a ledger, by path."""
    return [f for f in verify(path, **how) if f.severity == "broken"]
