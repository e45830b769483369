"""The redaction gate: every value passes it once, before it is appended.

By key, every leaf below a secret name is replaced; by value, whatever looks like a secret in any
text, keys of objects and the text of tool arguments included. The names are in `secret_names`, the
shapes in `secret_text`. Numbers below `metrics`, `correct` and `score` are results and stay,
whatever the names around them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count as counted
from typing import Any

import orjson

from runtime.secret_json import may_tell
from runtime.secret_names import Kind, kind_of_key, secret_values
from runtime.secret_text import (
    MASK,
    MIN_TEXT,
    is_placeholder,
    mask_text,
    may_hide_secret,
    may_hold_secret,
)

POLICY_VERSION = "acl.redaction.v1"

_MAX_CACHED_KEY = 256
# Characters that are searched at once, if they come in many texts.
_JOINED = 1 << 20
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JSON_START = re.compile(r"\s*[\[{]")
# A union would be made anew for each value.
_CONTAINERS = (dict, list, tuple)
# What is no plain JSON is refused, and not written as something else.
_ITSELF = (
    orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
# Harmless keys that are remembered; a run has some hundreds.
_MOST_KEYS = 4096


class Redactor:
    """Replaces secrets by `********` and counts them; pure but for a cache of keys.

    `environ` maps variables to values: those whose names look secret and whose values have at
    least 8 characters are replaced wherever they occur, and so are `secrets` as long as that, for
    instance an API key that stands in a request. Redacting again finds nothing more.
    """

    def __init__(self, environ: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        self._values = secret_values(environ, secrets)
        self._values_in_json = tuple(
            json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
            for value in self._values
        )
        self._short_key = lru_cache(maxsize=4096)(self._long_key)
        self._harmless: set[str] = set()
        """Keys that tell of no secret and hold none; what is not here may be harmless as well."""

    def redact(self, value: Any) -> tuple[Any, int]:
        """Return `value` without its secrets, and how many there were.

        The same object comes back if there are none; else a copy, in which tuples are lists.
        Objects that are not JSON are passed through untouched, at any depth.
        """
        if self.is_clean(value):
            return value, 0
        redacted, count = self._walk(value)
        return (redacted, count) if count else (value, 0)

    def redact_text(self, text: str) -> tuple[str, int]:
        """Return `text` without its secrets, and how many there were.

        Text that is a JSON object or list is redacted inside, by key too, and written anew; it
        stays byte for byte if there is nothing to hide.
        """
        total = 0
        while True:
            # A replacement can turn text into JSON, or end a value sooner: look again until still.
            text, count = self._redact_once(text)
            if not count:
                return text, total
            total += count

    def _redact_once(self, text: str) -> tuple[str, int]:
        if len(text) < MIN_TEXT or self._are_clean([text]):
            return text, 0
        parsed = _parse_json(text)
        if parsed is not None:
            value, count = self.redact(parsed)
            return (json.dumps(value, ensure_ascii=text.isascii()), count) if count else (text, 0)
        total = 0
        for value in self._values:
            if value in text:
                total += text.count(value)
                text = text.replace(value, MASK)
        text, count = mask_text(text)
        return text, total + count

    def are_clean_json(self, values: Iterable[Any]) -> bool:
        """True only if all `values` are JSON, and `redact` would find nothing in any.

        Their JSON is written and searched, about a megabyte at once, with all that is in it as
        often as it stands there: for what is to be written so anyway.
        """
        try:
            return not any(map(self._may_tell, _together(map(_json, values))))
        except orjson.JSONEncodeError:
            return False

    def _may_tell(self, data: bytes) -> bool:
        return any(value in data for value in self._values_in_json) or may_tell(data)

    def is_clean(self, value: Any) -> bool:
        """True only if `redact` would find nothing: one pass over keys, one over all text."""
        texts: list[str] = []
        seen: set[int] = set()
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                if len(item) >= MIN_TEXT:
                    texts.append(item)
            elif isinstance(item, _CONTAINERS) and id(item) not in seen:
                seen.add(id(item))
                if isinstance(item, dict):
                    if not (item.keys() <= self._harmless or self._are_harmless(item)):
                        return False
                    waiting.extend(item.values())
                else:
                    waiting.extend(item)
        return not texts or self._are_clean(texts)

    def _are_clean(self, texts: list[str]) -> bool:
        if any(map(may_hide_secret, _joined([text for text in texts if _may_be_json(text)]))):
            return False
        return not any(map(self._may_hold, _joined(texts)))

    def _may_hold(self, text: str) -> bool:
        return any(value in text for value in self._values) or may_hold_secret(text)

    def _are_harmless(self, keys: Iterable[Any]) -> bool:
        for key in keys:
            if self._is_telling(key):
                return False
            if type(key) is str and len(key) <= _MAX_CACHED_KEY:
                if len(self._harmless) >= _MOST_KEYS:
                    self._harmless.clear()
                self._harmless.add(key)
        return True

    def _is_telling(self, key: Any) -> bool:
        _, count, kind = self._key(key)
        return count > 0 or kind is Kind.SECRET

    def _key(self, key: Any) -> tuple[Any, int, Kind]:
        """What an object's key becomes, its replacements, and what it says of its value."""
        if not isinstance(key, str):
            return key, 0, Kind.PLAIN
        return self._short_key(key) if len(key) <= _MAX_CACHED_KEY else self._long_key(key)

    def _long_key(self, key: str) -> tuple[str, int, Kind]:
        new_key, count = self.redact_text(key)
        kind = kind_of_key(key)
        if kind is Kind.PLAIN and count:
            # `token=abc` becomes `token=********`, which is a secret name: so it is one at once
            kind = kind_of_key(new_key)
        return new_key, count, kind

    def _walk(self, root: Any) -> tuple[Any, int]:
        """Copy `root` without its secrets; no recursion, so that depth and cycles do no harm."""
        out: list[Any] = [None]
        copies: dict[tuple[int, bool, bool], Any] = {}
        waiting = [_Place(root, out, 0)]
        total = 0
        while waiting:
            place = waiting.pop()
            value = place.value
            if isinstance(value, dict | list | tuple):
                mark = (id(value), place.hidden, place.result)
                if mark not in copies:
                    copies[mark], count, inside = self._open(place)
                    total += count
                    waiting.extend(inside)
                new = copies[mark]
            else:
                new, count = self._leaf(place)
                total += count
            place.into[place.at] = new
        return out[0], total

    def _open(self, place: "_Place") -> tuple[Any, int, list["_Place"]]:
        """An empty copy of a container, the replacements in its keys, and what goes into it."""
        value = place.value
        if not isinstance(value, dict):
            items: list[Any] = [None] * len(value)
            return items, 0, [place.inside(child, items, at) for at, child in enumerate(value)]
        copy: dict[Any, Any] = {}
        inside: list[_Place] = []
        total = 0
        reference = _is_reference(value)
        numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: counted(2))
        for key, child in value.items():
            new_key, count, kind = self._key(key)
            total += count
            name = new_key
            while count and (new_key in copy or new_key in value):
                # two keys became one: numbered, so that no value is lost
                new_key = f"{name} ({next(numbers[name])})"
            copy[new_key] = None
            below = place.inside(child, copy, new_key)
            below.hidden = not reference and (place.hidden or kind is Kind.SECRET)
            below.result = place.result or kind is Kind.RESULT
            inside.append(below)
        return copy, total, inside

    def _leaf(self, place: "_Place") -> tuple[Any, int]:
        value = place.value
        if isinstance(value, str):
            if place.hidden and not is_placeholder(value):
                return MASK, 1
            return self.redact_text(value)
        if isinstance(value, int | float) and place.hidden and not place.result:
            return MASK, 1
        return value, 0


@dataclass(slots=True)
class _Place:
    """A value, where its copy goes, and what the keys above it say."""

    value: Any
    into: Any
    at: Any
    hidden: bool = False
    result: bool = False

    def inside(self, value: Any, into: Any, at: Any) -> "_Place":
        return _Place(value, into, at, self.hidden, self.result)


def _json(value: Any) -> bytes:
    """`value` as JSON; JSONEncodeError if it is something else."""
    return orjson.dumps([value], option=_ITSELF)


def _together(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Parts joined to fewer, of a megabyte or more each; one goes before the next are made."""
    waiting: list[bytes] = []
    length = 0
    for part in parts:
        waiting.append(part)
        length += len(part)
        if length >= _JOINED:
            yield b"\n".join(waiting)
            waiting.clear()
            length = 0
    yield b"\n".join(waiting)


def _joined(texts: list[str]) -> Iterator[str]:
    """Texts as fewer of bounded length, to be searched at once; one that is longer stays alone.

    A secret lies within one text; a line end in between lets none arise across two.
    """
    begin = length = 0
    for at, text in enumerate(texts):
        if length and length + len(text) > _JOINED:
            yield "\n".join(texts[begin:at])
            begin, length = at, 0
        length += len(text) + 1
    if begin < len(texts):
        yield texts[begin] if begin + 1 == len(texts) else "\n".join(texts[begin:])


def _may_be_json(text: str) -> bool:
    return text[0] in "{[ \t\r\n" and _JSON_START.match(text) is not None


def _is_reference(value: dict[Any, Any]) -> bool:
    """True for `{"env": NAME}`, which names a variable and holds no secret."""
    name = value.get("env")
    return len(value) == 1 and isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None


def _parse_json(text: str) -> Any:
    """The object or list that `text` is the JSON of; None if it is something else.

    Control characters inside its texts are let through, and the values of equal keys become a
    list under that key, so that none escapes being looked at.
    """
    if _JSON_START.match(text) is None:
        return None
    try:
        return json.loads(text, strict=False, object_pairs_hook=_all_pairs)
    except (ValueError, RecursionError):
        return None


def _all_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    repeated: set[str] = set()
    for key, value in pairs:
        if key in repeated:
            found[key].append(value)
        elif key in found:
            found[key] = [found[key], value]
            repeated.add(key)
        else:
            found[key] = value
    return found
