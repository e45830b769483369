"""Verification against the bare loop: read every row, decompress it, hash what it holds."""

import argparse
import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import zstandard

from acl.verdict import examine
from benchmarks import ledgers
from benchmarks.measure import Report, arguments, interleaved, tell
from ledger.codec import HEADER_BYTES
from ledger.verify import verify

ABOUT: Final = (
    "CPU time of verifying a ledger, beside the bare loop over the same file: every row read,"
    " decompressed, each header hashed as a leaf, each body and piece hashed with SHA-256."
)
_PART_BITS: Final = 20


def bare(run: Path) -> None:
    """What no verifier can leave out: all rows, all bytes, all hashes; nothing is compared."""
    with closing(sqlite3.connect(f"file:{run / 'ledger.sqlite'}?mode=ro", uri=True)) as file:
        _hash_events(file)
        _hash_pieces(file)


def _hash_events(file: sqlite3.Connection) -> None:
    held, plain = -1, b""
    for _, segment, offset in file.execute("SELECT seq, seg, off FROM event ORDER BY seq"):
        if segment != held:
            held, plain = segment, _plain(file, "segment", segment)
        task = int.from_bytes(plain[offset + HEADER_BYTES - 2 : offset + HEADER_BYTES], "big")
        body = offset + HEADER_BYTES + (0 if task == 0xFFFF else task)
        head = plain[offset:body]
        length = int.from_bytes(head[56:64], "big")
        hashlib.sha256(b"\x00" + head).digest()
        hashlib.sha256(plain[body : body + length]).digest()


def _hash_pieces(file: sqlite3.Connection) -> None:
    held, plain = -1, b""
    for segment, offset, length in file.execute("SELECT seg, off, len FROM blob ORDER BY id"):
        if segment != held:
            held, plain = segment, _plain(file, "blobsegment", segment)
        hashlib.sha256(plain[offset : offset + length]).digest()


def _plain(file: sqlite3.Connection, table: str, segment: int) -> bytes:
    first = segment << _PART_BITS
    rows = file.execute(
        f"SELECT plain, data FROM {table} WHERE id >= ? AND id < ? ORDER BY id",
        (first, first + (1 << _PART_BITS)),
    ).fetchall()
    frame = b"".join(data for _, data in rows)
    with zstandard.ZstdDecompressor().stream_reader(frame) as reader:
        return reader.read(rows[-1][0])


def findings(run: Path) -> None:
    """The verifier alone: every finding about the ledger."""
    assert not any(finding.severity == "broken" for finding in verify(run))


def verdict(run: Path) -> None:
    """Everything that `acl verify` does: the verifier, and the metrics recomputed."""
    assert examine(str(run))["ok"]


def peak(run: Path) -> float:
    """The most memory, in MB, of a process that does what `acl verify` does."""
    code = (
        "import sys; from acl.verdict import examine; from tests.memory_peak import peak;"
        "assert examine(sys.argv[1])['ok']; print(peak())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], check=True, capture_output=True, text=True
    )
    return int(done.stdout) / 1e6
