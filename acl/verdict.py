"""What a verification says as a whole: findings, then in words what is proven and what is not."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ledger import LedgerView, RunState, fold, sidefile
from ledger.errors import AclError, ProofInvalid, RunNotFound, UsageError
from ledger.verify import Finding, verify

_SEALED: Final = "sealed"
_PROVES: Final = frozenset({"signed", "outside_checkpoint", "origin_signed", "metrics_equal"})


def examine(
    run: str, *, tree: Path | None = None, checkpoint: Path | None = None, min_size: int = 0
) -> dict[str, Any]:
    """Verify and return {ok, intact, size, root, sealed_at, findings, proven, unproven}.

    `intact` says that the ledger itself is, whatever is wrong with numbers in it, or with the tree
    it was compared with. `size` and `root` are None where damage leaves no tree to speak of.
    """
    given = [_read(checkpoint)] if checkpoint else []
    findings = list(verify(run, checkpoint=given, min_size=min_size))
    intact = not any(finding.severity == "broken" for finding in findings)
    if intact:
        findings += _recompute(run)
    if intact and tree is not None:
        with LedgerView.open(run) as view:
            findings += _compare(tree, view)
    ok = not any(finding.severity == "broken" for finding in findings)
    size, root = _extent(run)
    sealed = next((f.seq for f in findings if f.code == _SEALED and f.seq is not None), None)
    return {
        "ok": ok,
        "intact": intact,
        "size": size,
        "root": root,
        "sealed_at": None if sealed is None else sealed + 1,
        "findings": [asdict(finding) for finding in findings],
        "proven": list(_proven(findings, size, root, tree)) if intact else [],
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
        data = checkpoint.read_bytes()
        sidefile.parse(data)
    except OSError as error:
        raise UsageError(f"cannot read {checkpoint}: {error.strerror}") from error
    except ProofInvalid as error:
        raise UsageError(f"{checkpoint} is no checkpoint: {error.message}") from error
    return data


def _recompute(run: str) -> Iterator[Finding]:
    """Compare the recorded metrics with what the events give: a headline number is derived."""
    from runtime.replay import replay

    with LedgerView.open(run) as view:
        try:
            found = replay(view, benchmark=benchmark_of(view))
        except RunNotFound:
            return
    for difference in found.differences:
        what = (
            f"recorded {difference.name} is {difference.recorded},"
            f" the events give {difference.replayed}"
        )
        if found.source == "import":
            yield Finding("source_metrics_differ", "unproven", f"the source says so: {what}")
        else:
            yield Finding("metrics_differ", "broken", what)
    if found.equal:
        yield Finding("metrics_equal", "note", "the recorded metrics are what the events give")


def benchmark_of(view: LedgerView, *, required: bool = False) -> Any:
    """The run's benchmark plug-in, or None if it is not installed and not `required`."""
    from ledger.events import RunCreated
    from runtime.plugins import Plugins

    first = view.event(0).event if view.size else None
    if not isinstance(first, RunCreated):
        return None
    try:
        return Plugins().benchmark(first.request["benchmark"]["id"])
    except UsageError:
        if required:
            raise
        return None


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
    if tree is not None and not any(f.code.startswith("tree_") for f in findings):
        yield f"every file in {tree} is what these events give"
    for finding in findings:
        if finding.code in _PROVES:
            yield finding.message
