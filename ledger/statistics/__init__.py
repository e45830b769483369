"""Formulas of statistics: pure, in the standard library alone, the same on every machine.

They stand at the bottom since metrics and exporters share them and do not know each other. An
undefined number is None with a reason beside it where there can be several; never 0 or NaN.
"""

from ledger.statistics.attempts import pass_at_k, pass_hat_k
from ledger.statistics.comparison import Comparison, magnitude, mann_whitney
from ledger.statistics.correction import benjamini_hochberg
from ledger.statistics.correlation import Correlation, mid_ranks, pearson, spearman
from ledger.statistics.description import Description, describe, mean, percentile, sample_sd
from ledger.statistics.intervals import LEVEL, task_clustered, wilson
from ledger.statistics.special import (
    normal_quantile,
    normal_tail,
    regularised_beta,
    upper_gamma,
)
from ledger.statistics.tables import Association, chi_square

__all__ = [
    "LEVEL",
    "Association",
    "Comparison",
    "Correlation",
    "Description",
    "benjamini_hochberg",
    "chi_square",
    "describe",
    "magnitude",
    "mann_whitney",
    "mean",
    "mid_ranks",
    "normal_quantile",
    "normal_tail",
    "pass_at_k",
    "pass_hat_k",
    "pearson",
    "percentile",
    "regularised_beta",
    "sample_sd",
    "spearman",
    "task_clustered",
    "upper_gamma",
    "wilson",
]
