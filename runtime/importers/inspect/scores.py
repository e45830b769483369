"""The scores of a sample: which of them is the verdict, and what the others measure.

The verdict is the score that the header's headline names, else that of the first entry of its
results, else of the first scorer. All others, and the parts of scores that are objects or lists,
are metrics of the evaluation: `<scorer>`, `<scorer>/<key>`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.importers.inspect.fields import listed, section, text
from runtime.importers.inspect.values import as_number, is_truth, is_unscored

UNNAMED: Final = "score"
_PLACEHOLDER: Final = "88F74D2C"
"""What Inspect calls the scorer of a sample that was written before scores had names."""
_RESERVED: Final = frozenset({"correct", "score"})
_MAX_PARTS: Final = 256


@dataclass(frozen=True, slots=True)
class Place:
    """One series of scalar values: a scorer's, or those of one key of its objects."""

    scorer: str
    key: str | None = None

    @property
    def metric(self) -> str:
        """The name that the values have among the metrics of an evaluation."""
        name = self.scorer if self.key is None else f"{self.scorer}/{self.key}"
        return f"scorer/{name}" if name in _RESERVED else name


@dataclass(slots=True)
class Scorers:
    """What is known of the scorers of a log once all its samples were looked through.

    `numbers` are the series that hold numbers other than 0 and 1, `words` those that hold
    something that is no number and not a missing score either. `planned` is True while `main` is
    only what the log set out with: samples tell the scorer's name without its package.
    """

    first: str = UNNAMED
    main: Place | None = None
    planned: bool = False
    numbers: set[Place] = field(default_factory=set)
    words: set[Place] = field(default_factory=set)
    seen: set[Place] = field(default_factory=set)

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> "Scorers":
        """What the header says: before any sample was seen."""
        main = _headline(header, entries_of(header))
        if main is not None:
            return cls(main.scorer, main.place)
        planned = _first_planned(header)
        return cls() if planned is None else cls(planned.scorer, planned, planned=True)

    def scores(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """The scores of a sample by scorer, whatever form its log has them in."""
        if "scores" not in sample and isinstance(sample.get("score"), dict):
            return {self.first: sample["score"]}
        found = section(sample.get("scores"))
        return {self.first if name == _PLACEHOLDER else name: one for name, one in found.items()}

    def look(self, sample: Mapping[str, Any]) -> None:
        """Learn from one sample."""
        scores = self.scores(sample)
        if scores and (self.main is None or self.planned):
            self.main, self.planned = _named_in(scores, self.main), False
            self.first = self.main.scorer
        for place, value in places(scores):
            self.seen.add(place)
            if not is_truth(value):
                self.numbers.add(place)
            if as_number(value) is None and not is_unscored(value):
                self.words.add(place)

    def gives_truth(self, place: Place) -> bool:
        """True if the series holds nothing but verdicts of right and wrong."""
        return place not in self.numbers


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the header's results: the metrics of one series, under one reducer."""

    name: str
    scorer: str
    reducer: str | None
    metrics: Mapping[str, Any]
    told: Mapping[str, Any]

    @property
    def place(self) -> Place:
        """The series that it is about."""
        return Place(self.scorer, self.name if self.name != self.scorer else None)


def entries_of(header: Mapping[str, Any]) -> list[Entry]:
    """The entries of `results`, also of logs from when there could be one scorer only."""
    results = section(header, "results")
    told = [
        one
        for one in listed(results.get("scores", results.get("scorers")))
        if isinstance(one, dict)
    ]
    if not told and isinstance(results.get("scorer"), dict):
        told = [{**results["scorer"], "metrics": section(results, "metrics")}]
    return [
        Entry(
            name=text(one.get("name")) or UNNAMED,
            scorer=text(one.get("scorer")) or text(one.get("name")) or UNNAMED,
            reducer=text(one.get("reducer")) or None,
            metrics=section(one, "metrics"),
            told=one,
        )
        for one in told
    ]


def places(scores: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Every scalar value of a sample with its series."""
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        yield from ((Place(scorer, key), part) for key, part in _parts(value))


def value_at(scores: Mapping[str, Any], place: Place) -> Any:
    """The value of a series in one sample; None where it has none."""
    return next((value for at, value in places(scores) if at == place), None)


def measures(scores: Mapping[str, Any], main: Place | None) -> dict[str, Any]:
    """All numbers among the scores but the verdict's."""
    found: dict[str, Any] = {}
    for place, value in places(scores):
        number = as_number(value)
        if place != main and number is not None:
            found[place.metric] = value if isinstance(value, bool) else number
    return found


def _parts(value: Any) -> Iterable[tuple[str | None, Any]]:
    match value:
        case dict():
            return list(value.items())[:_MAX_PARTS]
        case list():
            return [(str(at), part) for at, part in enumerate(value[:_MAX_PARTS])]
        case _:
            return [(None, value)]


def _headline(header: Mapping[str, Any], entries: list[Entry]) -> Entry | None:
    told = section(header, "results", "headline")
    fitting = [
        entry
        for entry in entries
        if told.get("scorer") in (None, entry.scorer)
        and told.get("score") in (None, entry.name)
        and told.get("reducer") in (None, entry.reducer)
    ]
    order = [*fitting, *entries]
    return next((entry for entry in order if entry.metrics), next(iter(order), None))


def _first_planned(header: Mapping[str, Any]) -> Place | None:
    """The first scorer that the log set out with, and the first key that it has metrics for."""
    for told in listed(section(header, "eval").get("scorers")):
        name = text(section(told).get("name"))
        if name:
            keys = [key for key in section(told, "metrics") if "*" not in key]
            return Place(name, next(iter(keys), None))
    return None


def _named_in(scores: Mapping[str, Any], wanted: Place | None) -> Place:
    """The place that is wanted as the scores of a sample name it, else the first scorer's."""
    if wanted is not None:
        for name in (wanted.scorer, wanted.scorer.rpartition("/")[2]):
            if name in scores:
                return Place(name, wanted.key)
    return Place(next(iter(scores)))
