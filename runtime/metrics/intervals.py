"""Which confidence interval a metric gets, and how results name it."""

import math
from collections.abc import Sequence
from typing import Any, Final

from ledger.statistics import LEVEL, task_clustered, wilson

WILSON: Final = "wilson"
TASK_CLUSTERED: Final = "task_clustered_normal"


def interval(values: Sequence[float], *, binary: bool, truth: bool) -> dict[str, Any] | None:
    """The interval around the mean of one estimate per task, as results hold it; None for none.

    `binary`: each estimate is one 0/1 outcome, so their mean is a proportion. `truth`: estimates
    are means of such outcomes.
    """
    if binary:
        name, found = WILSON, wilson(int(math.fsum(values)), len(values))
    else:
        name, found = TASK_CLUSTERED, task_clustered(values, truth=truth)
    if found is None:
        return None
    low, high = found
    return {"name": name, "level": LEVEL, "low": low, "high": high}
