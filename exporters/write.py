"""The one place where exports touch a disk.

Every file is written into a staging directory first. Where nothing stands yet, that directory is
renamed whole, so that a killed export leaves no file under its final name. Where an export of the
same run stands, its files are replaced one by one, obsolete ones removed, and the manifest comes
last: only a tree that matches its manifest is whole. Nothing below the target is reached through a
link, and a full disk is met before anything was replaced.
"""

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from exporters import OutFile
from exporters.folder import Entry, Folder
from exporters.identity import Identity
from exporters.manifest import MANIFEST, manifest_file
from exporters.occupant import Occupant, examine
from exporters.paths import TEMPORARY
from ledger.closing import discard
from ledger.errors import ExportRefused

_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY})


def write_tree(
    files: Iterable[OutFile],
    target: Path,
    *,
    identity: Identity,
    layout: str,
    home: Path | None = None,
) -> list[Entry]:
    """Write an export whole and return its files, the manifest among them.

    `home` is the directory of the run itself, where an export may stand beside the ledger. Raises
    ExportRefused, with nothing changed, for a target that holds anything but an export of this run
    in this layout, for names that leave the target, where the disk fails, and where another
    exporter wrote a later state of the run meanwhile.
    """
    root = target.resolve()
    before = _mark(root)
    if _is_vacant(root):
        with _beside(root) as stage:
            entries = fill(stage, files, identity, layout)
            if _moved_whole(stage, root):
                return entries
            with Folder.open(root) as folder, folder.locked():
                _adopt(folder, stage, entries, identity, layout, home, is_first=True)
            return entries
    with Folder.open(root) as folder, folder.locked():
        occupant = examine(folder, identity, layout, home)
        if _mark(root) != before:
            _refuse_to_go_back(occupant)
        folder.clear_temporaries()
        with inside(root) as stage:
            entries = fill(stage, files, identity, layout)
            _adopt(folder, stage, entries, identity, layout, home)
    return entries


def _mark(root: Path) -> tuple[int, int] | None:
    """What changes whenever an export is ended in a directory."""
    try:
        there = (root / MANIFEST).lstat()
    except OSError:
        return None
    return there.st_ino, there.st_mtime_ns


def _refuse_to_go_back(occupant: Occupant) -> None:
    """Somebody's export was ended while this one waited: it stands if it tells more."""
    if occupant.size > occupant.identity.size:
        place, size = occupant.folder.path, occupant.size
        raise ExportRefused(
            f"{place}: a later state, of {size} events, was exported meanwhile",
            hint="export again to put an earlier one in its place",
        )


def _is_vacant(root: Path) -> bool:
    """Whether the target can be made by renaming a directory that stands beside it."""
    try:
        if any(root.iterdir()):
            return False
    except FileNotFoundError:
        return True
    except OSError as error:
        raise ExportRefused(f"{root} cannot be written to: {error.strerror}") from error
    same_device = root.stat().st_dev == root.parent.stat().st_dev
    return same_device and os.access(root.parent, os.W_OK)


@contextmanager
def _beside(root: Path) -> Iterator[Folder]:
    """A staging directory next to a target that is not there, or empty; gone afterwards."""
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        stages = re.compile(re.escape(_stage_prefix(root)) + "[0-9a-f]{16}")
        clear_abandoned(root.parent, lambda path: stages.fullmatch(path.name))
        stage = _locked_stage(root)
    except OSError as error:
        raise ExportRefused(f"{root} cannot be made: {error.strerror}") from error
    with stage:
        try:
            yield stage
        finally:
            # After a rename there is nothing at this path any more.
            discard(stage.path)


def _locked_stage(root: Path) -> Folder:
    while True:
        path = root.parent / f"{_stage_prefix(root)}{secrets.token_hex(8)}"
        path.mkdir()
        stage = lock_stage(path)
        if stage is not None:
            return stage


def _stage_prefix(root: Path) -> str:
    # Short whatever the target is called: a name has at most 255 bytes.
    return f"{TEMPORARY}{re.sub(r'[^A-Za-z0-9._=-]+', '_', root.name)[:100]}-"


def lock_stage(path: Path) -> Folder | None:
    """Lock a staging directory that was just made; None where one who clears up came between."""
    with ExitStack() as opened:
        try:
            stage = opened.enter_context(Folder.open(path))
        except FileNotFoundError:
            return None
        if not (stage.try_lock() and stage.is_current()):
            return None
        opened.pop_all()
        return stage


def clear_abandoned(parent: Path, is_stage: Callable[[Path], object]) -> None:
    """Remove those staging directories in `parent` whose exporters are dead: their locks are free.

    `is_stage` tells which are staging directories of the caller's. Raises OSError where `parent`
    cannot be read.
    """
    for path in parent.iterdir():
        if is_stage(path):
            with suppress(OSError, ExportRefused), Folder.open(path) as stale:
                if stale.try_lock():
                    discard(path)


@contextmanager
def inside(root: Path) -> Iterator[Folder]:
    """A staging directory in a target that is locked; gone afterwards."""
    path = root / f"{TEMPORARY}{secrets.token_hex(8)}"
    try:
        path.mkdir()
    except OSError as error:
        raise ExportRefused(f"{root} cannot be written to: {error.strerror}") from error
    try:
        with Folder.open(path) as stage:
            yield stage
    finally:
        discard(path)


def fill(
    stage: Folder,
    files: Iterable[OutFile],
    identity: Identity,
    layout: str,
    options: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Write an export into an empty directory, its manifest last, and have all of it on disk."""
    entries = [stage.create(file) for file in files]
    entries.append(stage.create(manifest_file(entries, identity, layout, options)))
    stage.sync()
    return entries


def _moved_whole(stage: Folder, root: Path) -> bool:
    """Rename the stage to the target; False where somebody else made it meanwhile."""
    with suppress(FileNotFoundError):
        stage.path.chmod(root.stat().st_mode & 0o7777)
    try:
        stage.path.rename(root)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise ExportRefused(f"{root} cannot be made: {error.strerror}") from error
    with Folder.open(root.parent) as parent:
        parent.sync_self()
    return True


def _adopt(
    folder: Folder,
    stage: Folder,
    entries: list[Entry],
    identity: Identity,
    layout: str,
    home: Path | None,
    *,
    is_first: bool = False,
) -> None:
    """Replace the files of the export that stands there; the target is locked.

    `is_first` says that nothing stood there a moment ago.
    """
    occupant = examine(folder, identity, layout, home)
    if is_first:
        _refuse_to_go_back(occupant)
    obsolete = occupant.obsolete(frozenset(entry.path for entry in entries))
    for entry in entries:
        if entry.path != MANIFEST:
            folder.take(stage, entry.path)
    for path in obsolete:
        folder.remove(path)
    folder.sync()
    folder.take(stage, MANIFEST)
    folder.sync()
