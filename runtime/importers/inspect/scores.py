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
    something that is no number and not a missing score either.
    """

    first: str = UNNAMED
    main: Place | None = None
    numbers: set[Place] = field(default_factory=set)
    words: set[Place] = field(default_factory=set)
    seen: set[Place] = field(default_factory=set)

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> "Scorers":
        """What the header says: before any sample was seen."""
        entries = entries_of(header)
        named = [
            text(entry.get("name"))
            for entry in listed(section(header, "eval").get("scorers"))
            if isinstance(entry, dict)
        ]
        first = next((entry.scorer for entry in entries), None) or next(iter(named), None)
        scorers = cls(first or UNNAMED)
        main = _headline(header, entries)
        if main is not None:
            scorers.main = main.place
        elif first:
            scorers.main = Place(first)
        return scorers

    def scores(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """The scores of a sample by scorer, whatever form its log has them in."""
        if "scores" not in sample and isinstance(sample.get("score"), dict):
            return {self.first: sample["score"]}
        found = section(sample.get("scores"))
        return {self.first if name == _PLACEHOLDER else name: one for name, one in found.items()}

    def look(self, sample: Mapping[str, Any]) -> None:
        """Learn from one sample."""
        for place, value in places(self.scores(sample)):
            if self.main is None:
                self.main = Place(place.scorer)
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
    return next(iter(fitting or entries), None)
