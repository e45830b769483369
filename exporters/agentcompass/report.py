"""The metric report of a run by AgentCompass's own rules: what its summary command computes again.

A task gives a value to a series if all k attempts have one (or, for `pass`, one success); a fatal
issue in any attempt invalidates the task, and one invalidated task takes the official value from
every series: what the others give then stands as `reference_value`. Read from the package
`agentcompass.runtime.metrics` of release 1.0.1, `reducer.py`, `reducers.py` and
`report_aggregation.py`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from exporters.agentcompass.scoring import Measures, Scoring

UNCATEGORIZED: Final = "__uncategorized__"
_COUNTS: Final = ("total", "evaluated", "error", "unavailable", "invalidated")
_NEVER_STOPS: Final = frozenset({"cancelled", "skipped"})
_Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class AttemptScore:
    """What an attempt gives: `severities` are those of its issues."""

    number: int
    status: str
    metrics: Measures
    severities: frozenset[str]


@dataclass(frozen=True, slots=True)
class TaskScore:
    """What a task gives, its attempts by number."""

    category: str
    attempts: tuple[AttemptScore, ...]

    @property
    def is_fatal(self) -> bool:
        """Whether a fatal issue takes the task out of every series."""
        return any("fatal" in attempt.severities for attempt in self.attempts)


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A task in one series: its value, and which of the counts it is in."""

    value: float | None
    kind: str
    has_error: bool


def category_of(category: str | None) -> str:
    """The name under which a category is reported."""
    return (category or "").strip() or UNCATEGORIZED


def metric_report(tasks: Sequence[TaskScore], scoring: Scoring, extra: _Fields) -> _Fields:
    """The document `metrics.json`, sorted; `extra` is what is told beside the series."""
    failed = any(task.is_fatal for task in tasks)
    series = [
        _series(tasks, scoring, metric, reducer, binary=binary, failed=failed)
        for metric, binary in _metrics(tasks, scoring)
        for reducer in _reducers(scoring, binary=binary)
    ]
    return {
        "aggregation": "micro_weighted",
        "evaluation_failed": failed,
        "extra": extra,
        "k": scoring.k,
        "series": series,
        "strategy": scoring.strategy,
    }


def _metrics(tasks: Sequence[TaskScore], scoring: Scoring) -> Iterator[tuple[str, bool]]:
    """Each metric, and whether it is a truth value: the primary first, the others by name."""
    kinds: dict[str, bool] = {}
    for task in tasks:
        for attempt in task.attempts:
            for name, value in attempt.metrics.items():
                kinds[name] = kinds.get(name, True) and isinstance(value, bool)
    yield scoring.primary, scoring.primary == "correct"
    # With `pass` later attempts may be missing, and only the primary is exact.
    if scoring.strategy == "avg" or scoring.k == 1:
        yield from ((name, kinds[name]) for name in sorted(kinds) if name != scoring.primary)


def _reducers(scoring: Scoring, *, binary: bool) -> tuple[str, ...]:
    if scoring.k == 1:
        return ("native",)
    if scoring.strategy == "pass":
        return ("pass",)
    return ("avg", "pass") if binary else ("avg",)


def _series(
    tasks: Sequence[TaskScore],
    scoring: Scoring,
    metric: str,
    reducer: str,
    *,
    binary: bool,
    failed: bool,
) -> _Fields:
    by_category: dict[str, list[_Reduced]] = {}
    every: list[_Reduced] = []
    for task in tasks:
        reduced = _reduce(task, scoring, metric, reducer)
        every.append(reduced)
        by_category.setdefault(task.category, []).append(reduced)
    return {
        "aggregation": "micro_weighted",
        "categories": {
            name: {
                "aggregation_weight": float(sum(one.value is not None for one in found)),
                **_scope(found, failed=failed),
            }
            for name, found in sorted(by_category.items())
        },
        **_scope(every, failed=failed),
        "display": {
            "description": None,
            "label": metric.replace("_", " ").title(),
            "precision": None,
            "unit": None,
        },
        "extra": {},
        "hierarchy": {},
        "k": scoring.k,
        "kind": "binary_success" if binary else "scalar",
        "metric_id": metric,
        "reducer": reducer,
        "role": "headline" if metric == scoring.primary else "auxiliary",
        "series_id": f"{metric}.{reducer}@{scoring.k}",
    }


def _scope(found: Sequence[_Reduced], *, failed: bool) -> _Fields:
    value = _mean([one.value for one in found if one.value is not None])
    counts = dict.fromkeys(_COUNTS, 0)
    for one in found:
        counts["total"] += 1
        counts[one.kind] += 1
        counts["error"] += one.has_error
    return {
        "counts": counts,
        "reference_value": value if failed else None,
        "value": None if failed else value,
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(value / len(values) for value in values) if values else None


def _reduce(task: TaskScore, scoring: Scoring, metric: str, reducer: str) -> _Reduced:
    values = [a.metrics[metric] for a in task.attempts if metric in a.metrics]
    erring = any(attempt.severities & {"fatal", "error"} for attempt in task.attempts)
    missing = 0 if _stopped(task, scoring) else scoring.k - len(task.attempts)
    has_error = erring or missing > 0 or task.is_fatal
    if task.is_fatal:
        return _Reduced(None, "invalidated", has_error)
    value = _value(values, scoring.k, reducer)
    return _Reduced(value, "unavailable" if value is None else "evaluated", has_error)


def _value(values: Iterable[float], k: int, reducer: str) -> float | None:
    known = [float(value) for value in values]
    if reducer == "pass" and any(known):
        return 1.0
    if len(known) != k:
        return None
    return 0.0 if reducer == "pass" else math.fsum(known) / k


def _stopped(task: TaskScore, scoring: Scoring) -> bool:
    """Whether the last attempt was correct, so that the strategy made no more."""
    if scoring.strategy != "pass" or not task.attempts:
        return False
    last = task.attempts[-1]
    whole = [a.number for a in task.attempts] == list(range(1, len(task.attempts) + 1))
    return (
        whole
        and not task.is_fatal
        and last.status not in _NEVER_STOPS
        and last.metrics.get(scoring.primary) is True
    )
