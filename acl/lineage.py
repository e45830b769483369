"""`acl show --lineage RUN`: the runs that a run's reused tasks come from, back to their makers."""

from collections.abc import Iterator

from acl.differences import differences, spoken_differences
from acl.output import document, line
from acl.plain import plain
from ledger import LedgerView, fold
from ledger.errors import UsageError
from runtime.lineage import SourceRun, lineage


def show_lineage(run: str, task: str | None, *, json: bool) -> None:
    """Print the sources of a run, each below the run that took from it."""
    if task is not None:
        raise UsageError("--lineage is of a whole run", hint="leave the task out")
    with LedgerView.open(run) as view:
        found = lineage(view)
        state = fold(view.events(until=found.size))
    if json:
        document(plain({**found.document(), "differences": differences(state)}))
        return
    line(f"run {found.run_id}: {found.tasks} tasks, {found.reused} reused")
    line(f"  ledger {found.ledger_id}, {found.size} events, root {found.root}")
    for text in _sources(found.sources, "  "):
        line(text)
    for text in spoken_differences(state):
        line(f"  {text}")
    if found.told is not None:
        line(f"  its source says that it reused run {found.told}; for which tasks is not known")
    elif not found.sources:
        line("  every task ran in this run itself")
    if found.erased:
        line(f"  {found.erased} more reuses were erased: nothing tells where they come from")


def _sources(sources: list[SourceRun], indent: str) -> Iterator[str]:
    for source in sources:
        verb = "said by the import to be from" if source.kind == "claimed" else "from"
        imported = source.kind == "imported"
        what = ", imported from exported files" if imported else ""
        yield f"{indent}{verb} run {source.run_id}{what}: {_amount(source)}"
        ledger = "ledger of that import, which was not kept:" if imported else "ledger"
        yield f"{indent}  {ledger} {source.ledger_id}, {source.size} events, root {source.root}"
        if source.path is not None:
            yield f"{indent}  {'the files were' if imported else 'then'} at {source.path}"
        if source.kind == "copied":
            held = f"checkpoint of {source.checkpoint}" if source.checkpoint else "no checkpoint"
            yield f"{indent}  it held {held}"
        yield from _sources(source.sources, indent + "  ")


def _amount(source: SourceRun) -> str:
    parts = []
    if source.tasks:
        parts.append(f"{source.tasks} task{'s' * (source.tasks != 1)}")
    if source.attempts:
        parts.append(f"{source.attempts} attempt{'s' * (source.attempts != 1)} without a verdict")
    return ", ".join(parts)
