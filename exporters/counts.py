"""`.summary_counts.json`: the counts and metrics that `summary.md` shows, for programs."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exporters import OutFile
from exporters.identity import Identity
from exporters.jsontext import json_bytes
from ledger.events.base import Number, Text
from ledger.state import Counts, RunState

SUMMARY_COUNTS = ".summary_counts.json"
UNCATEGORIZED = "__uncategorized__"
NO_METRICS = "no metrics were computed"
COUNTS = (
    "total",
    "evaluated",
    "error",
    "correct",
    "incorrect",
    "skipped",
    "missing",
    "reused",
    "attempts",
    "retries",
    "files_error",
)
_NO_DENOMINATOR = "no denominator was recorded"


class Bounds(BaseModel):
    """A confidence interval and the method that gave it."""

    model_config = ConfigDict(frozen=True)

    name: Text
    low: Number
    high: Number


class MetricRow(BaseModel):
    """A metric with what explains it; `value` is None where `reason` says why."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    value: Number | None = None
    numerator: Number | None = None
    denominator: Number | None = None
    excluded: dict[Text, int] = Field(default_factory=dict)
    counted_as_zero: dict[Text, int] = Field(default_factory=dict)
    estimator: Text | None = None
    policy: Text | None = None
    interval: Bounds | None = None
    reason: Text | None = None

    def told(self) -> dict[str, object]:
        """The row as `.summary_counts.json` has it."""
        told: dict[str, object] = {"value": self.value}
        if self.numerator is not None:
            told["numerator"] = self.numerator
        told["denominator"] = self.denominator
        told["excluded"] = dict(sorted(self.excluded.items()))
        if self.reason is not None:
            told["reason"] = self.reason
        return told


def metric_rows(state: RunState) -> dict[str, MetricRow]:
    """The metrics recorded last, the undefined ones included, sorted by name."""
    if not state.metrics:
        return {}
    event = state.metrics[-1][2]
    unavailable = event.extra.get("unavailable")
    reasons = unavailable if isinstance(unavailable, dict) else {}
    rows = {}
    for name in sorted({*event.metrics, *reasons}):
        row = _explained(event.details.get(name))
        value = event.metrics.get(name)
        reason = row.reason
        if value is None:
            reason = str(reasons[name])
        elif row.denominator is None and reason is None:
            reason = _NO_DENOMINATOR
        rows[name] = row.model_copy(update={"value": value, "reason": reason})
    return rows


def category_rows(state: RunState) -> dict[str, dict[str, MetricRow]]:
    """The metrics of each category, where the aggregation told them; both sorted by name."""
    told = state.metrics[-1][2].extra.get("categories") if state.metrics else None
    categories = told if isinstance(told, dict) else {}
    return {
        category: {name: _explained(detail) for name, detail in sorted(metrics.items())}
        for category, metrics in sorted(categories.items())
        if isinstance(metrics, dict)
    }


def _explained(detail: object) -> MetricRow:
    """What the aggregation says of a metric; a benchmark's own may say it in other words."""
    try:
        return MetricRow.model_validate(detail) if isinstance(detail, dict) else MetricRow()
    except ValidationError:
        return MetricRow()


def counts_by_category(state: RunState) -> dict[str, Counts]:
    """The counts of each category, sorted; tasks without one stand under `UNCATEGORIZED`."""
    named: dict[str, Counts] = {}
    for task in state.tasks.values():
        name = UNCATEGORIZED if task.category is None else task.category
        named.setdefault(name, Counts()).add(task)
    return dict(sorted(named.items()))


def _told(counts: Counts) -> dict[str, object]:
    return {name: getattr(counts, name) for name in COUNTS}


def _computed(state: RunState) -> dict[str, object]:
    """The metrics as they were recorded, which an import records again."""
    if not state.metrics:
        return {}
    event = state.metrics[-1][2]
    return {
        "computed": {
            "metrics": event.metrics,
            "counts": event.counts,
            "details": event.details,
            "extra": event.extra,
            "reducers": [use.model_dump(exclude_none=True) for use in event.reducers],
        }
    }


def summary_counts(state: RunState) -> OutFile:
    """The file: counts of tasks, the same by category, and each metric with its denominator."""
    metrics = metric_rows(state)
    document: dict[str, object] = {
        "schema_version": 1,
        **_told(state.counts()),
        "by_category": {name: _told(found) for name, found in counts_by_category(state).items()},
        "metrics": {name: row.told() for name, row in metrics.items()},
    }
    if not metrics:
        document["metrics_reason"] = NO_METRICS
    document["acl"] = Identity.of(state).trailer(**_computed(state))
    return OutFile(SUMMARY_COUNTS, json_bytes(document))
