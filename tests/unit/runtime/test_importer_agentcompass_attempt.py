"""Tries, retries, artifacts, analyses and verdicts of single attempts."""

from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView
from ledger.canonical import Binary
from runtime.importers.agentcompass import artifacts
from runtime.replay import replay
from tests.importer_runs import (
    add_task,
    do_import,
    events,
    originals,
    result,
    small_run,
    state_of,
    task_path,
    write_json,
)


@pytest.fixture
def run(tmp_path) -> Path:
    return small_run(tmp_path / "run")


def attempt_events(tmp_path: Path, run: Path) -> list[Any]:
    found = events(do_import(run, tmp_path / "results"))
    return [e for e in found if e.task == "t1" and e.attempt == 1 and e.type != "original.recorded"]


def issue(severity: str = "error", phase: str = "run", code: str = "failed") -> dict[str, str]:
    return {"severity": severity, "phase": phase, "code": code, "message": f"{code} happened"}


def retry(number: int, scope: str = "attempt", **fields: Any) -> dict[str, Any]:
    return {
        "schema_version": "agentcompass.retry.v1",
        "task_id": "t1",
        "category": None,
        "attempt": 1,
        "retry": number,
        "max_retries": 3,
        "retry_delay_seconds": 0.5,
        "stage": "attempt",
        "scope": scope,
        "matched_pattern": "fatal",
        "issues": [issue("fatal", code=f"try-{number}")],
        "discarded_result": result(final_answer=f"answer {number}", metrics={}),
        **fields,
    }


def add_retries(run: Path, *records: dict[str, Any], count: int | None = None) -> Path:
    path = task_path(run, "t1") / "attempt-1"
    for position, record in enumerate(records):
        write_json(path / "retries" / f"t.attempt1.{position}.json", record)
    write_json(path / "result.json", result(retry_count=len(records) if count is None else count))
    return path


def kinds(found: list[Any]) -> list[str]:
    return [event.type.partition(".")[2] for event in found]


def test_discarded_tries_stand_before_the_result_in_their_order(run, tmp_path):
    add_retries(run, retry(2), retry(1))
    found = attempt_events(tmp_path, run)
    assert kinds(found) == ["started", "retried", "retried", "recorded", "finished", "finished"]
    assert [event.error.code for event in found[1:3]] == ["try-1", "try-2"]
    assert found[1].discarded_result["final_answer"] == "answer 1"
    assert found[1].retry_delay_seconds == 0.5
    assert found[-1].retries == 2


def test_a_retried_evaluation_follows_the_result_that_it_judged(run, tmp_path):
    add_retries(run, retry(1, "evaluate", stage="evaluate"))
    found = attempt_events(tmp_path, run)
    assert kinds(found) == ["started", "recorded", "retried", "finished", "finished"]
    assert found[1].final_answer == "42"
    assert found[2].scope == "evaluate"


def test_a_whole_try_after_a_retried_evaluation_begins_anew(run, tmp_path):
    add_retries(run, retry(1, "evaluate"), retry(2), retry(3, "evaluate"))
    found = attempt_events(tmp_path, run)
    assert kinds(found) == [
        *("started", "recorded", "retried", "retried"),
        *("recorded", "retried", "finished", "finished"),
    ]
    assert [e.final_answer for e in found if e.type == "result.recorded"] == ["answer 1", "42"]


def test_a_count_of_retries_without_their_files_is_told(run, tmp_path):
    add_retries(run, retry(2), count=2)
    report = do_import(run, tmp_path / "results")
    reasons = [remark.reason for remark in report.unplaced]
    assert reasons == [
        "retry 2 is told as retry 1: one before it is missing",
        "counts 2 retries; 1 are recorded",
    ]
    assert all(remark.placed for remark in report.unplaced)


@pytest.mark.parametrize(
    "fields", [{"retry": 0}, {"retry": "1"}, {"issues": 3}, {"issues": [{"code": "x"}]}]
)
def test_a_retry_that_is_none_is_named(run, tmp_path, fields):
    add_retries(run, retry(1, **fields), count=0)
    report = do_import(run, tmp_path / "results")
    (remark,) = report.unplaced
    assert (remark.placed, remark.damage) == (False, True)
    assert state_of(report).tasks["t1"].correct is True


def test_a_retried_evaluation_of_nothing_is_named(run, tmp_path):
    add_retries(run, retry(1, "evaluate", discarded_result=None), retry(2))
    report = do_import(run, tmp_path / "results")
    assert report.unplaced[0].reason.startswith("no discarded try")


def test_unknown_fields_of_a_retry_are_told(run, tmp_path):
    add_retries(run, retry(1, mood="bad"))
    (remark,) = do_import(run, tmp_path / "results").unplaced
    assert remark.reason == "kept in the original only: mood"


def test_a_retry_without_issues_or_numbers_is_still_a_retry(run, tmp_path):
    add_retries(run, retry(1, issues=[], max_retries=None, retry_delay_seconds=-1, stage=None))
    (event,) = [e for e in attempt_events(tmp_path, run) if e.type == "attempt.retried"]
    assert (event.error.code, event.max_retries, event.retry_delay_seconds) == ("unknown", 1, 0.0)


def test_executions_that_were_archived_are_kept_with_their_attempt(run, tmp_path):
    path = add_retries(run)
    archive = path / "retries" / ("0a" * 16)
    write_json(archive / "result.json", result())
    (archive / "artifacts").mkdir()
    (archive / "artifacts" / "log.txt").write_text("x")
    report = do_import(run, tmp_path / "results")
    assert report.unplaced == ()
    kept = originals(report)
    assert sum(e.attempt == 1 and "0a0a" in name for name, e in kept.items()) == 2


def test_unknown_fields_of_a_result_are_kept_in_extra(run, tmp_path):
    write_json(
        task_path(run, "t1") / "attempt-1" / "result.json",
        result(mood="good", extra={"own": 1}, meta=[1]),
    )
    recorded = attempt_events(tmp_path, run)[1]
    assert recorded.extra == {"mood": "good", "own": 1}
    assert recorded.meta == [1]


def test_metrics_and_issues_that_are_none_are_kept_in_extra(run, tmp_path):
    write_json(
        task_path(run, "t1") / "attempt-1" / "result.json", result(metrics=[1], issues="bad")
    )
    report = do_import(run, tmp_path / "results")
    assert len(report.unplaced) == 2
    (recorded,) = events(report, "result.recorded")
    assert recorded.extra == {"metrics": {"metrics": [1]}, "issues": "bad"}


@pytest.mark.parametrize(
    ("metrics", "correct", "score", "rest"),
    [
        ({"correct": False, "time": 1.5}, False, None, {"time": 1.5}),
        ({"score": 0.25}, None, 0.25, {}),
        ({"score": 2}, None, 2, {}),
        ({"score": True, "correct": 1}, None, None, {"score": True, "correct": 1}),
    ],
)
def test_the_verdict_is_the_primary_metric(run, tmp_path, metrics, correct, score, rest):
    write_json(task_path(run, "t1") / "attempt-1" / "result.json", result(metrics=metrics))
    (judged,) = [e for e in attempt_events(tmp_path, run) if e.type == "evaluation.finished"]
    assert (judged.correct, judged.score, judged.metrics) == (correct, score, rest)
    assert type(judged.score) is type(score)


def test_an_attempt_that_nobody_judged_has_no_evaluation(run, tmp_path):
    write_json(
        task_path(run, "t1") / "attempt-1" / "result.json", result(status="skipped", metrics={})
    )
    report = do_import(run, tmp_path / "results")
    assert events(report, "evaluation.finished") == []
    assert state_of(report).counts().skipped == 1


def test_a_fatal_issue_decides_before_any_other(run, tmp_path):
    issues = [
        issue("warning", "cleanup", "w"),
        issue("error", "run", "e"),
        issue("fatal", "evaluate", "f"),
    ]
    write_json(
        task_path(run, "t1") / "attempt-1" / "result.json",
        result(status="run_error_or_eval_error", metrics={}, issues=issues),
    )
    found = {event.type: event for event in attempt_events(tmp_path, run)}
    assert found["result.recorded"].error.code == "e"
    assert found["evaluation.finished"].evaluation_error.code == "f"
    assert (found["attempt.finished"].error.code, found["attempt.finished"].error.fatal) == (
        "f",
        True,
    )
    assert [one.code for one in found["attempt.finished"].issues] == ["w", "e", "f"]


def test_an_interrupted_attempt_is_cancelled_and_its_word_kept(run, tmp_path):
    write_json(
        task_path(run, "t1") / "attempt-1" / "result.json", result(status="interrupted", metrics={})
    )
    found = {event.type: event for event in attempt_events(tmp_path, run)}
    assert found["attempt.finished"].status == "cancelled"
    assert found["result.recorded"].extra == {"source_status": "interrupted"}


def test_analyses_become_events_and_what_does_not_fit_stays(run, tmp_path):
    analyses = {
        "efficiency": {"is_badcase": True, "details": {"turns": 9}, "score": 0.5},
        "ability": {"is_badcase": None, "error": "no key"},
        "odd": {"is_badcase": False, "extra": {"x": 1}},
    }
    write_json(task_path(run, "t1") / "attempt-1" / "result.json", result(analysis_result=analyses))
    found = attempt_events(tmp_path, run)
    first, second = (event for event in found if event.type == "analysis.finished")
    assert (first.family, first.is_badcase, first.score) == ("efficiency", True, 0.5)
    assert first.details == {"turns": 9}
    assert (second.error.code, second.error.message) == ("analysis_failed", "no key")
    (recorded,) = [event for event in found if event.type == "result.recorded"]
    assert recorded.extra == {"analysis_result": {"odd": analyses["odd"]}}


def test_artifacts_are_collected_byte_for_byte(run, tmp_path):
    path = task_path(run, "t1") / "attempt-1" / "artifacts"
    (path / "sub").mkdir(parents=True)
    (path / "sub" / "a.txt").write_text("é")
    (path / ".x.tmp").write_bytes(b"\xff\x00")
    (path / "big").write_bytes(b"x" * 2000)
    report = do_import(run, tmp_path / "results")
    assert report.unplaced == ()
    (collected,) = events(report, "artifacts.collected")
    assert collected.contents == {
        ".x.tmp": Binary(b"\xff\x00"),
        "big": "x" * 2000,
        "sub/a.txt": "é",
    }
    assert [(one.path, one.bytes, one.sha256 is None) for one in collected.artifacts] == [
        (".x.tmp", 2, True),
        ("big", 2000, False),
        ("sub/a.txt", 2, True),
    ]
    assert not collected.truncated
    assert not any("artifacts" in name for name in originals(report))


def test_artifacts_beyond_the_bound_are_kept_one_by_one(run, tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts, "MAX_BYTES", 10)
    path = task_path(run, "t1") / "attempt-1" / "artifacts"
    path.mkdir()
    (path / "a").write_text("12345678")
    (path / "b").write_text("1234567890")
    (path / "c").write_text("12")
    report = do_import(run, tmp_path / "results")
    (collected,) = events(report, "artifacts.collected")
    assert collected.contents == {"a": "12345678", "c": "12"}
    assert collected.truncated
    (name,) = (name for name in originals(report) if "artifacts" in name)
    assert originals(report)[name].content == b"1234567890"


def test_artifacts_are_kept_as_originals_too_where_secrets_may_stay(run, tmp_path):
    path = task_path(run, "t1") / "attempt-1" / "artifacts"
    path.mkdir()
    (path / "env").write_text("API_KEY=abc12345")
    report = do_import(run, tmp_path / "results", keep_originals=True)
    (name,) = (name for name in originals(report) if "artifacts" in name)
    assert originals(report)[name].content == b"API_KEY=abc12345"


def test_a_run_that_stopped_at_the_first_success_says_so(run, tmp_path):
    small_run(
        run,
        request={
            "benchmark": {"id": "b"},
            "model": {"id": "m"},
            "execution": {"attempts": {"k": 3, "strategy": "pass"}},
        },
    )
    plan = {"k": 3, "strategy": "pass"}
    add_task(run, "t1", {1: result(metrics={"correct": False}), 2: result()}, attempt_plan=plan)
    report = do_import(run, tmp_path / "results")
    state = state_of(report)
    assert (state.k, state.strategy) == (3, "stop_on_correct")
    assert state.request["source"]["request"]["execution"]["attempts"]["strategy"] == "pass"
    (finished,) = events(report, "task.finished")
    assert finished.reason == "stopped_early"
    with LedgerView.open(report.path) as view:
        assert replay(view).metrics.metrics["correct.pass@3"] == 1.0


def test_equal_plans_have_equal_digests_and_their_timeouts(run, tmp_path):
    plan = {
        "run_timeout_seconds": 60,
        "evaluation_timeout_seconds": None,
        "applied_recipes": ["r1"],
    }
    add_task(run, "t1", {1: result(), 2: result()})
    small = {"t1": {"attempts": {"1": plan, "2": plan, "x": plan, "3": 4}}}
    small_run(run, tasks=0, resolved_execution_plans=small)
    report = do_import(run, tmp_path / "results")
    first, second = events(report, "plan.resolved")
    assert first.plan == plan
    assert first.plan_hash == second.plan_hash
    assert list(first.applied_recipes) == ["r1"]
    assert first.timeouts == {"run_timeout_seconds": 60}
