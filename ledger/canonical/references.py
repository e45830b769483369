"""From values with references back to whole values, and the way through what they refer to.

`fetch` gives the bytes of a blob for its digest and answers for their being the right ones.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import repeat
from typing import Final

from ledger.canonical.decoding import decode, surely_within
from ledger.canonical.encoding import TOO_DEEP, has_envelopes
from ledger.canonical.values import (
    BINARY_PIECE,
    MAX_DEPTH,
    PIECE,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
)
from ledger.errors import LedgerDamaged

_Container = dict[str, object] | list[object] | tuple[object, ...] | SpilledList

Fetch = Callable[[bytes], bytes]

DEFAULT_BUDGET = 2**31
"""Bytes of memory, about, that one value may stand for."""
# Most of a value are such, which refer to nothing.
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})
# What a list or object takes beside what it holds, and an item of one: of little text can be much.
_CONTAINER_BYTES = 64
_ITEM_BYTES = 8


def resolve(value: object, fetch: Fetch, *, budget: int = DEFAULT_BUDGET) -> object:
    """Put the stored pieces back in: the value as it was given to `encode`.

    A few references can stand for an astronomical value, so each fetch counts, the repeated ones
    too. Raises LedgerDamaged when the value takes over `budget` bytes, when a piece is not what
    its reference says, and for nesting over `MAX_DEPTH`.
    """
    return _Resolver(fetch, budget).whole(value, 0)


class _Resolver:
    def __init__(self, fetch: Fetch, budget: int) -> None:
        self._fetch = fetch
        self._budget = budget
        self._left = budget

    def whole(self, value: object, depth: int) -> object:
        match value:
            case dict() | list() | tuple() | SpilledList():
                if depth >= MAX_DEPTH:
                    raise LedgerDamaged(TOO_DEEP)
                return self._container(value, depth + 1)
            case SpilledText():
                return "".join(map(self._characters, value.pieces)) + value.rest
            case SpilledBinary():
                return Binary(b"".join(map(self._bytes, value.pieces)) + value.rest)
            case _:
                return value

    def _container(self, value: _Container, depth: int) -> object:
        depths = repeat(depth)
        if isinstance(value, dict):
            return dict(zip(value, map(self.whole, value.values(), depths), strict=False))
        if not isinstance(value, SpilledList):
            return list(map(self.whole, value, depths))
        items: list[object] = []
        for digest in value.pieces:
            data = self._get(digest)
            brackets = data.count(b"[") + data.count(b"{")
            self._spend(_CONTAINER_BYTES * brackets + _ITEM_BYTES * data.count(b","))
            piece = list_piece(data)
            # Most pieces refer to nothing and are flat: nothing to put in, no depth to count.
            is_whole = not has_envelopes(data) and surely_within(data, MAX_DEPTH - depth)
            items.extend(piece if is_whole else map(self.whole, piece, depths))
        items.extend(map(self.whole, value.rest, depths))
        return items

    def _characters(self, digest: bytes) -> str:
        try:
            text = self._get(digest).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise LedgerDamaged("a text piece is not UTF-8") from None
        if len(text) != PIECE:
            raise LedgerDamaged(f"a text piece has {len(text)} characters, not {PIECE}")
        return text

    def _bytes(self, digest: bytes) -> bytes:
        data = self._get(digest)
        if len(data) != BINARY_PIECE:
            raise LedgerDamaged(f"a binary piece has {len(data)} bytes, not {BINARY_PIECE}")
        return data

    def _get(self, digest: bytes) -> bytes:
        data = self._fetch(digest)
        self._spend(len(data))
        return data

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise LedgerDamaged(
                f"references stand for more than {self._budget} bytes",
                hint="raise the budget only for a ledger from a source you trust",
            )


def list_piece(data: bytes) -> list[object]:
    """Read the elements of a list piece; they may hold references again.

    Raises LedgerDamaged for what is not an array of at least `PIECE` bytes.
    """
    items = decode(data)
    if not isinstance(items, list) or len(data) < PIECE:
        raise LedgerDamaged(f"a list piece is not an array of at least {PIECE} bytes")
    return items


def pieces(value: object) -> Iterator[bytes]:
    """Yield the digest of each blob that `value` itself refers to, in order, repeats included.

    Pieces of lists can refer to further blobs: `reachable` follows them.
    """
    for reference in references(value):
        yield from reference.pieces


def reachable(value: object, fetch: Fetch) -> Iterator[bytes]:
    """Yield the digest of each blob that `value` needs, directly or through list pieces, once.

    Each list piece is fetched once, however often it is named, so the work is bounded by what is
    stored; other pieces are not fetched. Raises LedgerDamaged for a malformed list piece.
    """
    seen: set[bytes] = set()
    waiting: list[object] = [value]
    while waiting:
        for reference in references(waiting.pop()):
            for digest in reference.pieces:
                if digest in seen:
                    continue
                seen.add(digest)
                yield digest
                if isinstance(reference, SpilledList):
                    data = fetch(digest)
                    items = list_piece(data)
                    # Most pieces refer to nothing: there is no way to go through them.
                    if has_envelopes(data):
                        waiting.append(items)


def references(value: object) -> Iterator[SpilledText | SpilledList | SpilledBinary]:
    """Yield each reference that `value` itself holds, in order."""
    stack = [value]
    while stack:
        match stack.pop():
            case SpilledList() as reference:
                yield reference
                stack.extend(_branches(reference.rest))
            case SpilledText() | SpilledBinary() as reference:
                yield reference
            case dict() as items:
                stack.extend(_branches(items.values()))
            case list() | tuple() as items:
                stack.extend(_branches(items))


def _branches(items: Collection[object]) -> list[object]:
    """What can refer to a blob, or hold what does; the last comes first."""
    found = [item for item in items if type(item) not in _LEAVES]
    found.reverse()
    return found
