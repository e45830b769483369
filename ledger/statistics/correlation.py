"""Whether two series of numbers go together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ledger.statistics.description import mean
from ledger.statistics.special import regularised_beta

Note = Literal["n<3", "constant", "perfect"]

_PERFECT: Final = 1e-12  # what rounding leaves of 1 - |r|


@dataclass(frozen=True, slots=True)
class Correlation:
    """r and its two-sided p; `note` says why one of them is None."""

    r: float | None
    p: float | None
    note: Note | None = None


def pearson(xs: Sequence[float], ys: Sequence[float]) -> Correlation:
    """The linear correlation r of pairs, and p of t = r√((n - 2)/(1 - r²)).

    r = Σ(x - x̄)(y - ȳ)/√(Σ(x - x̄)²·Σ(y - ȳ)²). Against a series of 0 and 1 it is the
    point-biserial correlation. None for fewer than three pairs and for a constant series; p is
    None at |r| = 1, where the t-distribution says nothing.
    """
    n = len(xs)
    if n < 3:
        return Correlation(None, None, "n<3")
    dx, dy = _deviations(xs), _deviations(ys)
    if dx is None or dy is None:
        return Correlation(None, None, "constant")
    product = math.fsum(x * y for x, y in zip(dx, dy, strict=True))
    r = product / math.sqrt(math.fsum(x * x for x in dx) * math.fsum(y * y for y in dy))
    if abs(r) >= 1 - _PERFECT:
        return Correlation(math.copysign(1.0, r), None, "perfect")
    return Correlation(r, _two_sided(r, n - 2))


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Correlation:
    """Pearson's r of the mid-ranks, with the same approximation for p."""
    return pearson(mid_ranks(xs), mid_ranks(ys))


def mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            ranks[index] = (start + 1 + end) / 2
        start = end
    return ranks


def _two_sided(r: float, df: int) -> float:
    """P(|T| > t) = I_{df/(df+t²)}(df/2, 1/2), where df/(df+t²) = 1 - r²."""
    square = r * r
    if square < 0.5:  # the other side, where rounding of 1 - r² would be felt
        return 1.0 - regularised_beta(0.5, df / 2, square)
    return regularised_beta(df / 2, 0.5, (1 - r) * (1 + r))


def _deviations(values: Sequence[float]) -> list[float] | None:
    """Differences from the mean, the largest scaled to 1; None where all values are equal."""
    if min(values) == max(values):
        return None
    middle = mean(values)
    halves = [value / 2 - middle / 2 for value in values]
    largest = max(map(abs, halves))
    return None if largest == 0.0 else [half / largest for half in halves]
