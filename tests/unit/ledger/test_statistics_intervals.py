"""Intervals against figures worked out by hand or published, and their edges."""

import math
import random
from statistics import NormalDist

import pytest
from statsmodels.stats.proportion import proportion_confint

from ledger.statistics.intervals import Z, task_clustered, wilson


def test_z_is_the_quantile_of_a_two_sided_95_percent_interval() -> None:
    assert pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-12) == Z


@pytest.mark.parametrize(
    ("successes", "tasks", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_bounds(
    successes: int, tasks: int, low: float, high: float
) -> None:
    found = wilson(successes, tasks)
    assert found is not None
    assert found == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_wilson_is_that_of_statsmodels_in_thousands_of_cases() -> None:
    rng = random.Random(11)
    for _ in range(2000):
        n = rng.choice([1, 2, 3, 10, 100, 10_000])
        successes = rng.randint(0, n)
        confidence = rng.choice([0.95, 0.9, 0.99, 0.5])
        expected = proportion_confint(successes, n, 1 - confidence, method="wilson")
        assert wilson(successes, n, confidence) == pytest.approx(expected, abs=2e-15)


def test_wilson_of_a_single_success_is_wide() -> None:
    assert wilson(1, 1) == (pytest.approx(0.206549, abs=1e-6), 1.0)


def test_wilson_solves_its_own_equation() -> None:
    # |p - bound| = z * sqrt(bound (1 - bound) / n) at both bounds.
    found = wilson(7, 30)
    assert found is not None
    for bound in found:
        assert abs(7 / 30 - bound) == pytest.approx(Z * math.sqrt(bound * (1 - bound) / 30))


def test_wilson_has_exact_ends_and_needs_tasks() -> None:
    none, every = wilson(0, 5), wilson(5, 5)
    assert none is not None
    assert every is not None
    assert (none[0], every[1]) == (0.0, 1.0)
    assert wilson(0, 0) is None


def test_clustered_bounds_are_the_mean_and_its_standard_error_over_tasks() -> None:
    # Means 0, 1/2, 1: variance 1/4 over 3 tasks, se = sqrt(1/12).
    found = task_clustered([0.0, 0.5, 1.0])
    assert found is not None
    half = 1.959964 * math.sqrt(1 / 12)
    assert found == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))


def test_clustered_bounds_of_truth_values_stay_within_0_and_1() -> None:
    found = task_clustered([0.5, 1.0, 1.0, 1.0], truth=True)
    assert found is not None
    assert found[1] == 1.0


@pytest.mark.parametrize("means", [[], [0.5], [1.0, 1.0, 1.0], [1.7e308, -1.7e308]])
def test_no_interval_where_none_can_be_had(means: list[float]) -> None:
    assert task_clustered(means) is None


def test_attempts_at_one_task_do_not_count_as_independent() -> None:
    # Ten tasks, each always right or always wrong: ten facts, however many attempts.
    narrow = task_clustered([1.0] * 5 + [0.0] * 5)
    assert narrow is not None
    assert narrow[1] - narrow[0] == pytest.approx(2 * Z * math.sqrt(0.25 / 9))


def test_clustered_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = random.Random(7)
    covered, runs, tasks, attempts = 0, 400, 60, 3
    for _ in range(runs):
        rates = [rng.betavariate(1, 1) for _ in range(tasks)]
        means = [sum(rng.random() < p for _ in range(attempts)) / attempts for p in rates]
        found = task_clustered(means)
        assert found is not None
        covered += found[0] <= 0.5 <= found[1]
    # Binomial(400, .95) has a standard deviation of 4.4; five of them is 22.
    assert abs(covered - 0.95 * runs) <= 22
