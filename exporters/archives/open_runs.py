"""Which runs write to an artifacts directory and are not finished there yet.

A run says so before its first event, in a file of its own below `archives/.running/`, and takes
that back when its job and its archive are there. So whoever comes next finds what was killed in
between, and what had no room.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from exporters import OutFile
from exporters.archives.shelf import locked
from exporters.folder import Folder
from exporters.jsontext import json_bytes
from ledger.errors import ExportRefused
from ledger.events.base import Text

DIRECTORY: Final = "archives/.running"

_MOST_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that was begun here: its ledger file, the file that says so, the options of its job."""

    ledger: Path
    note: Path
    options: Mapping[str, str] = field(default_factory=dict)


class _Note(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ledger: Text
    options: dict[str, str]


def register(artifacts: Path, ledger: Path, options: Mapping[str, str] | None = None) -> OpenRun:
    """Say that the run of this ledger file writes to `artifacts`, which is made if need be.

    `options` are those of its job, for whoever has to write it in the end. Raises ExportRefused
    where that cannot be written.
    """
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
        # Whoever cleans up has the same lock: a run that begins is seen, or waits.
        with locked(artifacts) as folder:
            path = relative(folder.path, ledger)
            name = f"{DIRECTORY}/{_name(path)}"
            told = dict(options or {})
            folder.replace(OutFile(name, json_bytes({"ledger": path, "options": told})))
            folder.sync()
            return OpenRun(ledger, folder.path / name, told)
    except OSError as error:
        why = error.strerror or str(error)
        raise ExportRefused(f"{artifacts} cannot be written to: {why}") from error


def forget(artifacts: Path, ledger: Path) -> None:
    """Take back what `register` said; nothing happens where it was not said."""
    with suppress(FileNotFoundError), Folder.open(artifacts.resolve()) as folder:
        folder.remove(f"{DIRECTORY}/{_name(relative(folder.path, ledger))}")
        folder.sync()


def open_runs(artifacts: Path) -> list[OpenRun]:
    """The runs that said so and did not take it back, by the names of their notes.

    Whether their ledgers are there, and whether they are at work, is left to the caller; what is
    no note of ours is passed over.
    """
    try:
        with Folder.open(artifacts.resolve()) as folder:
            return list(_read(folder))
    except FileNotFoundError:
        return []


def relative(artifacts: Path, ledger: Path) -> str:
    """How the ledger is reached from the artifacts directory."""
    return os.path.relpath(ledger.resolve(), artifacts.resolve())


def portable(artifacts: Path, ledger: Path) -> str | None:
    """The same path, if it tells nothing of this machine; None where it leads over its root."""
    shared = os.path.commonpath([artifacts.resolve(), ledger.resolve()])
    return None if shared == os.sep else relative(artifacts, ledger)


def _name(path: str) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _read(folder: Folder) -> Iterator[OpenRun]:
    directory = folder.path / DIRECTORY
    try:
        names = sorted(entry.name for entry in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        with suppress(ExportRefused, OSError, ValueError, RecursionError):
            with folder.reading(f"{DIRECTORY}/{name}") as file:
                told = _Note.model_validate(json.loads(file.read(_MOST_BYTES)))
            if name == _name(told.ledger):
                ledger = Path(os.path.normpath(folder.path / told.ledger))
                yield OpenRun(ledger, directory / name, told.options)
