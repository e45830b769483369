"""`acl clean`: remove what no run needs any more from an artifacts directory."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, document, line, message

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

LOCK_WAIT = 5.0
"""Seconds to wait for a program that is about to archive."""


@app.command()
def clean(
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Only say what would be removed.")
    ] = False,
    artifacts: Annotated[
        Path, typer.Option(metavar="DIR", help="A directory called 'artifacts'.")
    ] = Path("artifacts"),
    json: Json = False,
) -> int:
    """Remove logs, generated state and whatever else no archive, job, data set or ledger needs.

    Kept are env, envs, index.yaml, archives, jobs, datasets, runtime, and all that holds a ledger.
    """
    from exporters.cleaning import checked_root, plan

    root = checked_root(artifacts, project=Path.cwd(), home=_home())
    failed: dict[str, str] = {}
    removed: list[str] = []
    if root is not None:
        found = plan(root)
        if found.removed and not dry_run:
            removed, failed = _remove(root, artifacts, quiet=json)
        else:
            removed, failed = found.removed, found.unknown
            if not json:
                for path in removed:
                    line(f"[dry-run] would remove: {artifacts / path}")
    if json:
        document({"path": str(artifacts), "dry_run": dry_run, "removed": removed, "kept": failed})
    for path, why in failed.items():
        message(f"acl: {artifacts / path} is kept: {why}")
    return 1 if failed else 0


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def _remove(root: Path, shown: Path, *, quiet: bool) -> tuple[list[str], dict[str, str]]:
    """Remove what can go, with nobody archiving meanwhile, and no run beginning."""
    from exporters.cleaning import plan, remove

    with _alone(root):
        found = plan(root)
        failed = dict(found.unknown)
        removed = []
        for path in found.removed:
            if not quiet:
                line(f"removing: {shown / path}")
            try:
                remove(root, path)
            except OSError as error:
                failed[path] = error.strerror or str(error)
            else:
                removed.append(path)
    return removed, failed


def _alone(root: Path) -> ExitStack:
    """Nobody archives in the directory, and no run begins there, until this is left."""
    from exporters.archives.shelf import locked
    from ledger.errors import ExportRefused, UsageError

    stack = ExitStack()
    try:
        stack.enter_context(locked(root, LOCK_WAIT))
    except ExportRefused as error:
        raise UsageError(error.message, hint=error.hint) from error
    return stack
