"""The functions that p-values are made of."""

import math
from statistics import NormalDist
from typing import Final

_STANDARD: Final = NormalDist()
_EPSILON: Final = 1e-16
_TINY: Final = 1e-300
_MOST_TERMS: Final = 100_000


def normal_quantile(p: float) -> float:
    """Φ⁻¹(p) of the standard normal distribution, 0 < p < 1."""
    if p > 0.5:
        return -normal_quantile(1 - p)
    rough = _STANDARD.inv_cdf(p)
    # One Newton step: the approximation is a few units of the last place off.
    excess = 0.5 * math.erfc(-rough / math.sqrt(2)) - p
    return rough - excess / _STANDARD.pdf(rough)


def normal_tail(z: float) -> float:
    """P(Z > z), exact to the last places far out, too."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def regularised_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b) for a, b > 0 and 0 <= x <= 1.

    By the continued fraction of DLMF 8.17.22, evaluated with Lentz's algorithm on the side where
    it converges fast.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - regularised_beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, _inverse(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = _inverse(1.0 + term * d)
            c = _off_zero(1.0 + term / c)
            step = c * d
            value *= step
        if abs(step - 1.0) < _EPSILON:
            break
    return value


def upper_gamma(a: float, x: float) -> float:
    """Q(a, x) = Γ(a, x)/Γ(a) for a > 0 and x >= 0.

    Below a + 1 by the series of the lower function (DLMF 8.7.1), above by the continued fraction
    of the upper one (DLMF 8.9.2).
    """
    if x <= 0.0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        for n in range(1, _MOST_TERMS):
            term *= x / (a + n)
            total += term
            if term < total * _EPSILON:
                break
        return 1.0 - front * total
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, _inverse(b)
    value = d
    for n in range(1, _MOST_TERMS):
        term = -n * (n - a)
        b += 2.0
        d = _inverse(term * d + b)
        c = _off_zero(b + term / c)
        value *= c * d
        if abs(c * d - 1.0) < _EPSILON:
            break
    return front * value


def _inverse(value: float) -> float:
    return 1.0 / _off_zero(value)


def _off_zero(value: float) -> float:
    return _TINY if abs(value) < _TINY else value
