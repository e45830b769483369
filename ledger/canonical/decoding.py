"""Canonical bytes to values; what is not in the canonical form is damage."""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from itertools import repeat
from math import inf, nan

import orjson

from ledger.canonical.cutting import dump
from ledger.canonical.encoding import (
    LEAST_INT,
    MOST_INT,
    TOO_DEEP,
    encode,
    has_envelopes,
    is_plain,
)
from ledger.canonical.escape import RESERVED, unescape_key, unescape_text
from ledger.canonical.values import (
    MAX_DEPTH,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
)
from ledger.errors import LedgerDamaged

_FLOATS = {"nan": nan, "inf": inf, "-inf": -inf}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CONTAINERS = frozenset({dict, list})
_HEX_INT = re.compile(r"-?[1-9a-f][0-9a-f]*")


def decode(data: bytes) -> object:
    """Read a value; references come back as SpilledText, SpilledList and SpilledBinary.

    Raises LedgerDamaged for what is not JSON in UTF-8, for envelopes that are unknown or
    malformed, and for nesting over `MAX_DEPTH`. Other spellings of a value (spaces, key order,
    duplicate keys, integers beyond 64 bits) are read like JSON: whoever must know compares
    `encode(value)` with the bytes, or asks `is_canonical`.
    """
    return _value(_loaded(data), data)


def decode_with_spelling(data: bytes) -> tuple[object, bytes | None]:
    """Read a value as `decode` does; return with it what `spelled_again` writes."""
    tree = _loaded(data)
    spelled = _dumped(tree)
    return _value(tree, data), spelled


def _loaded(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise LedgerDamaged(f"not JSON: {error}") from None


def _dumped(tree: object) -> bytes | None:
    try:
        return dump(tree)
    except orjson.JSONEncodeError:
        return None


def _value(tree: object, data: bytes) -> object:
    if has_envelopes(data):
        return _open(tree, 0)
    if not surely_within(data, MAX_DEPTH) and not is_plain(tree):
        raise LedgerDamaged(TOO_DEEP)
    return tree


def surely_within(data: bytes, levels: int) -> bool:
    """Tell whether JSON text has too few brackets, those in texts included, to nest deeper."""
    return len(data) <= 2 * levels or data.count(b"[") + data.count(b"{") <= levels


def decode_canonical(data: bytes) -> object:
    """Read exactly what `encode` writes; LedgerDamaged for every other spelling as well.

    What envelopes and escaped keys hold is read in one spelling only, so that the rest is JSON: it
    is spelled once more, as it was read.
    """
    value, spelled = decode_with_spelling(data)
    if (encode(value) if spelled is None else spelled) != data:
        raise LedgerDamaged("not spelled in the canonical form")
    return value


def spelled_again(data: bytes) -> bytes | None:
    """Write JSON with its keys in order; None if it nests deeper than is written at once."""
    return _dumped(orjson.loads(data))


def is_canonical(data: bytes) -> bool:
    """Tell whether `data` is what `encode` writes for the value that it holds."""
    try:
        decode_canonical(data)
    except LedgerDamaged:
        return False
    return True


def _open(tree: object, depth: int) -> object:
    """Read a tree that `depth` lists and objects are around."""
    # Most of a tree are leaves and plain keys, for which a call each would be most of the time.
    if type(tree) is dict:
        if RESERVED in tree:
            return _open_envelope(tree, depth)
        _go_deeper(depth)
        return {
            unescape_key(key) if key.startswith(RESERVED) else key: _open(item, depth + 1)
            if type(item) in _CONTAINERS
            else item
            for key, item in tree.items()
        }
    if type(tree) is list:
        _go_deeper(depth)
        return [_open(item, depth + 1) if type(item) in _CONTAINERS else item for item in tree]
    return tree


def _go_deeper(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise LedgerDamaged(TOO_DEEP)


def _open_envelope(tree: dict[str, object], depth: int) -> object:
    match tree:
        case {"$acl": ["list", list(digests), list(rest)]} if len(tree) == 1:
            _go_deeper(depth)
            return SpilledList(_digests(digests), tuple(map(_open, rest, repeat(depth + 1))))
        case {"$acl": [str(kind), *parts]} if len(tree) == 1 and kind in _OPENERS:
            return _OPENERS[kind](parts)
    raise LedgerDamaged("an envelope is malformed or of no known kind")


def _open_int(parts: list[object]) -> int:
    match parts:
        case [str(digits)] if _HEX_INT.fullmatch(digits):
            number = int(digits, 16)
            if not LEAST_INT <= number <= MOST_INT:
                return number
    raise LedgerDamaged("an integer envelope is malformed")


def _open_float(parts: list[object]) -> float:
    match parts:
        case [str(name)] if name in _FLOATS:
            return _FLOATS[name]
    raise LedgerDamaged("a float envelope is malformed")


def _open_str(parts: list[object]) -> str:
    match parts:
        case [str(spelling)]:
            return unescape_text(spelling)
    raise LedgerDamaged("a text envelope is malformed")


def _open_text(parts: list[object]) -> SpilledText:
    match parts:
        case [list(digests), str(rest)]:
            return SpilledText(_digests(digests), rest)
        case [list(digests), dict(inner)]:
            text = _open_envelope(inner, 0)
            if isinstance(text, str):
                return SpilledText(_digests(digests), text)
    raise LedgerDamaged("a reference to a text is malformed")


def _open_bytes(parts: list[object]) -> Binary | SpilledBinary:
    match parts:
        case [list(digests), str(spelling)]:
            rest = _decode_base64(spelling)
            return SpilledBinary(_digests(digests), rest) if digests else Binary(rest)
    raise LedgerDamaged("a binary is malformed")


_OPENERS: dict[str, Callable[[list[object]], object]] = {
    "int": _open_int,
    "float": _open_float,
    "str": _open_str,
    "text": _open_text,
    "bytes": _open_bytes,
}


def _digests(spellings: list[object]) -> tuple[bytes, ...]:
    digests = []
    for spelling in spellings:
        if not isinstance(spelling, str) or not _DIGEST.fullmatch(spelling):
            raise LedgerDamaged("a reference holds what is no digest")
        digests.append(bytes.fromhex(spelling))
    return tuple(digests)


def _decode_base64(spelling: str) -> bytes:
    try:
        data = b64decode(spelling, validate=True)
    except (Base64Error, ValueError):
        raise LedgerDamaged("a binary is not base64") from None
    if b64encode(data).decode("ascii") != spelling:
        raise LedgerDamaged("a binary is in base64 of another spelling")
    return data
