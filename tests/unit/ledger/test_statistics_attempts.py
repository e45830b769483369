"""pass@k and pass^k against an exact product, and where there is none."""

import math
from fractions import Fraction

import pytest

from ledger.statistics import pass_at_k, pass_hat_k


@pytest.mark.parametrize("n", range(1, 12))
def test_pass_at_k_is_one_minus_the_product_of_the_definition(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            failing = math.prod(Fraction(n - c - i, n - i) for i in range(k)) if n - c >= k else 0
            assert pass_at_k(n, c, k) == float(1 - failing)


def test_too_few_attempts_give_no_value() -> None:
    assert pass_at_k(2, 0, 5) is None
    assert pass_at_k(2, 2, 3) is None
    assert pass_hat_k(0, 0, 1) is None


def test_fewer_failures_than_tries_are_a_certain_success() -> None:
    assert pass_at_k(5, 3, 3) == 1.0


def test_all_of_k_succeed_by_the_share_of_choices() -> None:
    assert pass_hat_k(5, 3, 2) == 3 / 10
    assert pass_hat_k(5, 1, 2) == 0.0
