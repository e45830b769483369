"""Where a run's reused tasks and attempts come from, back to the runs that made them.

Told by the `task.reused` and `attempt.reused` events and the lineage that they keep of their
source's own; what an import was told of its tasks' origin is a claim. Whether any of it is proven
is for `verify` to say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ledger.errors import ProofInvalid
from ledger.events import AttemptReused, AttemptStarted, Claim, TaskReused, TaskStarted
from ledger.fold import fold
from ledger.sidefile import parse
from ledger.view import LedgerView, Recorded

Kind = Literal["copied", "imported", "claimed"]
_FIELDS = ("source_run_id", "source_path", "source_ledger_id", "size", "root", "checkpoint")


@dataclass(slots=True)
class SourceRun:
    """A run that was reused, as it was then.

    `kind` says whether its events were copied, copied from an import of exported files that was
    not kept, or only that an import was told of it.
    `tasks` and `attempts` count what came from it whole, and attempts that came alone and were
    evaluated later. `checkpoint` is the origin line of the last checkpoint that it held.
    `sources` are the runs that it had the same tasks from itself.
    """

    kind: Kind
    run_id: str
    path: str | None
    ledger_id: str
    size: int
    root: str
    checkpoint: str | None
    tasks: int = 0
    attempts: int = 0
    sources: "list[SourceRun]" = field(default_factory=list)


@dataclass(slots=True)
class Lineage:
    """A run with the runs that it stands on; `erased` counts reuses of which nothing is left.

    `told` is the run that the source of an import said it reused, where nothing tells for which
    tasks.
    """

    run_id: str
    ledger_id: str
    size: int
    root: str
    tasks: int
    reused: int
    erased: int = 0
    told: str | None = None
    sources: list[SourceRun] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


def lineage(view: LedgerView) -> Lineage:
    """Read where the tasks of a run come from, in the order in which they were taken over.

    Raises RunNotFound for a ledger without a run.
    """
    state = fold(view.events())
    found = Lineage(
        run_id=state.run_id,
        ledger_id=state.ledger_id,
        size=state.size,
        root=state.root.hex(),
        tasks=len(state.tasks),
        reused=state.counts().reused,
    )
    chains: dict[str, list[SourceRun]] = {}
    for recorded in view.events(until=state.size):
        if recorded.erased:
            found.erased += recorded.type in ("task.reused", "attempt.reused")
            continue
        chain = _chain(view, recorded)
        if not chain:
            continue
        assert recorded.task is not None
        # What a copy tells is of the run that this task was copied from.
        before = chains.get(recorded.task, []) if recorded.copied else []
        sources = _within(found.sources, before)
        if isinstance(recorded.event, TaskReused | TaskStarted):
            chains[recorded.task] = [*before, *chain]
            _add(sources, chain, "tasks")
        else:
            _add(sources, chain, "attempts")
    if state.imported is not None and state.frozen is not None and not found.sources:
        found.told = state.frozen.run_id
    return found


def _chain(view: LedgerView, recorded: Recorded) -> list[SourceRun]:
    """The sources that an event names, the nearest first."""
    match recorded.event:
        case TaskReused() | AttemptReused() as event:
            names = (*_FIELDS, "lineage", "claim")
            return list(_chained(view, {name: getattr(event, name, None) for name in names}))
        case TaskStarted(claim=Claim() as claim) | AttemptStarted(claim=Claim() as claim):
            return [_claimed(claim)]
        case _:
            return []


def _claimed(claim: Claim) -> SourceRun:
    return SourceRun("claimed", claim.run_id, None, claim.ledger_id, claim.size, claim.root, None)


def _chained(view: LedgerView, fields: Mapping[str, Any]) -> Iterator[SourceRun]:
    """Follow the lineage back; the leaf hashes, which are large, are not read."""
    lineage = fields.get("lineage")
    before = dict(lineage) if isinstance(lineage, Mapping) else {}
    told: Any = fields
    while isinstance(told, Mapping):
        run_id, path, ledger_id, size, root, note = (view.resolve(told.get(f)) for f in _FIELDS)
        claim = told.get("claim")
        yield SourceRun(
            kind="copied" if claim is None else "imported",
            run_id=str(run_id),
            path=None if path is None else str(path),
            ledger_id=str(ledger_id),
            size=size if isinstance(size, int) else 0,
            root=str(root),
            checkpoint=_origin(note),
        )
        if claim is not None:
            # This run was read from exported files, which say where they come from.
            yield _claimed(Claim.model_validate(claim))
        told = before.pop(str(ledger_id), None)


def _origin(note: object) -> str | None:
    if not isinstance(note, str):
        return None
    try:
        return parse(note.encode("utf-8", "surrogatepass")).checkpoint.origin
    except ProofInvalid:
        return None


def _within(sources: list[SourceRun], chain: list[SourceRun]) -> list[SourceRun]:
    """The sources at the end of a chain that was added."""
    for one in chain:
        sources = _known(sources, one).sources
    return sources


def _add(
    sources: list[SourceRun], chain: list[SourceRun], what: Literal["tasks", "attempts"]
) -> None:
    """Count one task or attempt along its chain."""
    for one in chain:
        source = _known(sources, one)
        setattr(source, what, getattr(source, what) + 1)
        sources = source.sources


def _known(sources: list[SourceRun], one: SourceRun) -> SourceRun:
    """The source of `sources` that is the same as `one`, added if there is none."""
    for source in sources:
        if _key(source) == _key(one):
            return source
    added = replace(one, tasks=0, attempts=0, sources=[])
    sources.append(added)
    return added


def _key(source: SourceRun) -> tuple[object, ...]:
    return (source.kind, source.run_id, source.ledger_id, source.size, source.root)
