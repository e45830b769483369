"""The four real runs of AgentCompass 1.0.1."""

import hashlib
import json
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.verify import verify
from runtime.importers import ImportReport, Source
from runtime.importers.agentcompass import AgentCompass
from runtime.replay import replay
from tests.importer_runs import (
    PLANTED,
    do_import,
    events,
    originals,
    sample,
    small_run,
    state_of,
    stored_bytes,
)

NAMES = ("k3-avg", "k3-fatal", "k3-reuse", "k3-sigkill")


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("agentcompass")


@pytest.fixture(scope="module")
def sources(directory) -> dict[str, Path]:
    return {name: sample(directory, name) for name in NAMES}


@pytest.fixture(scope="module")
def reports(directory, sources) -> dict[str, ImportReport]:
    return {name: do_import(sources[name], directory / "results") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_record_is_placed(reports, sources, name):
    files = [path for path in sources[name].rglob("*") if path.is_file()]
    assert reports[name].records_in == reports[name].records_out == len(files)
    assert not reports[name].damaged


@pytest.mark.parametrize("name", NAMES)
def test_an_import_verifies(reports, name):
    assert [found for found in verify(reports[name].path) if found.severity == "broken"] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_planted_secret_is_anywhere_in_the_ledger(reports, sources, name):
    held = b"".join(path.read_bytes() for path in sources[name].rglob("*") if path.is_file())
    assert all(secret in held for secret in PLANTED[:3])
    for data in stored_bytes(reports[name].path):
        assert not any(secret in data for secret in PLANTED)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_kept_and_unchanged_where_nothing_was_redacted(reports, sources, name):
    kept = originals(reports[name])
    files = {path.relative_to(sources[name]).as_posix(): path for path in sources[name].rglob("*")}
    files = {name: path for name, path in files.items() if path.is_file()}
    assert kept.keys() == files.keys()
    for path, event in kept.items():
        data = files[path].read_bytes()
        assert event.bytes == len(data)
        assert event.sha256 == (hashlib.sha256(data).hexdigest() if len(data) >= 1024 else None)
        if event.redactions is None:
            assert event.content == data
        else:
            assert event.content != data
            assert event.content.count(b"\n") == data.count(b"\n")
    assert any(event.redactions for event in kept.values())


def test_the_finished_run_has_the_counts_of_its_source(reports):
    state = state_of(reports["k3-avg"])
    counts = state.counts()
    assert (counts.total, counts.evaluated, counts.error) == (12, 9, 3)
    assert (counts.missing, counts.skipped) == (0, 0)
    assert (counts.attempts, counts.retries) == (36, 3)
    assert (state.status, state.k, state.strategy) == ("completed", 3, "all")
    assert (state.started_at, state.ended_at) == ("2026-11-29T13:26:42Z", "2026-11-29T13:26:47Z")


def test_the_metrics_of_the_source_are_told_as_its_own(reports, sources):
    state = state_of(reports["k3-avg"])
    report = json.loads((sources["k3-avg"] / "metrics.json").read_text())
    (_, _, told), *_ = state.metrics
    assert told.source == "import"
    for series in report["series"]:
        assert told.metrics[series["series_id"]] == series["value"]
        assert told.details[series["series_id"]]["denominator"] == 9
        assert told.details[series["series_id"]]["excluded"] == {"unavailable": 3}
    assert told.metrics["evaluated_tasks"] == 9
    assert told.counts == {"total": 12, "evaluated": 9, "error": 3, "missing": 0, "skipped": 0}
    assert {use.policy for use in told.reducers} == {"unavailable"}


def test_the_metrics_name_the_prefix_that_they_are_told_at(reports):
    state = state_of(reports["k3-avg"])
    seq, _, told = state.metrics[0]
    assert told.size < seq + 1
    with LedgerView.open(reports["k3-avg"].path) as view:
        assert view.root(told.size).hex() == told.root


@pytest.mark.parametrize("name", ["k3-avg", "k3-reuse"])
def test_replay_agrees_with_the_source_and_shows_ours_beside_it(reports, name):
    with LedgerView.open(reports[name].path) as view:
        found = replay(view)
    assert found.equal
    assert found.metrics.metrics["correct.avg@3"] == pytest.approx(19 / 27)
    assert found.metrics.metrics["correct.pass@3"] == pytest.approx(7 / 9)
    assert found.added


def test_the_tasks_come_in_the_order_of_the_source_with_their_own_names(reports, sources):
    state = state_of(reports["k3-avg"])
    assert list(state.tasks)[:4] == ["add/ok-1", "add/flaky", "add/wrong", "code:run-error"]
    weird = state.tasks['weird/../id: α β "q"']
    assert weird.category == "w/e:ird"
    assert state.tasks["no-category"].category is None
    assert any(len(task) > 120 for task in state.tasks)
    assert {"Case", "case"} <= state.tasks.keys()


def test_an_attempt_keeps_everything_its_result_says(reports, sources):
    task = "add/ok-1"
    found = {e.type: e for e in events(reports["k3-avg"]) if e.task == task and e.attempt == 1}
    path = next(sources["k3-avg"].glob("details/normal/add_ok-1--*"))
    source = json.loads((path / "attempt-1" / "result.json").read_text())
    recorded, judged = found["result.recorded"], found["evaluation.finished"]
    assert recorded.status == "completed"
    assert recorded.final_answer == source["final_answer"]
    assert len(recorded.trajectory["steps"]) == len(source["trajectory"]["steps"])
    assert recorded.ground_truth == "RIGHT"
    assert recorded.telemetry == source["meta"]["harness"]["telemetry"]
    assert recorded.meta["benchmark"].keys() == source["meta"]["benchmark"].keys()
    assert recorded.extra is None
    assert (judged.correct, judged.score) == (source["metrics"]["correct"], None)
    assert judged.metrics == {"format_ok": True, "answer_chars": source["metrics"]["answer_chars"]}
    assert judged.evaluator.id == "import:agentcompass"
    assert found["plan.resolved"].plan["environment"]["id"] == "host_process"
    assert found["attempt.finished"].resolved_plan_hash == found["plan.resolved"].plan_hash


@pytest.mark.parametrize(
    ("task", "status", "run_status", "run_code", "evaluation_code"),
    [
        ("code:run-error", "run_error", "run_error", "model_failed", None),
        ("code:eval-error", "eval_error", "completed", None, "evaluate_failed"),
        (
            "code:both-errors",
            "run_error_or_eval_error",
            "run_error",
            "model_failed",
            "evaluate_failed",
        ),
    ],
)
def test_issues_become_the_errors_of_their_phase(
    reports, task, status, run_status, run_code, evaluation_code
):
    found = {
        e.type: e for e in events(reports["k3-avg"]) if e.task == task and e.attempt in (1, None)
    }
    assert found["task.finished"].error
    recorded, finished = found["result.recorded"], found["attempt.finished"]
    judged = found.get("evaluation.finished")
    assert recorded.status == run_status
    assert (recorded.error.code if recorded.error else None) == run_code
    evaluation_error = judged.evaluation_error if judged else None
    assert (evaluation_error.code if evaluation_error else None) == evaluation_code
    assert finished.status == status
    assert finished.error.code == (run_code or evaluation_code)
    assert not finished.error.fatal
    assert len(finished.issues) == bool(run_code) + bool(evaluation_code)


def test_retries_stand_with_the_attempt_that_made_them(reports):
    retried = events(reports["k3-avg"], "attempt.retried")
    assert [(e.task, e.attempt, e.retry) for e in retried] == [
        ("code:retry-then-ok", number, 1) for number in (1, 2, 3)
    ]
    assert retried[0].error.code == "model_failed"
    assert retried[0].error.fatal
    assert (retried[0].scope, retried[0].stage) == ("attempt", "attempt")
    assert (retried[0].matched_pattern, retried[0].max_retries) == ("fatal", 2)
    assert retried[0].discarded_result["status"] == "run_error"
    state = state_of(reports["k3-avg"])
    assert state.tasks["code:retry-then-ok"].retry_count == 3
    assert state.tasks["code:retry-then-ok"].attempts[1].correct is True


def test_a_run_with_fatal_issues_failed_and_its_metrics_are_unavailable(reports):
    state = state_of(reports["k3-fatal"])
    counts = state.counts()
    assert (counts.total, counts.evaluated, counts.error, counts.retries) == (14, 9, 5, 15)
    assert state.status == "failed"
    assert state.finished.exit_code == 1
    assert "FATAL" in state.finished.error.message
    assert state.tasks["setup:boom"].attempts[1].fatal
    assert len(state.tasks["setup:boom"].attempts[1].retries) == 2
    told = state.metrics[0][2]
    assert told.metrics == {"evaluated_tasks": 9}
    assert told.extra["unavailable"]["correct.avg@3"] == (
        "invalidated by fatal issues in 2 tasks; reference value 0.7037037037037037"
    )
    assert told.details["correct.avg@3"]["excluded"] == {"unavailable": 3, "invalidated": 2}


def test_a_run_that_reused_another_names_it(reports):
    state = state_of(reports["k3-reuse"])
    assert state.frozen.mode == "explicit"
    assert state.frozen.run_id == "k3-avg"
    assert state.frozen.path is None
    assert state.request["source"]["run_info"]["reused_from"]["path"].endswith("/k3-avg")
    assert state.counts().retries == 0
    found = events(reports["k3-reuse"], "result.recorded")
    assert {e.artifacts["reuse_history"]["retry_count"] for e in found} == {0, 1}


def test_a_killed_run_is_sealed_and_stays_interrupted(reports):
    report = reports["k3-sigkill"]
    state = state_of(report)
    assert state.status == "interrupted"
    assert state.finished is None
    assert state.sealed_size == state.size
    assert state.started_at == "2026-11-29T13:29:12Z"
    assert state.ended_at is None
    counts = state.counts()
    assert (counts.total, counts.evaluated, counts.missing) == (26, 20, 6)
    assert not state.metrics


def test_an_attempt_that_ran_and_was_not_judged_has_a_result_and_no_end(reports):
    state = state_of(reports["k3-sigkill"])
    ran = state.tasks["clone-00020"].attempts[1]
    assert ran.result is not None
    assert (ran.status, ran.verdict, ran.finished) == (None, False, None)
    only_started = state.tasks["clone-00021"].attempts[1]
    assert (only_started.result, only_started.finished) == (None, None)


def test_tasks_that_only_the_log_of_a_killed_run_names_are_there(reports):
    report = reports["k3-sigkill"]
    state = state_of(report)
    assert [task for task, one in state.tasks.items() if one.stage == "running"] == [
        f"clone-000{number}" for number in range(20, 26)
    ]
    assert state.tasks["clone-00023"].category == "c"
    assert [(one.source, one.placed) for one in report.unplaced] == [("progress.jsonl", True)]
    assert report.unplaced[0].reason == "60 tasks were selected; 34 of them no file names"
    (selected,) = events(report, "tasks.selected")
    assert selected.selection == {"total": 60}


def test_the_request_is_in_our_words_and_in_those_of_the_source(reports, sources):
    request = state_of(reports["k3-avg"]).request
    assert request["benchmark"]["id"] == "acl_demo"
    assert request["harness"]["id"] == "acl_demo_agent"
    assert request["environment"]["id"] == "host_process"
    assert request["model"]["base_url"] == "http://127.0.0.1:18081/v1"
    assert request["execution"]["k"] == 3
    assert request["execution"]["max_retries"] == 2
    assert request["execution"]["retry_min_delay_seconds"] == 0.2
    info = json.loads((sources["k3-avg"] / "run_info.json").read_text())
    own = request["source"]["request"]
    assert own["execution"]["attempts"] == {"k": 3, "strategy": "avg"}
    assert own["execution"] == info["request"]["execution"]
    assert request["source"]["run_info"]["metric_artifacts"] == info["metric_artifacts"]


def test_a_run_is_recognised_by_its_files_alone(sources, tmp_path):
    importer = AgentCompass()
    for path in sources.values():
        assert importer.recognises(Source.open(path))
    no_info = small_run(tmp_path / "no-info")
    (no_info / "run_info.json").unlink()
    assert importer.recognises(Source.open(no_info))
    ours = tmp_path / "details-layout"
    ours.mkdir()
    (ours / "run_info.json").write_text('{"schema_version": "agentcompass.run_info.v1"}')
    assert not importer.recognises(Source.open(ours))


def test_the_ledger_is_smaller_than_a_quarter_of_its_source(reports, sources):
    for name, report in reports.items():
        size = sum(path.stat().st_size for path in sources[name].rglob("*") if path.is_file())
        assert (report.path / "ledger.sqlite").stat().st_size * 4 < size
