"""What the trials of a job add up to by Harbor's own rules.

Read from `harbor/models/job/result.py`, `metrics/base.py` and `utils/pass_at_k.py` of harbor
0.25.0: means are over all trials, one without a reward counting 0; pass@k is the unbiased estimate
of Chen et al. (arXiv:2107.03374), for rewards of 0 and 1 alone, averaged over tasks.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ledger.statistics import pass_at_k
from runtime.importers.jobs.facts import Facts
from runtime.importers.jobs.rewards import REWARD, Rewards, main_reward

MEAN = "mean"

_Lists = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Sums:
    """One evaluation of a job; names of trials are sorted. `means` go by the metric's name."""

    n_trials: int
    n_errors: int
    means: dict[str, float]
    pass_at_k: dict[int, float]
    reward_stats: dict[str, dict[float, list[str]]] = field(default_factory=dict)
    exception_stats: _Lists = field(default_factory=dict)


def sums_of(trials: Sequence[Facts], *, ours: bool = False) -> Sums:
    """Add up the trials that ended. `ours`: as our exporter does, by the main reward alone."""
    rewards = [one.rewards for one in trials]
    if ours:
        rewards = [None if one is None else _main_alone(one) for one in rewards]
    return Sums(
        n_trials=sum(one.rewards is not None for one in trials),
        n_errors=sum(one.exception is not None for one in trials),
        means=_means(rewards),
        pass_at_k=_pass_at_k(trials, rewards),
        reward_stats=_reward_stats(trials),
        exception_stats=_exception_stats(trials),
    )


def k_of(key: str) -> int | None:
    """The k that a key of `pass_at_k` stands for; None for anything else."""
    return int(key) if re.fullmatch(r"[1-9][0-9]{0,5}", key) else None


def _main_alone(rewards: Rewards) -> Rewards:
    main = main_reward(rewards)
    return {} if main is None else {REWARD: main}


def _means(rewards: Sequence[Rewards | None]) -> dict[str, float]:
    """`mean` where there is at most one reward; of several the mean of each by its name."""
    if not rewards:
        return {}
    names = sorted({name for one in rewards if one is not None for name in one})
    if len(names) <= 1:
        values = [next(iter((one or {}).values()), 0) for one in rewards]
        return {MEAN: sum(values) / len(values)}
    return {name: sum((one or {}).get(name, 0) for one in rewards) / len(rewards) for name in names}


def _pass_at_k(trials: Sequence[Facts], rewards: Sequence[Rewards | None]) -> dict[int, float]:
    made: Counter[str] = Counter()
    solved: Counter[str] = Counter()
    for facts, one in zip(trials, rewards, strict=True):
        name = facts.task_name or ""
        made[name] += 1
        if one is None:
            continue
        value = next(iter(one.values())) if len(one) == 1 else None
        if value not in (0, 1):
            return {}
        solved[name] += value == 1
    found = {}
    for k in _ks(min(made.values(), default=0)):
        values = [pass_at_k(n, solved[name], k) for name, n in made.items()]
        found[k] = sum(value for value in values if value is not None) / len(made)
    return found


def _ks(most: int) -> Iterator[int]:
    """2, 4, 8, … and 5, 10, 15, …, in order."""
    powers = {2**exponent for exponent in range(1, max(most, 1).bit_length())}
    yield from sorted(k for k in powers | set(range(5, most + 1, 5)) if k <= most)


def _reward_stats(trials: Sequence[Facts]) -> dict[str, dict[float, list[str]]]:
    stats: dict[str, dict[float, list[str]]] = {}
    for facts in sorted(trials, key=lambda one: one.name):
        for name, value in (facts.rewards or {}).items():
            stats.setdefault(name, {}).setdefault(float(value), []).append(facts.name)
    return stats


def _exception_stats(trials: Sequence[Facts]) -> _Lists:
    stats: _Lists = {}
    for facts in sorted(trials, key=lambda one: one.name):
        if facts.exception is not None:
            stats.setdefault(facts.exception, []).append(facts.name)
    return stats
