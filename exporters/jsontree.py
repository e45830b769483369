"""JSON as it is spelled: two texts compared part by part, and the path of the first difference.

Numbers keep their spelling and objects their order, since exported files are compared as bytes.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from json.encoder import encode_basestring
from typing import Any, Final

_INDENT: Final = "  "
_SHOWN: Final = 60
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Word:
    """A number or constant, as it is spelled."""

    text: str


@dataclass(slots=True)
class Members:
    """An object: its members in their order."""

    pairs: list[tuple[str, Any]]

    def has(self, name: str) -> bool:
        """Whether there is a member of this name."""
        return any(key == name for key, _ in self.pairs)

    def without(self, name: str) -> "Members":
        """The object without the members of this name."""
        return Members([pair for pair in self.pairs if pair[0] != name])

    def masked(self, path: tuple[str, ...]) -> "Members":
        """The object with the value at `path` replaced by None, if there is one."""
        return Members([(key, _masked(key, value, path)) for key, value in self.pairs])


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values first differ, and how each is spelled there; None for an absent one."""

    at: str
    first: str | None
    second: str | None


def parse(data: bytes) -> Any:
    """Read a JSON text; raises ValueError or RecursionError for what is none."""
    return json.loads(
        data.decode("utf-8"),
        object_pairs_hook=Members,
        parse_int=Word,
        parse_float=Word,
        parse_constant=Word,
    )


def spell(tree: Any) -> bytes:
    """The text of a parsed tree as exports write it."""
    return ("".join(_tokens(tree, "\n")) + "\n").encode("utf-8", "backslashreplace")


def first_difference(first: Any, second: Any) -> Difference | None:
    """The first place, in the order of the text, where two trees are not the same."""
    return next(_differences(first, second, "$"), None)


def _masked(key: str, value: Any, path: tuple[str, ...]) -> Any:
    if key != path[0]:
        return value
    if len(path) == 1:
        return None
    return value.masked(path[1:]) if isinstance(value, Members) else value


def _tokens(tree: Any, line: str) -> Iterator[str]:
    match tree:
        case Members(pairs) if pairs:
            parts = ((f"{encode_basestring(key)}: ", value) for key, value in pairs)
            yield from _container(parts, "{}", line)
        case list() if tree:
            yield from _container((("", value) for value in tree), "[]", line)
        case str():
            yield encode_basestring(tree)
        case Word(text):
            yield text
        case _:
            yield "{}" if isinstance(tree, Members) else json.dumps(tree)


def _container(parts: Iterator[tuple[str, Any]], brackets: str, line: str) -> Iterator[str]:
    opening = brackets[0] + line + _INDENT
    for label, value in parts:
        yield opening + label
        yield from _tokens(value, line + _INDENT)
        opening = "," + line + _INDENT
    yield line + brackets[1]


def _differences(first: Any, second: Any, at: str) -> Iterator[Difference]:
    if isinstance(first, Members) and isinstance(second, Members):
        yield from _of_members(first, second, at)
    elif isinstance(first, list) and isinstance(second, list):
        for index, (one, other) in enumerate(zip_longest(first, second, fillvalue=_ABSENT)):
            yield from _differences(one, other, f"{at}[{index}]")
    elif first is not second and (type(first) is not type(second) or first != second):
        yield Difference(at, _shown(first), _shown(second))


def _of_members(first: Members, second: Members, at: str) -> Iterator[Difference]:
    there = dict(second.pairs)
    here = dict(first.pairs)
    for key, value in first.pairs:
        yield from _differences(value, there.get(key, _ABSENT), _path(at, key))
    for key, value in second.pairs:
        if key not in here:
            yield Difference(_path(at, key), None, _shown(value))
    if [key for key, _ in first.pairs] != [key for key, _ in second.pairs]:
        yield Difference(at, "members in one order", "the same in another")


def _path(at: str, key: str) -> str:
    return f"{at}.{key}" if key.isidentifier() else f"{at}[{json.dumps(key)}]"


def _shown(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = " ".join(spell(value).decode().split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
