"""Which part of the planned attempts stands behind each published number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledger.events import MetricsComputed
from ledger.state import RunState
from runtime.audit.report import Share

_OBSERVED: Final = "observed"
_NOT_MADE: Final = "not made"
_EARLY: Final = "not made since one was correct"


def shares(
    state: RunState, planned_tasks: int | None, planned_attempts: int | None, stopped_early: int
) -> Iterator[Share]:
    """Yield what each number of the last `metrics.computed` rests on, sorted by its name.

    `stopped_early` is how many attempts were not made since an earlier one was correct.

    The numbers and reasons are those that were recorded; whether the events give them is for a
    replay to say.
    """
    if not state.metrics:
        return
    event = state.metrics[-1][2]
    missing = _mapping(event.extra.get("unavailable"))
    plan = _Plan(planned_tasks, planned_attempts, stopped_early)
    for name in sorted({*event.metrics, *missing}):
        yield _share(event, name, missing.get(name), plan)


@dataclass(frozen=True, slots=True)
class _Plan:
    tasks: int | None
    attempts: int | None
    stopped_early: int

    def not_made(self, told: int) -> dict[str, int]:
        """Why there are fewer attempts than were planned, when a number tells of `told`."""
        never = max(0, (self.attempts or 0) - told)
        early = min(never, self.stopped_early)
        reasons = {_EARLY: early, _NOT_MADE: never - early}
        return {reason: count for reason, count in reasons.items() if count}


def _share(event: MetricsComputed, name: str, why: object, plan: _Plan) -> Share:
    detail = _mapping(event.details.get(name))
    counted = _counts(detail.get("attempts"))
    zeros = _counts(detail.get("counted_as_zero"))
    others = {r: n for r, n in counted.items() if r != _OBSERVED and r not in zeros}
    tells_attempts = "attempts" in detail
    behind = counted.get(_OBSERVED, 0) + sum(zeros.values())
    if tells_attempts:
        others |= plan.not_made(sum(counted.values()))
    denominator = detail.get("denominator")
    return Share(
        metric=name,
        value=event.metrics.get(name),
        why=None if why is None else str(why),
        tasks=denominator if isinstance(denominator, int) else None,
        planned_tasks=plan.tasks,
        attempts=behind if tells_attempts else None,
        planned_attempts=plan.attempts,
        zeros=zeros,
        left_out_attempts=others,
        left_out_tasks=_counts(detail.get("excluded")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _counts(value: Any) -> dict[str, int]:
    """Counts by reason, of whatever an import may have brought."""
    return {str(key): count for key, count in _mapping(value).items() if isinstance(count, int)}
