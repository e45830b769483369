"""Inspect's own arithmetic over epochs and samples, to check what a header says.

Reducers take the values of one sample in its epochs; those that are not scored are left out. As in
`inspect_ai.scorer`: mean, median, mode, max, at_least_k, pass_at_k (arXiv:2107.03374) and pass_k
(arXiv:2406.12045). A value counts as its number, or 0 where it has none.
"""

import math
import re
import statistics as plain
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ledger import statistics
from runtime.importers.inspect.values import as_number, is_unscored

_WITH_K: Final = re.compile(r"(at_least|pass_at|pass_k)_([1-9][0-9]*)")
_THRESHOLD: Final = 1.0


def to_float(value: Any) -> float:
    """Inspect's `value_to_float`."""
    number = as_number(value)
    try:
        return 0.0 if number is None else float(number)
    except OverflowError:
        return math.inf


def reduce_epochs(values: Sequence[Any], reducer: str | None) -> Any:
    """The value of one sample over its epochs; None where there is none, or no known reducer."""
    scored = [value for value in values if not is_unscored(value)]
    if not scored:
        return None
    name = reducer or "mean"
    simple = _SIMPLE.get(name)
    if simple is not None:
        return simple(scored)
    match = _WITH_K.fullmatch(name)
    return _of_k(match[1], int(match[2]), scored) if match is not None else None


def is_known(reducer: str | None) -> bool:
    """True for a reducer that can be applied again."""
    return reducer is None or reducer in _SIMPLE or _WITH_K.fullmatch(reducer) is not None


def metric_of(name: str, values: Sequence[Any]) -> float | None:
    """A metric over the reduced values of all samples; None for one that is not known."""
    numbers = [to_float(value) for value in values if not is_unscored(value)]
    formula = _METRICS.get(name)
    if formula is None or not all(map(math.isfinite, numbers)):
        return None
    return formula(numbers)


def _of_k(name: str, k: int, scored: Sequence[Any]) -> float | None:
    correct = sum(1 for value in scored if to_float(value) >= _THRESHOLD)
    if name == "at_least":
        return float(correct >= k)
    if len(scored) < k:
        return None
    if name == "pass_at":
        return statistics.pass_at_k(len(scored), correct, k)
    return statistics.pass_hat_k(len(scored), correct, k)


def _mode(scored: Sequence[Any]) -> Any:
    return Counter(scored).most_common(1)[0][0]


def _stderr(numbers: Sequence[float]) -> float:
    if len(numbers) < 2:
        return 0.0
    return plain.stdev(numbers) / math.sqrt(len(numbers))


def _accuracy(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


_SIMPLE: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "mean": lambda scored: _accuracy([to_float(value) for value in scored]),
    "median": lambda scored: plain.median([to_float(value) for value in scored]),
    "mode": _mode,
    "max": lambda scored: max(scored, key=to_float),
}
_METRICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "accuracy": _accuracy,
    "mean": _accuracy,
    "stderr": _stderr,
}
