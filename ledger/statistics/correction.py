"""Correction of p-values for having asked many questions."""

from collections.abc import Sequence


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """The adjusted p of each test: min over j >= i of p_(j)·m/j, capped at 1, over the m that are.

    None stays None and counts for nothing. Source: Benjamini and Hochberg, J. R. Statist. Soc. B
    57 (1995), 289-300.
    """
    asked = sorted((p, index) for index, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    least = 1.0
    for rank in range(len(asked), 0, -1):
        p, index = asked[rank - 1]
        least = min(least, p * len(asked) / rank)
        adjusted[index] = least
    return adjusted
