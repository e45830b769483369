"""Where an import is written until it is whole, where it then goes, and whether it is there."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger import LedgerView
from ledger.closing import discard
from ledger.errors import AclError, LedgerExists, UsageError
from ledger.events import RunImported
from ledger.opening import LEDGER_NAME
from runtime.importers.plan import ImportPlan
from runtime.paths import directory_name, reserve, run_directory, run_root

UNKNOWN: Final = "unknown"
STAGE_PREFIX: Final = ".import-"
_IMPORTED_SEQ: Final = 1


@dataclass(frozen=True, slots=True)
class Known:
    """A run that is an import already: its directory, and what it says of its source."""

    path: Path
    imported: RunImported


def find_import(results_dir: Path, identity: str) -> Known | None:
    """The run under `results_dir` that was imported from these very files, wherever it stands.

    Reads one event of each ledger. A ledger that cannot be read is no reason to stop.
    """
    for path in _run_directories(results_dir):
        try:
            with LedgerView.open(path) as view:
                event = view.event(_IMPORTED_SEQ).event if view.size > _IMPORTED_SEQ else None
        except (AclError, OSError):
            continue
        if isinstance(event, RunImported) and event.identity == identity:
            return Known(path, event)
    return None


def _run_directories(results_dir: Path) -> Iterator[Path]:
    for place, directories, files in os.walk(results_dir):
        if LEDGER_NAME in files:
            directories.clear()
            yield Path(place)
        else:
            directories[:] = sorted(name for name in directories if not name.startswith("."))


def destination(results_dir: Path, plan: ImportPlan, identity: str) -> Path:
    """A directory for the run that is free now, named by the source's own ids.

    Where another run has the source's run id, a digest of the identity is added.
    """
    root = run_root(results_dir, plan.run_name, _name(plan.benchmark), _name(plan.model))
    run_id = directory_name(_name(plan.run_id), "run id")
    names = [run_id, *(f"{run_id}--{identity[:length]}" for length in (8, 16, 64))]
    for name in names:
        path = run_directory(results_dir, root, name)
        if not path.exists() or _is_empty(path):
            return path
    raise LedgerExists(f"{names[-1]} exists in {root}")


def _name(part: str) -> str:
    try:
        directory_name(part, "id")
    except UsageError:
        return UNKNOWN
    return part


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


@contextmanager
def stage(results_dir: Path, identity: str) -> Iterator[Path]:
    """A directory to write the import in; it is gone afterwards, moved or removed.

    One process at a time has the stage of one source; what a dead one left is removed. Raises
    UsageError while another process imports the same files.
    """
    path = results_dir / f"{STAGE_PREFIX}{identity[:16]}"
    path.mkdir(parents=True, exist_ok=True)
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _busy() from None  # whoever had it has just ended
    try:
        if not _locked(held) or not _is_at(held, path):
            raise _busy()
        for left in path.iterdir():
            left.unlink()
        try:
            yield path
        finally:
            # Once it was moved, what stands there is the stage of another process.
            if _is_at(held, path):
                discard(path)
    finally:
        os.close(held)


def _locked(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(held: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held), path.stat())
    except FileNotFoundError:
        return False


def _busy() -> UsageError:
    return UsageError("another process is importing the same files", hint="wait for it to end")


def publish(staged: Path, results_dir: Path, path: Path) -> None:
    """Give the whole import its place in one step; LedgerExists if that was taken meanwhile."""
    try:
        reserve(results_dir, path.parent, path.name, 0)
    except LedgerExists:
        # An empty directory may be what a crash left between the two steps.
        if not _is_empty(path):
            raise
    try:
        staged.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise LedgerExists(f"{path} exists", hint="import it again") from None
        raise
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
