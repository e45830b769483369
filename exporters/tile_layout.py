"""Where the hashes and entries of a log stand in C2SP tlog-tiles v0.1.0: paths, widths, bundles.

A tile holds up to 256 hashes: hash i of tile n at level L is the root over the entries
[(256n + i) * 256^L, 256^L more). A bundle holds the same entries as the tile at level 0 over them.
The last of each is partial, and there are none above it that it would be hashed into.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ledger import tlog
from ledger.errors import ProofInvalid

WIDTH: Final = 256
MAX_LEVEL: Final = 63
MAX_ENTRY: Final = 65_535
ENTRIES: Final = -1
"""The level that stands for bundles of entries."""

TILE_PATH: Final = re.compile(
    r"tile/(entries|0|[1-9]|[1-5][0-9]|6[0-3])/(x[0-9]{3}/)*[0-9]{3}(\.p/[1-9][0-9]{0,2})?"
)
_LENGTH: Final = struct.Struct(">H")


def tile_path(level: int, number: int, width: int = WIDTH) -> str:
    """Return the path of a tile, or of a bundle of entries; AssertionError if there is none.

    >>> tile_path(0, 1234067)
    'tile/0/x001/x234/067'
    >>> tile_path(ENTRIES, 7, 12)
    'tile/entries/007.p/12'
    """
    assert ENTRIES <= level <= MAX_LEVEL
    assert number >= 0
    assert 1 <= width <= WIDTH
    groups = [f"{number % 1000:03}"]
    while number := number // 1000:
        groups.insert(0, f"x{number % 1000:03}")
    name = "entries" if level == ENTRIES else str(level)
    partial = "" if width == WIDTH else f".p/{width}"
    return f"tile/{name}/{'/'.join(groups)}{partial}"


def tiles_of(size: int) -> Iterator[tuple[int, int, int]]:
    """Yield (level, full tiles, width of the partial one or 0) of a log, level 0 first."""
    level, hashes = 0, size
    while hashes:
        yield level, hashes // WIDTH, hashes % WIDTH
        level, hashes = level + 1, hashes // WIDTH


def encode_bundle(entries: Iterable[bytes]) -> bytes:
    """Write entries, of at most 65,535 bytes each, with their lengths."""
    return b"".join(_LENGTH.pack(len(entry)) + entry for entry in entries)


def decode_bundle(data: bytes) -> list[bytes]:
    """Read the entries of a bundle; ProofInvalid for more than 256, or one that is cut."""
    entries: list[bytes] = []
    at = 0
    while at < len(data):
        start = at + _LENGTH.size
        if start > len(data) or len(entries) == WIDTH:
            raise ProofInvalid("a bundle has 1 to 256 entries, each with its length")
        at = start + int.from_bytes(data[at:start], "big")
        if at > len(data):
            raise ProofInvalid("an entry of a bundle is cut")
        entries.append(data[start:at])
    return entries


class Tiler:
    """Cuts a growing log into tiles; keeps one unfinished tile of each level."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._levels: list[bytearray] = []
        self._size = 0

    def add(self, entry: bytes) -> Iterator[tuple[str, bytes]]:
        """Take the next entry; yield path and content of what it completes."""
        assert len(entry) <= MAX_ENTRY, "a header is at most 65,535 bytes"
        self._entries.append(entry)
        self._size += 1
        if len(self._entries) == WIDTH:
            yield tile_path(ENTRIES, self._size // WIDTH - 1), encode_bundle(self._entries)
            self._entries.clear()
        yield from self._add(0, tlog.leaf_hash(entry))

    def _add(self, level: int, node: bytes) -> Iterator[tuple[str, bytes]]:
        if level == len(self._levels):
            self._levels.append(bytearray())
        tile = self._levels[level]
        tile += node
        if len(tile) == WIDTH * tlog.HASH_BYTES:
            whole = bytes(tile)
            tile.clear()
            yield tile_path(level, self._size // WIDTH ** (level + 1) - 1), whole
            yield from self._add(level + 1, tlog.root_of(whole))

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """Yield path and content of the partial tiles of the log as it is now."""
        if self._entries:
            path = tile_path(ENTRIES, self._size // WIDTH, len(self._entries))
            yield path, encode_bundle(self._entries)
        for level, tile in enumerate(self._levels):
            if tile:
                number = self._size // WIDTH ** (level + 1)
                yield tile_path(level, number, len(tile) // tlog.HASH_BYTES), bytes(tile)
