"""Whether two ways to sort things go together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.statistics.special import upper_gamma


@dataclass(frozen=True, slots=True)
class Association:
    """χ² of a table; all but `n` and `levels` are None for one level or one group.

    `expected_lt5`: some expected count is below 5, so that p is rough.
    """

    n: int
    levels: int
    chi2: float | None = None
    df: int | None = None
    p: float | None = None
    cramers_v: float | None = None
    expected_lt5: bool | None = None


def chi_square(pairs: Sequence[tuple[int, int]]) -> Association:
    """Pearson's χ² = Σ(O - E)²/E of two groups over levels; `pairs` are the counts of each level.

    df = levels - 1, p = Q(df/2, χ²/2), Cramér's V = √(χ²/n), without a continuity correction.
    Levels that nothing falls on do not count. Source: Pearson, Phil. Mag. 50 (1900), 157-175.
    """
    rows = [pair for pair in pairs if sum(pair)]
    totals = (sum(first for first, _ in rows), sum(second for _, second in rows))
    n = sum(totals)
    if len(rows) < 2 or 0 in totals:
        return Association(n, len(rows))
    expected = [tuple(sum(row) * total / n for total in totals) for row in rows]
    chi2 = math.fsum(
        (seen - due) ** 2 / due
        for row, dues in zip(rows, expected, strict=True)
        for seen, due in zip(row, dues, strict=True)
    )
    df = len(rows) - 1
    return Association(
        n=n,
        levels=len(rows),
        chi2=chi2,
        df=df,
        p=upper_gamma(df / 2, chi2 / 2),
        cramers_v=math.sqrt(chi2 / n),
        expected_lt5=any(due < 5 for dues in expected for due in dues),
    )
