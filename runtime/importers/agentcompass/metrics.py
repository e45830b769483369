"""`metrics.json`: the source's numbers as they are, for replay to compare with.

Every series is named by its id (`correct.avg@3`) and computed under AgentCompass's rule for
attempts without a value: policy `unavailable`. A series without a value, as when a fatal attempt
took it from the report, is no metric but is named in `extra.unavailable` with the reason.
"""

from typing import Any, Final

from ledger import events as ev
from runtime.importers.numbers import is_number
from runtime.importers.plan import SourceMetrics

POLICY: Final = "unavailable"
EVALUATED: Final = "evaluated_tasks"
_COUNTS: Final = ("total", "evaluated", "error", "unavailable", "invalidated")


def source_metrics(report: dict[str, Any]) -> SourceMetrics | None:
    """The metrics of a report; None if it is not what the program writes."""
    series = report.get("series")
    if not isinstance(series, list) or not all(_is_series(item) for item in series):
        return None
    metrics: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    for item in series:
        if item["value"] is None:
            unavailable[item["series_id"]] = _why_unavailable(item)
        else:
            metrics[item["series_id"]] = item["value"]
    counts = _task_counts(series)
    if counts is not None:
        metrics[EVALUATED] = counts["evaluated"]
    rest = {key: value for key, value in report.items() if key != "series"}
    return SourceMetrics(
        metrics=metrics,
        counts=counts or {},
        details={item["series_id"]: _detail(item) for item in series},
        extra={"unavailable": unavailable, "source": rest},
        reducers=tuple(_reducer(item) for item in series),
    )


def _task_counts(series: list[dict[str, Any]]) -> dict[str, int] | None:
    """Our counts from those of the headline: what the source could not evaluate is its errors."""
    headline = next((item for item in series if item.get("role") == "headline"), None)
    if headline is None:
        return None
    total, evaluated = headline["counts"]["total"], headline["counts"]["evaluated"]
    return {
        "total": total,
        "evaluated": evaluated,
        "error": total - evaluated,
        "missing": 0,
        "skipped": 0,
    }


def _detail(item: dict[str, Any]) -> dict[str, Any]:
    counts = item["counts"]
    excluded = {
        reason: counts[reason] for reason in ("unavailable", "invalidated") if counts[reason]
    }
    return {
        "value": item["value"],
        "numerator": None,
        "denominator": counts["evaluated"],
        "excluded": excluded,
        "estimator": item["reducer"],
        "policy": POLICY,
        "interval": None,
        "source": item,
    }


def _why_unavailable(item: dict[str, Any]) -> str:
    counts = item["counts"]
    if counts["invalidated"]:
        reason = f"invalidated by fatal issues in {counts['invalidated']} tasks"
    else:
        reason = "the source has no value"
    reference = item.get("reference_value")
    return reason if reference is None else f"{reason}; reference value {reference}"


def _reducer(item: dict[str, Any]) -> ev.ReducerUse:
    return ev.ReducerUse(
        metric=item["metric_id"], name=item["reducer"], version=1, k=item["k"], policy=POLICY
    )


def _is_series(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and all(isinstance(item.get(key), str) for key in ("series_id", "metric_id", "reducer"))
        and type(item.get("k")) is int
        and item["k"] >= 1
        and "value" in item
        and _is_value(item["value"])
        and isinstance(item.get("counts"), dict)
        and all(_is_count(item["counts"].get(key)) for key in _COUNTS)
        and item["counts"]["evaluated"] <= item["counts"]["total"]
    )


def _is_value(value: Any) -> bool:
    return value is None or is_number(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
