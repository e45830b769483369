"""Metrics for people: never a bare mean, always with what it is of and what was left out."""

from collections.abc import Iterator, Mapping
from typing import Any

from acl.output import number

HEADERS = ("METRIC", "VALUE", "OF", "LEFT OUT", "FORMULA", "ERRORS")


def metric_rows(
    metrics: Mapping[str, float], details: Mapping[str, Any], extra: Mapping[str, Any]
) -> Iterator[tuple[object, ...]]:
    """Rows under `HEADERS`: each value, then each metric that has none, with the reason.

    FORMULA is the estimator and ERRORS the policy for attempts that ended in one: docs/metrics.md.
    """
    for name, value in sorted(metrics.items()):
        detail = details.get(name) or {}
        of = detail.get("denominator")
        yield (
            name,
            number(value),
            "" if of is None else of,
            left_out(detail),
            detail.get("estimator") or "",
            detail.get("policy") or "",
        )
    for name, reason in sorted((extra.get("unavailable") or {}).items()):
        yield name, "no value", "", reason, "", ""


def left_out(detail: Mapping[str, Any]) -> str:
    """What a metric's denominator lacks, by reason."""
    return ", ".join(f"{n} {reason}" for reason, n in (detail.get("excluded") or {}).items())
