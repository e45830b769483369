"""Writing archives: numbered, listed, each run once, whatever is killed in between.

All of it happens under one lock, `.archive.lock`. An archive is written into a staging directory
and renamed to its number; only then `index.yaml` names it. What a killed program left between these
two steps, the next one that comes puts in order: an archive tells all that its entry needs.
"""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from pydantic import ValidationError

from exporters import OutFile
from exporters.archives import index as listing
from exporters.archives.metadata import NAME, Metadata
from exporters.archives.snapshot import Snapshot
from exporters.folder import Folder
from exporters.paths import TEMPORARY
from ledger.closing import discard
from ledger.errors import ExportRefused

LOCK: Final = ".archive.lock"
ARCHIVES: Final = "archives"
WAIT: Final = 60.0
"""Seconds to wait for another program that archives."""

_POLL: Final = 0.02
_MOST_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Archived:
    """Where a run is archived, and whether that is new."""

    id: str
    path: Path
    is_new: bool


def archive(artifacts: Path, snapshot: Snapshot, *, wait: float = WAIT) -> Archived:
    """Archive a run under the next number, or say where it is archived already.

    Raises ExportRefused where it was archived in another state, since archives never change, where
    `index.yaml` cannot be understood, and where the disk fails; a number that was not used up then
    stays free.
    """
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
        with locked(artifacts, wait) as folder:
            index = _complete(folder)
            found = _find(folder, index, snapshot)
            if found is not None:
                return Archived(found, folder.path / ARCHIVES / found, is_new=False)
            archive_id = _next(folder, index)
            _write(folder, archive_id, snapshot)
            _list(folder, index, snapshot.numbered(archive_id))
            return Archived(archive_id, folder.path / ARCHIVES / archive_id, is_new=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise ExportRefused(f"{artifacts} cannot be written to: {why}") from error


@contextmanager
def locked(artifacts: Path, wait: float = WAIT) -> Iterator[Folder]:
    """The artifacts directory, with nobody else archiving in it.

    Raises ExportRefused after `wait` seconds, and where the file system has no locks.
    """
    with Folder.open(artifacts.resolve()) as folder:
        lock = _open_lock(folder.path / LOCK)
        try:
            _acquire(lock, folder.path, wait)
            yield folder
        finally:
            os.close(lock)


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        lock = os.open(path, flags, 0o644)
    except OSError as error:
        raise ExportRefused(
            f"{path} cannot be opened: {error.strerror}",
            hint="see to it that you may write there, or name another directory",
        ) from error
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise ExportRefused(f"{path} is not a file", hint="move it away")
    return lock


def _acquire(lock: int, artifacts: Path, wait: float) -> None:
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise ExportRefused(
                    f"another program archives in {artifacts}", hint="wait for it to end"
                ) from None
            time.sleep(_POLL)
        except OSError as error:
            raise ExportRefused(f"{artifacts} has no locks: {error.strerror}") from error
        else:
            return


# -- under the lock ---------------------------------------------------------------------------


def _complete(folder: Folder) -> listing.Index:
    """Put in order what a killed program left, and return what the index says then."""
    index = _read_index(folder)
    _clear(folder)
    listed = {entry.id for entry in index.entries}
    for archive_id in _archives(folder):
        if archive_id not in listed:
            metadata = _metadata(folder, archive_id)
            # An archive of somebody else is nobody's to list.
            if metadata is not None:
                _list(folder, index, metadata)
                index = _read_index(folder)
    return index


def _read_index(folder: Folder) -> listing.Index:
    try:
        with folder.reading(listing.NAME) as file:
            data = file.read(listing.MOST_BYTES + 1)
    except FileNotFoundError:
        data = b""
    return listing.parse(data, str(folder.path / listing.NAME))


def _list(folder: Folder, index: listing.Index, metadata: Metadata) -> None:
    data = index.with_entry(metadata.entry())
    folder.replace(OutFile(listing.NAME, data))
    folder.sync_self()


def _clear(folder: Folder) -> None:
    """Remove what killed programs were writing: they had the lock."""
    for name in _names(folder.path):
        if name.startswith(TEMPORARY) and name.endswith(".tmp"):
            with suppress(OSError):
                (folder.path / name).unlink()
    for name in _names(folder.path / ARCHIVES):
        if name.startswith(TEMPORARY):
            discard(folder.path / ARCHIVES / name)


def _archives(folder: Folder) -> list[str]:
    names = [name for name in _names(folder.path / ARCHIVES) if listing.number_of(name)]
    return sorted(names, key=lambda name: (listing.number_of(name), name))


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _metadata(folder: Folder, archive_id: str) -> Metadata | None:
    """What an archive of ours says of itself; None for any other directory."""
    try:
        with folder.reading(f"{ARCHIVES}/{archive_id}/{NAME}") as file:
            document = yaml.safe_load(file.read(_MOST_BYTES))
        found = Metadata.model_validate(document)
    except (OSError, ValueError, yaml.YAMLError, RecursionError, ValidationError, ExportRefused):
        return None
    return found if found.id == archive_id else None


def _find(folder: Folder, index: listing.Index, snapshot: Snapshot) -> str | None:
    """The archive that the run has; ExportRefused where it is of another state."""
    for entry in index.entries:
        run_id, ledger_id, root = entry.run_id, entry.ledger_id, entry.root
        if entry.id is not None and ledger_id is None:
            # Somebody took our part out of the entry; the archive still has it.
            told = _metadata(folder, entry.id)
            if told is not None:
                run_id, ledger_id, root = told.acl.run_id, told.acl.ledger_id, told.acl.root
        if entry.id is None or (run_id, ledger_id) != (snapshot.run_id, snapshot.ledger_id):
            continue
        if root != snapshot.root:
            raise ExportRefused(
                f"run {snapshot.run_id} is archived as {entry.id} with the root {root},"
                f" and now has the root {snapshot.root}: an archive never changes",
                hint=f"keep {entry.id}, or archive into another directory",
            )
        return entry.id
    return None


def _next(folder: Folder, index: listing.Index) -> str:
    """The id after the highest one that a directory or an entry has."""
    used = [listing.number_of(entry.id or "") for entry in index.entries]
    used += [listing.number_of(name) for name in _archives(folder)]
    return f"run_{1 + max(used, default=0):03d}"


def _write(folder: Folder, archive_id: str, snapshot: Snapshot) -> None:
    # Made by the way of all files, so that `archives` is no link that leads elsewhere.
    name = f"{TEMPORARY}{secrets.token_hex(8)}"
    directory = folder.path / ARCHIVES
    directory.mkdir(exist_ok=True)
    with Folder.open(directory) as archives:
        stage = directory / name
        stage.mkdir()
        try:
            with Folder.open(stage) as staged:
                for file in snapshot.all_files(archive_id):
                    staged.create(file)
                staged.sync()
                staged.sync_self()
            stage.rename(directory / archive_id)
        except BaseException:
            discard(stage)
            raise
        archives.sync_self()
    folder.sync_self()
