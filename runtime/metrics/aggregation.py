"""From a RunState to a MetricResult: every value with its denominator, exclusions and interval."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ledger.events import ReducerUse
from ledger.state import RunState
from ledger.statistics import mean
from runtime.metrics import reasons
from runtime.metrics.estimates import Samples, estimate, estimator
from runtime.metrics.intervals import interval
from runtime.metrics.observations import TaskObservations, label, likeness, observe
from runtime.metrics.policies import COUNT_AS_ZERO, policy_named
from runtime.metrics.reducers import Estimate, Reducer
from runtime.metrics.uses import default_uses, find_reducer, names, parse_use
from runtime.results import MetricCounts, MetricResult

EVALUATED_TASKS = "evaluated_tasks"

Detail = dict[str, Any]

# Most tasks are like one of a few others; no more than so many are looked up.
_MOST_SAME: Final = 256


def aggregate(
    state: RunState,
    *,
    reducers: Sequence[ReducerUse | str] | None = None,
    policy: str = COUNT_AS_ZERO,
    k: int | None = None,
) -> tuple[MetricResult, tuple[ReducerUse, ...]]:
    """Reduce `state` to metrics; equal states give equal results to the last bit.

    `reducers` are recorded uses, or texts like `majority@3`; None takes the default set. `policy`
    is the error policy of the result: of the default set, of texts that name none, and the one
    that names leave out. `k` is the number of attempts asked for, the run's own by default.
    Returns the result and the uses to record with it. Raises UsageError for an unknown reducer
    or policy.
    """
    policy_named(policy)
    k = k or state.k
    if reducers is None:
        uses = default_uses(state, policy=policy, k=k)
    else:
        read = (parse_use(u, policy=policy, k=k) if isinstance(u, str) else u for u in reducers)
        uses = tuple(dict.fromkeys(read))
    columns = _columns(state, uses, policy)
    bins = _bins(state)
    total = sum(bins.values(), Counter[str]())
    details = {EVALUATED_TASKS: _evaluated(total)}
    details |= {column.name: column.detail() for column in columns}
    result = MetricResult(
        metrics={
            n: detail["value"] for n, detail in details.items() if detail["value"] is not None
        },
        counts=MetricCounts(
            total=total.total(),
            evaluated=total["evaluated"],
            error=total["error"],
            missing=total["missing"],
            skipped=total["skipped"],
        ),
        details=details,
        extra=_extra(state, columns, details, policy, bins),
    )
    return result, uses


@dataclass(slots=True)
class _Seen:
    """What all columns of one metric have in common; `categories` has one for each task."""

    categories: list[str] = field(default_factory=list)
    stopping: set[bool] = field(default_factory=set)
    attempts: Counter[str] = field(default_factory=Counter)
    observed: int = 0
    truth: bool = True

    def take(self, task: TaskObservations) -> None:
        """Take in one more task."""
        self.categories.append(task.category)
        self.stopping.add(task.stopping)
        some = False
        for attempt in task.attempts:
            self.attempts[attempt.reason or "observed"] += 1
            some = some or attempt.reason is None
            self.truth = self.truth and attempt.value in (None, 0, 1)
        self.observed += some


@dataclass(slots=True)
class _Column:
    """One metric over all tasks: `estimates` run beside the categories of `seen`."""

    name: str
    use: ReducerUse
    reducer: Reducer
    seen: _Seen
    estimates: list[Estimate] = field(default_factory=list)

    def estimate(
        self, task: TaskObservations, samples: Samples, same: dict[Estimate, Estimate]
    ) -> Estimate:
        """What a task gives; of equal estimates in `same` it is always one."""
        use = self.use
        found = estimate(self.reducer, task, k=use.k, policy=use.policy, samples=samples)
        if len(same) < _MOST_SAME:
            found = same.setdefault(found, found)
        return same.get(found, found)

    def detail(self) -> Detail:
        """What explains the value of the metric over all tasks."""
        summary, seen, use = _summarise(self.estimates), self.seen, self.use
        attempts = sorted(seen.attempts.items())
        zeros = reasons.ERRORS if use.policy == COUNT_AS_ZERO else ()
        return {
            **summary.plain(),
            "metric": use.metric,
            "reducer": use.name,
            "version": use.version,
            "k": use.k,
            "policy": use.policy,
            "estimator": estimator(self.reducer, k=use.k, stopping=seen.stopping),
            "interval": summary.interval(seen.truth),
            "coverage": {"numerator": seen.observed, "denominator": len(seen.categories)},
            "attempts": dict(attempts),
            "counted_as_zero": {r: n for r, n in attempts if r in zeros},
        }

    def by_category(self) -> dict[str, Detail]:
        """The short form of the detail for each category."""
        groups: dict[str, list[Estimate]] = {}
        for category, given in zip(self.seen.categories, self.estimates, strict=True):
            groups.setdefault(category, []).append(given)
        return {category: _summarise(group).plain() for category, group in groups.items()}


@dataclass(frozen=True, slots=True)
class _Summary:
    """The mean over tasks with a value, or the reason why there is none."""

    values: list[float]
    binary: bool
    excluded: Counter[str]
    reason: str | None
    reference: Detail

    def plain(self) -> Detail:
        value = mean(self.values) if self.reason is None else None
        return {
            "value": value,
            "numerator": self._numerator() if value is not None else None,
            "denominator": len(self.values),
            "excluded": dict(sorted(self.excluded.items())),
            **({} if self.reason is None else {"reason": self.reason}),
            **self.reference,
        }

    def interval(self, truth: bool) -> Detail | None:
        if self.reason is not None:
            return None
        return interval(self.values, binary=self.binary, truth=truth)

    def _numerator(self) -> float | None:
        try:
            total = math.fsum(self.values)
        except OverflowError:
            return None
        return int(total) if self.binary else total


def _summarise(estimates: Sequence[Estimate]) -> _Summary:
    excluded = Counter(e.reason or reasons.NO_VALUE for e in estimates if e.value is None)
    given = [e for e in estimates if e.value is not None]
    values = [e.value for e in given if e.value is not None]
    ends = [reason for reason in excluded if reason in reasons.ENDS_THE_METRIC]
    reason = None
    reference: Detail = {}
    if ends:
        reason = reasons.gravest(ends)
        if reason == reasons.INVALIDATED:
            reference["reference_value"] = mean(values) if values else None
    elif not values:
        reason = reasons.commonest(excluded)
    return _Summary(values, all(e.binary for e in given), excluded, reason, reference)


def _columns(state: RunState, uses: Sequence[ReducerUse], policy: str) -> list[_Column]:
    seen = {use.metric: _Seen() for use in uses}
    columns = [
        _Column(name, use, find_reducer(use.name, use.version), seen[use.metric])
        for name, use in zip(names(uses, policy=policy), uses, strict=True)
    ]
    same: dict[Estimate, Estimate] = {}
    for metric, common in seen.items():
        own = [column for column in columns if column.seen is common]
        known: dict[Hashable, list[Estimate]] = {}
        for task in observe(state, metric):
            common.take(task)
            like = likeness(task)
            found = known.get(like)
            if found is None:
                samples: Samples = {}
                found = [column.estimate(task, samples, same) for column in own]
                if len(known) < _MOST_SAME:
                    known[like] = found
            for column, one in zip(own, found, strict=True):
                column.estimates.append(one)
    return columns


def _bins(state: RunState) -> dict[str, Counter[str]]:
    """How many tasks of each category are in each bin."""
    found: dict[str, Counter[str]] = {}
    for task in state.tasks.values():
        found.setdefault(label(task.category), Counter())[task.bin] += 1
    return found


def _evaluated(bins: Counter[str]) -> Detail:
    evaluated = bins["evaluated"]
    return {
        "value": evaluated,
        "numerator": evaluated,
        "denominator": bins.total(),
        "excluded": {name: n for name, n in sorted(bins.items()) if name != "evaluated"},
        "policy": None,
        "estimator": "count",
        "interval": None,
    }


def _extra(
    state: RunState,
    columns: Sequence[_Column],
    details: dict[str, Detail],
    policy: str,
    bins: dict[str, Counter[str]],
) -> dict[str, Any]:
    missing = {name: d["reason"] for name, d in details.items() if d["value"] is None}
    return {
        "policy": policy,
        "strategy": state.strategy,
        "unavailable": missing,
        "categories": _categories(columns, bins),
        **_evaluators(state),
    }


def _categories(
    columns: Sequence[_Column], bins: dict[str, Counter[str]]
) -> dict[str, dict[str, Detail]]:
    found = {
        category: {EVALUATED_TASKS: _short(_evaluated(bins[category]))} for category in sorted(bins)
    }
    for column in columns:
        for category, detail in column.by_category().items():
            found[category][column.name] = detail
    return found


def _short(detail: Detail) -> Detail:
    return {key: detail[key] for key in ("value", "numerator", "denominator", "excluded")}


def _evaluators(state: RunState) -> dict[str, Any]:
    """Who judged how many attempts; `mixed` where it was not one evaluator in one version."""
    by = Counter(attempt.evaluator for _, attempt in state.attempts() if attempt.evaluator)
    judged: Counter[str] = Counter()
    for evaluator, n in by.items():
        judged[" ".join(evaluator)] += n
    if not judged:
        return {}
    one = next(iter(judged)) if len(judged) == 1 else "mixed"
    return {"evaluator": one, "evaluators": dict(sorted(judged.items()))}
