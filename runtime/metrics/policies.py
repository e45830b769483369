"""What an attempt that ended in an error counts as: the named error policies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ledger.errors import UsageError
from runtime.metrics import reasons
from runtime.metrics.observations import Observation, Value

COUNT_AS_ZERO: Final = "count_as_zero"
EXCLUDE: Final = "exclude"
UNAVAILABLE: Final = "unavailable"


class Sample(NamedTuple):
    """The attempts of one task that count under a policy, in the order of their numbers.

    `values`, `judged` (False for a 0 that the policy put in) and `answers` run side by side; an
    answer says nothing but to which others of the task it is equal;
    `gaps` are the reasons of the attempts that were left out. `veto` is the reason why the task
    gives no value at all, whatever is in `values`.
    """

    values: tuple[Value, ...] = ()
    judged: tuple[bool, ...] = ()
    answers: tuple[bytes | None, ...] = ()
    gaps: tuple[str, ...] = ()
    veto: str | None = None
    fatal: bool = False
    answers_erased: bool = False

    @property
    def n(self) -> int:
        """How many attempts count."""
        return len(self.values)

    @property
    def is_truth(self) -> bool:
        """True if every value is 0 or 1."""
        return all(value in (0, 1) for value in self.values)


Policy = Callable[[Sequence[Observation], int | None], Sample]


def count_as_zero(attempts: Sequence[Observation], first: int | None = None) -> Sample:
    """Count an attempt that ended in an error, and was not judged, as 0. The default.

    Attempts that were skipped, cancelled or never ended are no errors and do not count.
    """
    return _sample(attempts, first, zero=reasons.ERRORS)


def exclude(attempts: Sequence[Observation], first: int | None = None) -> Sample:
    """Leave out every attempt without a value."""
    return _sample(attempts, first)


def unavailable(attempts: Sequence[Observation], first: int | None = None) -> Sample:
    """Give no value for a task of which any attempt looked at lacks one (AgentCompass's rule)."""
    gaps = [a.reason for a in attempts[:first] if a.reason is not None]
    return _sample(attempts, first, veto=reasons.gravest(gaps) if gaps else None)


POLICIES: Final[Mapping[str, Policy]] = {
    COUNT_AS_ZERO: count_as_zero,
    EXCLUDE: exclude,
    UNAVAILABLE: unavailable,
}


def policy_named(name: str) -> Policy:
    """The policy of this name; UsageError names the known ones if there is none."""
    if name not in POLICIES:
        raise UsageError(f"there is no error policy {name!r}", hint=f"known: {', '.join(POLICIES)}")
    return POLICIES[name]


def _sample(
    attempts: Sequence[Observation],
    first: int | None,
    *,
    zero: Sequence[str] = (),
    veto: str | None = None,
) -> Sample:
    """Take the attempts that count, at most the `first` ones of them where that is given."""
    counted = [a for a in attempts if a.reason is None or a.reason in zero][:first]
    gaps = tuple([a.reason for a in attempts if a.reason is not None and a.reason not in zero])
    return Sample(
        values=tuple([0 if a.value is None else a.value for a in counted]),
        judged=tuple([a.value is not None for a in counted]),
        answers=tuple([a.answer for a in counted]),
        gaps=gaps,
        veto=reasons.ERASED if reasons.ERASED in gaps else veto,
        fatal=any(a.fatal for a in attempts),
        answers_erased=any(a.answer_erased for a in counted),
    )
