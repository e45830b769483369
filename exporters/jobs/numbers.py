"""How numbers stand in the files of a job: rounded once, and null where there is none."""

import math
from collections.abc import Iterable

from ledger import statistics


def rounded(value: float | None, digits: int = 6) -> float | None:
    """A float with at most `digits` decimals; None for none, and for what is no finite float."""
    if value is None:
        return None
    try:
        number = round(float(value), digits)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0.0 + 0.0 is 0.0


def dollars(value: float | None) -> float | None:
    """An amount of money, to ten decimals."""
    return rounded(value, 10)


def percent(part: float) -> float:
    """A fraction in percent, to one decimal."""
    return round(100 * part, 1) + 0.0


def total(values: Iterable[int | None]) -> int | None:
    """The sum of the counts that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def mean(values: Iterable[float]) -> float | None:
    """The mean; None of nothing."""
    given = list(values)
    return statistics.mean(given) if given else None
