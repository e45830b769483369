"""What AgentCompass measures of a run: one primary metric, the others beside it, k and strategy.

The primary metric is a truth value named `correct` or a number named `score`, and no other metric
may have either name. Strategy `avg` makes all k attempts, `pass` stops at the first correct one;
`pass` needs a truth value.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ledger.state import AttemptState, RunState

Measures = dict[str, bool | int | float]
Primary = Literal["correct", "score"]
CANONICAL: Final = frozenset({"correct", "score"})


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the run is scored, as every task's `attempt_plan` and the report must agree on."""

    primary: Primary
    k: int
    strategy: Literal["avg", "pass"]

    @classmethod
    def of(cls, state: RunState) -> "Scoring":
        """The scoring of a run. k covers whatever attempts there are."""
        truth = scored = False
        k = max(state.k, 1)
        for _, attempt in state.attempts():
            truth |= attempt.correct is not None
            scored |= attempt.score is not None
            k = max(k, attempt.number)
        primary: Primary = "score" if scored and not truth else "correct"
        stops = state.strategy == "stop_on_correct" and primary == "correct"
        return cls(primary, k, "pass" if stops else "avg")

    def plan(self) -> dict[str, object]:
        """The `attempt_plan` of a task, and the `attempts` of a request."""
        return {"k": self.k, "strategy": self.strategy}

    def measures(self, attempt: AttemptState) -> Measures:
        """The metrics of an attempt: the primary first, the others sorted by name."""
        value = attempt.correct if self.primary == "correct" else attempt.score
        others = attempt.measures | attempt.metrics
        told: Measures = {} if value is None else {self.primary: value}
        return told | {name: others[name] for name in sorted(others) if _is_metric(name)}

    def beside(self, attempt: AttemptState) -> dict[str, object]:
        """What was measured under a name that no metric may have there."""
        others = attempt.measures | attempt.metrics
        left = {name: others[name] for name in sorted(others) if not _is_metric(name)}
        told: dict[str, object] = {"metrics": left} if left else {}
        if self.primary == "correct" and attempt.score is not None:
            told["score"] = attempt.score
        return told


def _is_metric(name: str) -> bool:
    return bool(name.strip()) and name == name.strip() and name not in CANONICAL
