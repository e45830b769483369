"""The plain bytes of a stream of segments, and everything that is wrong with how they are stored.

Written apart from what the writer and the readers use: a fault there must not hide here.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import xxhash
import zstandard

from ledger.errors import LedgerDamaged
from ledger.opening import Source

_PART_BITS: Final = 20
_MOST: Final = (1 << 63) - 1
_MAX_PLAIN: Final = 256 * 1024 * 1024
_MAX_WINDOW: Final = 8 * 1024 * 1024
# Plain bytes of segments that are kept; a larger segment is kept alone.
_KEPT: Final = 16 * 1024 * 1024
# Bytes that are looked at, or decompressed, once more where rows do not follow each other.
_AGAIN: Final = 1024 * 1024 * 1024
_LEAST_COST: Final = 4096


@dataclass(slots=True)
class Segment:
    """As many plain bytes of a segment as could be read; faults as (first byte concerned, what)."""

    plain: bytes = b""
    faults: list[tuple[int, str]] = field(default_factory=list)


class Stream:
    """The segments of one table, up to the row before `end`."""

    def __init__(self, source: Source, table: str, end: int) -> None:
        self._source = source
        self._table = table
        self._end = end
        self._kept: OrderedDict[int, Segment] = OrderedDict()
        self._kept_bytes = 0
        self._seen: set[int] = set()
        self._again = _AGAIN
        self._unspent = _AGAIN

    @property
    def segments(self) -> int:
        """How many segments there should be."""
        return ((self._end - 1) >> _PART_BITS) + 1 if self._end else 0

    def segment(self, number: int) -> Segment:
        """Read a segment; one that was never written has no bytes and a fault."""
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        found = self._load(number) if 0 <= number < self.segments else Segment()
        if not found.plain and not found.faults:
            found.faults.append((0, f"{self._table} {number} does not exist"))
        self._kept[number] = found
        self._kept_bytes += len(found.plain) + _LEAST_COST
        while self._kept_bytes > _KEPT and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped.plain) + _LEAST_COST
        return found

    def _load(self, number: int) -> Segment:
        """Read a segment; one that was read before only as long as that does not go on for ever."""
        if number not in self._seen:
            self._seen.add(number)
            found = self._read(number)
            self._unspent += len(found.plain)
            return found
        if self._again < 0:
            why = f"{self._table} {number} is named out of order again and again"
            return Segment(faults=[(0, why)])
        found = self._read(number)
        self._again -= len(found.plain) + _LEAST_COST
        return found

    def spend(self, count: int) -> bool:
        """Count bytes that are looked at; False once they are far more than there are.

        Rows that name the same bytes over and over could keep a reader busy for years.
        """
        self._unspent -= count
        return self._unspent >= 0

    def after(self, number: int) -> Iterator[int]:
        """Yield the segments behind `number` that are stored, as far as that can be read."""
        sql = f"SELECT id FROM {self._table} WHERE id >= ? AND id < ? ORDER BY id LIMIT 1"  # noqa: S608
        while True:
            first = (number + 1) << _PART_BITS
            try:
                found = list(self._source.query(sql, (first, self._end))) if first <= _MOST else []
            except LedgerDamaged:
                return
            if not found:
                return
            number = found[0][0] >> _PART_BITS
            yield number

    def _read(self, number: int) -> Segment:
        result = Segment()
        parts: list[tuple[int, bytes]] = []
        reached = stored = 0
        try:
            for row in self._rows(number):
                stored += len(row[3])
                if stored > 2 * _MAX_PLAIN:
                    raise LedgerDamaged("holds more than a segment can")
                fault, usable = self._check_row(number, len(parts), reached, row)
                if fault:
                    result.faults.append((reached, f"{self._table} {number} {fault}"))
                if not usable:
                    break
                reached = row[1]
                parts.append((reached, row[3]))
        except LedgerDamaged as error:
            result.faults.append((reached, f"{self._table} {number}: {error.message}"))
        self._expand(number, parts, result)
        result.faults.sort()
        return result

    def _rows(self, number: int) -> Iterator[tuple[Any, ...]]:
        first = number << _PART_BITS
        return self._source.query(
            f"SELECT id, plain, hash, data FROM {self._table}"  # noqa: S608 - our own names
            " WHERE id >= ? AND id < ? ORDER BY id",
            (first, min(first + (1 << _PART_BITS), self._end)),
        )

    def _check_row(
        self, number: int, part: int, reached: int, row: tuple[Any, ...]
    ) -> tuple[str, bool]:
        """Return what is wrong with a row, and whether its data can be used all the same."""
        row_id, plain, checksum, data = row
        if row_id != (number << _PART_BITS) + part:
            return f"lacks its part {part}", False
        if not reached <= plain <= _MAX_PLAIN:
            return f"part {part} claims to reach byte {plain} from {reached}", False
        digest = xxhash.xxh3_64_intdigest(data)
        if (digest - (1 << 64) if digest >> 63 else digest) != checksum:
            return f"part {part} fails its check", True
        return "", True

    def _expand(self, number: int, parts: list[tuple[int, bytes]], result: Segment) -> None:
        """Decompress part by part, and stop at the first that does not give what it says."""
        if not parts:
            return
        frame = b"".join(data for _, data in parts)
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        good = _bounded(decompressor, frame, parts[-1][0])
        if good is None:
            result.plain, reached = self._piecewise(parts)
            result.faults.append((reached, f"{self._table} {number} cannot be decompressed"))
            return
        result.plain = good
        # Now that the whole is known to be bounded, see where each part ends.
        steps = decompressor.decompressobj()
        reached = 0
        for part, (plain, data) in enumerate(parts):
            before = reached
            if not steps.eof:
                reached += len(steps.decompress(data))
                left_over = steps.unused_data
            else:
                left_over = data
            if reached != plain or left_over:
                why = f"part {part} does not end where it says"
                result.faults.append((before, f"{self._table} {number} {why}"))
                return

    def _piecewise(self, parts: list[tuple[int, bytes]]) -> tuple[bytes, int]:
        """Return the plain bytes of as many first parts as can be decompressed."""
        low, high = 0, len(parts)
        best = b""
        while low < high:
            middle = (low + high + 1) // 2
            frame = b"".join(data for _, data in parts[:middle])
            decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
            found = _bounded(decompressor, frame, parts[middle - 1][0])
            if found is None:
                high = middle - 1
            else:
                low, best = middle, found
        return best, parts[low - 1][0] if low else 0


def _bounded(decompressor: zstandard.ZstdDecompressor, frame: bytes, plain: int) -> bytes | None:
    """Return the `plain` bytes of a frame that may lack its end; None if it has other ones."""
    try:
        with decompressor.stream_reader(frame) as reader:
            found = reader.read(plain + 1)
    except zstandard.ZstdError:
        return None
    return found if len(found) == plain else None
