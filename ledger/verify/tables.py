"""The rows of a ledger file, read so that one damaged page hides as little else as possible."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger import lock, wal
from ledger.errors import LedgerDamaged
from ledger.opening import Source
from ledger.verify.finding import Finding, broken

_CHUNK: Final = 500
# SQLite's own check reads every page once and visits every cell.
_CHECK_STEPS: Final = 1_000_000
_FAULTS_SHOWN: Final = 100
# Rows that are asked for one by one where some of many cannot be read; then the rest is given up.
_TRIED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Extent:
    """How far each table went when verification began; a live ledger may have grown since."""

    events: int
    segments: int
    blobs: int
    blobsegments: int
    checkpoints: int
    erasures: int


def check_file(source: Source) -> Iterator[Finding]:
    """Let SQLite check its own structure, and look for rows where none can be."""
    try:
        for (text,) in source.query(
            f"PRAGMA integrity_check({_FAULTS_SHOWN})", allowed=_CHECK_STEPS
        ):
            if text != "ok":
                yield broken("sqlite", text)
    except LedgerDamaged as error:
        yield broken("sqlite", error.message)
    for table, key in _KEYS.items():
        try:
            hidden = list(source.query(f"SELECT {key} FROM {table} WHERE {key} < 0 LIMIT 1"))  # noqa: S608
        except LedgerDamaged as error:
            yield broken("table", f"{table}: {error.message}")
            continue
        if hidden:
            yield broken("table", f"{table} has a row {hidden[0][0]}")


def unread_commits(path: Path) -> str | None:
    """Say what the `-wal` of a ledger hides; None while somebody writes it.

    Raises LedgerDamaged if what has the lock's name is none.
    """
    if lock.holder(path) is not None:
        return None
    before = wal.state(path)
    fault = wal.unread_commits(path)
    # A writer that came meanwhile may have begun the -wal anew.
    return fault if lock.holder(path) is None and wal.state(path) == before else None


_KEYS: Final = {
    "event": "seq",
    "segment": "id",
    "blob": "id",
    "blobsegment": "id",
    "checkpoint": "id",
    "erasure": "id",
}


def measure(source: Source) -> tuple[Extent, list[Finding]]:
    """Return the extent of the tables at one moment, and what could not be measured."""
    findings = []
    try:
        ((*lasts,),) = source.query(
            "SELECT (SELECT max(seq) FROM event), (SELECT max(id) FROM segment),"
            " (SELECT max(id) FROM blob), (SELECT max(id) FROM blobsegment),"
            " (SELECT max(id) FROM checkpoint), (SELECT max(id) FROM erasure)"
        )
    except LedgerDamaged:
        lasts = []
        for table in _KEYS:
            last, fault = _last(source, table)
            lasts.append(last)
            findings += [broken("table", fault)] if fault else []
    return Extent(*(0 if last is None else last + 1 for last in lasts)), findings


def _last(source: Source, table: str) -> tuple[int | None, str]:
    """Return the last key of a table, and what is wrong where its right edge is damaged."""
    key = _KEYS[table]
    try:
        ((last,),) = source.query(f"SELECT max({key}) FROM {table}")  # noqa: S608
    except LedgerDamaged as error:
        last = None
        for (found,) in _until_damage(source, f"SELECT {key} FROM {table} ORDER BY {key}"):  # noqa: S608
            last = found
        return last, f"{table}: the last row cannot be read ({error.message})"
    return last, ""


def _until_damage(source: Source, sql: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield from source.query(sql, allowed=_CHECK_STEPS)
    except LedgerDamaged:
        return


def rows(source: Source, table: str, columns: str, end: int) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows with 0 <= key < `end` in order, the key first."""
    key = _KEYS[table]
    sql = f"SELECT {key}, {columns} FROM {table} WHERE {key} >= ? AND {key} < ? ORDER BY {key} LIMIT ?"  # noqa: S608, E501
    wanted = tried = 0
    while wanted < end and tried <= _TRIED:
        try:
            chunk = list(source.query(sql, (wanted, end, _CHUNK)))
        except LedgerDamaged:
            for one in range(wanted, min(wanted + _CHUNK, end)):
                yield from _until_damage_at(source, sql, one)
            tried += _CHUNK
            wanted = _next_key(source, table, wanted + _CHUNK, end)
            continue
        if not chunk:
            return
        yield from chunk
        wanted = chunk[-1][0] + 1


def _next_key(source: Source, table: str, wanted: int, end: int) -> int:
    """The first key from `wanted` on: behind damage there can be room for 2^62 rows."""
    key = _KEYS[table]
    sql = f"SELECT {key} FROM {table} WHERE {key} >= ? AND {key} < ? ORDER BY {key} LIMIT 1"  # noqa: S608
    try:
        found = list(source.query(sql, (wanted, end)))
    except LedgerDamaged:
        return wanted
    return found[0][0] if found else end


def _until_damage_at(source: Source, sql: str, key: int) -> list[tuple[Any, ...]]:
    try:
        return list(source.query(sql, (key, key + 1, 1)))
    except LedgerDamaged:
        return []
