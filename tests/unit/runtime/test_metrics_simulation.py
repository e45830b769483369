"""Runs whose truth is known: every estimator must land near it, under both strategies.

Each task has its own success rate p. The estimate is a mean over independent tasks, so its
standard error is at most sqrt(1/4/tasks) around the mean over these very tasks (the variance of
an estimate between 0 and 1 is at most 1/4): with 4,000 tasks 0.0079. Five of them is the tolerance:
a right estimator misses it less than once in a million seeds, and the seed is fixed.
"""

import random
from functools import cache

import pytest

from ledger.state import RunState
from runtime.metrics import aggregate
from tests.metric_states import run_of

TASKS, K = 4000, 4
TOLERANCE = 5 * (0.25 / TASKS) ** 0.5


@cache
def rates() -> tuple[float, ...]:
    rng = random.Random(20261129)
    return tuple(rng.betavariate(0.7, 1.1) for _ in range(TASKS))


def truth(j: int) -> float:
    """The chance of a success within j attempts, over these tasks."""
    return sum(1 - (1 - p) ** j for p in rates()) / TASKS


@cache
def simulate(strategy: str, attempts: int) -> RunState:
    rng = random.Random(1)
    rows = []
    for p in rates():
        row: list[bool] = []
        while len(row) < attempts and not (strategy == "stop_on_correct" and True in row):
            row.append(rng.random() < p)
        rows.append(row)
    return run_of(*rows, k=K, strategy=strategy)


@pytest.mark.parametrize("strategy", ["all", "stop_on_correct"])
def test_pass_at_j_finds_the_truth_under_both_strategies(strategy: str) -> None:
    result, _ = aggregate(simulate(strategy, K))
    for j in range(1, K + 1):
        assert result.metrics[f"correct.pass@{j}"] == pytest.approx(truth(j), abs=TOLERANCE)


def test_more_attempts_than_k_are_all_used_and_give_the_same_truth() -> None:
    result, _ = aggregate(simulate("all", 2 * K))
    assert result.metrics["correct.pass@4"] == pytest.approx(truth(4), abs=TOLERANCE)


def test_pass_hat_and_avg_find_the_truth() -> None:
    result, _ = aggregate(simulate("all", K))
    every = sum(p**K for p in rates()) / TASKS
    mean = sum(rates()) / TASKS
    assert result.metrics["correct.pass^4"] == pytest.approx(every, abs=TOLERANCE)
    assert result.metrics["correct.avg@4"] == pytest.approx(mean, abs=TOLERANCE)


def test_the_mean_over_attempts_that_stopped_early_would_miss_the_truth() -> None:
    # Why avg@k is unavailable there: the plain mean of what was recorded is far off.
    recorded = simulate("stop_on_correct", K)
    plain, _ = aggregate(recorded, reducers=["avg@1[exclude]"])
    naive = (
        sum(
            sum(bool(a.correct) for a in t.attempts.values()) / len(t.attempts)
            for t in recorded.tasks.values()
        )
        / TASKS
    )
    mean = sum(rates()) / TASKS
    assert abs(naive - mean) > 10 * TOLERANCE / 5
    assert plain.metrics["correct.avg@1[exclude]"] == pytest.approx(mean, abs=TOLERANCE)


def test_the_interval_holds_the_truth() -> None:
    result, _ = aggregate(simulate("all", K))
    for name, value in {"correct.pass@2": truth(2), "correct.accuracy": truth(K)}.items():
        interval = result.details[name]["interval"]
        assert interval["low"] < value < interval["high"]
