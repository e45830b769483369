"""The edge table of the analysis, and what the upstream tool gets wrong, each by its right way."""

from pathlib import Path

import pytest

from ledger import events as ev
from tests.analysis_runs import (
    EXPECTED,
    Analysis,
    Job,
    attempt,
    broken,
    call,
    cancelled,
    options,
    right,
    unjudged,
    wrong,
)


def test_no_task_at_all_gives_every_file_with_counts_of_zero(tmp_path: Path) -> None:
    found = Job().analyze(tmp_path)
    assert set(found.files) == EXPECTED
    assert found.instances == []
    assert found.tasks["summary"] == {
        "total_instances": 0,
        "resolved_instances": 0,
        "failed_instances": 0,
        "overall_resolve_rate": None,
        "overall_resolve_rate_ci95": None,
        "cancelled_instances": 0,
    }
    for report in (found.failed, found.resolved):
        assert report["summary"]["total_instances"] == 0
        assert report["summary"]["share_of_all_pct"] is None
    assert found.correlations == {}
    assert found.summary["n_rows"] == 0
    assert found.trajectories["comparisons"] == {}
    assert found.tasks["category_resolve_rate"] == {}


def test_tasks_that_no_attempt_ended_at_have_no_instance(tmp_path: Path) -> None:
    found = Job(ends=False).add("a", right("a")).add("b").analyze(tmp_path)
    assert [one["instance_id"] for one in found.instances] == ["a"]


def many(*outcomes: str) -> Job:
    job = Job()
    for index, outcome in enumerate(outcomes):
        name = f"t{index}"
        turns = [event for i in range(index + 1) for event in call(name, index=i)]
        made = {"right": right, "wrong": wrong}[outcome]
        job.add(name, made(name, during=turns), category="c")
    return job


@pytest.mark.parametrize(
    ("outcome", "empty", "rate", "interval"),
    [
        ("right", "unresolved", 100.0, [51.0, 100.0]),
        ("wrong", "resolved", 0.0, [0.0, 49.0]),
    ],
)
def test_one_group_alone_has_notes_instead_of_p_values(
    tmp_path: Path, outcome: str, empty: str, rate: float, interval: list[float]
) -> None:
    found = many(*[outcome] * 4).analyze(tmp_path)
    assert set(found.files) == EXPECTED
    assert found.trajectories[empty]["n"] == 0
    assert found.trajectories[empty]["metrics"] == {}
    turns = found.correlations["features.assistant_turns"]
    assert turns["note"] == "one_group"
    assert turns["pearson_r"] is turns["pearson_p"] is turns["spearman_q"] is None
    compared = found.trajectories["comparisons"]["assistant_turns"]
    assert compared["note"] == "one_group"
    assert compared["p"] is compared["u"] is compared["auc"] is None
    told = found.tasks["category_resolve_rate"]["c"]
    assert (told["rate"], told["ci95"]) == (rate, interval)


@pytest.mark.parametrize("outcome", ["right", "wrong"])
def test_the_report_of_an_empty_group_is_written_all_the_same(tmp_path: Path, outcome: str) -> None:
    found = many(outcome, outcome, outcome).analyze(tmp_path)
    report = found.failed if outcome == "right" else found.resolved
    assert report["summary"] == {
        "total_instances": 0,
        "unique_primary_categories": 0,
        "top_primary": None,
        "instances_with_flags": 0,
        "share_of_all_pct": 0.0,
        "share_of_all_ci95_pct": [0.0, 56.1],
    }
    assert report["primary_distribution"] == {"name": "primary", "rows": [], "total": 0}
    assert report["secondary_co_occurrence"]["matrix"] == []
    assert report["feature_statistics"] == {}
    assert all(axis["rows"] == [] for axis in report["axis_distributions"].values())


def test_one_task_has_an_interval_and_no_p_values(tmp_path: Path) -> None:
    found = many("right").analyze(tmp_path)
    assert found.summary["tables"]["category"]["ci95"]["c"] == [0.206549, 1.0]
    turns = found.correlations["features.assistant_turns"]
    assert (turns["note"], turns["n"], turns["pearson_r"]) == ("n<3", 1, None)
    compared = found.trajectories["comparisons"]["assistant_turns"]
    assert (compared["note"], compared["p"]) == ("n<3", None)
    assert found.tasks["associations"]["category"]["p"] is None


def test_a_constant_feature_correlates_with_nothing(tmp_path: Path) -> None:
    found = many("right", "wrong", "right", "wrong").analyze(tmp_path)
    retries = found.correlations["features.retries"]
    assert (retries["note"], retries["pearson_r"], retries["spearman_p"]) == (
        "constant",
        None,
        None,
    )
    compared = found.trajectories["comparisons"]["retries"]
    assert (compared["method"], compared["p"], compared["significant"]) == (
        "degenerate",
        1.0,
        False,
    )


def test_a_perfect_correlation_has_no_p_in_any_file(tmp_path: Path) -> None:
    job = Job()
    for name in "abcd":
        made = right if name in "ab" else wrong
        calls = [event for i in range(1 if name in "ab" else 5) for event in call(name, index=i)]
        job.add(name, made(name, during=calls))
    found = job.analyze(tmp_path)
    for told in (
        found.correlations["features.assistant_turns"],
        found.trajectories["correlations"]["assistant_turns"],
    ):
        assert (told["note"], told["pearson_r"], told["pearson_p"]) == ("perfect", -1.0, None)
        assert told["pearson_q"] is None


def test_a_feature_that_nobody_has_is_named_and_not_correlated(tmp_path: Path) -> None:
    found = many("right", "wrong", "wrong").analyze(tmp_path)
    assert "features.cost_usd" not in found.correlations
    assert "features.cost_usd" in found.summary["statistics"]["skipped_features"]
    assert "difficulty_score" in found.summary["statistics"]["skipped_features"]


def test_without_metadata_the_tables_are_over_unknown_alone(tmp_path: Path) -> None:
    job = Job().add("a", right("a")).add("b", wrong("b")).add("c", wrong("c"))
    found = job.analyze(tmp_path)
    assert found.summary["n_missing_metadata"] == found.summary["n_rows"] == 3
    for table in found.summary["tables"].values():
        assert table["categories"] == ["unknown"]
        assert table["totals"] == {"resolved": 1, "unresolved": 2, "total": 3}
    assert found.tasks["unknown_counts"] == dict.fromkeys(
        ("difficulty", "domain", "bug_type", "category"), 3
    )
    assert found.tasks["associations"]["domain"]["n"] == 0
    assert found.instance("a")["flags"] == ["missing_metadata"]
    assert found.instance("a")["difficulty_tier"] == "unknown"


def test_partial_rewards_stay_in_sight(tmp_path: Path) -> None:
    job = Job().add("half", wrong("half", score=0.5)).add("full", right("full"))
    job.add("none", wrong("none"))
    found = job.analyze(tmp_path)
    half = found.instance("half")
    assert (half["correctness_verdict"], half["axes"]["answer"]) == ("V3", "partial")
    assert half["primary"] == "partial_credit"
    totals = found.summary["tables"]["category"]["totals"]
    assert totals == {"resolved": 1, "unresolved": 2, "total": 3}
    shown = Job(run_id="s").add("half", wrong("half", score=0.5, during=call("half")))
    assert shown.analyze(tmp_path / "s").trajectories["unresolved"]["n"] == 1


def test_scores_alone_are_resolved_from_the_threshold_of_their_benchmark(tmp_path: Path) -> None:
    job = Job()
    job.add("low", attempt("low", correct=None, score=0.4), resolve_threshold=0.5)
    job.add("high", attempt("high", correct=None, score=0.5), resolve_threshold=0.5)
    job.add("default", attempt("default", correct=None, score=0.99))
    found = job.analyze(tmp_path)
    assert [one["resolved"] for one in found.instances] == [False, True, False]
    assert found.instance("low")["correctness_verdict"] == "V3"


def test_equal_counts_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    job = Job()
    for name, code in (("a", "zebra_error"), ("b", "run_timeout"), ("c", "provider_timeout")):
        job.add(name, broken(name, code=code))
    job.add("d", wrong("d"))
    rows = job.analyze(tmp_path).failed["primary_distribution"]["rows"]
    assert rows == [
        ["provider_error", 1, 25.0],
        ["run_error", 1, 25.0],
        ["timeout", 1, 25.0],
        ["wrong_answer", 1, 25.0],
    ]


def test_statistics_of_an_empty_group_are_absent_and_not_zero(tmp_path: Path) -> None:
    found = many("right", "right", "right").analyze(tmp_path)
    assert found.trajectories["unresolved"]["metrics"] == {}
    turns = found.correlations["features.assistant_turns"]
    assert (turns["mean_resolved"], turns["mean_unresolved"]) == (2.0, None)
    averages = found.json("score_comparison.json")["feature_averages"]
    assert averages["assistant_turns"] == {"failed": None, "resolved": 2.0}


def test_percentiles_are_interpolated(tmp_path: Path) -> None:
    found = many("right", "right", "right", "right").analyze(tmp_path)
    # 1, 2, 3, 4 turns.
    told = found.resolved["feature_statistics"]["assistant_turns"]
    assert (told["p25"], told["median"], told["p75"], told["p90"]) == (1.75, 2.5, 3.25, 3.7)
    assert (told["n"], told["mean"], told["min"], told["max"]) == (4, 2.5, 1, 4)


def k_runs() -> Job:
    job = Job(k=3)
    job.add("later", wrong("later", 1), right("later", 2), wrong("later", 3))
    job.add("never", wrong("never", 1), wrong("never", 2), wrong("never", 3))
    return job


def test_several_attempts_are_one_instance_that_counts_them_all(tmp_path: Path) -> None:
    found = k_runs().analyze(tmp_path)
    later, never = found.instances
    assert (later["attempt"], later["resolved"], later["primary"]) == (2, True, "later_attempt")
    assert (later["attempts_tried"], later["resolved_attempts"]) == (3, 1)
    assert later["first_resolved_attempt"] == 2
    assert later["correctness_verdict"] == "V2"
    assert later["trajectory_metadata"]["trial_name"] == "later__2"
    assert (never["attempt"], never["first_resolved_attempt"]) == (3, None)
    assert found.tasks["summary"]["overall_resolve_rate"] == 50.0


def test_with_the_unit_attempt_each_attempt_is_an_instance(tmp_path: Path) -> None:
    found = k_runs().analyze(tmp_path, options(analysis={"unit": "attempt"}))
    ids = [one["instance_id"] for one in found.instances]
    assert ids == [f"{task}#{n}" for task in ("later", "never") for n in (1, 2, 3)]
    assert found.tasks["summary"]["resolved_instances"] == 1
    assert found.tasks["summary"]["total_instances"] == 6


def test_errors_are_failures_and_no_evidence_of_behaviour(tmp_path: Path) -> None:
    job = Job().add("bad", broken("bad")).add("judge", unjudged("judge"))
    job.add("ok", right("ok", during=call("ok"))).add("no", wrong("no", during=call("no")))
    found = job.analyze(tmp_path)
    assert found.tasks["summary"]["failed_instances"] == 3
    assert found.trajectories["excluded"] == {"error": 2, "cancelled": 0, "no_calls": 0}
    assert (found.trajectories["resolved"]["n"], found.trajectories["unresolved"]["n"]) == (1, 1)
    assert found.summary["excluded"] == {"error": 2, "cancelled": 0}


def test_an_attempt_that_ran_out_of_time_and_was_judged_is_unresolved(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="run_timeout", message="too slow", phase="run_harness")
    job = Job().add("late", wrong("late", error=error, during=call("late")))
    found = job.analyze(tmp_path)
    assert found.instance("late")["primary"] == "timeout"
    assert found.instance("late")["secondary_failures"] == []
    assert found.trajectories["unresolved"]["n"] == 1


def test_cancelled_attempts_are_rows_and_in_no_group(tmp_path: Path) -> None:
    job = Job().add("gone", cancelled("gone")).add("ok", right("ok"))
    found = job.analyze(tmp_path)
    gone = found.instance("gone")
    assert (gone["status"], gone["primary"], gone["correctness_verdict"]) == (
        "cancelled",
        "cancelled",
        "V5",
    )
    assert found.tasks["summary"]["total_instances"] == 1
    assert found.tasks["summary"]["cancelled_instances"] == 1
    assert found.failed["summary"]["total_instances"] == 0
    assert found.trajectories["excluded"]["cancelled"] == 1


def test_attempts_of_which_nothing_was_observed_are_counted_apart(tmp_path: Path) -> None:
    found = Job().add("a", right("a")).add("b", wrong("b")).analyze(tmp_path)
    assert found.trajectories["excluded"] == {"error": 0, "cancelled": 0, "no_calls": 2}


def test_corrected_p_values_are_over_the_features_of_one_file(tmp_path: Path) -> None:
    found = many("right", "right", "wrong", "wrong", "wrong").analyze(tmp_path)
    sizes = found.summary["statistics"]["family_size"]
    tested = [one for one in found.correlations.values() if one["pearson_p"] is not None]
    assert sizes["pearson"] == len(tested) > 1
    for one in tested:
        assert one["pearson_p"] <= one["pearson_q"] <= min(1, one["pearson_p"] * len(tested)) + 1e-6


def test_the_configuration_holds_no_path_and_no_time_of_its_own(tmp_path: Path) -> None:
    job = many("right", "wrong", "wrong")
    here = job.analyze(tmp_path / "here")
    there = job.analyze(tmp_path / "elsewhere" / "deeper")
    assert here.files == there.files
    assert str(tmp_path).encode() not in b"".join(here.files.values())


def test_every_number_is_json_and_every_object_ends_with_its_origin(tmp_path: Path) -> None:
    found: Analysis = many("right", "wrong", "wrong", "right").analyze(tmp_path)
    for path in found.files:
        if path.endswith(".json") and path not in (
            "MANIFEST.json",
            "instance_analysis/correlations.json",
        ):
            document = found.json(path)
            assert list(document)[-1] == "acl"
            assert document["acl"]["run_id"] == "r"
