"""The aggregates as the source computed them, and what they say of the samples there should be."""

from typing import Any, Final

from ledger.events import ReducerUse
from runtime.importers.lm_eval.files import object_of
from runtime.importers.numbers import is_number
from runtime.importers.plan import SourceMetrics
from runtime.metrics.policies import COUNT_AS_ZERO, EXCLUDE
from runtime.metrics.reducers import AVG
from runtime.metrics.uses import make_use, names

_MEANS: Final = frozenset({"acc", "acc_norm", "exact_match"})
"""Metrics that are means where the configuration of a task says nothing."""


def source_metrics(document: dict[str, Any], only: str | None = None) -> SourceMetrics | None:
    """Every number as `<task or group>/<metric>,<filter>`; None if there are none.

    What is no finite number ("N/A", NaN) stands among those that are unavailable. Where `only`
    is the one task of the run, its means have the names that a replay gives them besides.
    """
    metrics: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    tables = {**object_of(document.get("groups")), **object_of(document.get("results"))}
    for task, table in sorted(tables.items()):
        for name, value in object_of(table).items():
            if name == "alias" or name.strip() == "":
                continue
            if is_number(value):
                metrics[f"{task}/{name}"] = value
            else:
                unavailable[f"{task}/{name}"] = f"the source says {value!r}"
    if not metrics and not unavailable:
        return None
    uses = {} if only is None else _means_as_uses(document, only)
    metrics |= {name: value for name, (_, value) in uses.items()}
    return SourceMetrics(
        metrics=metrics,
        counts={},
        details={},
        extra={
            "policy": COUNT_AS_ZERO,
            "unavailable": unavailable,
            "higher_is_better": object_of(document.get("higher_is_better")),
        },
        reducers=tuple(use for use, _ in uses.values()),
    )


def _means_as_uses(document: dict[str, Any], task: str) -> dict[str, tuple[ReducerUse, Any]]:
    """The means of a task by the name and the reducer that a replay has for each."""
    table = object_of(object_of(document.get("results")).get(task))
    means = means_of(document, task)
    told = {
        name: value
        for name, value in table.items()
        if name.partition(",")[0] in means and is_number(value)
    }
    uses = [make_use(name, AVG, k=1, policy=EXCLUDE) for name in told]
    return dict(
        zip(names(uses, policy=COUNT_AS_ZERO), zip(uses, told.values(), strict=True), strict=True)
    )


def means_of(document: dict[str, Any], task: str) -> set[str]:
    """The metrics of a task that are means over its samples."""
    config = object_of(object_of(document.get("configs")).get(task))
    listed = config.get("metric_list")
    if not isinstance(listed, list):
        return set(_MEANS)
    told = {str(one.get("metric")): one.get("aggregation") for one in map(object_of, listed)}
    return {name for name, kind in told.items() if kind == "mean"}


def expected_samples(document: dict[str, Any], task: str) -> int | None:
    """How many documents the aggregates of a task are of; None if that is not told."""
    told = object_of(object_of(document.get("n-samples")).get(task)).get("effective")
    return told if type(told) is int and told >= 0 else None


def tasks_of(document: dict[str, Any]) -> list[str]:
    """The tasks that have samples: groups are made of others."""
    subtasks = object_of(document.get("group_subtasks"))
    groups = {name for name, inner in subtasks.items() if inner}
    groups |= set(object_of(document.get("groups"))) - set(object_of(document.get("configs")))
    return [task for task in object_of(document.get("results")) if task not in groups]
