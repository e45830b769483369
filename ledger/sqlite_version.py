"""Which SQLite can hold a ledger; asked whenever a connection to one is made.

Facts: https://www.sqlite.org/changes.html, https://www.sqlite.org/howtocorrupt.html (section 8).
Faults that our way of use avoids, the WAL-reset bug above all, stand in docs/survival.md with the
reason; they are not refused.
"""

import sqlite3
from typing import Final

from ledger.errors import VersionUnsupported

Version = tuple[int, int, int]

# STRICT tables came with 3.37.0; 3.35.0 to 3.37.1 can damage a file when a savepoint is undone.
OLDEST: Final[Version] = (3, 37, 2)
# Two threads that let go of one file take two mutexes in opposite orders.
_HANGS: Final[frozenset[Version]] = frozenset({(3, 51, 0), (3, 51, 1)})


def unfit(version: Version, threadsafety: int) -> str | None:
    """Say why an SQLite cannot be used, or return None.

    `threadsafety` is as in the module `sqlite3`: 0 if the library was built without mutexes.
    """
    name = ".".join(map(str, version))
    if version < OLDEST:
        return f"SQLite {name} is too old, and can damage a file when a statement is undone"
    if version in _HANGS:
        return f"SQLite {name} can hang for ever when two threads close a ledger"
    if not threadsafety:
        return f"SQLite {name} was built without support for threads"
    return None


def require() -> None:
    """Raise VersionUnsupported, naming the way out, if the SQLite of this Python cannot be used."""
    major, minor, patch = sqlite3.sqlite_version_info
    fault = unfit((major, minor, patch), sqlite3.threadsafety)
    if fault is not None:
        oldest = ".".join(map(str, OLDEST))
        raise VersionUnsupported(
            fault,
            hint=f"use a Python with SQLite {oldest} or later, best 3.51.3 or later",
        )
