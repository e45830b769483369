"""Where the parts of a large JSON object stand, found without reading it as a whole.

Only the outermost object, and the elements of the lists in it that are asked for, are looked at;
everything deeper is passed over by matching quotes and brackets, in one pass and little memory.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from runtime.importers.inspect.bytesource import ByteSource, chunks

Span = tuple[int, int]

_NEXT: Final = re.compile(rb'["{}\[\],]')
# Possessive, so that a long string costs no stack and no second look.
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BLANK: Final = b" \t\r\n"
_MAX_KEY: Final = 4096


class NoObject(Exception):
    """The file is no JSON object, or not a well-formed one; `str()` says why."""


@dataclass(slots=True)
class Parts:
    """The values of the outermost object by key, and the elements of the lists asked for.

    A span is (first byte, first byte behind). `cut` is True if the file ends before the object
    does: `open` is then the key whose value is not whole, and `elements` has those of it that
    are. `trailing` is True if something follows the object.
    """

    values: dict[str, Span] = field(default_factory=dict)
    elements: dict[str, list[Span]] = field(default_factory=dict)
    cut: bool = False
    open: str | None = None
    rest: int = 0
    trailing: bool = False


def find_parts(data: ByteSource, lists: Collection[str] = (), limit: int | None = None) -> Parts:
    """Look through the file, or its first `limit` bytes; raises NoObject."""
    scan = _Scan(data, frozenset(lists))
    at = 0
    with data.open() as stream:
        for chunk in chunks(stream):
            piece = chunk if limit is None else chunk[: max(0, limit - at)]
            scan.take(piece, at)
            at += len(chunk)
            if limit is not None and at >= limit:
                break
    return scan.end(at)


class _Scan:
    """The state between two pieces: in a string or not, how deep, and what is being passed."""

    def __init__(self, data: ByteSource, lists: frozenset[str]) -> None:
        self.data = data
        self.lists = lists
        self.parts = Parts()
        self.depth = 0
        self.in_string = False
        self.escaped = False
        self.begin = 0
        self.element = 0
        self.key: str | None = None
        self.over = False

    def take(self, piece: bytes, at: int) -> None:
        where = 0
        if at == 0 and not piece.lstrip(_BLANK).startswith(b"{"):
            raise NoObject("it does not begin as an object")
        while where < len(piece):
            if self.in_string:
                where = self.string(piece, where)
                continue
            found = _NEXT.search(piece, where)
            if self.over and piece[where : found.start() if found else None].strip(_BLANK):
                self.parts.trailing = True
            if found is None:
                return
            where = found.end()
            self.mark(piece[where - 1], at + where - 1)

    def string(self, piece: bytes, where: int) -> int:
        if self.escaped:
            self.escaped = False
            return where + 1
        match = _IN_STRING.match(piece, where)
        assert match is not None, "the pattern matches nothing, too"
        where = match.end()
        if where < len(piece):
            if piece[where] == ord('"'):
                self.in_string = False
            else:
                # A backslash that ends the piece.
                self.escaped = True
            where += 1
        return where

    def mark(self, mark: int, at: int) -> None:
        if self.over:
            self.parts.trailing = True
            return
        match chr(mark):
            case '"':
                self.in_string = True
            case "{" | "[":
                self.depth += 1
                if self.depth == 1:
                    self.begin = at + 1
                elif self.depth == 2 and self.starts_list(at):
                    self.element = at + 1
            case "}" | "]":
                self.closing(at)
            case _:
                self.comma(at)

    def starts_list(self, at: int) -> bool:
        key = self.name_of(at)
        self.key = key if key in self.lists and self.data.read(at, at + 1) == b"[" else None
        if self.key is not None:
            self.parts.elements[self.key] = []
        return self.key is not None

    def closing(self, at: int) -> None:
        self.depth -= 1
        if self.depth == 1 and self.key is not None:
            self.add_element(at)
            self.key = None
        elif self.depth == 0:
            self.add_value(at)
            self.over = True

    def comma(self, at: int) -> None:
        if self.depth == 1:
            self.add_value(at)
            self.begin = at + 1
        elif self.depth == 2 and self.key is not None:
            self.add_element(at)
            self.element = at + 1

    def add_element(self, end: int) -> None:
        assert self.key is not None
        head = self.data.read(self.element, min(end, self.element + _MAX_KEY))
        if end - self.element > _MAX_KEY or head.strip(_BLANK):
            self.parts.elements[self.key].append((self.element, end))

    def add_value(self, end: int) -> None:
        head = self.data.read(self.begin, min(end, self.begin + _MAX_KEY))
        if end - self.begin <= _MAX_KEY and not head.strip(_BLANK) and not self.parts.values:
            return
        key, start = _key(head)
        if key in self.parts.values:
            raise NoObject(f"two keys are {key!r}")
        self.parts.values[key] = (self.begin + start, end)

    def name_of(self, at: int) -> str | None:
        try:
            return _key(self.data.read(self.begin, min(at, self.begin + _MAX_KEY)))[0]
        except NoObject:
            return None

    def end(self, at: int) -> Parts:
        parts = self.parts
        if not self.over:
            parts.cut = True
            parts.open = self.name_of(at)
            parts.rest = self.element if self.key is not None else self.begin
        return parts


def _key(head: bytes) -> tuple[str, int]:
    """The key that a member begins with, and where its value begins."""
    text = head.lstrip(_BLANK)
    skipped = len(head) - len(text)
    match = re.match(rb'"(?:[^"\\]|\\.)*"', text, re.DOTALL)
    if match is None:
        raise NoObject("a key is missing or longer than any of a log")
    try:
        key = json.loads(match[0])
    except ValueError:
        raise NoObject("a key cannot be read") from None
    behind = text[match.end() :].lstrip(_BLANK)
    if not behind.startswith(b":"):
        raise NoObject(f"no value follows the key {key!r}")
    return str(key), skipped + len(text) - len(behind) + 1
