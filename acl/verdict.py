"""What a verification says as a whole: findings, then in words what is proven and what is not."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acl.files import read
from acl.progress import counting
from ledger import LedgerView, RunState, fold, note, proof, sidefile
from ledger.errors import AclError, ProofInvalid, UsageError
from ledger.events import RunCreated
from ledger.note import Verifier
from ledger.verify import Finding, Verification, verify
from runtime.folded import Folded

if TYPE_CHECKING:
    from ledger.policy import Policy

_PROVES: Final = frozenset(
    {
        "signed",
        "cosigned",
        "policy_met",
        "outside_checkpoint",
        "origin_signed",
        "origin_at_hand",
        "metrics_equal",
    }
)
_SQLITE: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Against:
    """What a ledger is held against: all that the auditor brought.

    `checkpoints` are files, each a checkpoint or a copy of the ledger; `sources` are run
    directories or ledger files that tasks were reused from.
    """

    verifiers: Sequence[Verifier] = ()
    policy: "Policy | None" = None
    checkpoints: Sequence[Path] = ()
    min_size: int = 0
    tree: Path | None = None
    sources: Sequence[str] = ()


_NOTHING: Final = Against()


def examine(run: str, against: Against = _NOTHING) -> dict[str, Any]:
    """Verify and return {ok, intact, size, root, sealed_at, findings, proven, unproven, forks}.

    `intact` says that the ledger itself is, whatever is wrong with numbers in it, or with what it
    was compared with. `size` and `root` are None where damage leaves no tree to speak of. `forks`
    are texts that prove to anybody that two histories were signed.
    """
    outside = {path: _outside(path) for path in against.checkpoints}
    with ExitStack() as stack:
        sources = [stack.enter_context(LedgerView.open(path)) for path in against.sources]
        verification = verify(
            run,
            verifiers=against.verifiers,
            policy=against.policy,
            checkpoint=outside.values(),
            min_size=against.min_size,
            sources=sources,
            on_progress=stack.enter_context(counting("events")),
        )
        folded = Folded()
        verification.on_event = folded.take
        findings = list(verification)
        for path in against.sources:
            findings += _source_faults(path, against)
    intact = not any(finding.severity == "broken" for finding in findings)
    if intact and folded.state.created is not None and folded.state.metrics:
        findings += _recompute(run, folded)
    if intact and against.tree is not None:
        with LedgerView.open(run) as view:
            findings += _compare(against.tree, view)
    size, root = verification.size, verification.root
    return {
        "ok": not any(f.severity == "broken" or f.code == "policy" for f in findings),
        "intact": intact,
        "size": size,
        "root": None if root is None else root.hex(),
        "sealed_at": verification.sealed_at,
        "findings": [asdict(finding) for finding in findings],
        "proven": list(_proven(findings, verification, against.tree)) if intact else [],
        "unproven": [finding.message for finding in findings if finding.severity == "unproven"],
        "forks": [] if intact else list(_forks(run, outside)),
    }


def _source_faults(path: str, against: Against) -> Iterator[Finding]:
    """Verify a ledger that tasks were reused from; tell of what is broken."""
    for finding in verify(path, verifiers=against.verifiers):
        if finding.severity == "broken":
            yield replace(finding, message=f"source {path}: {finding.message}", seq=None, task=None)


def _forks(run: str, outside: Mapping[Path, bytes | note.Checkpoint]) -> Iterator[str]:
    """Reports of two histories that were shown, as far as the ledger can still be read."""
    with suppress(AclError), LedgerView.open(run) as view:
        for path, kept in outside.items():
            given = kept if isinstance(kept, bytes) else _held_by(path, view)
            if given is None:
                continue
            claim = sidefile.parse(given)
            ours = proof.covering(view, claim.checkpoint.size, like=claim.signed)
            if ours is not None and not proof.extends(view, claim):
                yield proof.fork(view, given, ours).decode()


def _held_by(path: Path, view: LedgerView) -> bytes | None:
    """A checkpoint that a copy of the ledger holds, and that one which `view` holds covers."""
    ours = proof.covering(view, 1)
    if ours is None:
        return None
    most = sidefile.parse(ours).checkpoint.size
    with LedgerView.open(path, pristine=True) as copy:
        return proof.covering(copy, 1, most=most)


def broken(run: str) -> list[Finding]:
    """The findings that make a ledger not to be trusted."""
    return [finding for finding in verify(run) if finding.severity == "broken"]


def state_at(view: LedgerView, size: int) -> RunState:
    """The state after the first `size` events."""
    return fold(islice(view.events(), size))


def _outside(path: Path) -> bytes | note.Checkpoint:
    """What an auditor kept: a checkpoint, or size and root of an older copy of the ledger."""
    try:
        with path.open("rb") as file:
            is_ledger = file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError) as error:
        is_ledger = path.is_dir()
        if not is_ledger:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"cannot read {path}: {reason}") from error
    if is_ledger:
        with LedgerView.open(path, pristine=True) as copy:
            return note.Checkpoint(note.unsigned_origin(copy.ledger_id), copy.size, copy.root())
    data = read(path)
    try:
        sidefile.parse(data)
    except ProofInvalid as error:
        raise UsageError(f"{path} is no checkpoint: {error.message}") from error
    return data


def _recompute(run: str, folded: Folded) -> Iterator[Finding]:
    """Compare the recorded metrics with what the events give: a headline number is derived."""
    from runtime.replay import replay_folded

    created = folded.state.created
    assert created is not None

    def root_at(size: int) -> bytes:
        with LedgerView.open(run) as view:
            return view.root(size)

    found = replay_folded(folded, root_at, benchmark=_benchmark(created))
    for difference in found.differences:
        what = (
            f"recorded {difference.name} is {difference.recorded},"
            f" the events give {difference.replayed}"
        )
        if found.source == "import":
            yield Finding("source_metrics_differ", "unproven", f"the source says so: {what}")
        else:
            yield Finding("metrics_differ", "broken", what)
    erased = [name for name, reason in found.not_compared.items() if reason == "erased"]
    if erased:
        why = f"what they are made of was erased: {', '.join(erased)}"
        yield Finding("metrics_erased", "unproven", f"metrics cannot be recomputed, as {why}")
    if found.equal:
        yield Finding("metrics_equal", "note", "the recorded metrics are what the events give")


def benchmark_of(view: LedgerView, *, required: bool = False) -> Any:
    """The run's benchmark plug-in, or None if it is not installed and not `required`."""
    first = view.event(0).event if view.size else None
    return _benchmark(first, required=required) if isinstance(first, RunCreated) else None


def _benchmark(created: RunCreated, *, required: bool = False) -> Any:
    from runtime.plugins import Plugins

    try:
        return Plugins().benchmark(created.request["benchmark"]["id"])
    except UsageError:
        if required:
            raise
        return None


def _compare(directory: Path, view: LedgerView) -> Iterator[Finding]:
    from exporters.check import check_tree

    return check_tree(
        partial(state_at, view), view, directory, ledger_id=view.ledger_id.hex(), size=view.size
    )


def _proven(findings: list[Finding], verified: Verification, tree: Path | None) -> Iterator[str]:
    assert verified.root is not None
    root = verified.root.hex()
    what = f"the {verified.size} events, their bodies and their blobs"
    erased = sum(finding.code == "erased" for finding in findings)
    but = f", but for what was erased ({erased} bodies or blobs)" if erased else ""
    yield f"{what} are the ones behind root {root}{but}"
    yield "every event was legal where it stands: no attempt is counted twice or without an end"
    if tree is not None and not any(f.code.startswith("tree_") for f in findings):
        yield f"every file in {tree} is what these events give"
    for finding in findings:
        if finding.code in _PROVES:
            yield finding.message
