"""Texts that programs stumble over, and edits of JSON and of any bytes, told as short recipes.

A text of a recipe is a list of parts; a part is a text, or a text and how often it is repeated, so
that the recipe of a megabyte is short.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

Spec = list[Any]

_MARK = "\x7ffuzz\x7f"

SCALARS = (
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "-0.0",
    "0.5",
    "1.5",
    "1e16",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "-Infinity",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "4294967296",
    "1e18",
    "253402300800",
    "-62135596801",
    '""',
    '"x"',
    '" "',
    '"1"',
    '"NaN"',
    '"true"',
    '"\\ud800"',
    '"\\udcff\\ud800"',
    '"\\u0000"',
    '"\\u001b[2J"',
    '"."',
    '".."',
    '"../../x"',
    '"/x"',
    '"a/b"',
    '"con"',
    '"\\u202e"',
    '"$acl"',
    '"2026-01-02T03:04:05Z"',
    '"0001-01-01T00:00:00+14:00"',
    '"9999-12-31T23:59:59.999999-14:00"',
    '"2026-02-30T25:61:61Z"',
    '"2026-01-02"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    '[""]',
    '{"":null}',
    '{"$acl":["int","10000000000000000"]}',
    '{"$acl":["float","nan"]}',
    '{"$acl":["str","a"]}',
    '{"$acl":["bytes",[],"AA=="]}',
    '{"$acl":["text",["' + "0" * 64 + '"],"x"]}',
    '{"$acl":["list",["' + "0" * 64 + '"],[]]}',
    '{"$acl":1}',
    "[1,2,3]",
    '{"a":1,"a":2}',
    "01",
    "1.",
    "'x'",
    '"',
    "{",
    "",
)
LARGE: tuple[Spec, ...] = (
    [["9", 400]],
    ["-", ["9", 5000]],
    ["1.", ["0", 5000], "1"],
    ["1e", ["9", 30]],
    ['"', ["x", 5000], '"'],
    ['"', ["\\ud800", 1000], '"'],
    ['"', ["ä", 300], '"'],
    ['"', ["a/", 200], '"'],
    [["[", 150], "1", ["]", 150]],
    [["[", 250], "1", ["]", 250]],
    [["[", 1500], "1", ["]", 1500]],
    [["[", 100_000], "1", ["]", 100_000]],
    [['{"a":', 190], "1", ["}", 190]],
    [['{"a":', 1100], "1", ["}", 1100]],
    ["[", ["0,", 20_000], "0]"],
    ["[", ['"x",', 3000], '"x"]'],
    ["[", ["{},", 3000], "{}]"],
    ["{", ['"a":1,', 3000], '"b":2}'],
)
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7")


def expand(spec: Spec) -> str:
    """The text that a recipe tells."""
    return "".join(one if isinstance(one, str) else one[0] * one[1] for one in spec)


def draw(random: Random) -> Spec:
    """A JSON value, or what is nearly one."""
    if random.random() < 0.15:
        return random.choice(LARGE)
    return [random.choice(SCALARS)]


def parsed(data: bytes) -> Any:
    """The value of a JSON text; ValueError for what Python does not read as one."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


def pointers(value: Any, at: tuple[Any, ...] = (), depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """The place of each value in a JSON value, itself included."""
    yield at
    if depth > 40:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from pointers(item, (*at, key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value[:200]):
            yield from pointers(item, (*at, index), depth + 1)


def edit_json(data: bytes, verb: str, pointer: list[Any], *specs: Spec) -> bytes:
    """Set or cut the value at a place, or add a member to the object there; as it was if it can't.

    `set` takes the new value, `add` a key and a value; the key may be there already.
    """
    try:
        tree = parsed(data)
        if verb == "set" and not pointer:
            return _bytes(expand(specs[0]))
        parent = _at(tree, pointer if verb == "add" else pointer[:-1])
        if verb == "add":
            members = {_MARK: _MARK, **parent}
            parent.clear()
            parent.update(members)
        elif verb == "cut":
            del parent[pointer[-1]]
        else:
            # Only what is there.
            parent[pointer[-1]], _ = _MARK, parent[pointer[-1]]
        text = json.dumps(tree, ensure_ascii=False)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return data
    for spec in specs:
        text = text.replace(json.dumps(_MARK, ensure_ascii=False), expand(spec), 1)
    return _bytes(text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _at(tree: Any, pointer: list[Any]) -> Any:
    for step in pointer:
        tree = tree[step]
    return tree


def json_edit(data: bytes, random: Random) -> list[Any] | None:
    """Draw an edit: what `edit_json` takes behind the data; None if this is no JSON."""
    try:
        value = parsed(data)
        places = [*pointers(value)]
    except ValueError:
        return None
    pointer = [*random.choice(places)]
    match random.random():
        case share if share < 0.15 and pointer:
            return ["cut", pointer]
        case share if share < 0.25:
            objects = [one for one in places if isinstance(_at(value, [*one]), dict)]
            if objects:
                place = [*random.choice(objects)]
                keys = [*_at(value, place), "$acl", "\ud800", "", "x", "__class__"]
                return ["add", place, [json.dumps(random.choice(keys))], draw(random)]
        case share if share < 0.4:
            # Another value of the same document: right in kind, wrong in place.
            other = json.dumps(_at(value, [*random.choice(places)]))
            if len(other) < 500:
                return ["set", pointer, [other]]
    return ["set", pointer, draw(random)]


def splice(data: bytes, offset: int, removed: int, text: str) -> bytes:
    """Replace some bytes; `text` is latin-1."""
    return data[:offset] + text.encode("latin-1") + data[offset + removed :]


_BYTES = ("", "\0", "\xff", "\n", "\n\n", "\r\n", " ", "0", "\xe2\x80\x94 ", "=", "+", "/", "\x80")


def byte_edit(data: bytes, random: Random) -> list[Any]:
    """Draw an edit: what `splice` takes behind the data."""
    offset = random.randrange(len(data) + 1)
    match random.randrange(6):
        case 0 if offset < len(data):
            return [offset, 1, chr(data[offset] ^ 1 << random.randrange(8))]
        case 1:
            return [offset, random.choice((1, 2, 4, 16, 64, 4096)), ""]
        case 2:
            start = random.randrange(len(data) + 1)
            piece = data[start : start + random.choice((1, 4, 32, 200))]
            return [offset, random.choice((0, len(piece))), piece.decode("latin-1")]
        case 3:
            return [offset, len(data), ""]
        case 4:
            number = random.choice(
                (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31, 2**32 - 1, 2**63)
            )
            width = random.choice((1, 2, 4, 8))
            there = (number % (1 << 8 * width)).to_bytes(width, random.choice(("big", "little")))
            return [offset, width, there.decode("latin-1")]
    return [offset, random.choice((0, 0, 1, 3)), random.choice(_BYTES)]
