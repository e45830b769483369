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
from dataclasses import dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final

from exporters.plainjson import written
from ledger import canonical
from ledger.canonical.escape import RESERVED

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
_CHUNK: Final = 64 * 1024
_INDENT: Final = "  "
_MOST_AT_ONCE: Final = 256  # elements of an array
_SHORT: Final = 100  # characters of a key whose spelling is worth remembering

_Members = Iterator[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Members:
    """An object whose members are made while it is written, one at a time, in their order."""

    make: Callable[[], Iterable[tuple[str, object]]]


@dataclass(frozen=True, slots=True)
class Items:
    """An array whose items are made while it is written, one at a time."""

    make: Callable[[], Iterable[object]]


@dataclass(frozen=True, slots=True)
class JsonText:
    """The bytes of a document, in pieces of about 64 KiB, written while they are read.

    Objects keep the order of their keys: whoever builds a document orders it, and what comes out
    of a ledger is sorted. With `compact` all is on one line. With `unicode` a lone surrogate, which
    strict readers refuse, is written as U+FFFD. Raises ValueRefused for a value that no ledger can
    hold.
    """

    document: object
    compact: bool = False
    unicode: bool = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes from the start; may be done again."""
        pieces: list[str] = []
        length = 0
        style = _COMPACT if self.compact else _INDENTED
        for token in _tokens(self.document, replace(style, unicode=self.unicode)):
            pieces.append(token)
            length += len(token)
            if length >= _CHUNK:
                yield _encode("".join(pieces))
                pieces.clear()
                length = 0
        pieces.append("\n")
        yield _encode("".join(pieces))


def json_bytes(document: object, *, unicode: bool = False) -> bytes:
    """The whole text of a small document."""
    return b"".join(JsonText(document, unicode=unicode))


def json_line(document: object) -> Iterator[bytes]:
    """The document on one line without spaces between its parts, in pieces; then a newline."""
    return iter(JsonText(document, compact=True))


def _encode(text: str) -> bytes:
    # Inside JSON text a surrogate stands in a string only, and this handler writes `\udXXX`.
    return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class _Style:
    """What stands between tokens: a line break, `indent` a level, and a space after a colon."""

    newline: str = "\n"
    indent: str = _INDENT
    spaced: bool = True
    unicode: bool = False

    def line(self, depth: int) -> str:
        return self.newline + self.indent * depth

    def label(self, label: str) -> str:
        return label if self.spaced else label[:-1]

    def below(self, text: str, depth: int) -> str:
        """A text of its own as it stands at a depth of another."""
        # Line breaks inside of texts are escaped: these all stand between tokens.
        return text.replace("\n", self.line(depth)) if depth and self.newline else text

    def text(self, text: str) -> str:
        return _scalar_values(text) if self.unicode and not text.isascii() else text


_INDENTED: Final = _Style()
_COMPACT: Final = _Style(newline="", indent="", spaced=False)


def _tokens(root: object, style: _Style) -> Iterator[str]:
    """Walk with an explicit stack: depth is bounded by the ledger, not by Python."""
    stack: list[tuple[_Members, str]] = []
    label, value = "", root
    while True:
        if type(value) is dict or type(value) is list:
            text = written(value, compact=not style.newline)
            if text is not None:
                text = style.below(text, len(stack))
        elif type(value) is _Run:
            text = style.below(value.text, len(stack) - 1)
        else:
            text = _scalar(style.text(value) if type(value) is str else value)
        if text is not None:
            yield label + text
        else:
            members, brackets = _open(value, style)
            first = next(members, None)
            if first is not None:
                stack.append((members, brackets[1]))
                yield f"{label}{brackets[0]}{style.line(len(stack))}"
                label, value = style.label(first[0]), first[1]
                continue
            yield label + brackets
        while stack:
            following = next(stack[-1][0], None)
            if following is not None:
                label, value = following
                label = f",{style.line(len(stack))}{style.label(label)}"
                break
            _, closing = stack.pop()
            yield f"{style.line(len(stack))}{closing}"
        else:
            return


def _scalar(value: object) -> str | None:
    """The text of what JSON has a word for; None for containers and for what needs an envelope."""
    kind = type(value)
    if kind is str:
        return None if _holds_pair(str(value)) else encode_basestring(str(value))
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if isinstance(value, int) and _LEAST_INT <= value <= _MOST_INT:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return float.__repr__(value)
    return None


def _open(value: object, style: _Style) -> tuple[_Members, str]:
    """The members of a container, each with its label, and its brackets."""
    match value:
        case dict():
            return ((_label(style.text(key)), item) for key, item in _ordered(value)), "{}"
        case Members():
            return ((_label(style.text(key)), item) for key, item in value.make()), "{}"
        case list():
            return (("", item) for item in _runs(value, style)), "[]"
        case tuple():
            return (("", item) for item in value), "[]"
        case Items():
            return (("", item) for item in value.make()), "[]"
        case _:
            # One reserved key, which is not to be escaped like a user's.
            envelope = json.loads(canonical.encode(value))
            return ((f"{encode_basestring(k)}: ", parts) for k, parts in envelope.items()), "{}"


@dataclass(frozen=True, slots=True)
class _Run:
    """Elements of an array that are written already, as they stand between its brackets."""

    text: str


def _runs(items: list[object], style: _Style) -> Iterator[object]:
    """The elements of an array, many small ones in one run."""
    for first in range(0, len(items), _MOST_AT_ONCE):
        some = items[first : first + _MOST_AT_ONCE]
        text = written(some, compact=not style.newline) if len(some) > 1 else None
        if text is None:
            yield from some
        else:
            edge = len("[" + style.line(1)), len(style.line(0) + "]")
            yield _Run(text[edge[0] : -edge[1]])


def _ordered(members: dict[str, object]) -> Iterable[tuple[str, object]]:
    # A ledger sorts keys with surrogates by their escaped spelling, which is not written here.
    keys = "".join(members)
    is_sorted_otherwise = not keys.isascii() and _SURROGATE.search(keys)
    return sorted(members.items()) if is_sorted_otherwise else members.items()


def _label(key: str) -> str:
    return _short_label(key) if len(key) <= _SHORT else _made_label(key)


@lru_cache(maxsize=1024)
def _short_label(key: str) -> str:
    return _made_label(key)


def _made_label(key: str) -> str:
    if _holds_pair(key):
        key = next(iter(json.loads(canonical.encode({key: None}))))
    elif key.startswith(RESERVED):
        key = f"{RESERVED}.{key}"
    return f"{encode_basestring(key)}: "


def _scalar_values(text: str) -> str:
    """The text with halves of one character joined, and those that stand alone replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _holds_pair(text: str) -> bool:
    return not text.isascii() and _PAIR.search(text) is not None
