"""`analysis_summary.json` and `.md`: what analyzers found, by category and as distributions.

An analyzer declares distributions in its `details`: `value_counts {name: value}` are counted by
value, `numeric_stats {name: number}` are described by count, min, mean and percentiles.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from exporters import OutFile
from exporters.counts import UNCATEGORIZED
from exporters.identity import Identity
from exporters.jsontext import json_bytes
from exporters.markdown import DASH, escape, number, table
from exporters.reading import Reading
from ledger.events import AnalysisFinished
from ledger.state import RunState
from ledger.statistics import mean, percentile
from ledger.view import Blobs

ANALYSIS_JSON = "analysis_summary.json"
ANALYSIS_MD = "analysis_summary.md"
SCHEMA = "agentcompass.analysis_summary.v1"
TOP_VALUES = 50
_ANALYSIS = "analysis.finished"
_NO_JUDGE = "the analyzer does not say what is a bad case"
PERCENTILES = (50, 90, 95)


@dataclass(slots=True)
class Tally:
    """What one analyzer found in some attempts."""

    total: int = 0
    errors: int = 0
    judged: int = 0
    badcases: int = 0
    scores: list[float] = field(default_factory=list)

    def add(self, event: AnalysisFinished) -> None:
        """Count one finding; a failed analysis found nothing."""
        self.total += 1
        if event.error is not None:
            self.errors += 1
            return
        self.judged += event.is_badcase is not None
        self.badcases += event.is_badcase is True
        if event.score is not None:
            self.scores.append(event.score)

    def told(self) -> dict[str, object]:
        """The numbers; undefined ones are None with a reason."""
        told: dict[str, object] = {
            "total": self.total,
            "badcase_count": self.badcases,
            "error_count": self.errors,
            "badcase_ratio": self.badcases / self.judged if self.judged else None,
            "avg_score": math.fsum(self.scores) / len(self.scores) if self.scores else None,
        }
        all_failed = self.errors == self.total
        reasons = {
            "badcase_ratio": "every analysis failed" if all_failed else _NO_JUDGE,
            "avg_score": "no analysis gave a score",
        }
        undefined = {name: reason for name, reason in reasons.items() if told[name] is None}
        return {**told, "reasons": undefined} if undefined else told


@dataclass(slots=True)
class Distributions:
    """The values that one analyzer declared, by name."""

    values: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: dict[str, list[float]] = field(default_factory=dict)

    def add(self, details: object) -> None:
        """Take what `details` declares; anything else in it is none of a summary's business."""
        if not isinstance(details, dict):
            return
        counted, described = details.get("value_counts"), details.get("numeric_stats")
        if isinstance(counted, dict):
            for name, value in counted.items():
                self.values.setdefault(name, Counter())[_spelled(value)] += 1
        if isinstance(described, dict):
            for name, value in described.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self.numbers.setdefault(name, []).append(value)

    def told(self) -> dict[str, object]:
        """The most frequent values with their counts, equal ones by name; statistics of numbers."""
        return {
            "value_counts": {
                name: [{"value": value, "count": count} for value, count in _top(counter)]
                for name, counter in sorted(self.values.items())
            },
            "numeric_stats": {
                name: numeric_stats(values) for name, values in sorted(self.numbers.items())
            },
        }


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else json_bytes(value).decode().strip()


def _top(counter: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:TOP_VALUES]


def numeric_stats(values: Sequence[float]) -> dict[str, object]:
    """Describe numbers; those that are not finite are left out and counted.

    Percentile p is interpolated linearly at rank (n - 1)·p/100 of the sorted values.
    """
    finite = sorted(value for value in values if math.isfinite(value))
    told: dict[str, object] = {"count": len(finite)}
    if finite:
        told |= {"min": finite[0], "mean": mean(finite)}
        told |= {f"p{p}": percentile(finite, p) for p in PERCENTILES}
        told["max"] = finite[-1]
    if len(finite) < len(values):
        told["not_finite"] = len(values) - len(finite)
    return told


@dataclass(slots=True)
class Findings:
    """All findings of a run: by category and analyzer, over all, and distributions."""

    rows: dict[tuple[str, str], Tally] = field(default_factory=dict)
    overall: dict[str, Tally] = field(default_factory=dict)
    distributions: dict[str, Distributions] = field(default_factory=dict)


def collect(state: RunState, blobs: Blobs) -> tuple[Findings, Reading]:
    """Go through the analyses of all attempts, one at a time."""
    reading = Reading(state, blobs)
    found = Findings()
    for task, attempt in state.attempts():
        category = UNCATEGORIZED if task.category is None else task.category
        for seq in attempt.erased:
            if blobs.event(seq).type == _ANALYSIS:
                reading.note(seq)
        for seq in attempt.analyses:
            event = reading.event(seq, AnalysisFinished)
            if event is None:
                continue
            found.rows.setdefault((category, event.analyzer), Tally()).add(event)
            found.overall.setdefault(event.analyzer, Tally()).add(event)
            details = reading.value(seq, event.details)
            found.distributions.setdefault(event.analyzer, Distributions()).add(details)
    return found, reading


def analysis_files(state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """Both files, or none where no analyzer ran."""
    if not any(attempt.analyses for _, attempt in state.attempts()):
        return
    found, reading = collect(state, blobs)
    rows = [
        {"category": category, "analyzer": analyzer, **tally.told()}
        for (category, analyzer), tally in sorted(found.rows.items())
    ]
    overall = [{"analyzer": name, **tally.told()} for name, tally in sorted(found.overall.items())]
    more: dict[str, object] = {"erased": reading.told()} if reading.gaps else {}
    document = {
        "schema_version": SCHEMA,
        "rows": rows,
        "overall": overall,
        "distributions": {
            name: found.distributions[name].told() for name in sorted(found.distributions)
        },
        "acl": Identity.of(state).trailer(**more),
    }
    yield OutFile(ANALYSIS_JSON, json_bytes(document))
    text = "\n".join(_markdown(found)) + "\n"
    yield OutFile(ANALYSIS_MD, text.encode("utf-8", "backslashreplace"))


def _markdown(found: Findings) -> Iterator[str]:
    yield "# Analysis Summary"
    yield ""
    header = (
        "Category",
        "Analyzer",
        "Total",
        "Bad cases",
        "Errors",
        "Bad case ratio",
        "Mean score",
    )
    rows = [(*key, tally) for key, tally in sorted(found.rows.items())]
    overall = [("all", name, tally) for name, tally in sorted(found.overall.items())]
    yield from table(header, (_row(*row) for row in [*rows, *overall]))
    for name, distributions in sorted(found.distributions.items()):
        for title, counter in sorted(distributions.values.items()):
            yield from ("", f"## {escape(name)}: {escape(title)}", "")
            top = ((escape(value), str(count)) for value, count in _top(counter))
            yield from table(("Value", "Count"), top)
        if distributions.numbers:
            yield from ("", f"## {escape(name)}: numbers", "")
            yield from table(_STATS, map(_stats, sorted(distributions.numbers.items())))


_STATS = ("Name", "Count", "Min", "Mean", *(f"p{p}" for p in PERCENTILES), "Max")


def _stats(item: tuple[str, list[float]]) -> tuple[str, ...]:
    name, values = item
    told = numeric_stats(values)
    return (escape(name), *(_cell(told.get(column.lower())) for column in _STATS[1:]))


def _row(category: str, analyzer: str, tally: Tally) -> tuple[str, ...]:
    told = tally.told()
    numbers = (
        "total",
        "badcase_count",
        "error_count",
        "badcase_ratio",
        "avg_score",
    )
    return (escape(category), escape(analyzer), *(_cell(told[name]) for name in numbers))


def _cell(value: object) -> str:
    return number(value) if isinstance(value, int | float) else DASH
