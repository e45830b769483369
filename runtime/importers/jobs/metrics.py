"""The job's own metrics, named so that replay can compute them again where it has the rule.

Harbor's mean over trials is our mean over tasks of their means, with errors counted as 0, where
each task has the same number of trials and each trial without a reward ended in an error. Its
pass@k is ours where the latter holds. Elsewhere the number is told by Harbor's name, uncompared.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger import events as ev
from runtime.importers.atif.counting import number
from runtime.importers.jobs.facts import Facts
from runtime.importers.jobs.failures import CANCELLED
from runtime.importers.jobs.rewards import REWARD
from runtime.importers.jobs.sums import MEAN, k_of
from runtime.importers.plan import SourceMetrics

POLICY: Final = "count_as_zero"
HARBOR: Final = "harbor"
"""Stands before the names of metrics that are computed by no rule of ours."""

_OF_VERDICTS: Final = frozenset({"correct", "score"})
"""Metrics of these names are verdicts to replay, whatever rewards are called so."""

_TRIAL_LISTS: Final = frozenset({"reward_stats", "exception_stats"})


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the trials lie: how many each task has (None: not all the same), and what is judged."""

    each: int | None
    zeros_are_errors: bool
    binary: bool
    everywhere: frozenset[str]

    @classmethod
    def of(cls, trials: Sequence[Facts], tasks: Mapping[str, str], binary: bool) -> "_Shape":
        counts = set(Counter(tasks[facts.name] for facts in trials).values())
        judged = [set(facts.rewards) for facts in trials if facts.rewards is not None]
        unjudged = [facts.exception for facts in trials if facts.rewards is None]
        return cls(
            each=counts.pop() if len(counts) == 1 else None,
            zeros_are_errors=all(kind not in (None, CANCELLED) for kind in unjudged),
            binary=binary,
            everywhere=frozenset(set.intersection(*judged)) if judged else frozenset(),
        )


def source_metrics(
    job: Mapping[str, Any], trials: Sequence[Facts], tasks: Mapping[str, str], *, binary: bool
) -> SourceMetrics | None:
    """The metrics of a job; None if it has computed none.

    `trials` ended, and `tasks` are the tasks of each by its name.
    """
    stats = job.get("stats")
    evals = stats.get("evals") if isinstance(stats, dict) else None
    if not isinstance(stats, dict) or not isinstance(evals, dict):
        return None
    shape = _Shape.of(trials, tasks, binary)
    metrics: dict[str, float | int] = {}
    uses: list[ev.ReducerUse] = []
    details: dict[str, Any] = {}
    alone = len(evals) == 1
    for key, told in sorted(evals.items()):
        for name, value, use in _values(told, shape):
            known = number(value)
            if known is None:
                continue
            # Several evaluations at once are no rule that replay has.
            rule = use if alone else None
            label = f"{HARBOR}.{name}" if alone else f"{key}.{name}"
            label = label if rule is None else f"{rule.metric}.{rule.name[:-1]}{rule.k}"
            metrics[label] = known
            details[label] = {"value": known, "policy": POLICY, "source": {"eval": key}}
            uses += [] if rule is None else [rule]
    if not metrics:
        return None
    return SourceMetrics(
        metrics=metrics,
        counts={},
        details=details,
        extra={"policy": POLICY, "source": _without_lists(stats)},
        reducers=tuple(uses),
    )


def _values(told: Any, shape: _Shape) -> Iterator[tuple[str, Any, ev.ReducerUse | None]]:
    """Harbor's name of each metric, its value, and the rule of ours that gives the same."""
    if not isinstance(told, dict):
        return
    metrics = told.get("metrics")
    for metric in metrics if isinstance(metrics, list) else []:
        for name, value in (metric if isinstance(metric, dict) else {}).items():
            ours = _measured(name, shape)
            yield name, value, None if ours is None else _use(ours, "avg@k", shape.each)
    estimates = told.get("pass_at_k")
    same = shape.binary and shape.zeros_are_errors
    for k, value in (estimates if isinstance(estimates, dict) else {}).items():
        use = _use("correct", "pass@k", k_of(k)) if same and k_of(k) else None
        yield f"pass@{k}", value, use


def _measured(name: str, shape: _Shape) -> str | None:
    """What we call the reward that a mean is of; None where our rule would give another number."""
    if shape.each is None or not shape.zeros_are_errors:
        return None
    if name == MEAN and len(shape.everywhere) == 1:
        return "score"
    if name not in shape.everywhere or name in _OF_VERDICTS:
        return None
    return "score" if name == REWARD else name


def _use(metric: str, name: str, k: int | None) -> ev.ReducerUse:
    return ev.ReducerUse(metric=metric, name=name, version=1, k=k, policy=POLICY)


def _without_lists(stats: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics without the names of trials, which the verdicts tell themselves."""
    evals = stats["evals"]
    short = {
        key: {name: value for name, value in told.items() if name not in _TRIAL_LISTS}
        for key, told in evals.items()
        if isinstance(told, dict)
    }
    return {**stats, "evals": short}
