"""A zip archive of a log, whole or without the directory that a crash kept it from getting.

Format: PKWARE APPNOTE 6.3.10; the local header is section 4.3.7, the data descriptor 4.3.9, the
ZIP64 field 4.5.3.
"""

import itertools
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from ledger.errors import UsageError
from runtime.importers.inspect.bytesource import CHUNK, ByteSource
from runtime.importers.inspect.unpack import STORED, BadMember, unpack

SIGNATURE: Final = b"PK\x03\x04"
MAX_MEMBER: Final = 1 << 30
MAX_RATIO: Final = 200
"""How many times its own size an archive over `ROOM` may unpack to; logs come to about 10."""
ROOM: Final = 1 << 30

_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_DESCRIPTOR: Final = b"PK\x07\x08"
_DIRECTORY: Final = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06")
_HAS_DESCRIPTOR: Final = 0x08
_ENCRYPTED: Final = 0x01
_UTF8: Final = 0x800
_ZIP64: Final = 1
_IN_ZIP64: Final = 0xFFFFFFFF
# The last two are of places before the first byte, and behind any.
_NO_DIRECTORY: Final = (
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    struct.error,
    ValueError,
    OSError,
    OverflowError,
)


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside: its packed bytes stand from `start` to `end` of the archive."""

    name: str
    method: int
    start: int
    end: int
    size: int
    crc: int
    encrypted: bool = False


@dataclass(slots=True)
class Archive:
    """The members by name; of several with one name the last counts, as for Inspect itself.

    `replaced` are the names that stand more than once, `torn` the name of a member that the
    file ends in. `whole` is False where there is no directory and the members were found by
    their own headers; `rest` says what stands behind the last of them.
    """

    data: ByteSource
    members: dict[str, Member] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    whole: bool = True
    rest: str = ""

    def read(self, member: Member) -> bytes:
        """What the member holds; raises BadMember if that is not what was stored."""
        if member.encrypted:
            raise BadMember("it is encrypted")
        if member.size > MAX_MEMBER:
            raise BadMember(f"it unpacks to {member.size} bytes, more than any sample of a log")
        with self.data.open() as stream:
            content = unpack(_Window(stream, member), member.method, member.size)
        if len(content) != member.size:
            raise BadMember(f"it holds {len(content)} bytes instead of {member.size}")
        if zlib.crc32(content) != member.crc:
            raise BadMember("its checksum is wrong")
        return content


class _Window:
    """The packed bytes of one member, as a stream of their own."""

    def __init__(self, stream: BinaryIO, member: Member) -> None:
        self.stream = stream
        self.member = member
        stream.seek(member.start)

    def read(self, size: int, /) -> bytes:
        left = self.member.end - self.stream.tell()
        return self.stream.read(max(0, min(size, left)))


def read_archive(data: ByteSource) -> Archive:
    """Find the members; UsageError for an archive that would unpack to far more than a log can."""
    archive = Archive(data)
    try:
        with data.open() as stream, zipfile.ZipFile(stream) as directory:
            found = [_listed(stream, info) for info in directory.infolist()]
    except _NO_DIRECTORY:
        archive.whole = False
        found = list(_by_headers(archive))
    for member in found:
        if member.name in archive.members:
            archive.replaced.append(member.name)
        archive.members[member.name] = member
    _refuse_bomb(archive, found)
    return archive


def _listed(stream: BinaryIO, info: zipfile.ZipInfo) -> Member:
    stream.seek(info.header_offset)
    head = stream.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(SIGNATURE):
        raise zipfile.BadZipFile(f"no member at {info.header_offset}")
    *_, name, extra = _LOCAL.unpack(head)
    start = info.header_offset + _LOCAL.size + name + extra
    return Member(
        info.filename,
        info.compress_type,
        start,
        start + info.compress_size,
        info.file_size,
        info.CRC,
        bool(info.flag_bits & _ENCRYPTED),
    )


def _refuse_bomb(archive: Archive, found: list[Member]) -> None:
    total = sum(member.size for member in found)
    ranges = sorted((member.start, member.end) for member in found)
    pairs = itertools.pairwise(ranges)
    if any(before > start for (_, before), (start, _) in pairs):
        raise UsageError(f"{archive.data.file.path}: members of the archive lie in each other")
    if total > ROOM and total > MAX_RATIO * archive.data.file.size:
        raise UsageError(
            f"{archive.data.file.path} has {archive.data.file.size} bytes and would unpack"
            f" to {total}: no log does"
        )


def _by_headers(archive: Archive) -> Iterator[Member]:
    """The members one behind the other, up to the first that is not whole."""
    with archive.data.open() as stream:
        end = stream.seek(0, 2)
        at = 0
        while at < end:
            stream.seek(at)
            head = stream.read(_LOCAL.size)
            if not head.startswith(SIGNATURE):
                if not head.startswith(_DIRECTORY):
                    archive.rest = f"{end - at} bytes from {at} on are no member"
                return
            member = _headed(stream, at, head)
            if member is None or member.end > end:
                name = member.name if member else _name(stream, at, head)
                archive.torn.append(name or f"a member at {at}")
                return
            yield member
            at = _behind(stream, member)


def _headed(stream: BinaryIO, at: int, head: bytes) -> Member | None:
    """The member that a local header tells of; None if the header does not tell where it ends."""
    if len(head) < _LOCAL.size:
        return None
    _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _LOCAL.unpack(head)
    rest = stream.read(name_length + extra_length)
    if len(rest) < name_length + extra_length:
        return None
    name = _text(rest[:name_length], flags)
    start = at + _LOCAL.size + name_length + extra_length
    if _IN_ZIP64 in (packed, size):
        size, packed = _zip64(rest[name_length:], size, packed)
    if flags & _HAS_DESCRIPTOR or (packed == 0 and method != STORED):
        told = _described(stream, start)
        if told is None:
            return None
        crc, packed, size = told
    return Member(name, method, start, start + packed, size, crc, bool(flags & _ENCRYPTED))


def _zip64(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == _ZIP64 and length >= 16 and at + 20 <= len(extra):
            large: tuple[int, int] = struct.unpack_from("<QQ", extra, at + 4)
            return large
        at += 4 + length
    return size, packed


def _described(stream: BinaryIO, start: int) -> tuple[int, int, int] | None:
    """Checksum, packed size and size from the descriptor that names the place it stands at."""
    stream.seek(start)
    window = b""
    at = start
    while chunk := stream.read(CHUNK):
        window += chunk
        found = window.find(_DESCRIPTOR)
        while found >= 0:
            told = _descriptor(window[found + 4 : found + 24], at + found - start)
            if told is not None:
                return told
            found = window.find(_DESCRIPTOR, found + 1)
        at += max(0, len(window) - 24)
        window = window[-24:]
    return None


def _descriptor(data: bytes, packed: int) -> tuple[int, int, int] | None:
    for form in ("<III", "<IQQ"):
        if len(data) >= struct.calcsize(form):
            crc, told, size = struct.unpack_from(form, data)
            if told == packed and size < _IN_ZIP64 * MAX_RATIO:
                return crc, told, size
    return None


def _behind(stream: BinaryIO, member: Member) -> int:
    """Where the next header must stand: a descriptor may lie in between."""
    stream.seek(member.end)
    after = stream.read(28)
    if after.startswith(_DESCRIPTOR):
        return member.end + (16 if after[16:18] == b"PK" or len(after) <= 16 else 24)
    return member.end


def _name(stream: BinaryIO, at: int, head: bytes) -> str:
    if len(head) < _LOCAL.size:
        return ""
    fields = _LOCAL.unpack(head)
    stream.seek(at + _LOCAL.size)
    return _text(stream.read(fields[9]), fields[2])


def _text(name: bytes, flags: int) -> str:
    return name.decode("utf-8" if flags & _UTF8 else "cp437", "replace")
