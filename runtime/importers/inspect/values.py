"""Score values: which are a verdict, and which number each stands for.

Inspect's own rule (`value_to_float`): C, I, P and N are 1, 0, 0.5 and 0; yes, true, no and false
1 and 0; truth values and numbers themselves; NaN is "not scored".
"""

from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any, Final

LETTERS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Reading:
    """A value as a number and as a truth value; both None where it is no verdict."""

    score: int | float | None = None
    correct: bool | None = None


def read_value(value: Any, *, truth: bool) -> Reading:
    """What one scalar value says; `truth`: the scorer gives no numbers but 0 and 1.

    Only then does a number tell right from wrong. Partial credit is not correct.
    """
    score = as_number(value)
    if score is None:
        return Reading()
    if isinstance(value, bool):
        return Reading(score, value)
    if isinstance(value, str) and (value in LETTERS or value.lower() in _WORDS):
        return Reading(score, score == 1)
    return Reading(score, score == 1 if truth else None)


def as_number(value: Any) -> int | float | None:
    """The number that a scalar stands for; None for one that is not scored, or is no number."""
    match value:
        case bool():
            return float(value)
        case int() | float():
            return value if isfinite(value) else None
        case str() if value in LETTERS:
            return LETTERS[value]
        case str() if value.lower() in _WORDS:
            return _WORDS[value.lower()]
        case str():
            return _number_in(value)
        case _:
            return None


def is_truth(value: Any) -> bool:
    """True for what tells right from wrong, or tells nothing."""
    number = as_number(value)
    return number is None or number in (0, 1) or value == "P"


def is_unscored(value: Any) -> bool:
    """True for the NaN that Inspect writes where a scorer gave no value, and for null."""
    return value is None or (isinstance(value, float) and isnan(value))


def _number_in(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None
