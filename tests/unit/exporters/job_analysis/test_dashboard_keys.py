"""What the known reader of these files asks them for (its dashboard, as far as it reads analysis)."""

from typing import Any

import pytest
import yaml

from tests.analysis_runs import Analysis, Job, broken, call, right, wrong

WANTED = {
    "report_failed.json": (
        "summary.total_instances",
        "summary.unique_primary_categories",
        "summary.top_primary",
        "summary.instances_with_flags",
        "primary_distribution.rows",
        "primary_distribution.total",
        "axis_distributions.execution.rows",
        "axis_distributions.localization.rows",
        "flag_distribution.rows",
        "verdict_distribution.rows",
        "secondary_co_occurrence.row_labels",
        "secondary_co_occurrence.col_labels",
        "secondary_co_occurrence.matrix",
    ),
    "report_resolved.json": ("summary.total_instances", "primary_distribution.rows"),
    "report_task_analysis.json": (
        "summary.total_instances",
        "summary.resolved_instances",
        "summary.failed_instances",
        "summary.overall_resolve_rate",
        "difficulty_tier_distribution.easy.count",
        "difficulty_tier_distribution.easy.pct",
        "swebench_difficulty_distribution.easy.count",
        "difficulty_stats_by_group.resolved",
        "difficulty_stats_by_group.failed",
        "domain_distribution.web.pct",
        "domain_by_group.resolved.web",
        "domain_by_group.failed.web",
        "bug_type_distribution.typo.count",
        "bug_type_by_group.failed.typo",
        "difficulty_resolve_rate.easy.rate",
        "domain_resolve_rate.web.total",
        "bug_type_resolve_rate.typo.resolved",
    ),
    "traj_analysis/score_comparison.json": (
        "resolved.n",
        "resolved.buckets",
        "resolved.metrics.assistant_turns.mean",
        "resolved.metrics.composite_score.median",
        "unresolved.metrics.assistant_turns.min",
        "unresolved.metrics.composite_score.max",
        "correlations.assistant_turns.pearson_r",
    ),
    "instance_analysis/summary.json": (
        "n_rows",
        "n_resolved",
        "n_unresolved",
        "n_missing_metadata",
        "instances_jsonl",
        "dataset_dir",
        *(
            f"tables.{axis}.{part}"
            for axis in ("difficulty_label", "tag1", "tag2", "tag3", "tag4", "category")
            for part in (
                "totals.total",
                "categories",
                "counts",
                "proportions_by_category",
                "proportions_by_resolved.resolved",
            )
        ),
        "correlations",
    ),
    "score_comparison.json": (
        "failed_total",
        "resolved_total",
        "primary_attribution.failed",
        "primary_attribution.resolved",
        "axis_distributions.execution.failed",
        "verdict_distribution.resolved",
        "flag_distribution.failed",
        "feature_averages",
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    job = Job()
    about = {
        "difficulty": "easy",
        "domain": "web",
        "bug_type": "typo",
        "tags": ["py", "web", "x", "typo"],
    }
    for name, made in (("a", right), ("b", wrong), ("c", right), ("d", broken)):
        job.add(name, made(name, during=call(name)), category="c", **about)
    return job.analyze(tmp_path_factory.mktemp("dashboard"))


@pytest.mark.parametrize(
    ("path", "keys"), [(path, keys) for path, all_keys in WANTED.items() for keys in all_keys]
)
def test_the_reader_finds_what_it_asks_for(found: Analysis, path: str, keys: str) -> None:
    value: Any = found.json(path)
    for key in keys.split("."):
        assert key in value, f"{path} has no {keys}"
        value = value[key]


def test_rows_are_a_category_a_count_and_a_percentage(found: Analysis) -> None:
    for category, count, percent in found.failed["primary_distribution"]["rows"]:
        assert isinstance(category, str)
        assert isinstance(count, int)
        assert 0 <= percent <= 100


def test_correlations_have_only_features_at_the_top(found: Analysis) -> None:
    for record in found.correlations.values():
        assert {"n", "mean_resolved", "mean_unresolved", "pearson_r", "spearman_r"} <= set(record)


def test_the_shown_texts_are_plain_text(found: Analysis) -> None:
    shown = [path for path in found.files if path.endswith(".txt")]
    assert len(shown) == 7
    for path in shown:
        lines = found.text(path).splitlines()
        assert set(lines[1]) <= {"-", " "}
        assert len(lines) >= 3


def test_the_configuration_reads_as_yaml_with_the_known_sections(found: Analysis) -> None:
    document = yaml.safe_load(found.text("analysis_config.yaml"))
    assert list(document)[:10] == [
        "data",
        "output",
        "analysis",
        "features",
        "judge",
        "hack_detector",
        "task_analysis",
        "instance_analysis",
        "traj_analysis",
        "skip_main_pipeline",
    ]
