"""The tables as an SQLite database in memory, which can be asked and not changed.

What is not Unicode, not a 64-bit integer and the like is as in the files; times are ISO-8601 text,
truth values 0 and 1, lists JSON text.
"""

import json
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Final

import sqlite_utils

from exporters.tables import TABLES, Table
from exporters.tables.cells import Cell, spelled_time
from exporters.tables.columns import Kind
from exporters.tables.files import Source
from ledger.closing import Closing
from ledger.errors import UsageError

_TYPES: Final[dict[Kind, type]] = {
    "int64": int,
    "float64": float,
    "bool": int,
    "string": str,
    "json": str,
    "timestamp": str,
    "list<string>": str,
}
_ALLOWED: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_REFUSED_FUNCTIONS: Final = frozenset({"load_extension"})
_MOST_BYTES: Final = 256 * 1024 * 1024
# Steps of SQLite's machine between two looks at whether somebody asks to stop: some milliseconds.
_STEPS: Final = 100_000
_HINT: Final = "`acl query RUN --tables` lists tables and columns"


class Database(Closing):
    """The tables that a query names, filled; a context manager, for that query."""

    def __init__(self, sources: Sequence[Source], query: str) -> None:
        database = sqlite_utils.Database(memory=True)
        self._connection: sqlite3.Connection = database.conn
        self._open = ExitStack()
        self._open.callback(database.close)
        try:
            self._fill(database, sources, query.lower())
            self._lock()
        except BaseException:
            self._open.close()
            raise

    def _fill(self, database: sqlite_utils.Database, sources: Sequence[Source], query: str) -> None:
        for table in TABLES:
            made = database.table(table.name)
            made.create({column.name: _TYPES[column.kind] for column in table.columns})
            # Whoever reads a table names it; what nobody reads need not be there.
            if table.name in query:
                made.insert_all(_records(table, sources))

    def _lock(self) -> None:
        connection = self._connection
        connection.commit()
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
        connection.text_factory = _text
        # SQLite hears no signal; Python does, whenever it runs a line.
        connection.set_progress_handler(_go_on, _STEPS)
        connection.set_authorizer(_authorize)

    def ask(self, query: str) -> tuple[list[str], Iterator[tuple[object, ...]]]:
        """Run one SELECT; return the names of its columns, and its rows, read one at a time.

        Raises UsageError for anything but a SELECT that SQLite understands.
        """
        with _told():
            cursor = self._connection.execute(query)
        if cursor.description is None:
            raise UsageError("the query is empty", hint="ask with SELECT")
        rows = _rows(cursor)
        # Whoever stops reading in the middle leaves them open.
        self._open.callback(rows.close)
        return _unlike(name for name, *_ in cursor.description), rows

    def close(self) -> None:
        """Drop the tables; may be called again."""
        self._open.close()


def _records(table: Table, sources: Sequence[Source]) -> Iterator[dict[str, object]]:
    names = [column.name for column in table.columns]
    for source in sources:
        for row in source.rows(table):
            yield dict(zip(names, map(_stored, row), strict=True))


def _stored(cell: Cell) -> object:
    match cell:
        case datetime():
            return spelled_time(cell)
        case list():
            return json.dumps(cell, ensure_ascii=False, separators=(",", ":"))
        case _:
            return cell


def _go_on() -> int:
    return 0


def _authorize(action: int, _: str | None, name: str | None, *__: str | None) -> int:
    refused = action == sqlite3.SQLITE_FUNCTION and name in _REFUSED_FUNCTIONS
    return sqlite3.SQLITE_OK if action in _ALLOWED and not refused else sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    # Expressions can make text of any bytes.
    return data.decode("utf-8", "backslashreplace")


def _rows(cursor: sqlite3.Cursor) -> Generator[tuple[object, ...], None, None]:
    with _told():
        yield from cursor


@contextmanager
def _told() -> Iterator[None]:
    """What SQLite refuses is the query's fault; what interrupts it is the user."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from None
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
            raise UsageError(f"the query is refused: {error}", hint="only SELECT is run") from None
        raise UsageError(f"the query cannot be run: {error}", hint=_HINT) from None


def _unlike(names: Iterable[str]) -> list[str]:
    """Column names, those that come again with a number."""
    found: list[str] = []
    for name in names:
        free, number = name, 2
        while free in found:
            free, number = f"{name}_{number}", number + 1
        found.append(free)
    return found
