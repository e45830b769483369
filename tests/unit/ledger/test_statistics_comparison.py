"""Mann-Whitney's test and its effect sizes against scipy, brute force, and at the edges."""

import itertools
import random

import pytest
from scipy import stats

from ledger.statistics import magnitude, mann_whitney


def test_u_and_both_kinds_of_p_are_those_of_scipy_in_thousands_of_cases() -> None:
    rng = random.Random(7)
    methods = {"exact": 0, "asymptotic": 0, "degenerate": 0}
    for _ in range(1500):
        n, m = rng.choice([1, 2, 3, 7, 20, 21, 40]), rng.choice([1, 2, 5, 20, 30])
        tied = rng.random() < 0.5
        first, second = (
            [float(rng.randint(0, 5)) if tied else rng.gauss(0, 1) for _ in range(size)]
            for size in (n, m)
        )
        found = mann_whitney(first, second)
        assert found is not None
        methods[found.method] += 1
        if found.method == "degenerate":
            assert (found.p, found.auc) == (1.0, 0.5)
            continue
        expected = stats.mannwhitneyu(first, second, method=found.method)
        assert found.u == expected.statistic
        assert found.p == pytest.approx(expected.pvalue, abs=1e-13)
    assert methods["exact"] > 200
    assert methods["asymptotic"] > 200


def test_the_exact_p_is_the_share_of_arrangements_as_extreme() -> None:
    first, second = [1.5, 7.0, 9.0], [0.5, 2.0, 3.0, 8.0]
    found = mann_whitney(first, second)
    assert found is not None
    pooled = first + second
    us = []
    for chosen in itertools.combinations(range(7), 3):
        ones = [pooled[i] for i in chosen]
        others = [pooled[i] for i in range(7) if i not in chosen]
        us.append(sum(a > b for a in ones for b in others))
    extreme = sum(u >= max(found.u, 12 - found.u) for u in us)
    assert found.p == 2 * extreme / len(us)
    assert found.method == "exact"


def test_auc_is_the_chance_that_the_first_is_larger_with_ties_as_halves() -> None:
    first, second = [1, 2, 2, 5], [2, 3, 0]
    pairs = [(a > b) + 0.5 * (a == b) for a in first for b in second]
    found = mann_whitney(first, second)
    assert found is not None
    assert found.auc == sum(pairs) / 12
    assert found.cliffs_delta == pytest.approx(
        sum((a > b) - (a < b) for a in first for b in second) / 12
    )


def test_an_exact_p_needs_groups_without_ties_and_of_at_most_twenty() -> None:
    twenty = [float(i) for i in range(20)]
    others = [i + 0.5 for i in range(20)]
    found = [
        mann_whitney(twenty, others),
        mann_whitney([*twenty, 99.0], others),
        mann_whitney(twenty, [*others, 0.0]),
        mann_whitney(twenty[:5], others[:5], exact_max_n=4),
    ]
    methods = [one.method for one in found if one is not None]
    assert methods == ["exact", "asymptotic", "asymptotic", "asymptotic"]


def test_numbers_that_are_all_equal_differ_in_nothing() -> None:
    found = mann_whitney([3, 3], [3])
    assert found is not None
    assert (found.p, found.method, found.cliffs_delta) == (1.0, "degenerate", 0.0)


def test_one_group_cannot_be_compared() -> None:
    assert mann_whitney([], [1.0]) is None
    assert mann_whitney([1.0], []) is None


@pytest.mark.parametrize(
    ("delta", "word"),
    [
        (0.0, "negligible"),
        (-0.146, "negligible"),
        (0.147, "small"),
        (-0.33, "medium"),
        (0.473, "medium"),
        (0.474, "large"),
        (-1.0, "large"),
    ],
)
def test_effects_have_a_word(delta: float, word: str) -> None:
    assert magnitude(delta) == word
