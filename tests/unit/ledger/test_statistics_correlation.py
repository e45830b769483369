"""Correlations against scipy, and where there is none."""

import random

import pytest
from scipy import stats

from ledger.statistics import Correlation, mid_ranks, pearson, spearman


def series(rng: random.Random, n: int) -> list[float]:
    kind = rng.choice(["binary", "ties", "normal", "skewed"])
    match kind:
        case "binary":
            return [float(rng.random() < 0.4) for _ in range(n)]
        case "ties":
            return [float(rng.randint(0, 3)) for _ in range(n)]
        case "normal":
            return [rng.gauss(50, 10) for _ in range(n)]
        case _:
            return [rng.paretovariate(0.8) for _ in range(n)]


@pytest.mark.parametrize(
    ("ours", "theirs"), [(pearson, stats.pearsonr), (spearman, stats.spearmanr)]
)
def test_r_and_p_are_those_of_scipy_in_thousands_of_cases(ours: object, theirs: object) -> None:
    rng = random.Random(5)
    compared = 0
    for _ in range(2000):
        n = rng.choice([3, 4, 5, 8, 20, 60, 300])
        xs, ys = series(rng, n), [float(rng.random() < 0.5) for _ in range(n)]
        found = ours(xs, ys)
        if found.note == "constant":
            assert min(xs) == max(xs) or min(ys) == max(ys)
            continue
        expected = theirs(xs, ys)
        assert found.r == pytest.approx(expected.statistic, abs=1e-13)
        if found.note == "perfect":
            assert abs(expected.statistic) == pytest.approx(1.0)
            continue
        assert found.p == pytest.approx(expected.pvalue, abs=1e-11)
        compared += 1
    assert compared > 1000


def test_mid_ranks_are_those_of_scipy() -> None:
    rng = random.Random(6)
    for _ in range(300):
        values = series(rng, rng.randint(1, 30))
        assert mid_ranks(values) == list(stats.rankdata(values))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_than_three_pairs_have_no_correlation(n: int) -> None:
    assert pearson([1.0, 2.0][:n], [0.0, 1.0][:n]) == Correlation(None, None, "n<3")


@pytest.mark.parametrize("constant", [0.1, 0, 1e308])
def test_a_constant_series_has_no_correlation(constant: float) -> None:
    assert pearson([constant] * 4, [0, 1, 0, 1]) == Correlation(None, None, "constant")
    assert spearman([0, 1, 0, 1], [constant] * 4) == Correlation(None, None, "constant")


@pytest.mark.parametrize("values", [[0.1, 0.7, 0.1, 0.7], [3, 1e9, 3, 1e9]])
def test_a_perfect_correlation_has_no_p(values: list[float]) -> None:
    assert pearson(values, [0, 1, 0, 1]) == Correlation(1.0, None, "perfect")
    assert spearman(values, [1, 0, 1, 0]) == Correlation(-1.0, None, "perfect")


def test_perfect_separation_need_not_be_a_perfect_linear_correlation() -> None:
    found = pearson([1, 2, 8, 9], [0, 0, 1, 1])
    assert found.r == pytest.approx(stats.pearsonr([1, 2, 8, 9], [0, 0, 1, 1]).statistic)
    assert found.note is None


def test_huge_numbers_correlate_without_overflow() -> None:
    assert pearson([1.7e308, -1.7e308, 0.0], [1, 0, 0.5]) == Correlation(1.0, None, "perfect")
