"""From a RunState to a MetricResult: every value with its denominator, exclusions and interval."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.events import ReducerUse
from ledger.state import RunState
from ledger.statistics import mean
from runtime.metrics import reasons
from runtime.metrics.estimates import estimate, estimator
from runtime.metrics.intervals import interval
from runtime.metrics.observations import TaskObservations, label, observe
from runtime.metrics.policies import COUNT_AS_ZERO, policy_named
from runtime.metrics.reducers import Estimate
from runtime.metrics.uses import default_uses, find_reducer, names, parse_use
from runtime.results import MetricCounts, MetricResult

EVALUATED_TASKS = "evaluated_tasks"

Detail = dict[str, Any]


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
    details = {EVALUATED_TASKS: _evaluated(state, list(state.tasks))}
    details |= {column.name: column.detail() for column in columns}
    counts = state.counts()
    result = MetricResult(
        metrics={
            n: detail["value"] for n, detail in details.items() if detail["value"] is not None
        },
        counts=MetricCounts(
            total=counts.total,
            evaluated=counts.evaluated,
            error=counts.error,
            missing=counts.missing,
            skipped=counts.skipped,
        ),
        details=details,
        extra=_extra(state, columns, details, policy),
    )
    return result, uses


@dataclass(frozen=True, slots=True)
class _Column:
    """One metric over all tasks: `estimates` run beside `tasks`."""

    name: str
    use: ReducerUse
    estimator: str
    tasks: Sequence[TaskObservations]
    estimates: Sequence[Estimate]
    truth: bool

    def detail(self) -> Detail:
        """What explains the value of the metric over all tasks."""
        summary = _summarise(self.estimates)
        observed = sum(any(a.reason is None for a in task.attempts) for task in self.tasks)
        attempts = Counter(a.reason or "observed" for t in self.tasks for a in t.attempts)
        zeros = reasons.ERRORS if self.use.policy == COUNT_AS_ZERO else ()
        return {
            **summary.plain(),
            "metric": self.use.metric,
            "reducer": self.use.name,
            "version": self.use.version,
            "k": self.use.k,
            "policy": self.use.policy,
            "estimator": self.estimator,
            "interval": summary.interval(self.truth),
            "coverage": {"numerator": observed, "denominator": len(self.tasks)},
            "attempts": dict(sorted(attempts.items())),
            "counted_as_zero": {r: n for r, n in sorted(attempts.items()) if r in zeros},
        }

    def by_category(self) -> dict[str, Detail]:
        """The short form of the detail for each category."""
        groups: dict[str, list[Estimate]] = {}
        for task, given in zip(self.tasks, self.estimates, strict=True):
            groups.setdefault(task.category, []).append(given)
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
    seen = {metric: observe(state, metric) for metric in {use.metric for use in uses}}
    columns = []
    for name, use in zip(names(uses, policy=policy), uses, strict=True):
        reducer = find_reducer(use.name, use.version)
        tasks = seen[use.metric]
        columns.append(
            _Column(
                name=name,
                use=use,
                estimator=estimator(reducer, k=use.k, stopping={t.stopping for t in tasks}),
                tasks=tasks,
                estimates=[estimate(reducer, task, k=use.k, policy=use.policy) for task in tasks],
                truth=all(a.value in (None, 0, 1) for task in tasks for a in task.attempts),
            )
        )
    return columns


def _evaluated(state: RunState, task_ids: Sequence[str]) -> Detail:
    bins = Counter(state.tasks[task_id].bin for task_id in task_ids)
    evaluated = bins.pop("evaluated", 0)
    return {
        "value": evaluated,
        "numerator": evaluated,
        "denominator": len(task_ids),
        "excluded": dict(sorted(bins.items())),
        "policy": None,
        "estimator": "count",
        "interval": None,
    }


def _extra(
    state: RunState, columns: Sequence[_Column], details: dict[str, Detail], policy: str
) -> dict[str, Any]:
    missing = {name: d["reason"] for name, d in details.items() if d["value"] is None}
    return {
        "policy": policy,
        "strategy": state.strategy,
        "unavailable": missing,
        "categories": _categories(state, columns),
        **_evaluators(state),
    }


def _categories(state: RunState, columns: Sequence[_Column]) -> dict[str, dict[str, Detail]]:
    members: dict[str, list[str]] = {}
    for task in state.tasks.values():
        members.setdefault(label(task.category), []).append(task.id)
    found = {
        category: {EVALUATED_TASKS: _short(_evaluated(state, members[category]))}
        for category in sorted(members)
    }
    for column in columns:
        for category, detail in column.by_category().items():
            found[category][column.name] = detail
    return found


def _short(detail: Detail) -> Detail:
    return {key: detail[key] for key in ("value", "numerator", "denominator", "excluded")}


def _evaluators(state: RunState) -> dict[str, Any]:
    """Who judged how many attempts; `mixed` where it was not one evaluator in one version."""
    judged = Counter(
        " ".join(attempt.evaluator) for _, attempt in state.attempts() if attempt.evaluator
    )
    if not judged:
        return {}
    one = next(iter(judged)) if len(judged) == 1 else "mixed"
    return {"evaluator": one, "evaluators": dict(sorted(judged.items()))}
