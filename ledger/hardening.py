"""What every connection to a ledger has: limits, and no trust in what the file says."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ledger import sqlite_version
from ledger.errors import LedgerDamaged
from ledger.segment import MAX_RECORD

_SLACK: Final = 1024 * 1024
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_RECORD + MAX_RECORD // 64 + _SLACK,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 4,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 10,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_PRAGMAS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
)
_READABLE: Final = frozenset(
    {"sqlite_master", "event", "segment", "blob", "blobsegment", "erasure", "checkpoint"}
)
_CALLABLE: Final = frozenset({"max", "coalesce", "length"})
_READ_PRAGMAS: Final = frozenset({"application_id", "user_version", "journal_mode"})
_COLUMNS: Final[dict[str, type]] = {
    **dict.fromkeys(("seq", "seg", "off", "id", "plain", "hash", "len", "size"), int),
    **dict.fromkeys(("stream", "by_seq"), int),
    "data": bytes,
    "digest": bytes,
    "note": str,
}


def require_sound(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LedgerDamaged, in one line, with the first thing that SQLite finds wrong in a file."""
    ((found,),) = connection.execute("PRAGMA integrity_check(1)")
    if found != "ok":
        raise LedgerDamaged(f"{path}: {' '.join(found.split())}")


def harden(connection: sqlite3.Connection) -> None:
    """Set what every connection to a ledger has: limits, and no trust in what the file says.

    Raises VersionUnsupported where this SQLite is not fit for it.
    """
    sqlite_version.require()
    connection.text_factory = _text
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise LedgerDamaged("a stored text is not UTF-8") from error


def executed(
    connection: sqlite3.Connection, sql: str, args: tuple[Any, ...] = ()
) -> sqlite3.Cursor:
    """Execute a reading statement; a number beyond those of SQLite is taken for its last one."""
    try:
        return connection.execute(sql, args)
    except OverflowError:
        # No row has such a number, but one behind the last may be asked for.
        return connection.execute(sql, tuple(map(_storable, args)))


def _storable(value: Any) -> Any:
    return max(-(2**63), min(value, 2**63 - 1)) if isinstance(value, int) else value


def typed_rows(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query; LedgerDamaged for a cell of another type than its column has.

    SQLite checks the types of a STRICT table when it writes, not when it reads.
    """
    kinds = tuple(_COLUMNS.get(column[0]) for column in cursor.description or ())
    for row in cursor:
        if None not in kinds and tuple(map(type, row)) != kinds:
            raise LedgerDamaged("a stored cell has another type than its column")
        yield row


def authorize(
    action: int, first: str | None, second: str | None, _database: str | None, _by: str | None
) -> int:
    """Allow a connection our own statements that read, and nothing else."""
    match action:
        case sqlite3.SQLITE_SELECT:
            allowed = True
        case sqlite3.SQLITE_READ:
            allowed = first in _READABLE
        case sqlite3.SQLITE_FUNCTION:
            allowed = second in _CALLABLE
        case sqlite3.SQLITE_PRAGMA:
            allowed = first == "integrity_check" or (first in _READ_PRAGMAS and second is None)
        case _:
            allowed = False
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
