"""Read, write and compare numbers exactly."""

import math
import re
from fractions import Fraction

_LOOKED_AT = 10_000  # characters at the end of an answer
_DIGITS = 60  # a longer number is no answer to any of the questions
_DECIMALS = 6

_PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)])-\s?)?[$€£]?(?<![\w.])"
    rf"(?:(?P<whole>[0-9]+)\s+(?=[0-9]+\s?/))?(?P<top>{_PLAIN})"
    rf"(?:\s?/\s?(?P<bottom>{_PLAIN}))?(?P<percent>\s?%)?"
)
_TEX_FRACTION = re.compile(r"\\[dt]?frac\{([0-9]+)\}\{([0-9]+)\}")


def read_number(answer: object) -> Fraction | None:
    """Give the last number that stands in an answer, or None.

    Understood: sign, decimals, thousands separated by commas, fractions (`3/4`, `1 3/4`, TeX) and
    percent (`12%` is 3/25).  A number of Python stands for itself, a float for its shortest
    decimal form.
    """
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int):
        return Fraction(answer)
    if isinstance(answer, float):
        return Fraction(repr(answer)) if math.isfinite(answer) else None
    if not isinstance(answer, str):
        return None
    text = answer[-_LOOKED_AT:].replace("\u2212", "-")
    found = list(_NUMBER.finditer(_TEX_FRACTION.sub(r" \1/\2 ", text)))
    return _value(found[-1]) if found else None


def _value(found: re.Match[str]) -> Fraction | None:
    if len(found[0]) > _DIGITS:
        return None
    value = Fraction(found["top"].replace(",", ""))
    if found["bottom"]:
        bottom = Fraction(found["bottom"].replace(",", ""))
        if bottom == 0:
            return None
        value /= bottom
    value += int(found["whole"] or 0)
    if found["percent"]:
        value /= 100
    return -value if found["sign"] else value


def write_number(value: Fraction) -> str:
    """Write a number so that `read_number` gives it back: whole, decimal if short, or fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    scaled = value * 10**_DECIMALS
    if scaled.denominator == 1:
        sign = "-" if value < 0 else ""
        whole, rest = divmod(abs(scaled.numerator), 10**_DECIMALS)
        return f"{sign}{whole}.{rest:0{_DECIMALS}d}".rstrip("0")
    return f"{value.numerator}/{value.denominator}"
