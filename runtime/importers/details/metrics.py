"""Metrics: as `acl` repeats them, else as far as the table of `.summary_counts.json` tells."""

from typing import Any, Final, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from ledger import events as ev
from runtime.importers.details.reading import Document
from runtime.importers.numbers import is_number
from runtime.importers.plan import SourceMetrics

Computed = Literal["evaluation", "replay", "import"]
SOURCES: Final = get_args(Computed)
_BINS: Final = ("total", "evaluated", "error", "missing", "skipped")
_USES: Final = TypeAdapter(tuple[ev.ReducerUse, ...])


def source_metrics(counts: Document, computed_by: Any) -> SourceMetrics | None:
    """The metrics of the run; None where there are none. `computed_by` is what run_info says."""
    repeated = _repeated(counts.words.get("computed"), computed_by)
    return repeated if repeated is not None else _from_table(counts)


def differing(counts: Document, metrics: SourceMetrics) -> list[str]:
    """The names of metrics of which the table says something else."""
    table = counts.value.get("metrics")
    rows = table if isinstance(table, dict) else {}
    unavailable = metrics.extra.get("unavailable")
    names = {*metrics.metrics, *(unavailable if isinstance(unavailable, dict) else {})}
    told = {name: row.get("value") if isinstance(row, dict) else row for name, row in rows.items()}
    return sorted(
        name
        for name in names | told.keys()
        if name not in told or name not in names or told[name] != metrics.metrics.get(name)
    )


def _repeated(value: Any, computed_by: Any) -> SourceMetrics | None:
    if not isinstance(value, dict):
        return None
    metrics, counts, details, extra = (
        value.get(name) for name in ("metrics", "counts", "details", "extra")
    )
    if not all(isinstance(part, dict) for part in (metrics, counts, details, extra)):
        return None
    try:
        uses = _USES.validate_python(tuple(value.get("reducers") or ()))
    except (ValidationError, TypeError):
        return None
    if not _are_numbers(metrics) or not _are_counts(counts):
        return None
    source: Computed = computed_by if computed_by in SOURCES else "import"
    return SourceMetrics(metrics, counts, details, extra, uses, source)  # type: ignore[arg-type]


def _from_table(counts: Document) -> SourceMetrics | None:
    table = counts.value.get("metrics")
    if not isinstance(table, dict) or not table:
        return None
    rows = {name: row if isinstance(row, dict) else {"value": row} for name, row in table.items()}
    values = {name: row["value"] for name, row in rows.items() if is_number(row.get("value"))}
    missing = {
        name: str(row.get("reason") or "the source has no value")
        for name, row in rows.items()
        if name not in values
    }
    bins: dict[str, Any] = {name: counts.value.get(name) for name in _BINS}
    return SourceMetrics(
        metrics=values,
        counts=bins if _are_counts(bins) else {},
        details=rows,
        extra={"unavailable": missing},
        reducers=(),
    )


def _are_numbers(value: Any) -> bool:
    return all(map(is_number, value.values()))


def _are_counts(value: Any) -> bool:
    return all(type(number) is int and number >= 0 for number in value.values())
