"""Special functions against scipy over their whole range."""

import random

import pytest
from scipy import special, stats

from ledger.statistics import normal_quantile, normal_tail, regularised_beta, upper_gamma


def test_the_regularised_beta_is_that_of_scipy() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        a = rng.choice([0.5, 1.0, 1.5, 10.0, 250.0, 5000.0]) * rng.uniform(0.5, 2)
        b = rng.choice([0.5, 0.5, 3.0, 100.0])
        x = rng.choice([rng.random(), rng.random() ** 6, 1 - rng.random() ** 6])
        assert regularised_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), abs=1e-11)


def test_the_upper_gamma_is_that_of_scipy() -> None:
    rng = random.Random(2)
    for _ in range(3000):
        a = rng.choice([0.5, 1.0, 2.5, 20.0, 200.0])
        x = a * rng.uniform(0, 4)
        assert upper_gamma(a, x) == pytest.approx(special.gammaincc(a, x), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("p", [1e-12, 0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999999])
def test_the_normal_quantile_is_that_of_scipy(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-15, abs=1e-16)


@pytest.mark.parametrize("z", [-3.0, 0.0, 1.96, 8.0, 37.0])
def test_the_normal_tail_keeps_its_precision_far_out(z: float) -> None:
    assert normal_tail(z) == pytest.approx(stats.norm.sf(z), rel=1e-13)


def test_the_ends_of_the_ranges_are_exact() -> None:
    assert (regularised_beta(2, 3, 0.0), regularised_beta(2, 3, 1.0)) == (0.0, 1.0)
    assert upper_gamma(1.5, 0.0) == 1.0
    assert normal_quantile(0.5) == 0.0
