"""`acl export -f parquet|jsonl|csv RESULTS_DIR DIR`: the tables of all runs together."""

from collections.abc import Callable
from pathlib import Path

from acl.output import document, line, message
from acl.stored_runs import Found, find_runs


def export_results(
    results_dir: Path,
    directory: Path,
    layout: str,
    damage: Callable[[str], int | None],
    *,
    json: bool,
) -> int:
    """Write the tables over every run, name what is in none of them, and return the exit status.

    What is left out is also listed in a file of the export. Raises RunNotFound where there is no
    run at all.
    """
    from exporters.tables.results import results_files, results_identity
    from exporters.write import write_tree
    from ledger.errors import RunNotFound

    found = find_runs(results_dir, damage)
    tell(found)
    if not found.runs:
        raise RunNotFound(f"no run below {results_dir} can be exported")
    identity = results_identity(found.runs, _registry_id(results_dir))
    files = results_files(layout, found.runs, found.left_out)
    entries = write_tree(files, directory, identity=identity, layout=layout)
    if json:
        document(
            {
                "path": str(directory),
                "format": layout,
                "files": len(entries),
                "runs": [_run(run.place, run.identity) for run in found.runs],
                "left_out": [{"path": one.place, "reason": one.reason} for one in found.left_out],
                "root": identity.root,
            }
        )
    else:
        left = f", {len(found.left_out)} left out" if found.left_out else ""
        line(f"{len(entries)} files in {directory}, of {len(found.runs)} runs{left}")
    return found.status


def tell(found: Found) -> None:
    """Name on stderr what is not read, or only in part."""
    for one in found.left_out:
        message(f"acl: left out: {one.place}: {one.reason}")
    for words in found.copies:
        message(f"acl: {words}")
    for run in found.runs:
        if run.identity.damaged_at is not None:
            at, size = run.identity.damaged_at, run.identity.size
            message(f"acl: {run.place}: damaged at event {at}; {size} events before it are used")


def _run(place: str, identity: object) -> dict[str, object]:
    names = ("run_id", "ledger_id", "size", "root")
    return {"path": place, **{name: getattr(identity, name) for name in names}}


def _registry_id(results_dir: Path) -> str | None:
    """The id of the registry's ledger, which stands for the results directory."""
    from ledger import LedgerView
    from ledger.errors import AclError
    from runtime.registry import REGISTRY_NAME

    file = results_dir / REGISTRY_NAME
    if not file.exists():
        return None
    try:
        with LedgerView.open(file) as view:
            return view.ledger_id.hex() or None
    except (AclError, OSError) as error:
        message(f"acl: the registry cannot be read: {error}")
        return None
