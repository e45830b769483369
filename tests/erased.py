"""Whether erased content is gone: from what a ledger holds, and from every byte beside it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import zstandard

_TABLES = ("segment", "blobsegment")
# The first bytes of a frame are like those of others.
_HEAD = 8
_PIECE = 24
_PLAIN = 16


def digits(length: int, seed: int = 1) -> str:
    """Random digits: they do not compress alike in another neighbourhood."""
    return Random(seed).randbytes(length).hex()[:length]


def stored(path: Path) -> bytes:
    """Every byte in the directory of a ledger, and what its segments hold once decompressed."""
    found = _beside(path)
    for table in _TABLES:
        segments: dict[int, bytes] = {}
        for number, data in _parts(path, table):
            segments[number >> 20] = segments.get(number >> 20, b"") + data
        for frame in segments.values():
            found += zstandard.ZstdDecompressor().decompressobj().decompress(frame)
    return found


def pieces(path: Path, marker: str) -> list[bytes]:
    """Pieces of the compressed parts of a ledger that holds these digits."""
    assert marker[:_PLAIN].encode() in stored(path)
    return [
        data[at : at + _PIECE]
        for table in _TABLES
        for _, data in _parts(path, table)
        for at in range(_HEAD, len(data) - _PIECE, _PIECE)
    ]


def assert_gone(path: Path, marker: str, before: list[bytes]) -> None:
    """No digit is left of the marker, and in no file a piece of what held it before."""
    after = stored(path)
    for at in range(0, len(marker) - _PLAIN, _PLAIN):
        assert marker[at : at + _PLAIN].encode() not in after
    held = b"".join(data for table in _TABLES for _, data in _parts(path, table))
    gone = [piece for piece in before if piece not in held]
    assert gone
    raw = _beside(path)
    assert not any(piece in raw for piece in gone)


def _beside(path: Path) -> bytes:
    files = (file for file in sorted(path.parent.rglob("*")) if file.is_file())
    return b"".join(file.read_bytes() for file in files)


def _parts(path: Path, table: str) -> list[tuple[int, bytes]]:
    """Rows of a copy of the ledger, so that no -wal or -shm comes to be beside it."""
    with TemporaryDirectory() as folder:
        for name in (path.name, f"{path.name}-wal"):
            if path.with_name(name).exists():
                shutil.copyfile(path.with_name(name), Path(folder, name))
        with closing(sqlite3.connect(Path(folder, path.name))) as connection:
            return connection.execute(f"SELECT id, data FROM {table} ORDER BY id").fetchall()
