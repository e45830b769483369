"""What of an artifacts directory may be thrown away, and throwing it away.

Kept are the names that the requirements keep, and whatever holds a ledger. Whoever cannot be looked
into is kept as well: it could hold one. No link is followed, and nothing outside is touched.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exporters.archives.open_runs import open_runs
from exporters.folder import Folder
from exporters.paths import TEMPORARY
from ledger import lock, schema, sidefile
from ledger.errors import AclError, ExportRefused, UsageError
from ledger.opening import LEDGER_NAME, companions

NAME: Final = "artifacts"
KEPT: Final = frozenset(
    {"env", "envs", "index.yaml", "archives", "jobs", "datasets", "runtime"}
    | {".archive.lock", ".smoke.lock"}
)
JOBS: Final = "jobs"

_STAGES: Final = (".tmp.", TEMPORARY)
_MOVED_AWAY: Final = ".old"
_PROJECT: Final = (".git", "pyproject.toml")
_MAGIC: Final = b"SQLite format 3\0"
_APPLICATION_ID: Final = slice(68, 72)
_HEAD_BYTES: Final = 100


@dataclass(slots=True)
class Cleaning:
    """What is to be removed, by its path below `root`, sorted.

    `unknown` is what stays because nobody could see what it holds, with the reason.
    """

    root: Path
    removed: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)


def checked_root(directory: Path, *, project: Path, home: Path | None) -> Path | None:
    """The directory itself, links resolved; None where there is nothing.

    Raises UsageError for anything that cannot be an artifacts directory, or is more than that.
    """
    try:
        root = directory.resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{directory} leads nowhere") from error
    if root.name != NAME:
        raise UsageError(
            f"{directory} is not called {NAME!r}", hint="only a directory of that name is cleaned"
        )
    if home is not None and home.resolve().is_relative_to(root):
        raise UsageError(f"{directory} holds the home directory")
    if root == project.resolve() or any(os.path.lexists(root / name) for name in _PROJECT):
        raise UsageError(f"{directory} is a project, not what its runs made")
    if not os.path.lexists(root):
        return None
    if not root.is_dir():
        raise UsageError(f"{directory} is not a directory")
    return root


def plan(root: Path) -> Cleaning:
    """Look through the directory; UsageError where a run that goes on writes there."""
    for run in open_runs(root):
        _refuse_live(run.ledger)
    found = Cleaning(root)
    ledgers = _ledgers_in(root)
    for name in _names(root):
        if name not in KEPT and name not in ledgers:
            _consider(found, name)
    if _is_directory(root / JOBS):
        for name in _names(root / JOBS):
            if name.startswith(_STAGES):
                with _is_idle(root / JOBS / name) as is_idle:
                    if is_idle:
                        _consider(found, f"{JOBS}/{name}")
    return found


def remove(root: Path, path: str) -> None:
    """Remove one entry that `plan` found; nothing happens where it is gone.

    Raises OSError, also for a staging directory in which an exporter is at work by now.
    """
    if not path.startswith(f"{JOBS}/"):
        _remove(root, path)
        return
    with _is_idle(root / path) as is_idle:
        if not is_idle:
            raise OSError(errno.EBUSY, "an exporter is at work in it", path)
        _remove(root, path)


def _remove(root: Path, path: str) -> None:
    directory = os.open((root / path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    name = path.rpartition("/")[2]
    try:
        with suppress(FileNotFoundError):
            kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                # By descriptors: whoever puts a link in its place loses the link, at most.
                shutil.rmtree(name, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)
    finally:
        os.close(directory)


def _consider(found: Cleaning, path: str) -> None:
    try:
        if not _holds_ledger(found.root / path):
            found.removed.append(path)
    except OSError as error:
        found.unknown[path] = error.strerror or str(error)


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{directory} cannot be read: {error.strerror}") from error


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


@contextmanager
def _is_idle(stage: Path) -> Iterator[bool]:
    """Whether no exporter has the lock on its staging directory; then none gets it meanwhile.

    What it moved out of the way meanwhile is called for the same directory, and is its too.
    """
    held = stage.with_name(stage.name.removesuffix(_MOVED_AWAY))
    with ExitStack() as opened:
        is_idle = True
        if _is_directory(held):
            with suppress(OSError, ExportRefused):
                is_idle = opened.enter_context(Folder.open(held)).try_lock()
        yield is_idle


# -- ledgers ----------------------------------------------------------------------------------


def _ledgers_in(root: Path) -> set[str]:
    """The names of ledgers that stand in the directory itself, with what belongs to them."""
    names: set[str] = set()
    for path in (root / name for name in _names(root)):
        with suppress(OSError):
            if _is_ledger(path):
                _refuse_live(path)
                beside = (*companions(path), lock.lock_path(path), *sidefile.paths(path))
                names.update(file.name for file in (path, *beside))
    return names


def _holds_ledger(top: Path) -> bool:
    """Whether a ledger stands anywhere below; raises OSError where that cannot be seen."""
    if not _is_directory(top):
        return _is_ledger(top)
    device = top.parent.stat().st_dev
    held = False
    for directory, _, files in os.walk(top, onerror=_give_up):
        if os.lstat(directory).st_dev != device:
            raise OSError(errno.EXDEV, "it is on another file system", directory)
        for name in files:
            if _is_ledger(Path(directory, name)):
                _refuse_live(Path(directory, name))
                held = True
    return held


def _give_up(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _is_ledger(path: Path) -> bool:
    """Whether a file is a ledger, by its name or by what it begins with."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        if path.name == LEDGER_NAME:
            return True
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        head = os.read(descriptor, _HEAD_BYTES)
    finally:
        os.close(descriptor)
    wanted = schema.APPLICATION_ID.to_bytes(4, "big")
    return head.startswith(_MAGIC) and head[_APPLICATION_ID] == wanted


def _refuse_live(ledger: Path) -> None:
    try:
        writer = lock.holder(ledger)
    except (AclError, OSError):
        return
    if writer is not None:
        raise UsageError(
            f"a run writes there: {ledger.parent.name} ({writer})", hint="wait for it to end"
        )
