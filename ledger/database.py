"""The one read-write connection to a ledger file: making the file, storing rows, folding it.

WAL with synchronous=FULL: a commit that returned is on disk. All checkpoints of the WAL go through
this connection, as SQLite before 3.51.3 can damage a file when two connections do it at once.
"""

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledger import hardening, opening, schema, sidefile, sqlite_version
from ledger.errors import LedgerDamaged, LedgerExists, UsageError
from ledger.segment import Part, part_hash
from ledger.sidefile import sync_directory
from ledger.wal import wal_path

# Whoever may read goes on reading, nobody writes: 0444, unless the ledger was for fewer.
WRITE_BITS: Final = 0o222
_BUSY_SECONDS: Final = 1.0
# A reader that stays for long makes the -wal grow; when it is gone the file shrinks to this again.
_WAL_BYTES: Final = 32 * 1024 * 1024
_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    f"PRAGMA journal_size_limit = {_WAL_BYTES}",
)
# A file system without shared memory or locks.
_NO_WAL: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR_SHMMAP,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_PROTOCOL,
    }
)
_INSERTS: Final = (
    ("blobsegments", "INSERT INTO blobsegment VALUES (?, ?, ?, ?)"),
    ("blobs", "INSERT INTO blob VALUES (?, ?, ?, ?, ?)"),
    ("segments", "INSERT INTO segment VALUES (?, ?, ?, ?)"),
    ("events", "INSERT INTO event VALUES (?, ?, ?)"),
)


@dataclass(slots=True)
class Rows:
    """What one transaction adds; `first_type` names its first event's type for messages."""

    events: list[tuple[int, int, int]] = field(default_factory=list)
    segments: list[Part] = field(default_factory=list)
    blobs: list[tuple[int, bytes, int, int, int]] = field(default_factory=list)
    blobsegments: list[Part] = field(default_factory=list)
    first_type: str = ""


def create(path: Path) -> None:
    """Make an empty ledger file that is whole or absent after a crash; hold the lock meanwhile.

    Raises LedgerExists, also if something beside `path` was left by a ledger that is gone,
    VersionUnsupported for an unfit SQLite, or UsageError where no file can be made.
    """
    sqlite_version.require()
    if os.path.lexists(path):
        raise LedgerExists(f"{path} is there already")
    for left_over in (*sidefile.paths(path), *opening.companions(path)):
        if os.path.lexists(left_over):
            raise LedgerExists(f"{left_over} is of a ledger that is gone")
    new = path.with_name(path.name + ".new")
    try:
        for left_over in (new, new.with_name(new.name + "-journal")):
            left_over.unlink(missing_ok=True)
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            schema.create(connection)
        finally:
            connection.close()
        # Nobody else is here: every writer takes the lock first.
        new.rename(path)
        new = path
        sync_directory(path.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise _refusal(path, error) from error
        raise UsageError(f"no ledger can be made at {path} ({error})") from error


def in_doubt(error: sqlite3.Error) -> bool:
    """Tell whether only a new opening can say what is stored: after an I/O error, if not of room.

    After a failed sync the kernel may have forgotten what it could not write.
    """
    return _code(error) & 0xFF == sqlite3.SQLITE_IOERR and not out_of_room(error)


def out_of_room(error: sqlite3.Error) -> bool:
    """Tell whether a write found no room: disk full, or a limit or quota on files.

    SQLite writes the frame that makes a commit last, so none of it is stored then.
    """
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)


def explain(error: sqlite3.Error) -> str:
    """Say what went wrong, and no more than SQLite knows."""
    match _code(error):
        case sqlite3.SQLITE_FULL:
            return f"the disk is full ({error})"
        case sqlite3.SQLITE_IOERR_WRITE | sqlite3.SQLITE_IOERR_SHMSIZE:
            # A quota, a limit on files, and a disk that refuses are one code.
            return f"the disk is full, or fails ({error})"
    return str(error)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)


def _refusal(path: Path, error: sqlite3.Error) -> UsageError:
    """What to say where a ledger cannot be opened for writing, and the way out."""
    code = _code(error)
    if code in _NO_WAL:
        return _no_wal(path, error.sqlite_errorname)
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        # Nobody else writes: the lock is ours.
        return UsageError(
            f"{path} cannot be locked ({error})",
            hint="close other programs that use it; if there is none, write to a local disk",
        )
    return UsageError(f"{path} cannot be written ({explain(error)})")


def _no_wal(path: Path, why: str) -> UsageError:
    return UsageError(
        f"the file system of {path} cannot hold a WAL ({why})", hint="write to a local disk"
    )


def _named(path: str | Path) -> tuple[int, int] | None:
    """The inode that a name leads to, (0, 0) for none; None where the system does not say."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return 0, 0
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _clear_left(paths: Iterable[Path]) -> None:
    """Remove what SQLite has no more use for, and could not remove itself.

    What it emptied, and the index of a -wal, which says nothing without one.
    """
    for path in paths:
        with suppress(OSError):
            if path.name.endswith("-shm") or not path.lstat().st_size:
                path.unlink()


class Database:
    """Open for writing from construction to `close`; the caller holds the writer lock.

    Raises NotALedger, VersionUnsupported, LedgerDamaged, or UsageError where the file cannot be
    written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inode = opening.inode(path)
        self._wal = os.fspath(wal_path(path))
        self._wal_inode: tuple[int, int] | None = None
        opening.enter(self._inode)
        self._entered = True
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=_BUSY_SECONDS,
            check_same_thread=False,
        )
        try:
            hardening.harden(connection)
            self.indexed = schema.check(connection, str(self.path))
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        except sqlite3.OperationalError as error:
            connection.close()
            raise _refusal(self.path, error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def begin_writing(self) -> None:
        """Switch to WAL; UsageError on a file system that cannot have it, or has no room for it."""
        try:
            ((mode,),) = self.query("PRAGMA journal_mode = WAL")
            # The index of the -wal is made now, before there is anything that could be lost.
            self._live.execute("BEGIN IMMEDIATE")
            self._live.execute("ROLLBACK")
            self._wal_inode = _named(self._wal)
        except sqlite3.OperationalError as error:
            raise _refusal(self.path, error) from error
        if mode != "wal":
            raise _no_wal(self.path, f"journal mode {mode}")

    def in_place(self) -> bool:
        """Tell whether file and -wal still have their names, or were moved or deleted.

        What is written to a file without a name is lost when it is closed.
        """
        wal = self._wal_inode
        return _named(self.path) in (self._inode, None) and (
            wal is None or _named(self._wal) in (wal, None)
        )

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or `fold` was done."""
        return self._connection is None

    def query(self, sql: str, args: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement; LedgerDamaged if the file is malformed."""
        try:
            yield from hardening.typed_rows(hardening.executed(self._live, sql, args))
        except sqlite3.DatabaseError as error:
            if _code(error) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            raise LedgerDamaged(f"{self.path}: {error}") from error

    @property
    def _live(self) -> sqlite3.Connection:
        if self._connection is None:
            raise UsageError(f"{self.path} is closed")
        return self._connection

    def store(self, rows: Rows) -> None:
        """Add `rows` in one durable transaction, or raise sqlite3.Error with the state in doubt."""
        connection = self._live
        connection.execute("BEGIN IMMEDIATE")
        for name, insert in _INSERTS:
            connection.executemany(insert, getattr(rows, name))
        connection.execute("COMMIT")

    def store_checkpoint(self, row_id: int, size: int, note: str) -> None:
        """Add one checkpoint in a durable transaction, or raise sqlite3.Error."""
        row = (row_id, size, part_hash(note.encode()), note)
        self._live.execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", row)

    def roll_back(self) -> None:
        """Leave a failed transaction, if SQLite has not done so itself."""
        if self._live.in_transaction:
            self._live.execute("ROLLBACK")

    def fold(self) -> bool:
        """Make the sealed ledger one read-only file with its blob index, and close it.

        Each step may have been done before. Returns False, with nothing changed that a reader
        sees, while another connection has the file open or the disk is full. Raises LedgerDamaged
        if SQLite finds the file malformed.
        """
        try:
            if not self._folded() and not self._fold():
                return False
        except sqlite3.OperationalError:
            return False
        except sqlite3.DatabaseError as error:
            raise LedgerDamaged(f"{self.path}: {error}") from error
        self.close()
        _clear_left(opening.companions(self.path))
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & WRITE_BITS:
            self.path.chmod(mode & ~WRITE_BITS)
        return True

    def _fold(self) -> bool:
        if not self.indexed:
            self._live.execute(schema.INDEX)
            self.indexed = True
        if not self._single():
            return False
        hardening.require_sound(self._live, self.path)
        return True

    def single(self) -> bool:
        """Put all into the one file, without a -wal; False while others have it open."""
        try:
            return self._single()
        except sqlite3.OperationalError as error:
            if _code(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return False
            raise

    def _single(self) -> bool:
        ((busy, _, _),) = self._live.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            return False
        ((mode,),) = self._live.execute("PRAGMA journal_mode = DELETE")
        return bool(mode == "delete")

    def _folded(self) -> bool:
        ((mode,),) = self._live.execute("PRAGMA journal_mode")
        return self.indexed and mode == "delete"

    def close(self) -> None:
        """Close the connection; may be called again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._entered:
            opening.leave(self._inode)
            self._entered = False
