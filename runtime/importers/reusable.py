"""Directories of exported files as sources of reuse: imported first, then reused.

`runtime.reuse_source` keeps such an import only as long as the run is prepared.
"""

from pathlib import Path
from typing import Final

from ledger.errors import RunNotFound
from ledger.opening import LEDGER_NAME
from runtime.importers.door import Create, ImportReport, import_path
from runtime.importers.registry import Points
from runtime.plugins import installed

RUN_INFO: Final = "run_info.json"


def needs_import(directory: Path) -> bool:
    """True for the directory of a run that is told by its files alone: they have no ledger."""
    return (directory / RUN_INFO).is_file() and not (directory / LEDGER_NAME).exists()


def import_for_reuse(
    directory: Path, *, results_dir: Path, create: Create, points: Points = installed
) -> ImportReport:
    """Give the run that a directory of exported files amounts to, with its sealed ledger.

    It is imported below `results_dir`, which is the caller's to keep or to remove; the directory
    itself is only read. Raises RunNotFound for one that `needs_import` does not say so of, and what
    `import_path` raises.
    """
    if not needs_import(directory):
        raise RunNotFound(f"{directory} holds no exported run without its ledger")
    return import_path(directory, results_dir=results_dir, create=create, points=points)
