"""`instance_analysis/`: contingency tables and correlations over instances, also as text."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from exporters import OutFile
from exporters.identity import Identity
from exporters.job_analysis.comparing import Series, correlations, family_sizes
from exporters.job_analysis.config import AnalysisConfig
from exporters.job_analysis.features import TRUTHS
from exporters.job_analysis.groups import (
    UNKNOWN,
    Document,
    Groups,
    numbers,
    percent_interval,
    rate,
    share_interval,
)
from exporters.job_analysis.instances import INSTANCES, Instance
from exporters.job_analysis.texttable import text_table
from exporters.jobs.numbers import rounded
from exporters.jsontext import json_bytes

DIRECTORY: Final = "instance_analysis"

_AXES: Final[Mapping[str, Callable[[Instance], str | None]]] = {
    "difficulty_label": lambda one: one.label,
    "tag1": lambda one: one.tag(1),
    "tag2": lambda one: one.tag(2),
    "tag3": lambda one: one.tag(3),
    "tag4": lambda one: one.tag(4),
    "category": lambda one: one.category,
}
_COLUMNS: Final = ("resolved", "unresolved", "total", "resolved_pct", "ci_low_pct", "ci_high_pct")
_STATISTICS: Final = (
    "n",
    "pearson_r",
    "pearson_p",
    "pearson_q",
    "spearman_r",
    "spearman_p",
    "spearman_q",
    "note",
)

_Table = dict[str, tuple[int, int]]


def instance_files(
    groups: Groups, instances: Sequence[Instance], config: AnalysisConfig, identity: Identity
) -> Iterator[OutFile]:
    """The summary, the correlations, and their twins in text and CSV."""
    judged = groups.judged
    tables = {axis: _table(judged, pick) for axis, pick in _AXES.items()}
    features = _features(groups, judged)
    known = {name: series for name, series in features.items() if series.n}
    found = correlations(known, config.statistics)
    confidence = config.statistics.confidence
    summary: Document = {
        "n_rows": len(instances),
        "n_resolved": len(groups.resolved),
        "n_unresolved": len(groups.unresolved),
        "excluded": {"error": len(groups.errors), "cancelled": len(groups.cancelled)},
        "n_missing_metadata": sum(one.lacks_metadata for one in instances),
        "instances_jsonl": INSTANCES,
        "dataset_dir": config.data.dataset_dir,
        "tables": {axis: _told(table, confidence) for axis, table in tables.items()},
        "correlations": found,
        "statistics": {
            "confidence": confidence,
            "alpha": config.statistics.alpha,
            "correction": config.statistics.correction,
            "family_size": family_sizes(known),
            "skipped_features": sorted(set(features) - set(known)),
        },
        "acl": identity.trailer(),
    }
    yield OutFile(f"{DIRECTORY}/summary.json", json_bytes(summary))
    yield OutFile(f"{DIRECTORY}/correlations.json", json_bytes(found))
    yield OutFile(f"{DIRECTORY}/correlations.txt", _correlations_text(found))
    for axis, table in tables.items():
        rows = list(_rows(table, confidence))
        yield OutFile(f"{DIRECTORY}/contingency_{axis}.csv", _csv(axis, rows))
        yield OutFile(f"{DIRECTORY}/contingency_{axis}.txt", text_table((axis, *_COLUMNS), rows))


def _features(groups: Groups, judged: Sequence[Instance]) -> dict[str, Series]:
    """Every number that instances have, by group; an instance without one is left out of it."""
    picks: dict[str, Callable[[Instance], object]] = {
        "difficulty_score": lambda one: one.tier.score
    }
    for name in judged[0].features if judged else ():
        if name not in TRUTHS:
            picks[f"features.{name}"] = lambda one, name=name: one.features[name]  # type: ignore[misc]
    for name in {name for one in judged for name in one.numbers}:
        picks[f"metrics.{name}"] = lambda one, name=name: one.numbers.get(name)  # type: ignore[misc]
    return {
        name: Series(numbers(groups.resolved, pick), numbers(groups.unresolved, pick))
        for name, pick in picks.items()
    }


def _table(judged: Sequence[Instance], pick: Callable[[Instance], str | None]) -> _Table:
    """(resolved, unresolved) of each category, the largest first, equal ones by name."""
    counts = Counter((pick(one) or UNKNOWN, one.resolved) for one in judged)
    table = {name: (counts[name, True], counts[name, False]) for name, _ in counts}
    return dict(sorted(table.items(), key=lambda item: (-sum(item[1]), item[0])))


def _told(table: _Table, confidence: float) -> Document:
    resolved = sum(counts[0] for counts in table.values())
    unresolved = sum(counts[1] for counts in table.values())
    by_name = sorted(table.items())
    return {
        "totals": {
            "resolved": resolved,
            "unresolved": unresolved,
            "total": resolved + unresolved,
        },
        "categories": list(table),
        "counts": {
            name: {"resolved": yes, "unresolved": no, "total": yes + no}
            for name, (yes, no) in by_name
        },
        "proportions_by_category": {
            name: {
                "resolved": rounded(yes / (yes + no)),
                "unresolved": rounded(no / (yes + no)),
            }
            for name, (yes, no) in by_name
        },
        "proportions_by_resolved": {
            "resolved": _parts({name: yes for name, (yes, _) in by_name}, resolved),
            "unresolved": _parts({name: no for name, (_, no) in by_name}, unresolved),
        },
        "ci95": {name: share_interval(yes, yes + no, confidence) for name, (yes, no) in by_name},
    }


def _parts(counts: Mapping[str, int], total: int) -> dict[str, float | None]:
    return {name: rounded(count / total) for name, count in counts.items()} if total else {}


def _rows(table: _Table, confidence: float) -> Iterator[tuple[object, ...]]:
    resolved = sum(yes for yes, _ in table.values())
    total = sum(map(sum, table.values()))
    for name, (yes, no) in table.items():
        yield _row(name, yes, yes + no, confidence)
    yield _row("total", resolved, total, confidence)


def _row(name: str, resolved: int, total: int, confidence: float) -> tuple[object, ...]:
    low, high = percent_interval(resolved, total, confidence) or (None, None)
    return name, resolved, total - resolved, total, rate(resolved, total), low, high


def _csv(axis: str, rows: Sequence[tuple[object, ...]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((axis, *_COLUMNS))
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _correlations_text(found: Mapping[str, Document]) -> bytes:
    rows = [
        (name, *(_shown(key, record[key]) for key in _STATISTICS)) for name, record in found.items()
    ]
    return text_table(("feature", *_STATISTICS), rows)


def _shown(key: str, value: object) -> object:
    """A p that rounds to 0 is small, not 0."""
    return "<1e-06" if value == 0.0 and key.endswith(("_p", "_q")) else value
