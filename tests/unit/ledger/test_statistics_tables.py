"""The association of groups and levels against scipy, and where there is none."""

import random

import pytest
from scipy import stats

from ledger.statistics import Association, chi_square


def test_chi_square_and_cramers_v_are_those_of_scipy_in_many_cases() -> None:
    rng = random.Random(9)
    for _ in range(1500):
        rows = [(rng.randint(0, 12), rng.randint(0, 12)) for _ in range(rng.randint(2, 6))]
        kept = [row for row in rows if sum(row)]
        if len(kept) < 2 or 0 in map(sum, zip(*kept, strict=True)):
            assert chi_square(rows).p is None
            continue
        found = chi_square(rows)
        expected = stats.chi2_contingency(kept, correction=False)
        v = stats.contingency.association(kept, method="cramer")
        assert (found.chi2, found.p) == pytest.approx(
            (expected.statistic, expected.pvalue), abs=1e-12
        )
        assert (found.df, found.cramers_v) == (expected.dof, pytest.approx(v, abs=1e-12))
        assert found.expected_lt5 == bool((expected.expected_freq < 5).any())


def test_one_level_or_one_group_has_no_association() -> None:
    assert chi_square([(3, 4)]) == Association(n=7, levels=1)
    assert chi_square([(3, 0), (4, 0)]) == Association(n=7, levels=2)
    assert chi_square([]) == Association(n=0, levels=0)


def test_levels_that_nothing_falls_on_do_not_count() -> None:
    assert chi_square([(3, 4), (0, 0), (5, 1)]) == chi_square([(3, 4), (5, 1)])


def test_a_perfect_association_has_a_v_of_one() -> None:
    found = chi_square([(10, 0), (0, 10)])
    assert (found.chi2, found.cramers_v, found.expected_lt5) == (20.0, 1.0, False)
