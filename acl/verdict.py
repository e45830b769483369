"""What a verification says as a whole: findings, then in words what is proven and what is not."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ledger import LedgerView, RunState, fold
from ledger.errors import AclError, UsageError
from ledger.verify import Finding, verify

_SEALED: Final = "sealed"
_PROVES: Final = frozenset({"signed", "outside_checkpoint", "origin_signed"})


def examine(
    run: str, *, tree: Path | None = None, checkpoint: Path | None = None, min_size: int = 0
) -> dict[str, Any]:
    """Verify and return {ok, size, root, sealed_at, findings, proven, unproven}.

    `size` and `root` are None where damage leaves no tree to speak of.
    """
    given = [_read(checkpoint)] if checkpoint else []
    findings = list(
        verify(
            run,
            checkpoint=given,
            min_size=min_size,
            tree=None if tree is None else partial(_compare, tree),
        )
    )
    ok = not any(finding.severity == "broken" for finding in findings)
    size, root = _extent(run)
    sealed = next((f.seq for f in findings if f.code == _SEALED and f.seq is not None), None)
    return {
        "ok": ok,
        "size": size,
        "root": root,
        "sealed_at": None if sealed is None else sealed + 1,
        "findings": [asdict(finding) for finding in findings],
        "proven": list(_proven(findings, size, root, tree)) if ok else [],
        "unproven": [finding.message for finding in findings if finding.severity == "unproven"],
    }


def broken(run: str) -> list[Finding]:
    """The findings that make a ledger not to be trusted."""
    return [finding for finding in verify(run) if finding.severity == "broken"]


def state_at(view: LedgerView, size: int) -> RunState:
    """The state after the first `size` events."""
    return fold(islice(view.events(), size))


def _read(checkpoint: Path) -> bytes:
    try:
        return checkpoint.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {checkpoint}: {error.strerror}") from error


def _compare(directory: Path, view: LedgerView) -> Iterator[Finding]:
    from exporters.check import check_tree

    return check_tree(
        partial(state_at, view), view, directory, ledger_id=view.ledger_id.hex(), size=view.size
    )


def _extent(run: str) -> tuple[int | None, str | None]:
    try:
        with LedgerView.open(run) as view:
            size = view.size
            return size, view.root(size).hex()
    except AclError:
        return None, None


def _proven(
    findings: list[Finding], size: int | None, root: str | None, tree: Path | None
) -> Iterator[str]:
    yield f"the {size} events, their bodies and their blobs are the ones behind root {root}"
    yield "every event was legal where it stands: no attempt is counted twice or without an end"
    if tree is not None:
        yield f"every file in {tree} is what these events give"
    for finding in findings:
        if finding.code in _PROVES:
            yield finding.message
