"""Segments: records laid end to end in one zstd frame that stays open across commits.

A record (header || body of an event, or one piece of a large value) never crosses a segment. A
segment ends once it holds as many plain bytes as its packing says, or the next record would pass
that; a larger record has a segment of its own. Each commit flushes the open frame and stores what
came out as one part, with the plain bytes so far and the xxh3 of the part.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import xxhash
import zstandard

from ledger.errors import LedgerDamaged
from ledger.schema import PART_BITS

EVENTS: Final = "segment"
BLOBS: Final = "blobsegment"
MAX_RECORD: Final = 256 * 1024 * 1024
MAX_WINDOW: Final = 8 * 1024 * 1024
# Worst growth of incompressible bytes in zstd, and of one flush for each part.
_SLACK: Final = 64
_PART_MASK: Final = (1 << PART_BITS) - 1
_MAX_SEGMENT: Final = (1 << 63 - PART_BITS) - 1
_CACHE_BYTES: Final = 16 * 1024 * 1024

Query = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]


class Packing(NamedTuple):
    """How densely a writer compresses: the level of zstd, and the plain bytes of a segment."""

    level: int
    segment_bytes: int


RUNNING: Final = Packing(level=3, segment_bytes=256 * 1024)
"""For what is recorded while somebody waits, and where little may stand behind a damaged byte."""
AT_REST: Final = Packing(level=9, segment_bytes=1024 * 1024)
"""For what is written once, from a source that still stands: imports."""


class Part(NamedTuple):
    """One row of a segment table."""

    id: int
    plain: int
    hash: int
    data: bytes


def part_hash(data: bytes) -> int:
    """The read check of a stored part: xxh3-64 as a signed integer. It is never an identity."""
    digest = xxhash.xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >> 63 else digest


class SegmentWriter:
    """The open end of one stream; what `flush` returned must be stored, or the writer dropped."""

    def __init__(self, next_segment: int, packing: Packing) -> None:
        self._segment = next_segment
        self._limit = packing.segment_bytes
        self._compressor = zstandard.ZstdCompressor(level=packing.level, write_content_size=False)
        self._frame: zstandard.ZstdCompressionObj | None = None
        self._part = 0
        self._plain = 0
        self._flushed = 0
        self._waiting: list[bytes] = []
        """Records of the next part; compressed at once, when it ends."""
        self._rows: list[Part] = []

    def write(self, record: bytes) -> tuple[int, int]:
        """Add a record; return its segment and its offset among the segment's plain bytes."""
        if self._plain and self._plain + len(record) > self._limit:
            self._finish()
        if self._frame is None:
            self._frame = self._compressor.compressobj()
        place = self._segment, self._plain
        self._waiting.append(record)
        self._plain += len(record)
        if self._plain >= self._limit:
            self._finish()
        return place

    def flush(self) -> list[Part]:
        """Return the rows that store everything written since the last call."""
        if self._frame is not None and self._plain > self._flushed:
            self._end_part(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        rows, self._rows = self._rows, []
        return rows

    def _finish(self) -> None:
        self._end_part(zstandard.COMPRESSOBJ_FLUSH_FINISH)
        self._frame = None
        self._segment += 1
        self._part = self._plain = self._flushed = 0

    def _end_part(self, mode: int) -> None:
        assert self._frame is not None
        data = self._frame.compress(b"".join(self._waiting)) + self._frame.flush(mode)
        self._waiting.clear()
        row_id = self._segment << PART_BITS | self._part
        self._rows.append(Part(row_id, self._plain, part_hash(data), data))
        self._part += 1
        self._flushed = self._plain


def single_part(segment: int, plain: bytes) -> Part:
    """A whole segment as one part, which nothing can be added to."""
    compressor = zstandard.ZstdCompressor(level=AT_REST.level, write_content_size=False)
    frame = compressor.compress(plain)
    return Part(segment << PART_BITS, len(plain), part_hash(frame), frame)


class _Loaded(NamedTuple):
    """The plain bytes of a segment before its first damaged part, and what is wrong with that."""

    plain: bytes
    fault: str


class SegmentReader:
    """Random access to the plain bytes of one stream, through `query` on its table.

    Holds up to 16 MiB of decompressed segments, or one that is larger. Each part's xxh3 is
    checked on every load. Raises LedgerDamaged for bytes in a part that is not as a writer left
    it, or behind one in the same segment; what stands before can be read.
    """

    def __init__(self, query: Query, table: str) -> None:
        self._query = query
        self._table = table
        self._cache: OrderedDict[int, _Loaded] = OrderedDict()
        self._cached = 0

    def read(self, segment: int, offset: int, length: int) -> bytes:
        """Return `length` plain bytes that stand at `offset` in `segment`."""
        if not 0 <= segment <= _MAX_SEGMENT:
            raise LedgerDamaged(f"there is no {self._table} {segment}")
        end = offset + length
        loaded = self._cache.get(segment)
        if loaded is None or len(loaded.plain) < end:
            loaded = self._load(segment)
        if not 0 <= offset <= end <= len(loaded.plain):
            raise LedgerDamaged(loaded.fault or f"{self._table} {segment} ends before byte {end}")
        return loaded.plain[offset:end]

    def plain(self, segment: int) -> bytes:
        """Return all plain bytes of `segment`; LedgerDamaged if any part is not as it was left."""
        loaded = self._load(segment)
        if loaded.fault:
            raise LedgerDamaged(loaded.fault)
        return loaded.plain

    def _load(self, segment: int) -> _Loaded:
        stale = self._cache.pop(segment, None)
        self._cached -= len(stale.plain) if stale else 0
        parts, fault = self._parts(segment)
        plain, worse = self._decompress(parts, f"{self._table} {segment}")
        while self._cache and self._cached + len(plain) > _CACHE_BYTES:
            self._cached -= len(self._cache.popitem(last=False)[1].plain)
        loaded = self._cache[segment] = _Loaded(plain, worse or fault)
        self._cached += len(plain)
        return loaded

    def _parts(self, segment: int) -> tuple[list[Part], str]:
        """Return the parts before the first that is not as it was stored, and what that one is."""
        first = segment << PART_BITS
        rows = self._query(
            f"SELECT id, plain, hash, data FROM {self._table}"  # noqa: S608 - a constant of ours
            " WHERE id BETWEEN ? AND ? ORDER BY id",
            (first, first | _PART_MASK),
        )
        parts: list[Part] = []
        plain = stored = 0
        try:
            for row in rows:
                part = Part(*row)
                stored += len(part.data)
                if part.id != first + len(parts) or not plain <= part.plain <= MAX_RECORD:
                    return parts, f"{self._table} {segment} has rows out of order"
                if stored > part.plain + part.plain // 128 + _SLACK * (len(parts) + 1):
                    return parts, f"{self._table} {segment} holds more than it says"
                if part_hash(part.data) != part.hash:
                    return parts, f"{self._table} {segment} part {len(parts)} fails its check"
                parts.append(part)
                plain = part.plain
        except LedgerDamaged as error:
            return parts, error.message
        return parts, ""

    def _decompress(self, parts: list[Part], name: str) -> tuple[bytes, str]:
        """Return what as many first parts as possible give, and what is wrong with the next."""
        good, bad, plain, fault = 0, len(parts) + 1, b"", ""
        tried = len(parts)
        while good + 1 < bad:
            frame = b"".join(part.data for part in parts[:tried])
            try:
                plain = decompress(frame, parts[tried - 1].plain if tried else 0, name)
            except LedgerDamaged as error:
                bad, fault = tried, error.message
            else:
                good = tried
            tried = (good + bad) // 2
        return plain, fault


def decompress(frame: bytes, plain: int, name: str) -> bytes:
    """Return exactly `plain` bytes out of a frame that may lack its end, or raise LedgerDamaged.

    Never makes more than `plain` + 1 bytes, whatever the frame would expand to.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    try:
        with decompressor.stream_reader(frame) as reader:
            found = reader.read(plain + 1)
    except zstandard.ZstdError as error:
        raise LedgerDamaged(f"{name} cannot be decompressed ({error})") from error
    if len(found) != plain:
        relation = "more" if len(found) > plain else "less"
        raise LedgerDamaged(f"{name} decompresses to {relation} than its {plain} bytes")
    return found
