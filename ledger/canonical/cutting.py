"""Cutting large values from the front into pieces that are stored once, under their SHA-256.

A value that grows at its end (a conversation, a log) keeps its pieces: what is new costs its own
length and one digest for each earlier piece. Nothing below a piece is ever named by a digest, so
no digest can be guessed from a short secret.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterable

import orjson

from ledger.canonical.escape import RESERVED
from ledger.canonical.values import BINARY_PIECE, PIECE

Spill = Callable[[bytes, bytes], None]
"""Takes the SHA-256 digest of a piece and its bytes."""

_DUMP_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)


def dump(tree: object) -> bytes:
    """Write a tree that JSON can hold; only for trees whose types and depth are known."""
    return orjson.dumps(tree, option=_DUMP_OPTIONS)


def envelope(kind: str, *parts: object) -> dict[str, object]:
    """Say with the reserved key what JSON has no word for."""
    return {RESERVED: [kind, *parts]}


def cut_text(text: str, spill: Spill) -> tuple[list[str], str]:
    """Cut pieces of `PIECE` characters; return their digests in hex, and the rest.

    Pieces are UTF-8, surrogates written by the same rule, in three bytes each.
    """
    end = len(text) // PIECE * PIECE
    digests = [
        _put(text[start : start + PIECE].encode("utf-8", "surrogatepass"), spill)
        for start in range(0, end, PIECE)
    ]
    return digests, text[end:]


def cut_list(encoded: Iterable[bytes], spill: Spill) -> object:
    """Cut a list of encoded elements into the shortest runs that reach `PIECE` bytes as arrays.

    Returns what stands for the list: an envelope, or the plain array if no run got that long.
    """
    digests: list[str] = []
    run: list[bytes] = []
    length = 1
    for element in encoded:
        run.append(element)
        length += len(element) + 1
        if length >= PIECE:
            digests.append(_put(_array(run), spill))
            run = []
            length = 1
    rest = orjson.Fragment(_array(run))
    return envelope("list", digests, rest) if digests else rest


def cut_binary(data: bytes, spill: Spill) -> dict[str, object]:
    """Cut pieces of `BINARY_PIECE` bytes; return the envelope."""
    end = len(data) // BINARY_PIECE * BINARY_PIECE
    digests = [
        _put(data[start : start + BINARY_PIECE], spill) for start in range(0, end, BINARY_PIECE)
    ]
    return envelope("bytes", digests, b64encode(data[end:]).decode("ascii"))


def shorten(value: object, spill: Spill, *, probe: bool = True) -> object:
    """Cut whatever is large in a value of plain JSON types.

    With `probe`, list elements are written before anybody looks into them: most are smaller than a
    piece and need no look. Inside one that was not, elements are looked into first, so that no
    byte is written again at every level.
    """
    if isinstance(value, str):
        return envelope("text", *cut_text(value, spill)) if len(value) > PIECE else value
    if isinstance(value, dict):
        return _shorten_object(value, spill, probe=probe)
    if isinstance(value, list | tuple):
        return _shorten_list(value, spill, probe=probe)
    return value


def _shorten_object(value: dict[str, object], spill: Spill, *, probe: bool) -> dict[str, object]:
    shorter = {}
    for key, item in value.items():
        kind = type(item)
        if kind is dict or kind is list or kind is tuple or kind is str:
            now = shorten(item, spill, probe=probe)
            if now is not item:
                shorter[key] = now
    return value | shorter if shorter else value


def _shorten_list(value: list[object] | tuple[object, ...], spill: Spill, *, probe: bool) -> object:
    if dict not in set(map(type, value)):
        return [
            item if type(item) is str and len(item) <= PIECE else shorten(item, spill, probe=probe)
            for item in value
        ]
    return cut_list((_element(item, spill, probe=probe) for item in value), spill)


def _element(item: object, spill: Spill, *, probe: bool) -> bytes:
    if probe:
        data = dump(item)
        if len(data) < PIECE:
            return data
        # What is large is not held twice.
        del data
    return dump(shorten(item, spill, probe=False))


def _array(encoded: list[bytes]) -> bytes:
    return b"[" + b",".join(encoded) + b"]"


def _put(piece: bytes, spill: Spill) -> str:
    digest = hashlib.sha256(piece)
    spill(digest.digest(), piece)
    return digest.hexdigest()
