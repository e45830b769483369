"""The rewards of a trial: what its benchmark gave, as flat numbers."""

from exporters.jobs.numbers import rounded
from ledger.state import AttemptState

REWARD = "reward"


def reward_of(attempt: AttemptState) -> float | None:
    """The score, or else 1 for a correct and 0 for a wrong answer; None without a verdict."""
    if attempt.score is not None:
        return rounded(attempt.score)
    return None if attempt.correct is None else float(attempt.correct)


def rewards_of(attempt: AttemptState) -> dict[str, float] | None:
    """The reward, then each measure of the evaluation by name; None without a verdict."""
    reward = reward_of(attempt)
    if reward is None:
        return None
    measures = {name: rounded(value) for name, value in sorted(attempt.metrics.items())}
    known = {n: v for n, v in measures.items() if v is not None and n != REWARD}
    return {REWARD: reward, **known}
