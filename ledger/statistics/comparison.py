"""Whether the numbers of one group are larger than those of another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final, Literal

from ledger.statistics.correlation import mid_ranks
from ledger.statistics.special import normal_tail

Method = Literal["exact", "asymptotic", "degenerate"]
Magnitude = Literal["negligible", "small", "medium", "large"]

EXACT_MAX_N: Final = 20

_BOUNDS: Final[tuple[tuple[float, Magnitude], ...]] = (
    (0.147, "negligible"),
    (0.33, "small"),
    (0.474, "medium"),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """U of the first group, its two-sided p, and the size of the effect.

    `auc` = U/(nm) is the chance that a number of the first group is the larger one, ties counting
    one half; `cliffs_delta` = 2·auc - 1.
    """

    u: float
    p: float
    method: Method
    auc: float
    cliffs_delta: float


def mann_whitney(
    first: Sequence[float], second: Sequence[float], *, exact_max_n: int = EXACT_MAX_N
) -> Comparison | None:
    """Compare two groups by the ranks of their numbers; None where one group is empty.

    Without ties and with both groups of at most `exact_max_n`, p is exact: twice the smaller tail
    of all C(n+m, n) arrangements. Else it is that of the normal distribution with the variance
    nm/12·((N+1) - Σ(t³-t)/(N(N-1))) over ties of t, and a continuity correction of 1/2. Where all
    numbers are equal p is 1. Source: Mann and Whitney, Ann. Math. Statist. 18 (1947), 50-60.
    """
    n, m = len(first), len(second)
    if not n or not m:
        return None
    pooled = [*first, *second]
    u = sum(mid_ranks(pooled)[:n]) - n * (n + 1) / 2
    ties = [len(list(group)) for _, group in groupby(sorted(pooled))]
    larger = max(u, n * m - u)
    method: Method
    if len(ties) == 1:
        p, method = 1.0, "degenerate"
    elif len(ties) == n + m and max(n, m) <= exact_max_n:
        p, method = _exact(n, m, int(larger)), "exact"
    else:
        p, method = _asymptotic(n, m, larger, ties), "asymptotic"
    auc = u / (n * m)
    return Comparison(u, p, method, auc, 2 * auc - 1)


def magnitude(delta: float) -> Magnitude:
    """Cliff's delta in a word: below 0.147, 0.33 and 0.474 in absolute value, or large.

    Source: Romano et al., annual meeting of the Florida Association of Institutional Research 2006.
    """
    return next((word for bound, word in _BOUNDS if abs(delta) < bound), "large")


def _exact(n: int, m: int, larger: int) -> float:
    counts = _arrangements(n, m)
    return min(1.0, 2 * sum(counts[larger:]) / sum(counts))


@lru_cache(maxsize=512)
def _arrangements(n: int, m: int) -> tuple[int, ...]:
    """How many arrangements of two groups have U = 0, 1, ..., nm.

    They are the coefficients of the Gaussian binomial ∏_{i=1..n} (1 - q^(m+i))/(1 - q^i).
    """
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for power in range(n * m, m + i - 1, -1):
            counts[power] -= counts[power - m - i]
        for power in range(i, n * m + 1):
            counts[power] += counts[power - i]
    return tuple(counts)


def _asymptotic(n: int, m: int, larger: float, ties: Sequence[int]) -> float:
    total = n + m
    tied = sum(t**3 - t for t in ties) / (total * (total - 1))
    deviation = math.sqrt(n * m / 12 * ((total + 1) - tied))
    return min(1.0, 2 * normal_tail((larger - n * m / 2 - 0.5) / deviation))
