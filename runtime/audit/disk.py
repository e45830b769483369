"""The ledgers that lie below a results directory, wherever they lie."""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from ledger import sidefile
from ledger.errors import AclError
from ledger.opening import LEDGER_NAME
from ledger.view import LedgerView


@dataclass(frozen=True, slots=True)
class Place:
    """A directory with a ledger; `ledger_id` is None where it cannot be read."""

    path: str
    directory: Path
    ledger_id: str | None


def places(results_dir: Path) -> list[Place]:
    """Return every directory with a ledger, or with what was beside one, sorted by its path.

    Hidden directories and those within runs are searched too; links are not followed.
    """
    found = []
    names = {LEDGER_NAME, *(side.name for side in sidefile.paths(Path(LEDGER_NAME)))}
    for folder, directories, files in os.walk(results_dir):
        directories.sort()
        if names & set(files):
            directory = Path(folder)
            path = directory.relative_to(results_dir).as_posix()
            found.append(Place(path, directory, _ledger_id(directory)))
    return found


def _ledger_id(directory: Path) -> str | None:
    try:
        with LedgerView.open(directory, pristine=True) as view:
            return view.ledger_id.hex() or None
    except (AclError, OSError, sqlite3.Error):
        return None
