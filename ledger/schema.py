"""The SQL of a ledger file, word for word; it is the one truth, and readers compare it exactly.

Two streams of segments hold all content: `segment` the events (header || body), `blobsegment` the
pieces of large values. A segment is one zstd frame, stored in the parts in which commits flushed
it; its rows have the ids `seg << 20 | part`. Nothing is ever updated: the triggers refuse it, and
they refuse an insert that is not the next row, so that INSERT OR REPLACE is refused too. They stop
honest mistakes; the proof is the tree.
"""

import functools
import sqlite3
from contextlib import closing
from typing import Final

from ledger.errors import LedgerDamaged, NotALedger, VersionUnsupported

APPLICATION_ID: Final = 0x41434C31  # "ACL1"
FORMAT: Final = 1
# A commit writes a page or two of each table it adds to: with small pages it writes few bytes.
PAGE_SIZE: Final = 1024
PART_BITS: Final = 20
# What `erasure.stream` says: bytes of `segment`, or of `blobsegment`.
EVENT_STREAM: Final = 0
BLOB_STREAM: Final = 1

# One statement a paragraph; stored with single spaces, as `STATEMENTS` has them.
_TEXT: Final = """
CREATE TABLE event(seq INTEGER PRIMARY KEY, seg INTEGER NOT NULL, off INTEGER NOT NULL) STRICT

CREATE TABLE segment(id INTEGER PRIMARY KEY, plain INTEGER NOT NULL, hash INTEGER NOT NULL,
data BLOB NOT NULL) STRICT

CREATE TABLE blob(id INTEGER PRIMARY KEY, digest BLOB NOT NULL, seg INTEGER NOT NULL,
off INTEGER NOT NULL, len INTEGER NOT NULL) STRICT

CREATE TABLE blobsegment(id INTEGER PRIMARY KEY, plain INTEGER NOT NULL, hash INTEGER NOT NULL,
data BLOB NOT NULL) STRICT

CREATE TABLE erasure(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seg INTEGER NOT NULL,
off INTEGER NOT NULL, len INTEGER NOT NULL, by_seq INTEGER NOT NULL) STRICT

CREATE TABLE checkpoint(id INTEGER PRIMARY KEY, size INTEGER NOT NULL, hash INTEGER NOT NULL,
note TEXT NOT NULL) STRICT

CREATE TRIGGER event_insert BEFORE INSERT ON event
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM event)
BEGIN SELECT RAISE(ABORT, 'event: only the next row can be added'); END

CREATE TRIGGER segment_insert BEFORE INSERT ON segment
WHEN NEW.id IS NOT (SELECT coalesce(max(id) + 1, 0) FROM segment)
AND NEW.id IS NOT (SELECT ((max(id) >> 20) + 1) << 20 FROM segment)
BEGIN SELECT RAISE(ABORT, 'segment: only the next row can be added'); END

CREATE TRIGGER blob_insert BEFORE INSERT ON blob
WHEN NEW.id IS NOT (SELECT coalesce(max(id) + 1, 0) FROM blob)
BEGIN SELECT RAISE(ABORT, 'blob: only the next row can be added'); END

CREATE TRIGGER blobsegment_insert BEFORE INSERT ON blobsegment
WHEN NEW.id IS NOT (SELECT coalesce(max(id) + 1, 0) FROM blobsegment)
AND NEW.id IS NOT (SELECT ((max(id) >> 20) + 1) << 20 FROM blobsegment)
BEGIN SELECT RAISE(ABORT, 'blobsegment: only the next row can be added'); END

CREATE TRIGGER erasure_insert BEFORE INSERT ON erasure
WHEN NEW.id IS NOT (SELECT coalesce(max(id) + 1, 0) FROM erasure)
BEGIN SELECT RAISE(ABORT, 'erasure: only the next row can be added'); END

CREATE TRIGGER checkpoint_insert BEFORE INSERT ON checkpoint
WHEN NEW.id IS NOT (SELECT coalesce(max(id) + 1, 0) FROM checkpoint)
OR NEW.size < 1 OR NEW.size < (SELECT size FROM checkpoint ORDER BY id DESC LIMIT 1)
OR NEW.size > (SELECT coalesce(max(seq) + 1, 0) FROM event)
BEGIN SELECT RAISE(ABORT, 'checkpoint: sizes grow, up to the number of events'); END
"""
# Erasing drops these and makes them again, within its one transaction.
CHANGE_TRIGGERS: Final = tuple(
    f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table}"
    f" BEGIN SELECT RAISE(ABORT, '{table}: nothing stored is changed'); END"
    for table in ("event", "segment", "blob", "blobsegment", "erasure", "checkpoint")
    for verb in ("UPDATE", "DELETE")
)
STATEMENTS: Final = tuple(" ".join(s.split()) for s in _TEXT.split("\n\n")) + CHANGE_TRIGGERS
# Made at the seal: while a run writes, an index by digest would dirty a page for each piece.
INDEX: Final = "CREATE INDEX blob_digest ON blob(digest)"

_NAME_SHOWN: Final = 60
_LIST: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT 100"
_Rows = frozenset[tuple[str, str, str, str | None]]


def create(connection: sqlite3.Connection) -> None:
    """Make the empty tables of a ledger in a new database, in one transaction."""
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("COMMIT")


def check(connection: sqlite3.Connection, path: str) -> bool:
    """Refuse what is not exactly a ledger of this format; return whether it has the blob index.

    Reads two fields of the database header, then `sqlite_schema`, and nothing else. Raises
    NotALedger, VersionUnsupported, or LedgerDamaged where the schema is not the one above to the
    letter; sqlite3.OperationalError if the file cannot be opened at all.
    """
    try:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError:
        raise  # the file could not be opened; what it is cannot be told
    except sqlite3.DatabaseError as error:
        raise NotALedger(f"{path} is not a ledger ({error})") from error
    if application_id != APPLICATION_ID:
        raise NotALedger(f"{path} is not a ledger")
    if version > FORMAT:
        raise VersionUnsupported(f"{path} has format {version}, this release reads {FORMAT}")
    if version != FORMAT:
        raise LedgerDamaged(f"{path} names format {version}, which never existed")
    try:
        found: _Rows = frozenset(connection.execute(_LIST).fetchall())
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        # SQLite's own message may quote what is not UTF-8.
        raise LedgerDamaged(f"the schema of {path} cannot be read ({error})") from error
    indexed = _names_index(found)
    if found != _expected(indexed=indexed):
        raise LedgerDamaged(f"the schema of {path} is not a ledger's: {_difference(found)}")
    return indexed


def _names_index(found: _Rows) -> bool:
    return any(name == "blob_digest" for _, name, _, _ in found)


@functools.cache
def _expected(*, indexed: bool) -> _Rows:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create(connection)
        if indexed:
            connection.execute(INDEX)
        return frozenset(connection.execute(_LIST).fetchall())


def _difference(found: _Rows) -> str:
    """Name the first statement that differs, and how many more do."""
    wanted = _expected(indexed=_names_index(found))
    # What is there and should not be says more than what lacks.
    rows = [*sorted(found - wanted, key=str), *sorted(wanted - found, key=str)]
    names = list(dict.fromkeys(f"{kind} {name}" for kind, name, _, _ in rows))
    # The name may be anything that a forger put there.
    first = ascii(names[0])[1:-1]
    shown = first if len(first) <= _NAME_SHOWN else f"{first[:_NAME_SHOWN]}…"
    return shown + (f" and {len(names) - 1} more" if names[1:] else "")
