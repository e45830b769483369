"""Descriptions against numpy, and their edges."""

import random
import statistics

import numpy as np
import pytest

from ledger.statistics import describe, mean, percentile, sample_sd


def test_quantiles_are_type_7_of_hyndman_and_fan_in_thousands_of_cases() -> None:
    rng = random.Random(3)
    for _ in range(1500):
        values = sorted(
            rng.choice([rng.random(), rng.randint(0, 3)]) for _ in range(rng.randint(1, 40))
        )
        percents = (25, 50, 75, 90)
        expected = np.quantile(values, [p / 100 for p in percents], method="linear")
        assert [percentile(values, p) for p in percents] == pytest.approx(list(expected), abs=1e-14)


def test_the_first_quartile_is_no_element_at_a_quarter() -> None:
    # sorted[n // 4] would give 2.
    assert percentile([1, 2, 3, 4], 25) == 1.75


def test_mean_and_deviation_are_those_of_the_standard_library() -> None:
    rng = random.Random(4)
    for _ in range(500):
        values = [rng.gauss(1e6, 1) for _ in range(rng.randint(2, 30))]
        found = describe(values)
        assert found is not None
        assert found.mean == pytest.approx(statistics.mean(values), rel=1e-14)
        assert found.sd == pytest.approx(statistics.stdev(values), rel=1e-9)


def test_one_number_has_no_spread() -> None:
    found = describe([7])
    assert found is not None
    assert (found.n, found.mean, found.sd, found.median, found.p90) == (1, 7, None, 7, 7)


def test_no_numbers_are_described_by_nothing() -> None:
    assert describe([]) is None
    assert sample_sd([]) is None


def test_equal_numbers_have_a_spread_of_zero() -> None:
    assert sample_sd([0.1, 0.1, 0.1]) == 0.0


def test_huge_numbers_are_described_without_overflow() -> None:
    largest = 1.7976931348623157e308
    assert mean([1.7e308, 1.7e308]) == 1.7e308
    assert mean([largest] * 3) == largest
    assert percentile([-1.7e308, 1.7e308], 50) == 0.0
    assert sample_sd([0.0, 1.6e308]) == pytest.approx(1.6e308 / 2**0.5)
    assert sample_sd([-1.7e308, 1.7e308]) is None
