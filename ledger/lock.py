"""The writer lock of a ledger: `flock` on a file beside it, with the holder's name inside.

The lock dies with its process, so a dead writer's lock is free. The file itself is never deleted:
deleting it would let two writers lock two files of one name. Nothing ever locks the database file
itself: POSIX drops a process's record locks on a file when any descriptor of it is closed, and
SQLite relies on them.
"""

import fcntl
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ledger.errors import LedgerLocked

_MODE: Final = 0o644
_PAUSE: Final = 0.01
# Long enough that a reader's momentary look at the lock never makes a writer give up.
WAIT: Final = 0.2
_STARTED: Final = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lock_path(ledger: Path) -> Path:
    """Where the lock of the ledger file `ledger` is."""
    return ledger.with_suffix(".lock")


class WriterLock:
    """Held from construction to `release`; at most one holder among all processes and threads.

    Waits up to `wait` seconds, then raises LedgerLocked naming the holder.
    """

    def __init__(self, ledger: Path, wait: float = WAIT) -> None:
        path = lock_path(ledger)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            self._acquire(ledger, wait)
            me = f"process {os.getpid()}, started {_STARTED}\n".encode()
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, me, 0)
        except BaseException:
            os.close(self._file)
            raise

    def _acquire(self, ledger: Path, wait: float) -> None:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LedgerLocked(str(ledger), _named(self._file)) from None
                time.sleep(_PAUSE)
            else:
                return

    def release(self) -> None:
        """Let go; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def holder(ledger: Path) -> str | None:
    """Who writes to the ledger file `ledger` now, or None.

    Looks through a shared lock held for an instant, for which a writer waits.
    """
    try:
        file = os.open(lock_path(ledger), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named(file)
    else:
        return None
    finally:
        os.close(file)


def _named(file: int) -> str:
    return os.pread(file, 200, 0).decode("utf-8", "replace").strip() or "another process"
