"""The values that JSON has no word for: bytes, and values that stand partly in the blob store."""

from dataclasses import dataclass

from ledger.errors import LedgerDamaged, ValueRefused

MAX_DEPTH = 200
"""Lists and objects inside one another; the 201st is refused."""
PIECE = 4096
"""Characters of a text piece; least bytes of a list piece."""
BINARY_PIECE = 65_536
"""Bytes of a piece of a binary."""
DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes that the caller means as bytes; a bare `bytes` is refused as an accident."""

    data: bytes

    def __post_init__(self) -> None:
        if type(self.data) is not bytes:
            raise ValueRefused("$", f"Binary wraps bytes, not {type(self.data).__name__}")


@dataclass(frozen=True, slots=True)
class SpilledText:
    """A text whose front stands in the blob store.

    `pieces` are the SHA-256 digests of `PIECE` characters each, `rest` the remaining characters,
    fewer than `PIECE`.
    """

    pieces: tuple[bytes, ...]
    rest: str

    def __post_init__(self) -> None:
        _check_pieces(self.pieces)
        if len(self.rest) >= PIECE:
            raise LedgerDamaged(f"a text was cut before character {PIECE} of its rest")

    @property
    def length(self) -> int:
        """Characters of the whole text."""
        return PIECE * len(self.pieces) + len(self.rest)


@dataclass(frozen=True, slots=True)
class SpilledList:
    """A list whose front stands in the blob store.

    `pieces` are the SHA-256 digests of JSON arrays of at least `PIECE` bytes, `rest` the elements
    that did not fill another one.
    """

    pieces: tuple[bytes, ...]
    rest: tuple[object, ...]

    def __post_init__(self) -> None:
        _check_pieces(self.pieces)


@dataclass(frozen=True, slots=True)
class SpilledBinary:
    """Bytes whose front stands in the blob store, in pieces of `BINARY_PIECE` bytes."""

    pieces: tuple[bytes, ...]
    rest: bytes

    def __post_init__(self) -> None:
        _check_pieces(self.pieces)
        if len(self.rest) >= BINARY_PIECE:
            raise LedgerDamaged(f"a binary was cut before byte {BINARY_PIECE} of its rest")

    @property
    def size(self) -> int:
        """Bytes of the whole binary."""
        return BINARY_PIECE * len(self.pieces) + len(self.rest)


def _check_pieces(pieces: tuple[bytes, ...]) -> None:
    if not pieces:
        raise LedgerDamaged("a reference names no blob")
    if any(len(digest) != DIGEST_BYTES for digest in pieces):
        raise LedgerDamaged(f"a reference holds a digest that is not {DIGEST_BYTES} bytes")
