"""What a foreign value is as a number: JSON knows one kind, events want to know which."""

import sys
from math import isfinite
from typing import Any, Final, TypeGuard

Measures = dict[str, bool | int | float]

_MOST_SECONDS: Final = sys.float_info.max


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a finite number that is no truth value."""
    # An integer is finite, but isfinite refuses one that no float can hold.
    return type(value) is int or (type(value) is float and isfinite(value))


def is_measure(value: Any) -> TypeGuard[bool | int | float]:
    """True for a truth value or a finite number."""
    return type(value) is bool or is_number(value)


def is_duration(value: Any) -> TypeGuard[int | float]:
    """True for a finite number from 0 on that a float can hold."""
    return is_number(value) and 0 <= value <= _MOST_SECONDS


def split_measures(value: Any) -> tuple[Measures, dict[str, Any]]:
    """The measures of a `metrics` object, and all in it that is none."""
    if not isinstance(value, dict):
        return {}, {} if value is None else {"metrics": value}
    measures = {name: item for name, item in value.items() if is_measure(item)}
    return measures, {name: item for name, item in value.items() if name not in measures}
