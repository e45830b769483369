"""Which part of the planned attempts stands behind each published number."""

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.events import MetricsComputed
from ledger.state import RunState
from runtime.audit.report import Share

_OBSERVED = "observed"


def shares(
    state: RunState, planned_tasks: int | None, planned_attempts: int | None
) -> Iterator[Share]:
    """Yield what each number of the last `metrics.computed` rests on, sorted by its name.

    The numbers and reasons are those that were recorded; whether the events give them is for a
    replay to say.
    """
    if not state.metrics:
        return
    event = state.metrics[-1][2]
    missing = _mapping(event.extra.get("unavailable"))
    for name in sorted({*event.metrics, *missing}):
        yield _share(event, name, missing.get(name), planned_tasks, planned_attempts)


def _share(
    event: MetricsComputed,
    name: str,
    why: object,
    planned_tasks: int | None,
    planned_attempts: int | None,
) -> Share:
    detail = _mapping(event.details.get(name))
    counted = _counts(detail.get("attempts"))
    zeros = _counts(detail.get("counted_as_zero"))
    others = {r: n for r, n in counted.items() if r != _OBSERVED and r not in zeros}
    tells_attempts = "attempts" in detail
    behind = counted.get(_OBSERVED, 0) + sum(zeros.values())
    if tells_attempts and planned_attempts is not None:
        never = planned_attempts - sum(counted.values())
        others |= {"not made": never} if never > 0 else {}
    denominator = detail.get("denominator")
    return Share(
        metric=name,
        value=event.metrics.get(name),
        why=None if why is None else str(why),
        tasks=denominator if isinstance(denominator, int) else None,
        planned_tasks=planned_tasks,
        attempts=behind if tells_attempts else None,
        planned_attempts=planned_attempts,
        zeros=zeros,
        left_out_attempts=others,
        left_out_tasks=_counts(detail.get("excluded")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _counts(value: Any) -> dict[str, int]:
    """Counts by reason, of whatever an import may have brought."""
    return {str(key): count for key, count in _mapping(value).items() if isinstance(count, int)}
