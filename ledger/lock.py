"""The writer lock of a ledger: `flock` on a file beside it, with the holder's name inside.

The lock dies with its process, so a dead writer's lock is free. The file itself is never deleted:
deleting it would let two writers lock two files of one name. Nothing ever locks the database file
itself: POSIX drops a process's record locks on a file when any descriptor of it is closed, and
SQLite relies on them.
"""

import errno
import fcntl
import os
import random
import stat
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ledger.errors import LedgerDamaged, LedgerLocked, UsageError

_MODE: Final = 0o644
# What opening gives for a link, a socket or a device without a driver, a directory.
NO_FILE: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR})
# A file system that has no locks, or lost them.
NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})
# Hundreds that ask each hundredth of a second take a third of two processors from whoever is at
# work, the holder of the lock among them. Who has waited longest asks most often.
_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.1
_PART: Final = 300
# Long enough that a reader's momentary look at the lock never makes a writer give up.
WAIT: Final = 0.2
_STARTED: Final = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lock_path(ledger: Path) -> Path:
    """Where the lock of the ledger file `ledger` is."""
    return ledger.with_suffix(".lock")


class WriterLock:
    """Held from construction to `release`; at most one holder among all processes and threads.

    Waits up to `wait` seconds, then raises LedgerLocked naming the holder; LedgerDamaged if what
    has the lock's name is a link, a pipe or the like, UsageError where SQLite could lock nothing.
    """

    def __init__(self, ledger: Path, wait: float = WAIT) -> None:
        self._file = _open(lock_path(ledger), os.O_RDWR | os.O_CREAT)
        try:
            self._acquire(ledger, wait)
            refused = _refusal_of_record_locks(self._file)
            if refused is not None:
                raise UsageError(
                    f"{ledger} cannot be locked ({refused.strerror})", hint="write to a local disk"
                ) from refused
            me = f"process {os.getpid()}, started {_STARTED}\n".encode()
            os.pwrite(self._file, me, 0)
            # Cutting a file can wait for the journal of the file system, while others wait for us.
            if os.fstat(self._file).st_size > len(me):
                os.ftruncate(self._file, len(me))
        except BaseException:
            os.close(self._file)
            raise

    def _acquire(self, ledger: Path, wait: float) -> None:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LedgerLocked(str(ledger), _named(self._file)) from None
                time.sleep(pause(left))
            else:
                return

    def release(self) -> None:
        """Let go; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def pause(left: float) -> float:
    """Return how long to wait before asking again, with `left` seconds to go; in seconds.

    A random time around a part of what is left, so that those who came together do not ask
    together.
    """
    usual = min(max(left / _PART, _PAUSE), _LONGEST_PAUSE)
    return usual * random.uniform(0.5, 1.5)  # noqa: S311 - nothing secret hangs on it


def holder(ledger: Path) -> str | None:
    """Who writes to the ledger file `ledger` now, or None.

    Looks through a shared lock held for an instant, for which a writer waits. Raises LedgerDamaged
    if what has the lock's name is no regular file.
    """
    try:
        file = _open(lock_path(ledger), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named(file)
    except OSError as error:
        # Where nobody gets a lock nobody writes.
        if error.errno not in NO_LOCKS:
            raise
        return None
    else:
        return None
    finally:
        os.close(file)


def has_record_locks(ledger: Path) -> bool:
    """Tell whether SQLite could lock the ledger file `ledger`, by its lock file if it has one."""
    try:
        file = _open(lock_path(ledger), os.O_RDONLY)
    except (OSError, LedgerDamaged):
        return True
    try:
        return _refusal_of_record_locks(file) is None
    finally:
        os.close(file)


def _refusal_of_record_locks(file: int) -> OSError | None:
    """What says that there are no locks of the kind that SQLite takes; None if there are.

    SQLite cannot tell that from a lock that somebody else has, and would wait for seconds at each
    statement. The lock file is asked, as it is on the same file system.
    """
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
    except OSError as error:
        return error if error.errno in NO_LOCKS else None
    return None


def _open(path: Path, mode: int) -> int:
    """Open a lock file; a link in its place could name any file of ours, a pipe would hang."""
    try:
        file = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, _MODE)
    except OSError as error:
        if error.errno in NO_FILE:
            raise LedgerDamaged(f"{path} is not a file") from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise LedgerDamaged(f"{path} is not a file")
    return file


def _named(file: int) -> str:
    return os.pread(file, 200, 0).decode("utf-8", "replace").strip() or "another process"
