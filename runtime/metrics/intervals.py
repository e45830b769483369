"""95 % confidence intervals of a mean over tasks. Tasks are the sampling units, attempts are not.

Both are approximations for many tasks and say nothing about how tasks were chosen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LEVEL: Final = 0.95
Z: Final = 1.959963984540054  # the 0.975 quantile of the standard normal distribution

WILSON: Final = "wilson"
TASK_CLUSTERED: Final = "task_clustered_normal"


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds, and the name of the method that gave them."""

    name: str
    low: float
    high: float


def wilson(successes: int, tasks: int) -> Interval | None:
    """The score interval of a proportion: one 0/1 value per task; None without tasks.

    With p = successes/tasks, n = tasks: centre (p + z²/2n)/(1 + z²/n), half width
    z·√(p(1-p)/n + z²/4n²)/(1 + z²/n). Source: Wilson, JASA 22 (1927), 209-212.
    """
    if tasks == 0:
        return None
    share, z2 = successes / tasks, Z * Z
    scale = 1 + z2 / tasks
    centre = (share + z2 / (2 * tasks)) / scale
    half = Z * math.sqrt(share * (1 - share) / tasks + z2 / (4 * tasks * tasks)) / scale
    # At 0 and at n the bound is exact; floats would leave a trace of it.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == tasks else min(1.0, centre + half)
    return Interval(WILSON, low, high)


def task_clustered(means: Sequence[float], *, truth: bool = False) -> Interval | None:
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
    half = Z * math.sqrt(spread)
    low, high = mean - half, mean + half
    return Interval(TASK_CLUSTERED, max(0.0, low), min(1.0, high)) if truth else _open(low, high)


def _open(low: float, high: float) -> Interval | None:
    return Interval(TASK_CLUSTERED, low, high) if math.isfinite(low + high) else None
