"""Values to canonical bytes: equal values give equal bytes, and unequal ones do not.

Most values are plain JSON, and orjson writes them as wanted once one walk has seen that they are
what they look like: orjson alone would write NaN as null and an Enum as its value, and does not
bound the depth of tuples. Everything else takes the exact road, which writes the same bytes.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from math import isfinite
from typing import Any

import orjson

from ledger.canonical.cutting import Spill, cut_binary, cut_list, cut_text, dump, envelope, shorten
from ledger.canonical.escape import RESERVED, escape_key, escape_text, has_surrogate
from ledger.canonical.path import spell_path
from ledger.canonical.values import (
    BINARY_PIECE,
    MAX_DEPTH,
    PIECE,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
)
from ledger.errors import ValueRefused, VersionUnsupported

_RESERVED_BYTES = re.compile(re.escape(RESERVED.encode("ascii")))
TOO_DEEP = f"nested deeper than {MAX_DEPTH}"
LEAST_INT, MOST_INT = -(2**63), 2**64 - 1


def encode(value: object, spill: Spill | None = None) -> bytes:
    """Write `value` as canonical JSON.

    Without `spill` the whole value is written. With it, texts of more than 4,096 characters, lists
    that hold an object, and binaries of more than 65,536 bytes are cut from the front; each piece
    goes to `spill` as (SHA-256 digest, bytes), inner ones first, and its digest stands in the
    value. After an error the pieces handed over so far belong to nothing.

    Raises ValueRefused with the path of the first value that has no canonical form.
    """
    if spill is not None and type(value) is str and len(value) > PIECE:
        # Written whole first, it would be held once more, in a buffer of eight times its length.
        return _encode_exact(value, spill)
    data = _encode_plain(value)
    if data is None:
        return _encode_exact(value, spill)
    if spill is None or len(data) < PIECE:
        return data
    # What is large is not held twice.
    del data
    return dump(shorten(value, spill))


def is_plain(value: object) -> bool:
    """Tell whether `value` has only JSON's own types, finite floats, and no excess depth.

    Keys, surrogates and the size of integers are left to orjson, which refuses them.
    """
    stack: list[tuple[Any, int]] = [((value,), 0)]
    while stack:
        container, depth = stack.pop()
        if depth > MAX_DEPTH:
            return False
        for item in container.values() if type(container) is dict else container:
            kind = type(item)
            if kind is str or kind is int or kind is bool or item is None:
                continue
            if kind is dict or kind is list or kind is tuple:
                stack.append((item, depth + 1))
            elif kind is not float or not isfinite(item):
                return False
    return True


def has_envelopes(data: bytes) -> bool:
    """Tell whether canonical bytes may hold an envelope; if not, they refer to no blob."""
    # One byte is found ten times as fast, and is mostly not there; `re` beats `in` for the rest.
    return b"$" in data and _RESERVED_BYTES.search(data) is not None


def _encode_plain(value: object) -> bytes | None:
    """Write a value that needs no envelope and no escape; None if the exact road must be taken."""
    if not is_plain(value):
        return None
    try:
        data = dump(value)
    except orjson.JSONEncodeError:
        return None
    return None if has_envelopes(data) else data


def _encode_exact(value: object, spill: Spill | None) -> bytes:
    try:
        return dump(_Exact(spill).tree(value, 0))
    except Unholdable as error:
        raise ValueRefused(spell_path(error.steps[::-1]), error.why) from None


class Unholdable(Exception):
    """A value has no canonical form; `steps` lead to it, innermost first."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.steps: list[str | int] = []


def why_unholdable(value: object) -> str:
    """Say why a value of a type that is not written is refused, and what to do."""
    kind = type(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{kind.__name__} is not text; wrap bytes in Binary"
    for base in (bool, int, float, str, list, tuple, dict):
        if isinstance(value, base):
            return (
                f"{kind.__module__}.{kind.__qualname__} is a subclass; convert to {base.__name__}"
            )
    return f"{kind.__module__}.{kind.__qualname__} has no canonical form"


def why_no_key(key: object) -> str:
    """Say why an object key is refused."""
    return f"a key is {type(key).__name__}, not text"


class _Exact:
    """Turns any value into a tree that orjson writes as the canonical form wants it."""

    def __init__(self, spill: Spill | None) -> None:
        self._spill = spill

    def tree(self, value: object, depth: int) -> object:
        """Return what stands for `value`, which `depth` lists and objects are around."""
        kind = type(value)
        if kind in _CONTAINERS:
            if depth >= MAX_DEPTH:
                raise Unholdable(TOO_DEEP)
            return _CONTAINERS[kind](self, value, depth + 1)
        if kind in _LEAVES:
            return _LEAVES[kind](self, value)
        raise Unholdable(why_unholdable(value))

    def _same(self, value: object) -> object:
        return value

    def _int(self, value: int) -> object:
        return value if LEAST_INT <= value <= MOST_INT else envelope("int", f"{value:x}")

    def _float(self, value: float) -> object:
        return value if isfinite(value) else envelope("float", str(value))

    def _text(self, value: str) -> object:
        if self._spill is not None and len(value) > PIECE:
            digests, rest = cut_text(value, self._spill)
            return envelope("text", digests, _spell_text(rest))
        return _spell_text(value)

    def _binary(self, value: Binary) -> object:
        if self._spill is not None and len(value.data) > BINARY_PIECE:
            return cut_binary(value.data, self._spill)
        return envelope("bytes", [], _base64(value.data))

    def _spilled_text(self, value: SpilledText) -> object:
        return envelope("text", _hex(value.pieces), _spell_text(value.rest))

    def _spilled_binary(self, value: SpilledBinary) -> object:
        return envelope("bytes", _hex(value.pieces), _base64(value.rest))

    def _object(self, value: dict[object, object], depth: int) -> object:
        tree = {}
        for key, item in value.items():
            if type(key) is not str:
                raise Unholdable(why_no_key(key))
            try:
                tree[escape_key(key)] = self.tree(item, depth)
            except Unholdable as error:
                error.steps.append(key)
                raise
        return tree

    def _list(self, value: list[object] | tuple[object, ...], depth: int) -> object:
        tree = []
        for position, item in enumerate(value):
            try:
                tree.append(self.tree(item, depth))
            except Unholdable as error:
                error.steps.append(position)
                raise
        if self._spill is None or not any(type(item) is dict for item in value):
            return tree
        return cut_list(map(dump, tree), self._spill)

    def _spilled_list(self, value: SpilledList, depth: int) -> object:
        # What stands inside was cut when it was written: it goes back as it came. It is written
        # at once, so that the levels of envelopes do not add up to orjson's limit.
        rest = dump(_Exact(None)._list(value.rest, depth))
        return envelope("list", _hex(value.pieces), orjson.Fragment(rest))


_LEAVES: dict[type, Callable[[_Exact, Any], object]] = {
    type(None): _Exact._same,
    bool: _Exact._same,
    int: _Exact._int,
    float: _Exact._float,
    str: _Exact._text,
    Binary: _Exact._binary,
    SpilledText: _Exact._spilled_text,
    SpilledBinary: _Exact._spilled_binary,
}
_CONTAINERS: dict[type, Callable[[_Exact, Any, int], object]] = {
    dict: _Exact._object,
    list: _Exact._list,
    tuple: _Exact._list,
    SpilledList: _Exact._spilled_list,
}


def _spell_text(text: str) -> object:
    return envelope("str", escape_text(text)) if has_surrogate(text) else text


def _hex(digests: tuple[bytes, ...]) -> list[str]:
    return [digest.hex() for digest in digests]


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


_FLOAT_SPELLINGS = {
    1.0: b"1.0",
    -0.0: b"-0.0",
    1e-5: b"0.00001",
    1e-6: b"1e-6",
    9999999999999998.0: b"9999999999999998.0",
    1e16: b"1e+16",
    1.5e300: b"1.5e+300",
    5e-324: b"5e-324",
}


def check_float_spelling(write: Callable[[float], bytes] = orjson.dumps) -> None:
    """Raise VersionUnsupported if orjson writes floats in another way than the format says.

    Done at import: older releases write 1e21, and a ledger written so would not verify elsewhere.
    """
    for number, spelling in _FLOAT_SPELLINGS.items():
        if write(number) != spelling:
            raise VersionUnsupported(
                f"orjson {orjson.__version__} writes {number!r} as {write(number).decode()}",
                hint="install a release of orjson from 3.11.9 on that writes it as "
                + spelling.decode(),
            )


check_float_spelling()
