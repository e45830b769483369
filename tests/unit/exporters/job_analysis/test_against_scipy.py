"""Every statistic of the files, computed again from instances.jsonl with scipy and statsmodels."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from tests.analysis_runs import Analysis, mixed

Row = dict[str, Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return mixed().analyze(tmp_path_factory.mktemp("mixed"))


def judged(found: Analysis) -> list[Row]:
    return [one for one in found.instances if one["axes"]["answer"] != "not_evaluated"]


def metric(one: Row, name: str) -> float | None:
    return (one["deterministic_features"] | one["component_scores"])[name]


def split(rows: list[Row], name: str) -> tuple[list[float], list[float]]:
    known = [(one["resolved"], value) for one in rows if (value := metric(one, name)) is not None]
    return [v for yes, v in known if yes], [v for yes, v in known if not yes]


def test_the_groups_are_large_enough_to_say_something(found: Analysis) -> None:
    groups = Counter(one["resolved"] for one in judged(found))
    assert min(groups.values()) > 10
    assert found.trajectories["excluded"]["error"] == 4


def test_descriptions_are_those_of_numpy(found: Analysis) -> None:
    for group, resolved in (("resolved", True), ("unresolved", False)):
        for name, told in found.trajectories[group]["metrics"].items():
            values = split(judged(found), name)[0 if resolved else 1]
            assert told["n"] == len(values)
            assert told["mean"] == pytest.approx(np.mean(values), abs=1e-6)
            assert told["sd"] == pytest.approx(np.std(values, ddof=1), abs=1e-6)
            expected = np.quantile(values, [0, 0.25, 0.5, 0.75, 0.9, 1])
            shown = [told[key] for key in ("min", "p25", "median", "p75", "p90", "max")]
            assert shown == pytest.approx(list(expected), abs=1e-6)


def test_comparisons_are_those_of_scipy(found: Analysis) -> None:
    told = found.trajectories["comparisons"]
    tested = {name: one for name, one in told.items() if one["method"] != "degenerate"}
    assert len(tested) > 8
    for name, one in tested.items():
        first, second = split(judged(found), name)
        expected = stats.mannwhitneyu(first, second, method=one["method"])
        assert one["u"] == expected.statistic
        assert one["p"] == pytest.approx(expected.pvalue, abs=1e-6)
        assert one["auc"] == pytest.approx(one["u"] / (len(first) * len(second)), abs=1e-6)
        assert one["median_difference"] == pytest.approx(
            np.median(first) - np.median(second), abs=1e-6
        )
    adjusted = multipletests([one["p"] for one in told.values()], method="fdr_bh")[1]
    assert [one["p_adjusted"] for one in told.values()] == pytest.approx(list(adjusted), abs=1e-5)
    assert all(one["significant"] == (one["p_adjusted"] < 0.05) for one in told.values())


def test_correlations_are_those_of_scipy(found: Analysis) -> None:
    checked = 0
    for name, one in found.correlations.items():
        feature = name.removeprefix("features.")
        if one["note"] is not None or feature == name:
            continue
        first, second = split(judged(found), feature)
        values, groups = [*first, *second], [1] * len(first) + [0] * len(second)
        linear, ranked = stats.pearsonr(values, groups), stats.spearmanr(values, groups)
        assert one["pearson_r"] == pytest.approx(linear.statistic, abs=2e-6)
        assert one["pearson_p"] == pytest.approx(linear.pvalue, abs=2e-5)
        assert one["spearman_r"] == pytest.approx(ranked.statistic, abs=2e-6)
        assert one["spearman_p"] == pytest.approx(ranked.pvalue, abs=2e-5)
        checked += 1
    assert checked > 8


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_corrections_are_those_of_statsmodels(found: Analysis, kind: str) -> None:
    tested = [one for one in found.correlations.values() if one[f"{kind}_p"] is not None]
    expected = multipletests([one[f"{kind}_p"] for one in tested], method="fdr_bh")[1]
    assert [one[f"{kind}_q"] for one in tested] == pytest.approx(list(expected), abs=2e-5)
    assert found.summary["statistics"]["family_size"][kind] == len(tested)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("difficulty", "difficulty_tier"),
        ("domain", "domain"),
        ("bug_type", "bug_type"),
        ("category", "category"),
    ],
)
def test_associations_and_rates_are_those_of_scipy_and_statsmodels(
    found: Analysis, name: str, field: str
) -> None:
    counts = Counter((one[field], one["resolved"]) for one in found.instances)
    levels = sorted({level for level, _ in counts})
    table = [[counts[level, True], counts[level, False]] for level in levels]
    expected = stats.chi2_contingency(table, correction=False)
    told = found.tasks["associations"][name]
    assert (told["n"], told["levels"], told["df"]) == (40, len(levels), expected.dof)
    assert told["chi2"] == pytest.approx(expected.statistic, abs=1e-6)
    assert told["p"] == pytest.approx(expected.pvalue, abs=1e-6)
    v = stats.contingency.association(np.array(table), method="cramer")
    assert told["cramers_v"] == pytest.approx(v, abs=1e-6)
    for level, (yes, no) in zip(levels, table, strict=True):
        rate = found.tasks[f"{name}_resolve_rate"][level]
        low, high = proportion_confint(yes, yes + no, method="wilson")
        assert rate["rate"] == round(100 * yes / (yes + no), 1)
        assert rate["ci95"] == pytest.approx([100 * low, 100 * high], abs=0.05)
