"""Correlations and comparisons of numbers between resolved and unresolved instances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from exporters.job_analysis.config import Statistics
from exporters.job_analysis.groups import Document, digits_of, mean_of
from exporters.jobs.numbers import rounded
from ledger.statistics import (
    Comparison,
    Correlation,
    benjamini_hochberg,
    describe,
    magnitude,
    mann_whitney,
    pearson,
    spearman,
)

ONE_GROUP: Final = "one_group"
_NOTHING: Final = (
    "u",
    "p",
    "p_adjusted",
    "method",
    "auc",
    "cliffs_delta",
    "magnitude",
    "significant",
)


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one feature that are known, in each group."""

    resolved: Sequence[float]
    unresolved: Sequence[float]

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.resolved) + len(self.unresolved)

    @property
    def note(self) -> str | None:
        """Why nothing can be compared; None if it can."""
        if self.n < 3:
            return "n<3"
        return None if self.resolved and self.unresolved else ONE_GROUP


def correlations(features: Mapping[str, Series], asked: Statistics) -> dict[str, Document]:
    """Each feature against being resolved, by Pearson (point-biserial) and Spearman.

    q is p corrected over all features of the map, each kind of test for itself.
    """
    names = sorted(features)
    linear = [_correlation(features[name], ranked=False) for name in names]
    ranked = [_correlation(features[name], ranked=True) for name in names]
    linear_q = benjamini_hochberg([found.p for found in linear])
    ranked_q = benjamini_hochberg([found.p for found in ranked])
    return {
        name: _told(name, features[name], linear[i], ranked[i], (linear_q[i], ranked_q[i]), asked)
        for i, name in enumerate(names)
    }


def _correlation(series: Series, *, ranked: bool) -> Correlation:
    if series.note is not None:
        return Correlation(None, None)
    values = [*series.resolved, *series.unresolved]
    groups = [1.0] * len(series.resolved) + [0.0] * len(series.unresolved)
    return spearman(values, groups) if ranked else pearson(values, groups)


def _told(
    name: str,
    series: Series,
    linear: Correlation,
    ranked: Correlation,
    q: tuple[float | None, float | None],
    asked: Statistics,
) -> Document:
    places, money = asked.rounding, digits_of(name, asked.rounding)
    return {
        "n": series.n,
        "n_resolved": len(series.resolved),
        "n_unresolved": len(series.unresolved),
        "mean_resolved": rounded(mean_of(series.resolved), money),
        "mean_unresolved": rounded(mean_of(series.unresolved), money),
        "pearson_r": rounded(linear.r, places),
        "pearson_p": rounded(linear.p, places),
        "spearman_r": rounded(ranked.r, places),
        "spearman_p": rounded(ranked.p, places),
        "pearson_q": rounded(q[0], places),
        "spearman_q": rounded(q[1], places),
        "note": series.note or linear.note or ranked.note,
    }


def family_sizes(features: Mapping[str, Series]) -> dict[str, int]:
    """Over how many p-values each kind of test was corrected."""
    kinds = {"pearson": False, "spearman": True}
    return {
        kind: sum(_correlation(one, ranked=ranked).p is not None for one in features.values())
        for kind, ranked in kinds.items()
    }


def comparisons(metrics: Mapping[str, Series], asked: Statistics) -> dict[str, Document]:
    """Mann-Whitney's test of each metric, corrected over all of the map, with its effect size."""
    found = {name: _tested(one, asked) for name, one in metrics.items()}
    tested = [(None if one is None else one.p) for one in found.values()]
    adjusted = dict(zip(found, benjamini_hochberg(tested), strict=True))
    told: dict[str, Document] = {}
    for name, series in metrics.items():
        one, q, places = found[name], adjusted[name], asked.rounding
        told[name] = _medians(series, digits_of(name, places))
        if one is None or q is None:
            told[name] |= {**dict.fromkeys(_NOTHING), "note": series.note}
            continue
        told[name] |= {
            "u": one.u,
            "p": rounded(one.p, places),
            "p_adjusted": rounded(q, places),
            "method": one.method,
            "auc": rounded(one.auc, places),
            "cliffs_delta": rounded(one.cliffs_delta, places),
            "magnitude": magnitude(one.cliffs_delta),
            "significant": q < asked.alpha,
            "note": None,
        }
    return told


def _tested(series: Series, asked: Statistics) -> Comparison | None:
    if series.note is not None:
        return None
    return mann_whitney(series.resolved, series.unresolved, exact_max_n=asked.mwu_exact_max_n)


def _medians(series: Series, digits: int) -> Document:
    first, second = describe(series.resolved), describe(series.unresolved)
    medians = [None if one is None else one.median for one in (first, second)]
    both = first is not None and second is not None
    return {
        "n_resolved": len(series.resolved),
        "n_unresolved": len(series.unresolved),
        "median_resolved": rounded(medians[0], digits),
        "median_unresolved": rounded(medians[1], digits),
        "median_difference": (
            rounded(first.median - second.median, digits) if both and first and second else None
        ),
    }
