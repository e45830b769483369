"""`acl export -f FORMAT RUN DIR`: project a ledger into files; `--follow` a live one.

Of a results directory the tables of all runs: `acl.export_tables`.
"""

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from acl import options
from acl.output import Json, document, line, message

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

POLL_SECONDS = 0.2
TILES = "tiles"
JOBS = "jobs"
TABLES = ("parquet", "jsonl", "csv")


RunOrResults = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run directory, a ledger file; for tables, RESULTS_DIR."),
]
Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="New, empty, or an export of the same run.")
]
Layout = Annotated[
    str, typer.Option("-f", "--format", metavar="FORMAT", help="The layout of the files.")
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Keep the files up to date until the run ends.")
]
Salvage = Annotated[
    bool, typer.Option("--salvage", help="From a damaged ledger, all before the damage.")
]
At = Annotated[int | None, typer.Option("--at", metavar="SEQ", min=0, help="As of this event.")]
Trajectory = Annotated[
    str | None, typer.Option(metavar="MODE", help="jobs: full requests (default), or delta.")
]
Force = Annotated[bool, typer.Option("--force", help="jobs: replace a job that stands there.")]


@app.command()
def export(
    run: RunOrResults,
    directory: Directory,
    layout: Layout = "details",
    follow: Follow = False,
    salvage: Salvage = False,
    at: At = None,
    job_name: options.JobName = None,
    trajectory: Trajectory = None,
    force: Force = False,
    json: Json = False,
) -> int:
    """Write the files that other tools read; the same events give the same bytes.

    Nothing is written from a damaged ledger, unless --salvage asks for what precedes the damage;
    the files then say so.
    A run that is followed and whose writer is gone before its end is told as interrupted.
    """
    from acl.stored_runs import is_results_dir
    from exporters import find_exporter
    from exporters.identity import Identity
    from exporters.write import write_tree
    from ledger import LedgerView
    from ledger.errors import UsageError

    if follow and (salvage or at is not None):
        what = "a damaged ledger" if salvage else "an earlier state"
        raise UsageError(f"{what} is not followed", hint="leave --follow out")
    exporter = find_exporter(layout)
    of_job = _job_options(layout, job_name, trajectory, force=force)
    if layout in TABLES and is_results_dir(run):
        from acl.export_tables import export_results

        if follow or at is not None:
            raise UsageError("of many runs only the present state is exported", hint="name a RUN")
        damage = partial(_damage, salvage=salvage)
        return export_results(Path(run), directory, layout, damage, json=json)
    damaged_at = _damage(run, salvage=salvage)
    home = _home(run, directory)
    if layout == TILES:
        from acl.export_tiles import export_tiles

        export_tiles(run, directory, alone=not (follow or salvage or at is not None), json=json)
        return 0
    if follow:
        _follow(run, directory, layout, home)
    with LedgerView.open(run) as view:
        state = _state(view, damaged_at, at)
        if layout == JOBS:
            from acl.export_jobs import export_jobs

            export_jobs(state, view, directory, of_job, force=force, json=json)
            return 0
        files, identity = exporter(state, view), Identity.of(state)
        entries = write_tree(files, directory, identity=identity, layout=layout, home=home)
    salvaged = damaged_at is not None
    _report(state, directory, layout, len(entries), salvaged=salvaged, json=json)
    return 0


def _state(view: Any, damaged_at: int | None, at: int | None) -> Any:
    """The state that is exported: as of event `at`, of a damaged ledger what precedes the damage.

    The latter is told on stderr.
    """
    from acl.verdict import state_at
    from exporters.identity import Salvaged

    state = state_at(view, _size(view.size if damaged_at is None else damaged_at, at))
    if damaged_at is None:
        return state
    message(f"acl: damaged at event {damaged_at}; {state.size} events before it are used")
    return Salvaged.of(state, damaged_at)


def _damage(run: str, *, salvage: bool) -> int | None:
    """The first event that is damaged, None for an intact ledger.

    Raises LedgerDamaged for damage that is not to be salvaged from, or that leaves nothing.
    """
    from acl.verdict import broken
    from ledger.errors import LedgerDamaged

    faults = broken(run)
    first = _first_damaged(faults)
    if faults and not (salvage and first):
        where = "" if faults[0].seq is None else f" at event {faults[0].seq}"
        raise LedgerDamaged(f"{run} is damaged{where}: {faults[0].message}", seq=first)
    return first


def _size(held: int, at: int | None) -> int:
    """How many events are exported."""
    from ledger.errors import UsageError

    if at is not None and at >= held:
        raise UsageError(f"there is no event {at} to export", hint=f"the last one is {held - 1}")
    return held if at is None else at + 1


def _job_options(layout: str, name: str | None, trajectory: str | None, *, force: bool) -> Any:
    """How a job is to be made; UsageError where that is asked of another layout."""
    from exporters.jobs.job import JobOptions
    from ledger.errors import UsageError

    if layout != JOBS and (name is not None or trajectory is not None or force):
        raise UsageError(
            "--job-name, --trajectory and --force are for jobs", hint="add --format jobs"
        )
    if trajectory not in (None, "full", "delta"):
        raise UsageError(f"there is no trajectory {trajectory!r}", hint="known: full, delta")
    return JobOptions(name, "delta" if trajectory == "delta" else "full")


def _home(run: str, directory: Path) -> Path | None:
    """The directory of the run, if that is where its files go."""
    from ledger.opening import ledger_file

    home = ledger_file(run).parent
    return home if home.resolve() == directory.resolve() else None


def _first_damaged(faults: list[Any]) -> int | None:
    """The first event that is damaged itself, or else the first that may be.

    A checkpoint that disagrees names all events since the one before it, which says less.
    """
    named = [fault for fault in faults if fault.seq is not None]
    damaged = [fault.seq for fault in named if not fault.code.startswith("checkpoint")]
    return min(damaged or [fault.seq for fault in named], default=None)


def _follow(run: str, directory: Path, layout: str, home: Path | None) -> None:
    """Project what is recorded until nothing more comes; the whole export is left to the caller."""
    from exporters.details import LAYOUT
    from exporters.live import LiveExport
    from ledger import LedgerView, RunState, fold
    from ledger.errors import UsageError

    if layout != LAYOUT:
        raise UsageError(f"the layout {layout!r} is not written live", hint=f"follow with {LAYOUT}")
    project = LiveExport(directory, home=home)
    state = RunState()
    while True:
        # Open for moments only: a ledger that somebody reads is not folded into one file.
        with LedgerView.open(run) as view:
            # Asked before: whatever a writer wrote that is gone now is read after.
            is_over = view.writer() is None
            fold(view.events(since=state.size), state)
            if is_over or state.sealed_size is not None:
                return
            if state.finished is None:
                project(state, view)
        time.sleep(POLL_SECONDS)


def _report(
    state: Any, directory: Path, layout: str, files: int, *, salvaged: bool, json: bool
) -> None:
    if json:
        document(
            {
                "path": str(directory),
                "format": layout,
                "files": files,
                "run_id": state.run_id,
                "status": state.status,
                "size": state.size,
                "root": state.root.hex(),
                "salvaged": salvaged,
            }
        )
    else:
        line(f"{files} files in {directory}, status {state.status}")
        line(f"from {state.size} events, root {state.root.hex()}")
