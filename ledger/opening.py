"""Opening a ledger file for reading: it may come from anywhere, so it is treated as hostile.

Nothing is read before the schema was compared; SQLite may attach nothing, run no function, trigger
or view but what our own statements name, and stops when one statement takes more work than any
statement of ours. In the process that writes a ledger its file is never opened by other means than
SQLite: any close of a descriptor would drop SQLite's own locks on it.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ledger import lock, schema, sidefile
from ledger.closing import discard
from ledger.errors import (
    AclError,
    LedgerDamaged,
    LedgerLocked,
    LedgerRolledBack,
    NotALedger,
    StorageFailed,
    UsageError,
)
from ledger.hardening import authorize, executed, harden, typed_rows
from ledger.refusals import is_refusal, says_absent, told_as_failure

LEDGER_NAME: Final = "ledger.sqlite"
LONGEST_PATH: Final = 500
"""Bytes; SQLite takes 512 with what it appends."""
_BUSY_SECONDS: Final = 5.0
# Our longest statement reads some thousand rows; a million steps of the machine are far beyond.
_STEPS: Final = 1_000_000
_STEPS_ALLOWED: Final = 20
_WAL_VERSION: Final = 2
_MAGIC: Final = b"SQLite format 3\0"
# What SQLite makes beside the file.
_SUFFIXES: Final = ("-wal", "-shm", "-journal")
_COPIED: Final = ("", "-wal", "-journal")

# What no connection says that only reads.
_OF_WRITING: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
    }
)
# Inodes that this process has open through SQLite, by any connection of ours.
_in_use: Counter[tuple[int, int]] = Counter()
_in_use_lock: Final = Lock()
# One opening of an inode at a time: a file that is being copied is opened by nobody else meanwhile,
# and whoever opens it after that finds it as free as it was.
_openings: Final[defaultdict[tuple[int, int], Lock]] = defaultdict(Lock)


def ledger_file(path: str | Path) -> Path:
    """Return the ledger file that `path` names: a run directory's, or `path` itself.

    A link that is named itself is followed, so that lock and checkpoint are those of the file that
    it leads to. In a run directory nothing is followed. UsageError for a path that is too long.
    """
    named = Path(path)
    with told_as_failure(named):
        if named.is_dir():
            file = (named / LEDGER_NAME).absolute()
        else:
            file = named.resolve() if named.is_symlink() and named.is_file() else named.absolute()
    length = len(os.fsencode(file))
    if length > LONGEST_PATH:
        raise UsageError(
            f"{file} has a path of {length} bytes; SQLite opens up to {LONGEST_PATH}",
            hint="use a directory with a shorter path",
        )
    return file


def inode(path: Path) -> tuple[int, int]:
    """Identify the regular file at `path`; raise NotALedger if there is none.

    Raises LedgerRolledBack if there is nothing, but a checkpoint of it, and LedgerDamaged if what
    SQLite would read beside it is no regular file.
    """
    try:
        found = path.lstat()
    except (OSError, ValueError) as error:
        if not says_absent(error):
            raise StorageFailed(f"{path}: {getattr(error, 'strerror', error)}") from error
        for side in _sides(path):
            raise LedgerRolledBack(
                f"there is no ledger at {path}, but {side.name} tells of one",
                hint="restore the ledger",
            ) from error
        raise NotALedger(f"there is no ledger at {path}") from error
    if not stat.S_ISREG(found.st_mode):
        raise NotALedger(f"{path} is not a file")
    for beside in companions(path):
        with told_as_failure(beside):
            if os.path.lexists(beside) and not stat.S_ISREG(beside.lstat().st_mode):
                raise LedgerDamaged(f"{beside} is not a file")
    return found.st_dev, found.st_ino


def companions(path: Path) -> list[Path]:
    """Where SQLite puts what belongs to the file at `path`."""
    return [_beside(path, suffix) for suffix in _SUFFIXES]


def _sides(path: Path) -> list[Path]:
    """The checkpoint files that stand beside a ledger."""
    try:
        return [side for side in sidefile.paths(path) if os.path.lexists(side)]
    except ValueError:
        return []


def enter(file: tuple[int, int]) -> None:
    """Count one more SQLite connection of this process to an inode."""
    with _opening(file):
        _count(file)


def _opening(file: tuple[int, int]) -> Lock:
    with _in_use_lock:
        return _openings[file]


def _count(file: tuple[int, int]) -> None:
    with _in_use_lock:
        _in_use[file] += 1


def leave(file: tuple[int, int]) -> None:
    """Count one connection less."""
    with _in_use_lock:
        _in_use[file] -= 1
        if not _in_use[file]:
            del _in_use[file]


class Source:
    """A ledger file opened for reading only; `indexed` says whether it has its blob index.

    With `pristine` nothing beside the source changes by a byte: a file that SQLite could only read
    by making -wal and -shm files is copied to a temporary folder first, and so is one that cannot
    be read where it is. `locked` says that the caller holds the writer lock and does not write
    yet. Raises NotALedger, VersionUnsupported, and LedgerDamaged, also for what is no ledger any
    more, but was one.
    """

    def __init__(self, path: Path, *, pristine: bool = False, locked: bool = False) -> None:
        self.path = path
        self._locked = locked
        self._folder: Path | None = None
        self._inode = inode(path)
        self._entered = True
        self._budget = _STEPS_ALLOWED
        with _opening(self._inode):
            _count(self._inode)
            self._begin(pristine)

    def _begin(self, pristine: bool) -> None:
        try:
            self._connection = self._open(pristine)
        except NotALedger as error:
            fault = self._fault(error)
            self._forget()
            if fault is error:
                raise
            raise fault from error
        except BaseException:
            self._forget()
            raise

    def _open(self, pristine: bool) -> sqlite3.Connection:
        # SQLite would wait for seconds, and then not open it.
        no_locks = not lock.has_record_locks(self.path)
        if (no_locks or pristine) and self._can_copy() and (no_locks or _would_touch(self.path)):
            return self._connect(self._copy())
        try:
            return self._connect(self.path)
        except sqlite3.OperationalError as error:
            if not self._can_copy():
                raise NotALedger(f"{self.path} cannot be opened ({error})") from error
        try:
            return self._connect(self._copy())
        except (sqlite3.OperationalError, OSError) as error:
            raise NotALedger(f"{self.path} cannot be opened ({error})") from error

    def _fault(self, error: NotALedger) -> AclError:
        """What to say of a file that is no ledger: whether it was one."""
        if isinstance(error.__cause__, OSError) or is_refusal(error.__cause__):
            return StorageFailed(error.message)
        for side in _sides(self.path):
            why = f" ({error.__cause__})" if error.__cause__ else ""
            return LedgerDamaged(
                f"{self.path} is damaged{why}: {side.name} beside it tells of a ledger"
            )
        if isinstance(error.__cause__, sqlite3.DatabaseError) and self._can_copy():
            with self.path.open("rb") as file:
                if file.read(len(_MAGIC)) == _MAGIC:
                    return LedgerDamaged(f"{self.path} is damaged ({error.__cause__})")
        return error

    def _can_copy(self) -> bool:
        with _in_use_lock:
            only_we = _in_use[self._inode] == int(self._entered)
        return only_we and (self._locked or lock.holder(self.path) is None)

    def _copy(self) -> Path:
        """Copy the file and what is not yet in it to a temporary folder, as nobody writes."""
        self._folder = Path(tempfile.mkdtemp(prefix="acl-"))
        copy = self._folder / LEDGER_NAME
        before = [_state(_beside(self.path, suffix)) for suffix in _COPIED]
        for suffix, state in zip(_COPIED, before, strict=True):
            if state is not None:
                shutil.copyfile(_beside(self.path, suffix), _beside(copy, suffix))
        if [_state(_beside(self.path, suffix)) for suffix in _COPIED] != before:
            raise LedgerLocked(str(self.path), lock.holder(self.path) or "another process")
        if before[-1] is not None:
            _roll_back(copy)
        # The source itself is not open from here on: others in this process may copy it, too.
        leave(self._inode)
        self._entered = False
        return copy

    def _connect(self, file: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{file.as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            timeout=_BUSY_SECONDS,
            check_same_thread=False,
        )
        try:
            harden(connection)
            connection.execute("PRAGMA query_only = ON")
            connection.set_authorizer(authorize)
            connection.set_progress_handler(self._progress, _STEPS)
            self._budget = _STEPS_ALLOWED
            self.indexed = schema.check(connection, str(self.path))
        except BaseException as error:
            connection.close()
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                raise NotALedger(f"{self.path} is not a ledger ({error})") from error
            raise
        return connection

    def _progress(self) -> bool:
        self._budget -= 1
        return self._budget < 0

    def query(
        self, sql: str, args: tuple[Any, ...] = (), *, allowed: int = _STEPS_ALLOWED
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of one of our statements; consume it before the next.

        Raises LedgerDamaged where SQLite finds the file malformed, or `allowed` million steps of
        its machine were not enough, LedgerLocked where another process keeps the file busy.
        """
        self._budget = allowed
        try:
            yield from typed_rows(executed(self._connection, sql, args))
        except UnicodeDecodeError as error:
            # SQLite quotes a malformed schema in its message.
            raise LedgerDamaged(f"{self.path} is malformed") from error
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def copy_into(self, target: sqlite3.Connection) -> None:
        """Copy every page as it is committed now into an empty database.

        Raises sqlite3.Error where that one cannot be written.
        """
        try:
            self._connection.backup(target)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) in _OF_WRITING:
                raise
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> AclError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return LedgerLocked(str(self.path), lock.holder(self.path) or "another process")
        if code == sqlite3.SQLITE_INTERRUPT:
            return LedgerDamaged(f"{self.path} takes more work to read than any ledger")
        if is_refusal(error):
            return StorageFailed(f"{self.path}: {error}")
        return LedgerDamaged(f"{self.path}: {error}")

    def close(self) -> None:
        """Close the file and remove the temporary copy; may be called again."""
        self._connection.close()
        self._forget()

    def _forget(self) -> None:
        if self._folder is not None:
            discard(self._folder)
            self._folder = None
        if self._entered:
            leave(self._inode)
            self._entered = False


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _roll_back(copy: Path) -> None:
    """Undo in our own copy what a writer did not finish; a reading connection cannot."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        harden(connection)
        connection.execute("PRAGMA user_version").fetchall()


def _state(path: Path) -> tuple[int, int] | None:
    if not path.exists():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _would_touch(path: Path) -> bool:
    """Tell whether reading through SQLite makes files beside `path`: whether it is in WAL mode."""
    with path.open("rb") as file:
        head = file.read(20)
    return len(head) < 20 or head[18] == _WAL_VERSION or _beside(path, "-wal").exists()
