"""Groups of instances, and how values are distributed in them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from exporters.job_analysis.instances import Instance
from exporters.jobs.numbers import percent, rounded
from ledger.statistics import Description, describe, mean, wilson

UNKNOWN: Final = "unknown"

Row = list[str | int | float]
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Groups:
    """All instances by what became of them.

    `failed` are `unresolved` (with a verdict) and `errors` (without one); `cancelled` are in no
    group: nobody knows what would have become of them.
    """

    resolved: Sequence[Instance]
    unresolved: Sequence[Instance]
    errors: Sequence[Instance]
    cancelled: Sequence[Instance]
    failed: Sequence[Instance]

    @classmethod
    def of(cls, instances: Sequence[Instance]) -> "Groups":
        """Sort instances into groups; each keeps the order."""
        by_group: dict[str, list[Instance]] = {}
        for one in instances:
            by_group.setdefault(one.group, []).append(one)
        return cls(
            resolved=by_group.get("resolved", []),
            unresolved=by_group.get("unresolved", []),
            errors=by_group.get("error", []),
            cancelled=by_group.get("cancelled", []),
            failed=[one for one in instances if one.group in ("unresolved", "error")],
        )

    @property
    def counted(self) -> list[Instance]:
        """The resolved and the failed."""
        return sorted([*self.resolved, *self.failed], key=lambda one: (one.id, one.attempt))

    @property
    def judged(self) -> list[Instance]:
        """The resolved and the unresolved."""
        return sorted([*self.resolved, *self.unresolved], key=lambda one: (one.id, one.attempt))


def rows(values: Iterable[str]) -> list[Row]:
    """[value, count, percent] of each value, the most frequent first, equal ones by name."""
    counts = Counter(values)
    total = counts.total()
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [[value, count, percent(count / total)] for value, count in ordered]


def shares(values: Iterable[str]) -> dict[str, float]:
    """The percentage of each value, by name."""
    counts = Counter(values)
    return {value: percent(count / counts.total()) for value, count in sorted(counts.items())}


def distribution(values: Iterable[str]) -> dict[str, Document]:
    """Count and percentage of each value, by name."""
    counts = Counter(values)
    return {
        value: {"count": count, "pct": percent(count / counts.total())}
        for value, count in sorted(counts.items())
    }


def percent_interval(successes: int, total: int, confidence: float) -> list[float] | None:
    """Wilson's interval in percent; None without cases."""
    found = wilson(successes, total, confidence)
    return None if found is None else [percent(bound) for bound in found]


def share_interval(successes: int, total: int, confidence: float) -> list[float | None] | None:
    """Wilson's interval as fractions; None without cases."""
    found = wilson(successes, total, confidence)
    return None if found is None else [rounded(bound) for bound in found]


def rate(successes: int, total: int) -> float | None:
    """A share in percent; None without cases."""
    return percent(successes / total) if total else None


def numbers(instances: Iterable[Instance], pick: Callable[[Instance], object]) -> list[float]:
    """The numbers that `pick` gives; truth values and None are left out."""
    picked = (pick(one) for one in instances)
    return [v for v in picked if isinstance(v, int | float) and not isinstance(v, bool)]


def described(values: Sequence[float], digits: int) -> Document | None:
    """Statistics of numbers as files tell them; None where there are none."""
    found = describe(values)
    return None if found is None else told(found, digits)


def mean_of(values: Sequence[float]) -> float | None:
    """The mean; None where there are no numbers."""
    return mean(values) if values else None


def told(found: Description, digits: int) -> Document:
    """A description with its numbers rounded."""
    names = ("mean", "sd", "median", "min", "max", "p25", "p75", "p90")
    return {"n": found.n, **{name: rounded(getattr(found, name), digits) for name in names}}


def digits_of(name: str, rounding: int) -> int:
    """How many decimals the statistics of a quantity have: money has ten."""
    return 10 if name.endswith("cost_usd") else rounding
