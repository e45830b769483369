"""Foreign JSON, read strictly: whatever is odd about it is named, and nothing is guessed."""

import json
import re
import sys
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, NoReturn

from ledger import canonical
from ledger.errors import ValueRefused

ROOM: Final = 8
"""Levels of nesting that the event around a record may need."""

# Python reads 1e999 as infinity without a word.
_LONG_EXPONENT: Final = re.compile(rb"[eE]\+?\d{3}")

_WORDS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_FRAGMENT: Final = re.compile(r"\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")


class NotARecord(Exception):
    """The bytes are no record; `str()` says why, `cut` if the text only ends too early."""

    def __init__(self, why: str, *, cut: bool = False) -> None:
        super().__init__(why)
        self.cut = cut


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object, and the words in it that are not JSON (`NaN`, a number beyond floats)."""

    value: dict[str, Any]
    oddities: tuple[str, ...] = ()


def read_record(data: bytes) -> Record:
    """Read one JSON object; raises NotARecord for everything else.

    Refused: text that is not UTF-8 or not JSON, two keys of one name, nesting beyond what a
    ledger holds, and any value that is not an object. `NaN` and the infinities are let through,
    as Python programs write them, and named.
    """
    reading = _Reading()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotARecord(f"not UTF-8 at byte {error.start}") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=reading.pairs,
            parse_constant=reading.constant,
            parse_float=reading.number if _LONG_EXPONENT.search(data) else None,
        )
    except json.JSONDecodeError as error:
        raise _not_json(text, error) from None
    except RecursionError:
        raise NotARecord("nested too deep") from None
    except ValueError:
        # Python reads no longer ones, since that takes quadratic time.
        digits = sys.get_int_max_str_digits()
        raise NotARecord(f"holds a whole number of more than {digits} digits") from None
    if not isinstance(value, dict):
        raise NotARecord(f"holds {_kind(value)}, not an object")
    _refuse_too_deep(value)
    return Record(value, tuple(dict.fromkeys(reading.oddities)))


def _not_json(text: str, error: json.JSONDecodeError) -> NotARecord:
    if not text.strip():
        return NotARecord("empty", cut=True)
    if error.msg.startswith("Unterminated string") or _is_front(text[error.pos :].rstrip()):
        return NotARecord(f"cut off after {len(text)} characters", cut=True)
    return NotARecord(f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}")


def _is_front(rest: str) -> bool:
    """True if the parser stopped at the end, or in a word, number or escape that is not whole."""
    return any(word.startswith(rest) for word in _WORDS) or _FRAGMENT.fullmatch(rest) is not None


def _refuse_too_deep(value: object) -> None:
    if _is_shallow(value):
        return
    for _ in range(ROOM):
        value = [value]
    try:
        canonical.encode(value, _drop)
    except ValueRefused:
        # JSON has no other values that are refused.
        raise NotARecord(f"nested deeper than {canonical.MAX_DEPTH - ROOM}") from None


def _is_shallow(value: object) -> bool:
    """True if not even an envelope around each level could make the value too deep.

    To write a large record only to see how deep it is takes many times its size.
    """
    level: list[Any] = [value]
    for _ in range((canonical.MAX_DEPTH - ROOM) // 2):
        level = [
            inner
            for item in level
            for inner in (item.values() if type(item) is dict else item)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return True
    return False


def _drop(*_: bytes) -> None:
    """Nothing is stored here."""


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "a list"
        case str():
            return "a text"
        case _:
            return "a number" if not isinstance(value, bool) else "a truth value"


class _Reading:
    """What is met while one text is parsed."""

    def __init__(self) -> None:
        self.oddities: list[str] = []

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self._refuse_double([key for key, _ in pairs])
        return found

    def _refuse_double(self, keys: list[str]) -> NoReturn:
        double = next(key for key in keys if keys.count(key) > 1)
        raise NotARecord(f"two keys are {double!r}")

    def constant(self, word: str) -> float:
        self.oddities.append(word)
        return float(word.replace("Infinity", "inf"))

    def number(self, word: str) -> float:
        value = float(word)
        if not isfinite(value):
            self.oddities.append(word)
        return value
