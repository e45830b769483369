"""The configuration as YAML: read strictly, written whole, and the same analysis again."""

from pathlib import Path

import pytest
import yaml

from exporters.job_analysis import AnalysisConfig
from ledger.errors import UsageError
from tests.analysis_runs import EXPECTED, Job, broken, call, options, right, wrong


def job() -> Job:
    made = Job()
    for index in range(6):
        name = f"t{index}"
        outcome = right if index % 2 else wrong
        made.add(name, outcome(name, during=call(name)), category="c", difficulty="easy")
    return made


@pytest.mark.parametrize(
    "config",
    [
        AnalysisConfig(),
        options(analysis={"unit": "attempt"}, statistics={"rounding": 3, "alpha": 0.01}),
        options(features={"loop_threshold": 2}, difficulty={"thresholds": {"easy": 0.9}}),
        options(empirical_source={"runs": [], "tasks": {"t\ud800": {"n": 9, "k": 1, "pairs": 3}}}),
    ],
)
def test_what_an_analysis_wrote_makes_it_again(tmp_path: Path, config: AnalysisConfig) -> None:
    first = job().analyze(tmp_path / "first", config)
    kept = AnalysisConfig.parse(first.files["analysis_config.yaml"])
    assert job().analyze(tmp_path / "again", kept).files == first.files


def test_what_follows_from_the_run_is_not_taken_from_another(tmp_path: Path) -> None:
    other = Job(run_id="other", harness="else", model="else").add("a", right("a"))
    written = other.analyze(tmp_path / "other").files["analysis_config.yaml"]
    found = job().analyze(tmp_path / "ours", AnalysisConfig.parse(written))
    assert found.files == job().analyze(tmp_path / "plain").files


def test_an_empty_file_asks_for_the_defaults() -> None:
    assert AnalysisConfig.parse("") == AnalysisConfig.parse("{}") == AnalysisConfig()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("statistics: {alfa: 0.1}", "statistics.alfa"),
        ("statistics: {alpha: 2}", "statistics.alpha"),
        ("statistics: {confidence: .nan}", "statistics.confidence"),
        ("judge: {enabled: true}", "judge.enabled"),
        ("analysis: {unit: run}", "analysis.unit"),
        ("traj_analysis: {stp: {lo: 9, hi: 3}}", "lo <= hi < zero"),
        ("difficulty: {thresholds: {easy: 0.1}}", "easy > medium > hard"),
        ("empirical_source: {runs: [], tasks: {t: {n: 1, k: 2, pairs: 1}}}", "k is larger than n"),
        ("[1, 2]", "the whole file"),
        ("a: [", "no YAML"),
        ("!!python/object:os.system x", "no YAML"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(UsageError, match="configuration") as caught:
        AnalysisConfig.parse(text)
    assert words in str(caught.value)


def test_the_run_is_named_in_the_file(tmp_path: Path) -> None:
    told = yaml.safe_load(job().analyze(tmp_path).text("analysis_config.yaml"))
    assert told["data"]["dataset_dir"] == "demo-bench@3"
    assert (told["scaffold"], told["model"], told["taxonomy_version"]) == (
        "search",
        "model-1",
        "acl-1",
    )
    assert list(told["acl"]) == ["schema", "run_id", "ledger_id", "size", "root"]


def test_stages_can_be_left_out(tmp_path: Path) -> None:
    off = {"enabled": False}
    config = options(task_analysis=off, traj_analysis=off, instance_analysis=off)
    left = set(job().analyze(tmp_path, config).files)
    assert left == {
        path
        for path in EXPECTED
        if "_analysis/" not in path and path != "report_task_analysis.json"
    }


def test_the_scope_leaves_instances_out(tmp_path: Path) -> None:
    made = Job().add("ok", right("ok")).add("bad", broken("bad")).add("no", wrong("no", answer=""))
    scopes = {
        "include_resolved": ["bad", "no"],
        "include_errors": ["no", "ok"],
        "include_empty_patch": ["bad", "ok"],
    }
    for name, left in scopes.items():
        found = made.analyze(tmp_path / name, options(analysis={name: False}))
        assert [one["instance_id"] for one in found.instances] == left
        assert found.tasks["summary"]["total_instances"] == 2


def test_the_significance_level_and_the_exact_size_are_used(tmp_path: Path) -> None:
    made = Job()
    for index in range(8):
        name = f"t{index}"
        calls = [event for i in range(index + 1) for event in call(name, index=i)]
        made.add(name, (right if index < 4 else wrong)(name, during=calls))
    strict = options(statistics={"alpha": 0.001, "mwu_exact_max_n": 3})
    loose = made.analyze(tmp_path / "a").trajectories["comparisons"]["assistant_turns"]
    tight = made.analyze(tmp_path / "b", strict).trajectories["comparisons"]["assistant_turns"]
    # All four below all four others: 2/C(8,4) = 2/70.
    assert (loose["method"], loose["p"]) == ("exact", round(2 / 70, 6))
    assert (tight["method"], tight["significant"]) == ("asymptotic", False)
    assert (loose["auc"], loose["cliffs_delta"], loose["magnitude"]) == (0.0, -1.0, "large")
