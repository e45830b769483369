"""One line of samples: a document under one filter, with its measures."""

import math
from dataclasses import dataclass
from typing import Any, Final

from runtime.importers.jsontext import NotARecord
from runtime.importers.numbers import is_measure, is_number

NO_FILTER: Final = "none"
BYPASS: Final = "bypass"
"""The measure of tasks that are not judged."""

KNOWN: Final = (
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
)

Number = bool | int | float


@dataclass(frozen=True, slots=True)
class Sample:
    """A line; `measures` are finite numbers by metric, in the order in which the line names them.

    `others` are measures of another kind: pairs that are only aggregated, NaN, texts.
    """

    doc_id: int
    filter: str
    measures: dict[str, Number]
    others: dict[str, Any]
    value: dict[str, Any]

    @property
    def hashes(self) -> str | None:
        """What the hash of a task's samples is taken of; None if a part is not there."""
        told = [self.value.get(name) for name in ("doc_hash", "prompt_hash", "target_hash")]
        texts = [one for one in told if isinstance(one, str)]
        return "".join(texts) if len(texts) == len(told) else None

    @property
    def doc_hash(self) -> str | None:
        """The checksum of the document."""
        told = self.value.get("doc_hash")
        return told if isinstance(told, str) else None


def read_sample(value: dict[str, Any]) -> Sample:
    """Read a line; NotARecord names what makes it none."""
    doc_id = value.get("doc_id")
    if type(doc_id) is not int or doc_id < 0:
        raise NotARecord(f"its doc_id is {doc_id!r}")
    told = value.get("filter", NO_FILTER)
    if not isinstance(told, str):
        raise NotARecord(f"its filter is {told!r}")
    names = value.get("metrics")
    if names is None:
        names = [name for name in value if name not in KNOWN]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise NotARecord("its metrics are no list of names")
    given = {name: value[name] for name in names if name in value}
    lacking = [name for name in names if name not in value]
    if lacking:
        raise NotARecord(f"it names {', '.join(lacking)} and has no value of it")
    measures = {name: item for name, item in given.items() if is_measure(item) and name != BYPASS}
    others = {name: item for name, item in given.items() if name not in measures}
    return Sample(doc_id, told, measures, others, value)


def is_truth(value: Number) -> bool:
    """True for what can be read as right or wrong."""
    return type(value) is bool or (is_number(value) and value in (0, 1))


def as_float(value: Number) -> float:
    """The value as a float; an integer that none can hold is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
