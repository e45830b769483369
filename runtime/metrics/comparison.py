"""Recorded metrics beside recomputed ones: counts and words equal, floats within 1e-9."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledger.events import MetricsComputed
from runtime.metrics import agentcompass
from runtime.metrics.aggregation import EVALUATED_TASKS
from runtime.metrics.reasons import ERASED
from runtime.results import MetricResult

TOLERANCE: Final = 1e-9

OF_THE_BENCHMARK: Final = "added by the benchmark, whose plug-in is not at hand"
OF_THE_SOURCE: Final = "computed by a rule of the source that is not known here"
COUNTED_THERE: Final = "the source counts the tasks that its headline could use"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which two results differ; None stands for a field that one of them lacks.

    `name` is the path to the field, as in `details/correct.avg@3/denominator`.
    """

    name: str
    recorded: Any
    replayed: Any


@dataclass(slots=True)
class Comparison:
    """What differs, and what could not be compared, by the reason; `compared` counts the rest."""

    differences: list[Difference] = field(default_factory=list)
    not_compared: dict[str, str] = field(default_factory=dict)
    compared: int = 0

    def look(self, name: str, recorded: Any, replayed: Any) -> None:
        """Compare one field."""
        self.compared += 1
        if not same(recorded, replayed):
            self.differences.append(Difference(name, recorded, replayed))


def compare_run(
    event: MetricsComputed,
    replayed: MetricResult,
    comparison: Comparison,
    *,
    counts_erased: bool,
    with_benchmark: bool,
) -> None:
    """Compare every field of a run's own result with the one that was replayed.

    Set aside are the metrics that `comparison.not_compared` names already, those that need an
    erased answer, and, without the benchmark's plug-in, names that only it can have added. Where
    a verdict was erased, or what else counts are made of, nothing is left to compare.
    """
    aside = comparison.not_compared
    if counts_erased:
        aside |= dict.fromkeys(event.metrics, ERASED)
        return
    unavailable = replayed.extra.get("unavailable", {})
    aside |= {name: ERASED for name, reason in unavailable.items() if reason == ERASED}
    if not with_benchmark:
        known = {*replayed.metrics, *replayed.details, *unavailable}
        told = {*event.metrics, *event.details} - known - set(aside)
        aside |= dict.fromkeys(told, OF_THE_BENCHMARK)
        keys = set(event.extra) - set(replayed.extra)
        aside |= {f"extra/{key}": OF_THE_BENCHMARK for key in keys}
    old, new = flatten(_parts(event)), flatten(replayed.model_dump(mode="python"))
    for path in sorted({*old, *new}):
        if _named(path) not in aside:
            comparison.look("/".join(path), old.get(path), new.get(path))


def compare_import(event: MetricsComputed, replayed: MetricResult, comparison: Comparison) -> None:
    """Compare the values of an import where names correspond; its details have other shapes.

    So are the reference values of an invalidated report, which stands without official ones.
    """
    for name, value in sorted(event.metrics.items()):
        reason = _why_not(name, event, replayed)
        if reason is None:
            comparison.look(f"metrics/{name}", value, replayed.metrics.get(name))
        else:
            comparison.not_compared.setdefault(name, reason)
    for name, detail in sorted(replayed.details.items()):
        told = _of_the_report(event, name)
        if "reference_value" in detail and "reference_value" in told:
            path = f"details/{name}/reference_value"
            comparison.look(path, told["reference_value"], detail["reference_value"])


def same(recorded: Any, replayed: Any) -> bool:
    """True for equal values of one kind; a number that is not whole may be off by 1e-9."""
    if isinstance(recorded, float) or isinstance(replayed, float):
        numbers = _is_number(recorded) and _is_number(replayed)
        return numbers and abs(recorded - replayed) <= TOLERANCE
    return type(recorded) is type(replayed) and bool(recorded == replayed)


def flatten(parts: Mapping[str, Any]) -> dict[Path, Any]:
    """Every plain value of `metrics`, `counts`, `details` and `extra` by its path."""
    return {
        path: value
        for part in ("metrics", "counts", "details", "extra")
        for path, value in _leaves((part,), parts[part])
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves((*path, str(key)), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves((*path, str(index)), item)
    else:
        yield path, value


def _parts(event: MetricsComputed) -> dict[str, Any]:
    return {
        "metrics": event.metrics,
        "counts": event.counts,
        "details": event.details,
        "extra": event.extra,
    }


def _named(path: Path) -> str:
    """The metric that a field is about, else `counts`, else the key of `extra`."""
    match path:
        case ("metrics" | "details", name, *_) | ("extra", "unavailable", name):
            return name
        case ("extra", "categories", _, name, *_):
            return name
        case ("extra", key, *_):
            return f"extra/{key}"
        case _:
            return path[0]


def _why_not(name: str, event: MetricsComputed, replayed: MetricResult) -> str | None:
    if name == EVALUATED_TASKS:
        return COUNTED_THERE
    if replayed.extra["unavailable"].get(name) == ERASED:
        return ERASED
    if name not in replayed.metrics and name not in replayed.extra["unavailable"]:
        return OF_THE_SOURCE
    return agentcompass.incomparable(_of_the_report(event, name))


def _of_the_report(event: MetricsComputed, name: str) -> Mapping[str, Any]:
    """The source's own words on a metric, which an import keeps in its detail."""
    detail = event.details.get(name)
    told = detail.get("source") if isinstance(detail, Mapping) else None
    return told if isinstance(told, Mapping) else {}
