"""docs/analysis.md names whatever an analysis may say."""

from pathlib import Path

import pytest

from exporters.job_analysis.config import AnalysisConfig
from exporters.job_analysis.rules import AXES
from exporters.job_analysis.traj_report import METRICS
from tests.analysis_runs import EXPECTED, Job, right

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "analysis.md").read_text("utf-8")


@pytest.mark.parametrize("name", [*AXES, *METRICS])
def test_the_page_names_every_axis_and_metric(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("path", sorted(path for path in EXPECTED if "contingency" not in path))
def test_the_page_names_every_file(path: str) -> None:
    assert path in PAGE or path.rpartition("/")[2] in PAGE


def test_the_page_names_every_field_of_an_instance(tmp_path: Path) -> None:
    one = Job().add("t", right("t")).analyze(tmp_path).instance("t")
    names = [*one, *one["deterministic_features"], *one["component_scores"]]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_page_tells_the_defaults(tmp_path: Path) -> None:
    config = AnalysisConfig()
    features = config.features
    assert f"`features.loop_threshold` ({features.loop_threshold})" in PAGE
    assert f"`premature_stop_threshold` ({features.premature_stop_threshold})" in PAGE
    assert f"`tool_error_storm_threshold` ({features.tool_error_storm_threshold})" in PAGE
    stp, weights = config.traj_analysis.stp, config.traj_analysis.weights
    assert f"`traj_analysis.stp`: {stp.lo}, {stp.hi}, {stp.zero}" in PAGE
    told = ", ".join(f"{weight:.2f}" for _, weight in weights)
    assert f"w = {told} (`traj_analysis.weights`)" in PAGE
