"""A ledger file written anew without some of its bytes, to take the place of the old one.

The new file never held what is left out: no page, no free space and no journal of it does. Until
it is renamed the old file is the ledger; from then on the new one is.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from ledger import schema
from ledger.database import Rows
from ledger.errors import LedgerDamaged
from ledger.hardening import require_sound
from ledger.records import Place
from ledger.schema import BLOB_STREAM, EVENT_STREAM, PART_BITS
from ledger.segment import BLOBS, EVENTS, Part, Query, SegmentReader, single_part

# Rows keep their order, which the triggers ask for.
_TABLES: Final = (
    ("blobsegment", "id, plain, hash, data"),
    ("blob", "id, digest, seg, off, len"),
    ("segment", "id, plain, hash, data"),
    ("event", "seq, seg, off"),
    ("erasure", "id, stream, seg, off, len, by_seq"),
    ("checkpoint", "id, size, hash, note"),
)
_STREAMS: Final = {EVENTS: EVENT_STREAM, BLOBS: BLOB_STREAM}
_PRAGMAS: Final = ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF")


def new_path(ledger: Path) -> Path:
    """Where a file stands that is to take the place of a ledger file."""
    return ledger.with_name(ledger.name + ".new")


def rewrite(
    query: Query, target: Path, places: Sequence[Place], rows: Rows, *, by_seq: int, indexed: bool
) -> None:
    """Write to `target` what `query` reads, with zeros at `places`, and `rows` behind it.

    Each place gets a row of `erasure` that names `by_seq`. `target` is synced, and a file of one
    piece; it replaces what was there. `indexed` says whether it gets the blob index. Raises
    OSError, sqlite3.Error, or LedgerDamaged where a segment cannot be read.
    """
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        for pragma in _PRAGMAS:
            new.execute(pragma)
        schema.create(new)
        new.execute("BEGIN IMMEDIATE")
        for table, columns in _TABLES:
            marks = ", ".join("?" * len(columns.split(",")))
            insert = f"INSERT INTO {table} VALUES ({marks})"  # noqa: S608 - our own names
            new.executemany(insert, _old_rows(query, table, columns, places))
            new.executemany(insert, _new_rows(query, table, places, rows, by_seq))
        if indexed:
            new.execute(schema.INDEX)
        new.execute("COMMIT")
        require_sound(new, target)
    _sync(target)


def _old_rows(
    query: Query, table: str, columns: str, places: Sequence[Place]
) -> Iterator[tuple[Any, ...]]:
    key = columns.partition(",")[0]
    rows = query(f"SELECT {columns} FROM {table} ORDER BY {key}", ())  # noqa: S608 - our own names
    if table not in _STREAMS:
        yield from rows
        return
    changed: defaultdict[int, list[Place]] = defaultdict(list)
    for place in places:
        if place.stream == _STREAMS[table]:
            changed[place.segment].append(place)
    done: set[int] = set()
    for row in rows:
        segment = row[0] >> PART_BITS
        if segment not in changed:
            yield row
        elif segment not in done:
            done.add(segment)
            yield _without(query, table, segment, changed[segment])


def _without(query: Query, table: str, segment: int, places: Iterable[Place]) -> Part:
    """A segment with zeros at `places`."""
    plain = bytearray(SegmentReader(query, table).plain(segment))
    for _, _, offset, length in places:
        if offset + length > len(plain):
            raise LedgerDamaged(f"{table} {segment} ends before byte {offset + length}")
        plain[offset : offset + length] = bytes(length)
    return single_part(segment, bytes(plain))


def _new_rows(
    query: Query, table: str, places: Sequence[Place], rows: Rows, by_seq: int
) -> Iterable[tuple[Any, ...]]:
    match table:
        case "event":
            return rows.events
        case "segment":
            return rows.segments
        case "blob":
            return rows.blobs
        case "blobsegment":
            return rows.blobsegments
        case "erasure":
            ((last,),) = list(query("SELECT max(id) FROM erasure", ()))
            first = 0 if last is None else last + 1
            return [(first + n, *place, by_seq) for n, place in enumerate(places)]
        case _:
            return ()


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
