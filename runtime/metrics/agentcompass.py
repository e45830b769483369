"""The reducers of AgentCompass 1.0.1, for replaying runs that it scored.

Its task value needs all k attempts, or one success for `pass`; a task with a fatal attempt is
invalidated, and one invalidated task takes the official value from every series of the report
(the mean over the other tasks then stands as `reference_value`). Read from its package,
`agentcompass.runtime.metrics`, `reducers.py`, `reducer.py` and `report_aggregation.py`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from ledger.events import ReducerUse
from ledger.state import RunState
from ledger.statistics import mean
from runtime.metrics import reasons
from runtime.metrics.estimates import estimate
from runtime.metrics.observations import TaskObservations, observe
from runtime.metrics.policies import UNAVAILABLE, Sample
from runtime.metrics.reducers import Estimate, Reducer

_SERIES = re.compile(r"(?P<metric>.+)\.(?P<reducer>avg|pass|native)@(?P<k>[1-9][0-9]*)")


def avg(sample: Sample, k: int) -> Estimate:
    """Σx/k over exactly k attempts with a value, else no value.

    Source: `AverageReducer` of AgentCompass 1.0.1.
    """
    if (lacking := _lacking(sample, k)) is not None:
        return Estimate(reason=lacking)
    return Estimate(mean(sample.values), binary=k == 1 and sample.is_truth)


def any_pass(sample: Sample, k: int) -> Estimate:
    """1 if any attempt is correct, 0 if all k are known to be wrong, else no value.

    Unlike `avg` it gives a value for a task with a success and an error. At n = k, with all
    values known, it is pass@k. Source: `PassReducer` of AgentCompass 1.0.1.
    """
    if sample.fatal or reasons.ERASED in sample.gaps:
        return Estimate(reason=_lacking(sample, k))
    if any(sample.values):
        return Estimate(1.0, binary=True)
    lacking = _lacking(sample, k)
    return Estimate(reason=lacking) if lacking else Estimate(0.0, binary=True)


def _lacking(sample: Sample, k: int) -> str | None:
    """Why a task gives no value: invalidated, an attempt without a value, or too few attempts."""
    if sample.fatal:
        return reasons.INVALIDATED
    if sample.gaps:
        return reasons.gravest(sample.gaps)
    if sample.n == k:
        return None
    return reasons.NEEDS_K if sample.n else reasons.MISSING


_ONLY: Final = (UNAVAILABLE,)

NATIVE: Final = Reducer("native", 1, "mean", avg, avg, handles_gaps=True, policies=_ONLY)
AVG: Final = Reducer("avg", 1, "mean", avg, handles_gaps=True, policies=_ONLY)
PASS: Final = Reducer(
    "pass", 1, "any_of_k", any_pass, any_pass, truth=True, handles_gaps=True, policies=_ONLY
)


def series_use(name: str) -> ReducerUse | None:
    """The use of a reducer that a series id like `correct.avg@3` stands for; None for others."""
    match = _SERIES.fullmatch(name)
    if match is None:
        return None
    return ReducerUse(
        metric=match["metric"],
        name=match["reducer"],
        version=1,
        k=int(match["k"]),
        policy=UNAVAILABLE,
    )


def series_counts(state: RunState, use: ReducerUse) -> dict[str, int]:
    """The counts that AgentCompass prints with a series: tasks by what they give to it.

    total = evaluated + unavailable + invalidated; `error` is counted apart and overlaps: tasks
    with an attempt that ended in an error, that was never made, or that invalidated the task.
    """
    k = use.k or 1
    reducer = next(r for r in (NATIVE, AVG, PASS) if r.name == use.name)
    counts = dict.fromkeys(("total", "evaluated", "error", "unavailable", "invalidated"), 0)
    for task in observe(state, use.metric):
        given = estimate(reducer, task, k=k, policy=use.policy)
        counts["total"] += 1
        counts["evaluated"] += given.value is not None
        counts["invalidated"] += given.reason == reasons.INVALIDATED
        counts["error"] += _has_error(task, k)
    counts["unavailable"] = counts["total"] - counts["evaluated"] - counts["invalidated"]
    return counts


def _has_error(task: TaskObservations, k: int) -> bool:
    stopped = task.stopping and bool(task.attempts) and bool(task.attempts[-1].value)
    return task.has_error or (len(task.attempts) < k and not stopped)


def incomparable(series: Mapping[str, Any]) -> str | None:
    """Why a series of a report cannot be compared with a mean over tasks; None if it can."""
    aggregation = series.get("aggregation")
    if aggregation in (None, "micro_weighted"):
        return None
    return f"the source aggregates by {aggregation}, not over tasks"
