"""What stands in a `-wal` and is not read: one damaged frame hides every commit behind it.

SQLite reads a `-wal` up to the first frame that fails its checksum, and takes the rest for what a
writer had not finished. A commit is synced before the next one is written, so the frames of one
transaction at most can be unfinished. A frame that follows a commit frame behind the first bad one
proves that this commit was whole. Layout: https://www.sqlite.org/fileformat.html#walformat
"""

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import LedgerDamaged
from ledger.schema import PAGE_SIZE

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC: Final = 0x377F0682
_VERSION: Final = 3_007_000
_SUMMED: Final = 24
_FRAME_SUMMED: Final = 8
_PAGE_SIZES: Final = frozenset(1 << n for n in range(9, 17))
_MASK: Final = 0xFFFF_FFFF

_Sum = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Frame:
    """One frame as stored; `commits` says that it is the last of a transaction."""

    page: int
    commits: bool
    salts: tuple[int, int]
    checksum: _Sum
    content: bytes

    def follows(self, before: _Sum, order: str) -> bool:
        """Tell whether the checksum is that of this content behind a frame with `before`."""
        return _sum(self.content, before, order) == self.checksum


@dataclass(frozen=True, slots=True)
class _Header:
    """What the frames are compared with; `is_good` tells whether SQLite reads them at all."""

    is_good: bool
    order: str
    page_size: int
    salts: tuple[int, int]
    checksum: _Sum


def wal_path(ledger: Path) -> Path:
    """Where the `-wal` of a ledger file is."""
    return ledger.with_name(ledger.name + "-wal")


def state(ledger: Path) -> tuple[int, int] | None:
    """Size and time of the last change of the `-wal`, or None if there is none."""
    try:
        found = wal_path(ledger).lstat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def check(ledger: Path) -> None:
    """Raise LedgerDamaged where the `-wal` of a ledger that nobody writes hides commits."""
    fault = unread_commits(ledger)
    if fault is not None:
        raise LedgerDamaged(f"{ledger}: {fault}")


def unread_commits(ledger: Path) -> str | None:
    """Say where the `-wal` of a ledger that nobody writes is damaged, or None.

    None also for what a crash leaves, and for damage in the last transaction alone, which looks
    the same, and where the file cannot be read: whoever opens the ledger next says why.
    """
    try:
        file = os.open(wal_path(ledger), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    # Of a directory no file object can be made.
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return None
    with os.fdopen(file, "rb") as opened:
        head = opened.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return None
        header = _header(head)
        frames = iter(lambda: opened.read(_FRAME.size + header.page_size), b"")
        return _search(header, (_frame(data) for data in frames if _is_whole(data, header)))


def _header(head: bytes) -> _Header:
    magic, version, page_size, _, *salts, first, second = _HEADER.unpack(head)
    order = ">" if magic & 1 else "<"
    is_good = (
        magic & ~1 == _MAGIC
        and version == _VERSION
        and page_size in _PAGE_SIZES
        and _sum(head[:_SUMMED], (0, 0), order) == (first, second)
    )
    if not is_good:
        likely = page_size if page_size in _PAGE_SIZES else PAGE_SIZE
        return _Header(False, "<", likely, (0, 0), (0, 0))
    return _Header(True, order, page_size, (salts[0], salts[1]), (first, second))


def _is_whole(data: bytes, header: _Header) -> bool:
    return len(data) == _FRAME.size + header.page_size


def _frame(data: bytes) -> _Frame:
    page, size, salt_1, salt_2, first, second = _FRAME.unpack_from(data)
    content = data[:_FRAME_SUMMED] + data[_FRAME.size :]
    return _Frame(page, size != 0, (salt_1, salt_2), (first, second), content)


def _search(header: _Header, frames: Iterator[_Frame]) -> str | None:
    if not header.is_good:
        return _behind_bad_header(frames)
    running = header.checksum
    for number, frame in enumerate(frames):
        computed = _sum(frame.content, running, header.order)
        is_mine = frame.salts == header.salts
        if frame.checksum == computed and is_mine and frame.page:
            running = computed
        elif frame.checksum == computed or _is_behind(header, frame, computed, frames):
            return (
                f"frame {number} of the -wal is damaged: frames behind it carry this log's salts"
                " but are not read"
            )
        else:
            return None
    return None


def _is_behind(header: _Header, bad: _Frame, computed: _Sum, frames: Iterator[_Frame]) -> bool:
    """Tell whether a frame behind the `bad` one was written after a commit that is not read."""
    before, sums = bad, {bad.checksum, computed}
    for frame in frames:
        if (
            before.commits
            and frame.salts == header.salts
            and any(frame.follows(one, header.order) for one in sums)
        ):
            return True
        before, sums = frame, {frame.checksum}
    return False


def _behind_bad_header(frames: Iterator[_Frame]) -> str | None:
    """The header is synced before the first frame: behind a bad one nothing can stand."""
    before: _Frame | None = None
    for frame in frames:
        if (
            before is not None
            and before.salts == frame.salts
            and any(frame.follows(before.checksum, order) for order in "<>")
        ):
            return "the header of the -wal is damaged: the frames behind it are not read"
        before = frame
    return None


def _sum(content: bytes, before: _Sum, order: str) -> _Sum:
    """SQLite's checksum of 32-bit words, two at a time."""
    first, second = before
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
