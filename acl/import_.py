"""`acl import PATH`: a result directory of another tool becomes a sealed ledger."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.keys import Signing
from acl.output import Json, alarm, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="What the other tool wrote.")],
    layout: Annotated[
        str | None,
        typer.Option("-f", "--format", metavar="FORMAT", help="Its format (default: found out)."),
    ] = None,
    results_dir: Annotated[Path, typer.Option(metavar="DIR")] = Path("results"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    keep_originals: Annotated[
        bool,
        typer.Option("--keep-originals", help="Store the files as they are, secrets included."),
    ] = False,
    signing_key: Signing = None,
    json: Json = False,
) -> int:
    """Import everything that PATH holds but secrets, or name what has no place; exit 1 if so.

    Importing the same again shows the run that is there; exit 0.
    """
    from acl.keys import signers_given
    from acl.progress import counting
    from ledger.errors import UsageError
    from runtime.importers.door import import_path

    signers = signers_given(signing_key)
    with counting("tasks") as progress:
        report = import_path(
            path,
            results_dir=results_dir,
            create=partial(_new_ledger, signers),
            format=layout,
            dry_run=dry_run,
            keep_originals=keep_originals,
            command=("acl", *sys.argv[1:]),
            entering=partial(_entering, results_dir, signers),
            progress=progress,
        )
    if report.already and layout not in (None, report.format):
        raise UsageError(
            f"these files were imported as {report.format}, into {report.path}",
            hint=f"import those that are of {layout} by themselves",
        )
    if json:
        document({**_told(report), "dry_run": dry_run})
    else:
        _print(report, dry_run=dry_run)
    return 1 if _is_partial(report) else 0


def _told(report: Any) -> dict[str, Any]:
    return {
        "run_id": report.run_id,
        "path": str(report.path),
        "format": report.format,
        "in": report.records_in,
        "out": report.records_out,
        "unplaced": _remarks(report, placed=False),
        "told": _remarks(report, placed=True),
        "already": report.already,
    }


def _is_partial(report: Any) -> bool:
    """True if this import left out more than a crash did; one made before is only shown."""
    told = any(one.damage or not (one.placed or one.torn) for one in report.unplaced)
    return told and not report.already


def _remarks(report: Any, *, placed: bool) -> list[dict[str, str]]:
    remarks = (one for one in report.unplaced if one.placed is placed)
    return [{"source": one.source, "reason": one.reason} for one in remarks]


def _new_ledger(signers: Any, directory: Path) -> Any:
    import os

    from ledger.segment import AT_REST
    from ledger.store import Ledger
    from runtime.recorder import Recorder
    from runtime.redact import Redactor

    ledger = Ledger.create(directory, packing=AT_REST)
    return Recorder(ledger, Redactor(os.environ), signers=signers)


def _entering(results_dir: Path, signers: Any, directory: Path, ledger_id: bytes) -> Any:
    from runtime.registry import Registration, Registry

    registry = Registry(results_dir, signers=signers)
    return Registration(registry, directory, ledger_id, tell=alarm)


def _print(report: Any, *, dry_run: bool) -> None:
    verb = "already imported as" if report.already else "would become" if dry_run else "imported as"
    line(f"{report.format}: {verb} run {report.run_id} in {report.path}")
    line(f"records: {report.records_in} in, {report.records_out} out")
    for one in report.unplaced:
        told = "named then" if report.already else "told" if one.placed else "not placed"
        line(f"{told}: {one.source}: {one.reason}")
