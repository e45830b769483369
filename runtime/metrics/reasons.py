"""Why a task or a metric has no value, in the words that are recorded."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

NEEDS_K: Final = "needs k attempts"
STOPPED_EARLY: Final = "stopped_early"
ERASED: Final = "erased"
INVALIDATED: Final = "invalidated"
NOT_A_TRUTH_VALUE: Final = "not a truth value"
TOO_LARGE: Final = "too large for a float"
NO_ANSWER: Final = "no answer"
NO_VALUE: Final = "no value"
NO_TASKS: Final = "no tasks"
DUPLICATE: Final = "duplicate"
MISSING: Final = "missing"
OPEN: Final = "open"

ERRORS: Final = ("run_error", "eval_error", "run_error_or_eval_error")

# Leaving such tasks out would move the number without a word: one of them ends the metric.
ENDS_THE_METRIC: Final = (ERASED, INVALIDATED, STOPPED_EARLY, NOT_A_TRUTH_VALUE, TOO_LARGE)

_ORDER: Final = (
    *ENDS_THE_METRIC,
    NEEDS_K,
    *ERRORS,
    "skipped",
    "cancelled",
    OPEN,
    NO_ANSWER,
    NO_VALUE,
    DUPLICATE,
    MISSING,
    NO_TASKS,
)


def gravest(reasons: Iterable[str]) -> str:
    """The one reason that is told where several hold; `missing` where there is none."""
    return min(reasons, key=_rank, default=MISSING)


def commonest(excluded: Counter[str]) -> str:
    """The reason of a metric that no task gives a value: the commonest, then the gravest."""
    return min(excluded, key=lambda reason: (-excluded[reason], _rank(reason)), default=NO_TASKS)


def _rank(reason: str) -> tuple[int, str]:
    return (_ORDER.index(reason) if reason in _ORDER else len(_ORDER), reason)
