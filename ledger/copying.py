"""One self-contained file of a ledger, whether it is being written or not."""

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

from ledger.database import WRITE_BITS
from ledger.errors import LedgerDamaged, LedgerExists, NotStored
from ledger.opening import companions, ledger_file
from ledger.sidefile import sync_directory
from ledger.view import LedgerView


def copy_ledger(source: str | Path, destination: str | Path) -> Path:
    """Copy a ledger, as it is committed now, into one new file; return its path.

    `destination` is the file, or a directory that exists, and is never replaced. The file is whole
    when it has its name. Raises what `LedgerView.open` raises, LedgerExists, and NotStored where
    the copy cannot be written.
    """
    target = ledger_file(destination)
    with LedgerView.open(source) as view:
        try:
            _reserve(target)
        except OSError as error:
            raise NotStored(f"{target} cannot be made ({error.strerror})") from error
        new = target.with_name(target.name + ".new")
        is_whole = False
        try:
            _write(view, new)
            if view.sealed:
                new.chmod(stat.S_IMODE(new.stat().st_mode) & ~WRITE_BITS)
            new.rename(target)
            sync_directory(target.parent)
            is_whole = True
        except (OSError, sqlite3.Error) as error:
            raise NotStored(f"{target} was not written ({error})") from error
        finally:
            for left in (new, *companions(new)):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            if not is_whole:
                # What is not known to be on disk is no copy; the name is ours.
                with suppress(OSError):
                    target.unlink(missing_ok=True)
    return target


def _reserve(target: Path) -> None:
    """Take the name, so that no two copies and no ledger get it."""
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError as error:
        raise LedgerExists(f"{target} is there already") from error


def _write(view: LedgerView, new: Path) -> None:
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new, isolation_level=None)) as copy:
        copy.execute("PRAGMA synchronous = FULL")
        view.copy_into(copy)
        ((mode,),) = copy.execute("PRAGMA journal_mode = DELETE").fetchall()
        if mode != "delete":
            raise LedgerDamaged(f"{view.path} cannot be copied into one file")
