"""Benjamini and Hochberg's correction against two libraries, and its edges."""

import random

import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ledger.statistics import benjamini_hochberg


def test_adjusted_values_are_those_of_scipy_and_statsmodels_in_many_cases() -> None:
    rng = random.Random(8)
    for _ in range(1000):
        ps = [rng.choice([rng.random() ** 3, 0.05, 1.0]) for _ in range(rng.randint(1, 30))]
        found = benjamini_hochberg(ps)
        assert found == pytest.approx(list(stats.false_discovery_control(ps)), abs=1e-15)
        assert found == pytest.approx(list(multipletests(ps, method="fdr_bh")[1]), abs=1e-15)


def test_undefined_values_stay_undefined_and_count_for_nothing() -> None:
    assert benjamini_hochberg([None, 0.01, None, 0.04]) == [None, 0.02, None, 0.04]
    assert benjamini_hochberg([None]) == [None]
    assert benjamini_hochberg([]) == []


def test_a_single_question_needs_no_correction() -> None:
    assert benjamini_hochberg([0.03]) == [0.03]
