"""Where the registry is, and how it names runs."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ledger import canonical
from ledger.errors import LedgerDamaged
from ledger.opening import LEDGER_NAME

REGISTRY_NAME: Final = "registry.sqlite"
WAITING_NAME: Final = "registry.waiting"
_MOST_PARTS: Final = 64


def registry_file(results_dir: Path) -> Path:
    """Return where the registry is; LedgerDamaged if its name leads elsewhere."""
    file = results_dir.absolute() / REGISTRY_NAME
    if file.is_symlink():
        raise LedgerDamaged(f"{file} is a link: a registry is a file of its own")
    return file


def find_results_dir(run: Path) -> Path | None:
    """Return the nearest directory above a run that holds a registry."""
    for place in list(run.absolute().parents)[:_MOST_PARTS]:
        if os.path.lexists(place / REGISTRY_NAME):
            return place
    return None


def relative(results_dir: Path, directory: Path) -> str:
    """Return how the registry names the directory of a run."""
    return directory.absolute().relative_to(results_dir.absolute()).as_posix()


def locate(results_dir: Path, path: str) -> Path | None:
    """Return the directory that the registry names `path`; None if that can be none of its runs.

    A registry is not trusted to name places elsewhere, and no link is followed.
    """
    parts = path.split("/")
    if not 0 < len(parts) <= _MOST_PARTS or any(
        part in {"", ".", ".."} or "\0" in part for part in parts
    ):
        return None
    place = results_dir
    for part in parts:
        place /= part
        try:
            if place.is_symlink():
                return None
        except (OSError, ValueError):
            return None
    return place


def ledger_in(directory: Path) -> Path:
    """Return where the ledger of a run is."""
    return directory / LEDGER_NAME


def request_digest(request: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a request in canonical form, as `run.created` holds it, in hex."""
    return hashlib.sha256(canonical.encode(dict(request))).hexdigest()
