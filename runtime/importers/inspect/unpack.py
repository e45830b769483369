"""Members of a zip archive unpacked within bounds: deflate and zstd, by any reader of Python.

A member never unpacks to more than its directory says, so a few bytes cannot fill the memory.
"""

import io
import zlib
from collections.abc import Iterator
from typing import IO, Final, Protocol, cast

import zstandard

STORED: Final = 0
DEFLATED: Final = 8
ZSTD: Final = 93
"""Method 93 of the ZIP specification (APPNOTE 6.3.8, section 4.4.5)."""
KNOWN: Final = frozenset((STORED, DEFLATED, ZSTD))

_WINDOW: Final = 1 << 27
_CHUNK: Final = 1 << 18


class BadMember(Exception):
    """A member that cannot be unpacked; `str()` says why, `torn` if it only ends too early."""

    def __init__(self, why: str, *, torn: bool = False) -> None:
        super().__init__(why)
        self.torn = torn


class Packed(Protocol):
    """The packed bytes of one member."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes."""


class _Pieces(Protocol):
    def __call__(self, packed: Packed) -> Iterator[bytes]: ...


def unpack(packed: Packed, method: int, limit: int) -> bytes:
    """Everything that `packed` holds; raises BadMember for more than `limit` bytes, or damage."""
    pieces = _METHODS.get(method)
    if pieces is None:
        raise BadMember(f"it is packed by method {method}, which is not known")
    out = io.BytesIO()
    for piece in pieces(packed):
        if out.tell() + len(piece) > limit:
            raise BadMember(f"it unpacks to more than the {limit} bytes that are allowed")
        out.write(piece)
    return out.getvalue()


def _stored(packed: Packed) -> Iterator[bytes]:
    while piece := packed.read(_CHUNK):
        yield piece


def _deflated(packed: Packed) -> Iterator[bytes]:
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        while not machine.eof:
            data = machine.unconsumed_tail or packed.read(_CHUNK)
            piece = machine.decompress(data, _CHUNK)
            if not data and not piece:
                raise BadMember("its packed bytes end too early", torn=True)
            yield piece
    except zlib.error as error:
        raise BadMember(f"it cannot be unpacked: {error}") from None


def _zstd(packed: Packed) -> Iterator[bytes]:
    machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    # All that it does with a stream is to read it.
    stream = cast("IO[bytes]", packed)
    reader = machine.stream_reader(stream, read_size=_CHUNK, read_across_frames=True)
    try:
        while piece := reader.read(_CHUNK):
            yield piece
    except zstandard.ZstdError as error:
        raise BadMember(f"it cannot be unpacked: {error}") from None


_METHODS: Final[dict[int, _Pieces]] = {STORED: _stored, DEFLATED: _deflated, ZSTD: _zstd}
