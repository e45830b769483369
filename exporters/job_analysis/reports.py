"""What became of the failed and of the resolved, each by itself and both side by side."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from exporters import OutFile
from exporters.identity import Identity
from exporters.job_analysis.config import AnalysisConfig
from exporters.job_analysis.groups import (
    Document,
    Groups,
    described,
    digits_of,
    mean_of,
    numbers,
    percent_interval,
    rate,
    rows,
    shares,
)
from exporters.job_analysis.instances import Instance
from exporters.job_analysis.rules import AXES, NOT_APPLICABLE
from exporters.jobs.numbers import rounded
from exporters.jsontext import json_bytes

FAILED: Final = "report_failed.json"
RESOLVED: Final = "report_resolved.json"
COMPARISON: Final = "score_comparison.json"


def report_files(groups: Groups, config: AnalysisConfig, identity: Identity) -> list[OutFile]:
    """All three files; a group without members has counts of 0 and empty maps."""
    both = {FAILED: groups.failed, RESOLVED: groups.resolved}
    total = len(groups.failed) + len(groups.resolved)
    files = [
        OutFile(path, json_bytes(_report(members, total, config, identity)))
        for path, members in both.items()
    ]
    return [*files, OutFile(COMPARISON, json_bytes(_comparison(groups, config, identity)))]


def _report(
    members: Sequence[Instance], total: int, config: AnalysisConfig, identity: Identity
) -> Document:
    primary = rows(one.diagnosis.primary for one in members)
    flags = [flag for one in members for flag in one.flags]
    confidence = config.statistics.confidence
    return {
        "summary": {
            "total_instances": len(members),
            "unique_primary_categories": len(primary),
            "top_primary": primary[0][0] if primary else None,
            "instances_with_flags": sum(bool(one.flags) for one in members),
            "share_of_all_pct": rate(len(members), total),
            "share_of_all_ci95_pct": percent_interval(len(members), total, confidence),
        },
        "primary_distribution": {"name": "primary", "rows": primary, "total": len(members)},
        "axis_distributions": {axis: _axis(members, axis) for axis in AXES},
        "flag_distribution": {"name": "flags", "rows": rows(flags), "total": len(flags)},
        "verdict_distribution": {
            "name": "correctness_verdict",
            "rows": rows(one.diagnosis.verdict for one in members),
            "total": len(members),
        },
        "secondary_co_occurrence": _co_occurrence(members),
        "feature_statistics": _statistics(members, config.statistics.rounding),
        "acl": identity.trailer(),
    }


def _axis(members: Sequence[Instance], axis: str) -> Document:
    values = [one.diagnosis.axes[axis] for one in members]
    known = [value for value in values if value != NOT_APPLICABLE]
    return {
        "name": axis,
        "rows": rows(known),
        "total": len(known),
        "not_applicable": len(values) - len(known),
    }


def _co_occurrence(members: Sequence[Instance]) -> Document:
    """How often each primary cause comes with each secondary one."""
    pairs = Counter(
        (one.diagnosis.primary, later) for one in members for later in one.diagnosis.secondary
    )
    lines = sorted({primary for primary, _ in pairs})
    columns = sorted({later for _, later in pairs})
    return {
        "row_labels": lines,
        "col_labels": columns,
        "matrix": [[pairs[line, column] for column in columns] for line in lines],
    }


def _statistics(members: Sequence[Instance], rounding: int) -> Document:
    found: Document = {}
    for name in _feature_names(members):
        values = numbers(members, lambda one, name=name: one.features[name])  # type: ignore[misc]
        described_ = described(values, digits_of(name, rounding))
        if described_ is not None:
            found[name] = described_
    return found


def _feature_names(members: Sequence[Instance]) -> list[str]:
    return sorted(members[0].features) if members else []


def _comparison(groups: Groups, config: AnalysisConfig, identity: Identity) -> Document:
    """Percentages of the failed and the resolved beside each other."""

    def both(values: Callable[[Instance], Sequence[str]]) -> Document:
        return {
            name: shares(value for one in members for value in values(one))
            for name, members in (("failed", groups.failed), ("resolved", groups.resolved))
        }

    return {
        "failed_total": len(groups.failed),
        "resolved_total": len(groups.resolved),
        "primary_attribution": both(lambda one: [one.diagnosis.primary]),
        "axis_distributions": {axis: both(_applying(axis)) for axis in AXES},
        "verdict_distribution": both(lambda one: [one.diagnosis.verdict]),
        "flag_distribution": both(lambda one: one.flags),
        "feature_averages": _averages(groups, config.statistics.rounding),
        "acl": identity.trailer(),
    }


def _applying(axis: str) -> Callable[[Instance], Sequence[str]]:
    def value(one: Instance) -> Sequence[str]:
        found = one.diagnosis.axes[axis]
        return [] if found == NOT_APPLICABLE else [found]

    return value


def _averages(groups: Groups, rounding: int) -> Document:
    found: Document = {}
    for name in _feature_names([*groups.failed, *groups.resolved]):
        failed, resolved = (
            numbers(members, lambda one, name=name: one.features[name])  # type: ignore[misc]
            for members in (groups.failed, groups.resolved)
        )
        if failed or resolved:
            digits = digits_of(name, rounding)
            found[name] = {
                "failed": rounded(mean_of(failed), digits),
                "resolved": rounded(mean_of(resolved), digits),
            }
    return found
