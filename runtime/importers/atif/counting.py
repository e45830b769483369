"""What a trajectory counts up to, beside what it says that it does."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from ledger import events as ev
from runtime.importers.atif.document import Document, Step

_TOLERANCE: Final = 1e-6
_MOST: Final = 2**53
_TOTALS: Final = {
    "total_prompt_tokens": "prompt_tokens",
    "total_completion_tokens": "completion_tokens",
    "total_cached_tokens": "cached_tokens",
    "total_cost_usd": "cost_usd",
}


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over steps; None where no step tells any."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Self:
        """The sums over the metrics of these steps."""
        seen = [metrics for step in steps if isinstance(metrics := step.get("metrics"), dict)]
        return cls(
            prompt_tokens=_sum(count(one.get("prompt_tokens")) for one in seen),
            completion_tokens=_sum(count(one.get("completion_tokens")) for one in seen),
            cached_tokens=_sum(count(one.get("cached_tokens")) for one in seen),
            cost_usd=_fsum(number(one.get("cost_usd")) for one in seen),
        )

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            prompt_tokens=_sum((self.prompt_tokens, other.prompt_tokens)),
            completion_tokens=_sum((self.completion_tokens, other.completion_tokens)),
            cached_tokens=_sum((self.cached_tokens, other.cached_tokens)),
            cost_usd=_fsum((self.cost_usd, other.cost_usd)),
        )


def count(value: Any) -> int | None:
    """A whole number of at least 0 that any reader can hold; None for anything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MOST else None


def number(value: Any) -> float | int | None:
    """A finite number that fits a float and is no truth value; None for anything else."""
    if type(value) not in (int, float) or not -sys.float_info.max <= value <= sys.float_info.max:
        return None
    found: float | int = value
    return found


def usage_of(metrics: Any) -> ev.Usage | None:
    """The tokens of a step; None where it tells none."""
    if not isinstance(metrics, dict):
        return None
    extra = metrics.get("extra")
    found = ev.Usage(
        input_tokens=count(metrics.get("prompt_tokens")),
        output_tokens=count(metrics.get("completion_tokens")),
        cached_tokens=count(metrics.get("cached_tokens")),
        reasoning_tokens=count(extra.get("reasoning_tokens")) if isinstance(extra, dict) else None,
    )
    return None if found == ev.Usage() else found


def differences(document: Document, *ours: Totals) -> Iterator[str]:
    """What `final_metrics` says that none of `ours` gives: the file alone, then with others.

    Programs sum over the file, over all files so far, or over these and their sub-agents.
    """
    for field, name in _TOTALS.items():
        told = document.final_metrics.get(field)
        if told is None:
            continue
        known = [getattr(total, name) for total in ours]
        if number(told) is None:
            yield f"{field} is {told!r}, no number"
        elif not any(math.isclose(told, one or 0, abs_tol=_TOLERANCE) for one in known):
            yield f"{field} is {told}; its steps give {_words(known)}"
    steps = document.final_metrics.get("total_steps")
    if type(steps) is int and steps != len(document.steps):
        yield f"total_steps is {steps}; it has {len(document.steps)}"


def _words(known: list[Any]) -> str:
    told = [f"{one:.10g}" if isinstance(one, float) else str(one or 0) for one in known]
    alone, more = told[0], list(dict.fromkeys(one for one in told[1:] if one != told[0]))
    return (
        f"{alone}, with the files before it and sub-agents {' or '.join(more)}" if more else alone
    )


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _fsum(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
