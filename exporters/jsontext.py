r"""JSON text as it stands in exported files: two spaces of indentation, UTF-8, a final newline.

What JSON cannot say is written in the ledger's own envelopes (`ledger.canonical`): NaN and
infinities, integers beyond 64 bits, binaries. A lone surrogate is written as its JSON escape, which
reads back as the same text; a pair of surrogates that are two code points would read back as one
character and gets the envelope. With the envelopes opened, what `json.loads` gives is the value
again.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.canonical.escape import RESERVED

_quote: Final = json.JSONEncoder(ensure_ascii=False).encode
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
_CHUNK: Final = 64 * 1024
_INDENT: Final = "  "

_Members = Iterator[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Members:
    """An object whose members are made while it is written, one at a time, in their order."""

    make: Callable[[], Iterable[tuple[str, object]]]


@dataclass(frozen=True, slots=True)
class JsonText:
    """The bytes of a document, in pieces of about 64 KiB, written while they are read.

    Objects keep the order of their keys: whoever builds a document orders it, and what comes out
    of a ledger is sorted. Raises ValueRefused for a value that no ledger can hold.
    """

    document: object

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes from the start; may be done again."""
        pieces: list[str] = []
        length = 0
        for token in _tokens(self.document):
            pieces.append(token)
            length += len(token)
            if length >= _CHUNK:
                yield _encode("".join(pieces))
                pieces.clear()
                length = 0
        pieces.append("\n")
        yield _encode("".join(pieces))


def json_bytes(document: object) -> bytes:
    """The whole text of a small document."""
    return b"".join(JsonText(document))


def _encode(text: str) -> bytes:
    # Inside JSON text a surrogate stands in a string only, and this handler writes `\udXXX`.
    return text.encode("utf-8", "backslashreplace")


def _tokens(root: object) -> Iterator[str]:
    """Walk with an explicit stack: depth is bounded by the ledger, not by Python."""
    stack: list[tuple[_Members, str]] = []
    label, value = "", root
    while True:
        opened = _open(value)
        first = None if opened is None else next(opened[0], None)
        if opened is None:
            yield label + _scalar(value)
        elif first is None:
            yield label + opened[1]
        else:
            members, brackets = opened
            stack.append((members, brackets[1]))
            yield f"{label}{brackets[0]}\n{_INDENT * len(stack)}"
            label, value = first
            continue
        while stack:
            following = next(stack[-1][0], None)
            if following is not None:
                yield f",\n{_INDENT * len(stack)}"
                label, value = following
                break
            _, closing = stack.pop()
            yield f"\n{_INDENT * len(stack)}{closing}"
        else:
            return


def _open(value: object) -> tuple[_Members, str] | None:
    """The members of a container and its brackets; None for a scalar."""
    match value:
        case dict():
            return ((_label(key), item) for key, item in _ordered(value)), "{}"
        case Members():
            return ((_label(key), item) for key, item in value.make()), "{}"
        case list() | tuple():
            return (("", item) for item in value), "[]"
        case str() if _PAIR.search(value):
            return _envelope(value)
        case str() | None | bool():
            return None
        case int() if _LEAST_INT <= value <= _MOST_INT:
            return None
        case float() if math.isfinite(value):
            return None
        case _:
            return _envelope(value)


def _ordered(members: dict[str, object]) -> Iterable[tuple[str, object]]:
    # A ledger sorts such keys by their escaped spelling, which is not the one written here.
    return sorted(members.items()) if _SURROGATE.search("".join(members)) else members.items()


def _envelope(value: object) -> tuple[_Members, str]:
    """What the canonical form has for a value that JSON has no word for: one reserved key."""
    envelope = json.loads(canonical.encode(value))
    return ((f"{_quote(key)}: ", parts) for key, parts in envelope.items()), "{}"


def _scalar(value: object) -> str:
    match value:
        case str():
            return _quote(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return float.__repr__(value)
        case _:
            return str(value)


def _label(key: str) -> str:
    if _PAIR.search(key):
        key = next(iter(json.loads(canonical.encode({key: None}))))
    elif key.startswith(RESERVED):
        key = f"{RESERVED}.{key}"
    return f"{_quote(key)}: "
