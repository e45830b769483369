"""The chance of success in k attempts, seen from n attempts of which c succeeded."""

import math


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """1 - C(n-c, k)/C(n, k): the chance that any of k attempts succeeds; None where k > n.

    Equal to 1 - ∏_{i<k}(n-c-i)/(n-i), and to 1 where n-c < k. Source: Chen et al., Evaluating
    Large Language Models Trained on Code (arXiv:2107.03374), section 2.1.
    Computed in integers and divided once.
    """
    if k > n:
        return None
    ways = math.comb(n, k)
    return (ways - math.comb(n - c, k)) / ways


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """C(c, k)/C(n, k): the chance that all of k attempts succeed; None where k > n.

    Source: Yao et al., tau-bench (arXiv:2406.12045), section 3.
    """
    return None if k > n else math.comb(c, k) / math.comb(n, k)
