"""What the system refuses is told as a refusal: it says nothing of what is stored."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledger.errors import LedgerDamaged, StorageFailed

# What the system refuses to SQLite, whatever stands in the file: not to be taken for damage.
_REFUSED: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
    }
)
# What is said of a path where there is nothing, or can be nothing.
_ABSENT: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EINVAL}
)
# Bytes that are not there, or that the disk does not give.
_UNREADABLE: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR_READ,
        sqlite3.SQLITE_IOERR_SHORT_READ,
        sqlite3.SQLITE_IOERR_CORRUPTFS,
    }
)


def is_refusal(error: BaseException | None) -> bool:
    """Tell whether the system refused something to SQLite: that says nothing of the file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in _REFUSED and code not in _UNREADABLE


def says_absent(error: OSError | ValueError) -> bool:
    """Tell whether there is nothing at a path that was looked at, or nothing that we may see."""
    return not isinstance(error, OSError) or error.errno in _ABSENT


@contextmanager
def told_as_failure(path: str | Path) -> Iterator[None]:
    """Raise StorageFailed for what the system refuses meanwhile, in its own words.

    LedgerDamaged where SQLite finds the file malformed, which is also what it says of bytes that
    the disk does not give.
    """
    try:
        yield
    except OSError as error:
        place = error.filename if isinstance(error.filename, str) else path
        raise StorageFailed(f"{place}: {error.strerror or error}") from error
    except sqlite3.OperationalError as error:
        raise StorageFailed(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        raise LedgerDamaged(f"{path}: {error}") from error
