"""`report_task_analysis.json`: kinds of tasks, and how many of each were resolved."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from exporters import OutFile
from exporters.identity import Identity
from exporters.job_analysis.config import AnalysisConfig
from exporters.job_analysis.groups import (
    UNKNOWN,
    Document,
    Groups,
    described,
    distribution,
    numbers,
    percent_interval,
    rate,
    shares,
)
from exporters.job_analysis.instances import Instance
from exporters.jobs.numbers import rounded
from exporters.jsontext import json_bytes
from ledger.statistics import chi_square

REPORT: Final = "report_task_analysis.json"

Kind = Callable[[Instance], str]

_KINDS: Final[Mapping[str, Kind]] = {
    "difficulty": lambda one: one.tier.name,
    "domain": lambda one: one.domain or UNKNOWN,
    "bug_type": lambda one: one.bug_type or UNKNOWN,
    "category": lambda one: UNKNOWN if one.category is None else one.category,
}


def task_report(groups: Groups, config: AnalysisConfig, identity: Identity) -> OutFile:
    """The file; a missing value is the key `unknown`, counted but in no association."""
    counted = groups.counted
    confidence = config.statistics.confidence
    by_group = {"resolved": groups.resolved, "failed": groups.failed}

    def split(kind: Kind) -> Document:
        return {name: shares(map(kind, members)) for name, members in by_group.items()}

    def rates(kind: Kind) -> Document:
        return _rates(counted, kind, confidence)

    document: Document = {
        "summary": {
            "total_instances": len(counted),
            "resolved_instances": len(groups.resolved),
            "failed_instances": len(groups.failed),
            "overall_resolve_rate": rate(len(groups.resolved), len(counted)),
            "overall_resolve_rate_ci95": percent_interval(
                len(groups.resolved), len(counted), confidence
            ),
            "cancelled_instances": len(groups.cancelled),
        },
        "difficulty_tier_distribution": distribution(map(_KINDS["difficulty"], counted)),
        "swebench_difficulty_distribution": distribution(one.label or UNKNOWN for one in counted),
        "difficulty_stats_by_group": _difficulty(by_group, config.statistics.rounding),
        "domain_distribution": distribution(map(_KINDS["domain"], counted)),
        "domain_by_group": split(_KINDS["domain"]),
        "bug_type_distribution": distribution(map(_KINDS["bug_type"], counted)),
        "bug_type_by_group": split(_KINDS["bug_type"]),
        "difficulty_resolve_rate": rates(_KINDS["difficulty"]),
        "domain_resolve_rate": rates(_KINDS["domain"]),
        "bug_type_resolve_rate": rates(_KINDS["bug_type"]),
        "category_distribution": distribution(map(_KINDS["category"], counted)),
        "category_resolve_rate": rates(_KINDS["category"]),
        "associations": {
            name: _association(counted, kind, config.statistics.rounding)
            for name, kind in _KINDS.items()
        },
        "tiers": {
            "source_counts": dict(sorted(Counter(one.tier.source for one in counted).items())),
            "thresholds": config.difficulty.thresholds.model_dump(),
        },
        "unknown_counts": {
            name: sum(kind(one) == UNKNOWN for one in counted) for name, kind in _KINDS.items()
        },
        "acl": identity.trailer(),
    }
    return OutFile(REPORT, json_bytes(document))


def _difficulty(by_group: Mapping[str, Sequence[Instance]], rounding: int) -> Document:
    """Statistics of the tier as a number, and of each number that the metadata has."""
    found: Document = {}
    for group, members in by_group.items():
        series = {"difficulty_score": numbers(members, lambda one: one.tier.score)}
        for name in sorted({name for one in members for name in one.numbers}):
            series[f"metrics.{name}"] = [
                one.numbers[name] for one in members if name in one.numbers
            ]
        told = {name: described(values, rounding) for name, values in series.items()}
        found[group] = {name: one for name, one in told.items() if one is not None}
    return found


def _rates(counted: Sequence[Instance], kind: Kind, confidence: float) -> Document:
    totals = Counter(map(kind, counted))
    resolved = Counter(kind(one) for one in counted if one.resolved)
    return {
        value: {
            "total": total,
            "resolved": resolved[value],
            "rate": rate(resolved[value], total),
            "ci95": percent_interval(resolved[value], total, confidence),
        }
        for value, total in sorted(totals.items())
    }


def _association(counted: Sequence[Instance], kind: Kind, rounding: int) -> Document:
    known = [one for one in counted if kind(one) != UNKNOWN]
    pairs = Counter((kind(one), one.resolved) for one in known)
    levels = sorted({value for value, _ in pairs})
    found = chi_square([(pairs[level, True], pairs[level, False]) for level in levels])
    return {
        "n": found.n,
        "levels": found.levels,
        "chi2": rounded(found.chi2, rounding),
        "df": found.df,
        "p": rounded(found.p, rounding),
        "cramers_v": rounded(found.cramers_v, rounding),
        "expected_lt5": found.expected_lt5,
    }
