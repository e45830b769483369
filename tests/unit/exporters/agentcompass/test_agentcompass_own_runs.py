"""Runs of our own in the layout of AgentCompass."""

from pathlib import Path

import pytest

from tests.agentcompass_runs import documents, exported, findings, several
from tests.golden.runs import RUNS, interrupted, odd, stopped_early


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    scratch = tmp_path_factory.mktemp("several")
    several(scratch / "run")
    return exported(scratch / "run", scratch / "out")


def of_task(tree: Path, task: str) -> dict:
    """The documents of one task, by their path below its directory."""
    (home,) = tree.glob(f"details/*/{task}--*")
    return documents(home)


def state(tree: Path, task: str) -> str:
    (home,) = tree.glob(f"details/*/{task}--*")
    return home.parent.name


def test_a_task_stands_where_its_gravest_issue_says(tree):
    wanted = {
        "right": "normal",
        "half": "normal",
        "files": "normal",
        "broken": "error",
        "fatal": "fatal",
    }
    assert {task: state(tree, task) for task in wanted} == wanted


def test_the_index_tells_the_task_and_its_attempts(tree):
    index = of_task(tree, "right")["task.json"]
    del index["acl"]
    assert index == {
        "schema_version": "agentcompass.task.v3",
        "task_id": "right",
        "attempts": {"1": "attempt-1", "2": "attempt-2"},
        "category": "math",
        "ground_truth": None,
        "attempt_plan": {"k": 2, "strategy": "avg"},
    }


def test_a_result_has_the_fields_of_agentcompass_and_no_other(tree):
    result = of_task(tree, "half")["attempt-2/result.json"]
    assert list(result) == [
        "status",
        "metrics",
        "final_answer",
        "trajectory",
        "issues",
        "artifacts",
        "analysis_result",
        "meta",
        "retry_count",
    ]
    assert result["metrics"] == {"correct": False}
    assert result["meta"]["benchmark"]["evaluator"]["id"] == "judge"


def test_errors_are_issues_with_a_phase_of_agentcompass(tree):
    assert of_task(tree, "broken")["attempt-2/result.json"]["issues"] == [
        {"severity": "error", "phase": "run", "code": "agent_died", "message": "it died"}
    ]
    # No message may be blank there.
    assert of_task(tree, "fatal")["attempt-2/result.json"]["issues"] == [
        {"severity": "fatal", "phase": "setup", "code": "no_room", "message": "no_room"}
    ]


def test_a_discarded_try_is_a_file_beside_the_attempt(tree):
    found = of_task(tree, "fatal")
    (path,) = (path for path in found if "/retries/" in path)
    assert path.endswith(".attempt1.retry1.run_harness.json")
    told = found[path]
    assert (told["retry"], told["scope"], told["matched_pattern"]) == (1, "attempt", "died")
    assert told["discarded_result"] == {"status": "run_error"}
    assert found["attempt-1/result.json"]["retry_count"] == 1


def test_artifacts_are_files_where_their_names_allow_and_stand_in_the_result_otherwise(tree):
    (home,) = tree.glob("details/normal/files--*")
    artifacts = home / "attempt-1" / "artifacts"
    written = {path.relative_to(artifacts).as_posix() for path in artifacts.rglob("*.txt")}
    assert written == {"log.txt", "deep/a b é.txt"}
    told = documents(home)["attempt-1/result.json"]["artifacts"]["collected"]["files"]
    inside = {row["path"] for row in told if row.get("content") == "abc"}
    assert inside == {"../up", "ctrl\x01"}


def test_one_fatal_task_takes_the_official_value_from_every_series(tree):
    report = documents(tree)["metrics.json"]
    assert report["evaluation_failed"] is True
    series = {one["series_id"]: one for one in report["series"]}
    assert set(series) == {"correct.avg@2", "correct.pass@2"}
    # right 1, half 1/2, files 1; broken has no second value, but a success.
    assert series["correct.avg@2"]["value"] is None
    assert series["correct.avg@2"]["reference_value"] == pytest.approx(2.5 / 3)
    assert series["correct.pass@2"]["reference_value"] == 1.0
    assert series["correct.avg@2"]["counts"] == {
        "total": 5,
        "evaluated": 3,
        "error": 2,
        "unavailable": 1,
        "invalidated": 1,
    }
    assert series["correct.pass@2"]["counts"]["evaluated"] == 4


def test_a_run_that_stops_on_correct_is_told_as_pass(tmp_path):
    stopped_early(tmp_path / "run")
    found = documents(exported(tmp_path / "run", tmp_path / "out"))
    assert found["metrics.json"]["strategy"] == "pass"
    (series,) = found["metrics.json"]["series"]
    assert (series["series_id"], series["value"]) == ("correct.pass@3", 1.0)
    assert series["counts"]["error"] == 0


def test_an_interrupted_run_has_no_status_and_no_report_and_tells_what_runs(tmp_path):
    interrupted(tmp_path / "run")
    tree = exported(tmp_path / "run", tmp_path / "out")
    found = documents(tree)
    assert "status" not in found["run_info.json"]
    assert "metrics.json" not in found
    assert state(tree, "t1") == "normal"
    assert state(tree, "t2") == "running"
    assert not list(tree.glob("details/*/t3--*"))
    assert "attempt-2/result.json" not in of_task(tree, "t2")


def test_a_task_that_agentcompass_has_no_name_for_is_named_with_the_reason(tmp_path):
    odd(tmp_path / "run")
    found = documents(exported(tmp_path / "run", tmp_path / "out"))
    rows = found["run_info.json"]["acl"]["left_out"]
    # What no JSON text can say stands in an envelope.
    left = {row["task_id"]: row["reason"] for row in rows if isinstance(row["task_id"], str)}
    assert left[""] == "the id is empty"
    assert left["lone \ud835 half"] == "the id holds half a character"
    told = {one["task_id"] for path, one in found.items() if path.endswith("/task.json")}
    assert not told & set(left)


def test_the_request_is_told_in_agentcompass_words_and_whole_in_ours(tree):
    info = documents(tree)["run_info.json"]
    assert info["schema_version"] == "agentcompass.run_info.v3"
    assert info["request"]["execution"]["attempts"] == {"k": 2, "strategy": "avg"}
    assert info["request"]["model"]["api_key"] == "********"
    assert info["acl"]["request"]["execution"]["k"] == 2
    assert info["resolved_execution_plans"]["right"]["attempts"]["1"]["harness"] == {"budget": 5}


@pytest.mark.parametrize("name", RUNS)
def test_every_run_exports_and_is_what_its_ledger_says(name, tmp_path):
    RUNS[name](tmp_path / "run")
    tree = exported(tmp_path / "run", tmp_path / "out")
    assert [one for one in findings(tmp_path / "run", tree) if one.severity == "broken"] == []
    file = next(iter(sorted(tree.glob("details/*/*/task.json"))), tree / "run_info.json")
    file.write_text("{}")
    assert [one.code for one in findings(tmp_path / "run", tree)].count("tree_differs") == 1
