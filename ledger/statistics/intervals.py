"""Confidence intervals of a mean over tasks. Tasks are the sampling units, attempts are not.

Both are approximations for many tasks and say nothing about how tasks were chosen.
"""

import math
from collections.abc import Sequence
from typing import Final

from ledger.statistics.special import normal_quantile

LEVEL: Final = 0.95
Z: Final = 1.959963984540054  # the 0.975 quantile of the standard normal distribution

Interval = tuple[float, float]


def wilson(successes: int, n: int, confidence: float = LEVEL) -> Interval | None:
    """The score interval of a proportion: one 0/1 value per task; None without tasks.

    With p = successes/n and z = Φ⁻¹((1 + confidence)/2): centre (p + z²/2n)/(1 + z²/n), half width
    z·√(p(1-p)/n + z²/4n²)/(1 + z²/n). Source: Wilson, JASA 22 (1927), 209-212.
    """
    if n == 0:
        return None
    z = _z(confidence)
    share, z2 = successes / n, z * z
    scale = 1 + z2 / n
    centre = (share + z2 / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / scale
    # At 0 and at n the bound is exact; floats would leave a trace of it.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def task_clustered(
    means: Sequence[float], *, truth: bool = False, confidence: float = LEVEL
) -> Interval | None:
    """The normal interval around the mean of one estimate per task, each over several attempts.

    With m tasks and estimates x_t of mean x̄: se = √(Σ(x_t - x̄)²/(m(m-1))), interval x̄ ± z·se.
    That is the cluster-robust standard error for equally weighted clusters with the correction
    m/(m-1), where the clusters are tasks: attempts at one task need not be independent. Source:
    Miller, Adding Error Bars to Evals (arXiv:2411.00640), section 2.2. `truth` says that all
    observations are 0 or 1; the interval is then cut to [0, 1].

    None for fewer than two tasks, and for tasks that do not differ: a width of 0 would claim
    that nothing is uncertain.
    """
    tasks = len(means)
    if tasks < 2:
        return None
    mean = math.fsum(x / tasks for x in means)
    spread = math.fsum((x - mean) * (x - mean) / (tasks * (tasks - 1)) for x in means)
    if spread == 0 or not math.isfinite(spread):
        return None
    half = _z(confidence) * math.sqrt(spread)
    low, high = mean - half, mean + half
    if truth:
        return max(0.0, low), min(1.0, high)
    return (low, high) if math.isfinite(low + high) else None


def _z(confidence: float) -> float:
    """How many standard deviations a two-sided interval reaches."""
    return Z if confidence == LEVEL else normal_quantile(0.5 + confidence / 2)
