"""What a header says of all samples together, and whether the samples say the same."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from runtime.importers.inspect.fields import listed, number, section, text
from runtime.importers.inspect.log import Log
from runtime.importers.inspect.reductions import is_known, metric_of, reduce_epochs
from runtime.importers.inspect.scores import Entry, Place, entries_of
from runtime.importers.inspect.survey import Seen, Survey
from runtime.importers.inspect.values import is_unscored
from runtime.importers.plan import Remark, SourceMetrics
from runtime.metrics.policies import EXCLUDE

TOLERANCE: Final = 1e-9
UNCHECKED: Final = "the log holds none of its samples, so that its metrics cannot be checked"

_MEANS: Final = frozenset({"accuracy", "mean"})
_SHOWN: Final = 3


@dataclass(slots=True)
class Results:
    """The metrics of one log, gathered entry by entry."""

    survey: Survey
    metrics: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    uses: list[ev.ReducerUse] = field(default_factory=list)

    def source_metrics(self) -> SourceMetrics | None:
        """The metrics under their own names, and once more under ours where replay knows them.

        None if the header has none.
        """
        header = self.survey.log.header
        for entry in entries_of(header):
            for key, told in entry.metrics.items():
                self._add(entry, key, told)
        if not self.metrics and not self.unavailable:
            return None
        results = section(header, "results")
        rest = {name: value for name, value in results.items() if name not in ("scores", "metrics")}
        return SourceMetrics(
            metrics=self.metrics,
            counts={},
            details=self.details,
            extra={"policy": EXCLUDE, "unavailable": self.unavailable, "source": rest},
            reducers=tuple(self.uses),
        )

    def _add(self, entry: Entry, key: str, told: Any) -> None:
        name = f"{entry.place.metric}/{key}"
        if entry.reducer is not None:
            name += f"[{entry.reducer}]"
        while name in self.details:
            name += "'"
        self._put(name, entry, told)
        use = self._use(entry, key, told)
        if use is not None and use not in self.uses:
            self.uses.append(use)
            reducer = {"avg@k": f"avg@{use.k}", "pass@k": f"pass@{use.k}"}
            ours = f"{use.metric}.{reducer.get(use.name, f'pass^{use.k}')}"
            self._put(ours, entry, told)

    def _put(self, name: str, entry: Entry, told: Any) -> None:
        value = number(told.get("value") if isinstance(told, dict) else told)
        if value is None:
            self.unavailable[name] = "the source has no finite value"
        else:
            self.metrics[name] = value
        self.details[name] = {
            "value": value,
            "numerator": None,
            "denominator": entry.told.get("scored_samples"),
            "excluded": {},
            "estimator": entry.reducer or "mean",
            "policy": EXCLUDE,
            "interval": None,
            "source": {"scorer": entry.scorer, "params": entry.told.get("params"), "metric": told},
        }

    def _use(self, entry: Entry, key: str, told: Any) -> ev.ReducerUse | None:
        """Our reducer for a metric of the source, if it is the same formula."""
        settings = section(told, "params") or section(told, "options")
        name = metric_name(key, told)
        main = entry.place == self.survey.scorers.main
        if name not in _MEANS or settings or not self._is_numeric(entry.place):
            return None
        metric = "score" if main else entry.place.metric
        if entry.reducer in (None, "mean"):
            return ev.ReducerUse(metric=metric, name="avg@k", version=1, k=1, policy=EXCLUDE)
        kind, _, k = entry.reducer.rpartition("_")
        truth = main and self.survey.scorers.gives_truth(entry.place)
        if truth and kind in ("pass_at", "pass_k") and k.isdecimal() and int(k) >= 1:
            reducer = "pass@k" if kind == "pass_at" else "pass^k"
            return ev.ReducerUse(
                metric="correct", name=reducer, version=1, k=int(k), policy=EXCLUDE
            )
        return None

    def _is_numeric(self, place: Place) -> bool:
        """True if each value of the series is a number, or not scored."""
        return place in self.survey.scorers.seen and place not in self.survey.scorers.words


def metric_name(key: str, told: Any) -> str:
    """The name of a metric without the package it comes from."""
    return (text(section(told).get("name")) or key).rpartition("/")[2]


def check_results(survey: Survey) -> Iterator[Remark]:
    """What the header says otherwise than the samples of the log do."""
    log = survey.log
    if not survey.seen:
        if entries_of(log.header):
            yield Remark(log.name, UNCHECKED, placed=True)
        return
    for entry in entries_of(log.header):
        yield from _check_entry(survey, entry)
    yield from _check_reductions(survey)
    yield from _check_counts(survey)
    yield from _check_summaries(survey)


def _check_entry(survey: Survey, entry: Entry) -> Iterator[Remark]:
    series = _series(survey, entry.place)
    values = [reduce_epochs(epochs, entry.reducer) for epochs in series.values()]
    values = [value for value in values if not is_unscored(value)]
    for key, told in entry.metrics.items():
        name, said = metric_name(key, told), number(section(told).get("value"))
        if said is None or name not in _MEANS | {"stderr"} or section(told, "params"):
            continue
        what = f"{key} of {entry.place.metric}" + (f" ({entry.reducer})" if entry.reducer else "")
        if not series:
            reason = f"its {what} is {said}, but no sample of the log has that score"
            yield Remark(survey.log.name, reason, placed=True, damage=True)
            continue
        if not is_known(entry.reducer):
            continue
        found = metric_of(name, values)
        if found is not None and abs(found - said) > TOLERANCE:
            reason = f"its {what} is {said}, but its samples give {found}"
            yield Remark(survey.log.name, reason, placed=True, damage=name in _MEANS)


def _series(survey: Survey, place: Place) -> dict[str, list[Any]]:
    """The values of one series by sample, as Inspect groups them: by the text of the id."""
    series: dict[str, list[Any]] = {}
    for seen in survey.seen.values():
        if place in seen.values:
            series.setdefault(str(seen.id), []).append(seen.values[place])
    return series


def _check_reductions(survey: Survey) -> Iterator[Remark]:
    for told in listed(survey.log.reductions):
        reduced = section(told)
        reducer = text(reduced.get("reducer")) or None
        series = _series(survey, Place(text(reduced.get("scorer"))))
        if not is_known(reducer) or not series:
            continue
        wrong = []
        for sample in map(section, listed(reduced.get("samples"))):
            found = reduce_epochs(series.get(str(sample.get("sample_id")), ()), reducer)
            if not _agree(sample.get("value"), found):
                wrong.append(f"{sample.get('sample_id')!r}: {sample.get('value')!r}, not {found!r}")
        if wrong:
            more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
            reason = f"its reductions of {reduced.get('scorer')} are not those of its samples: "
            reason += "; ".join(wrong[:_SHOWN]) + more
            yield Remark(survey.log.name, reason, placed=True, damage=True)


def _agree(said: Any, found: Any) -> bool:
    """True unless two scalar values differ."""
    if isinstance(said, dict | list):
        return True
    if is_unscored(said) or is_unscored(found):
        return is_unscored(said) and is_unscored(found)
    if isinstance(said, int | float) and isinstance(found, int | float):
        return abs(said - found) <= TOLERANCE
    return bool(said == found)


def _check_counts(survey: Survey) -> Iterator[Remark]:
    """A finished log holds a sample for each that it counts, unless it stopped early."""
    results = section(survey.log.header, "results")
    told = results.get("logged_samples")
    if told is None and not results.get("early_stopping"):
        told = results.get("total_samples")
    held = len(survey.seen) + survey.unplaced
    if survey.log.status == "success" and type(told) is int and told != held:
        reason = f"its results count {told} samples, the log holds {held}"
        yield Remark(survey.log.name, reason, placed=True, damage=True)


def _check_summaries(survey: Survey) -> Iterator[Remark]:
    log: Log = survey.log
    told = {
        (str(one.get("id")), one.get("epoch")): one for one in map(section, log.summaries) if one
    }
    held: dict[tuple[str, Any], Seen] = {
        (str(seen.id), seen.epoch): seen for seen in survey.seen.values()
    }
    for key, summary in told.items():
        seen = held.get(key)
        where = f"{log.name}, summary of sample {key[0]!r} in epoch {key[1]}"
        if seen is None:
            yield Remark(where, "the sample itself is not in the log")
            continue
        for name, score in section(summary.get("scores")).items():
            value = section(score).get("value")
            place = Place(name)
            if place in seen.values and not _agree(value, seen.values[place]):
                reason = f"it says {name} {value!r}, the sample {seen.values[place]!r}"
                yield Remark(where, reason, placed=True, damage=True)
