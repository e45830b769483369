"""Numbers described by a few numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Description:
    """Some numbers: how many, where they lie, how far apart. `sd` is None for fewer than two."""

    n: int
    mean: float
    sd: float | None
    median: float
    min: float
    max: float
    p25: float
    p75: float
    p90: float


def describe(values: Sequence[float]) -> Description | None:
    """Describe finite numbers; None where there are none."""
    if not values:
        return None
    ordered = sorted(values)
    return Description(
        n=len(ordered),
        mean=mean(ordered),
        sd=sample_sd(ordered),
        median=percentile(ordered, 50),
        min=ordered[0],
        max=ordered[-1],
        p25=percentile(ordered, 25),
        p75=percentile(ordered, 75),
        p90=percentile(ordered, 90),
    )


def mean(values: Sequence[float]) -> float:
    """The mean of `values`, correctly rounded but for the division; the order does not matter."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum is beyond a float, the mean is not
        return float(sum(map(Fraction, values)) / len(values))


def sample_sd(values: Sequence[float]) -> float | None:
    """√(Σ(x - x̄)²/(n - 1)); None for fewer than two, or where it is beyond a float."""
    n = len(values)
    if n < 2:
        return None
    if min(values) == max(values):
        return 0.0
    middle = mean(values)
    halves = [value / 2 - middle / 2 for value in values]
    largest = max(map(abs, halves))
    found = math.sqrt(math.fsum((half / largest) ** 2 for half in halves) / (n - 1)) * largest * 2
    return found if math.isfinite(found) else None


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The quantile at percent/100 of ascending numbers, interpolated at rank (n - 1)·percent/100.

    Type 7 of Hyndman and Fan, The American Statistician 50 (1996), 361-365.
    """
    rank, part = divmod((len(ordered) - 1) * percent, 100)
    below, above = ordered[rank], ordered[min(rank + 1, len(ordered) - 1)]
    found = below + (above - below) * part / 100
    if math.isfinite(found):
        return found
    return below * (1 - part / 100) + above * (part / 100)
