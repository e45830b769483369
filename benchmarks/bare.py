"""Child of `benchmarks.record`: the same bytes through hashing, zstd and SQLite, and nothing else.

    python -m benchmarks.bare LEDGER-DIRECTORY DIRECTORY

Reads a ledger that `benchmarks.ours` wrote, outside the measurement, then stores its headers,
bodies and pieces again: the same streams, flushed at the same commits, rows of the same tables
with the same pragmas. There are no triggers, no checkpoints and no seal, and one thread that waits
for nothing but the disk.
"""

import gc
import hashlib
import json
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zstandard

from ledger import schema
from ledger.opening import LEDGER_NAME, Source
from ledger.records import Records
from ledger.segment import RUNNING

_HASH: Final = 2**62


@dataclass(slots=True)
class Commit:
    """What one commit stored."""

    blobs: list[bytes]
    events: list[tuple[bytes, bytes]]


class _Stream:
    """One stream of segments, in as few lines as it can be written."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, bytes]] = []
        self._compressor = zstandard.ZstdCompressor(level=RUNNING.level, write_content_size=False)
        self._frame = self._compressor.compressobj()
        self._segment = self._part = self._plain = self._flushed = 0
        self._out: list[bytes] = []

    def write(self, record: bytes) -> tuple[int, int]:
        if self._plain and self._plain + len(record) > RUNNING.segment_bytes:
            self._finish()
        place = self._segment, self._plain
        self._out.append(record)
        self._plain += len(record)
        if self._plain >= RUNNING.segment_bytes:
            self._finish()
        return place

    def flush(self) -> list[tuple[int, int, int, bytes]]:
        if self._plain > self._flushed:
            self._end(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        rows, self.rows = self.rows, []
        return rows

    def _end(self, mode: int) -> None:
        data = self._frame.compress(b"".join(self._out)) + self._frame.flush(mode)
        self._out = []
        row_id = self._segment << schema.PART_BITS | self._part
        self.rows.append((row_id, self._plain, _HASH, data))
        self._part += 1
        self._flushed = self._plain

    def _finish(self) -> None:
        self._end(zstandard.COMPRESSOBJ_FLUSH_FINISH)
        self._frame = self._compressor.compressobj()
        self._segment += 1
        self._part = self._plain = self._flushed = 0


def main(ledger: Path, directory: Path) -> None:
    """Read, store again, and tell what it took."""
    commits = _read(ledger)
    gc.collect()
    gc.freeze()
    began, cpu = time.perf_counter(), time.process_time()
    _store(commits, directory / "bare.db")
    told = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    json.dump({**told, "bytes": (directory / "bare.db").stat().st_size}, sys.stdout)


def _read(ledger: Path) -> list[Commit]:
    groups = json.loads((ledger / "commits.json").read_text())
    commits = []
    with closing(Source(ledger / LEDGER_NAME)) as source:
        records = Records(source.query, indexed=True)
        events = records.scan(0, records.size())
        digests = records.digests()
        for blobs, count in groups:
            pieces = [records.blob(next(digests)) for _ in range(blobs)]
            heads = [(one.head, one.body or b"") for _, one in zip(range(count), events)]  # noqa: B905
            commits.append(Commit(pieces, heads))
    return commits


def _store(commits: list[Commit], path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
    for statement in schema.STATEMENTS:
        if statement.startswith("CREATE TABLE"):
            connection.execute(statement)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA journal_mode = WAL")
    events, blobs = _Stream(), _Stream()
    seq = blob = 0
    for commit in commits:
        blob_rows: list[tuple[Any, ...]] = []
        event_rows: list[tuple[int, int, int]] = []
        for piece in commit.blobs:
            blob_rows.append(
                (blob, hashlib.sha256(piece).digest(), *blobs.write(piece), len(piece))
            )
            blob += 1
        for head, body in commit.events:
            hashlib.sha256(body).digest()
            hashlib.sha256(b"\0" + head).digest()
            event_rows.append((seq, *events.write(head + body)))
            seq += 1
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO blobsegment VALUES (?, ?, ?, ?)", blobs.flush())
        connection.executemany("INSERT INTO blob VALUES (?, ?, ?, ?, ?)", blob_rows)
        connection.executemany("INSERT INTO segment VALUES (?, ?, ?, ?)", events.flush())
        connection.executemany("INSERT INTO event VALUES (?, ?, ?)", event_rows)
        connection.execute("COMMIT")
    connection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
