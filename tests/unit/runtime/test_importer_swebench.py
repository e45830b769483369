"""Reports of the SWE-bench harness become runs; an instance that nobody judged is no wrong one."""

import json

import pytest

from ledger import LedgerView
from ledger.errors import UsageError, VersionUnsupported
from runtime.replay import replay
from tests.foreign_sources import SHARED, lost, recognised, take, told, write_json, write_lines
from tests.importer_runs import events, originals, state_of

REAL = SHARED / "swebench"
A, B, C = "astropy__astropy-1", "django__django-22", "django__django-23"


def report(name, resolved=True, **fields):
    failed = [] if resolved else ["t1"]
    passed = ["t1"] if resolved else []
    return {
        name: {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": resolved,
            "tests_status": {
                "FAIL_TO_PASS": {"success": passed, "failure": failed},
                "PASS_TO_PASS": {"success": ["t2"], "failure": []},
                "FAIL_TO_FAIL": {"success": [], "failure": []},
                "PASS_TO_FAIL": {"success": [], "failure": []},
            },
            **fields,
        }
    }


def run_report(**lists):
    kinds = ("completed", "incomplete", "empty_patch", "submitted", "resolved", "unresolved")
    ids = {f"{kind}_ids": sorted(lists.get(kind, [])) for kind in (*kinds, "error")}
    numbers = {
        f"{kind}_instances": len(lists.get(kind, []))
        for kind in ("submitted", "completed", "resolved", "unresolved", "empty_patch", "error")
    }
    total = len({one for names in lists.values() for one in names})
    return {"total_instances": total, **numbers, **ids, "schema_version": 2}


def add(source, name, value, model="mine__m-1", run="r1", **files):
    home = source / "logs" / "run_evaluation" / run / model / name
    home.mkdir(parents=True, exist_ok=True)
    if value is not None:
        write_json(home / "report.json", value)
    for path, text in files.items():
        (home / path.replace("__", ".")).write_text(text)
    return home


def attempts(report):
    return {task.id: one for task, one in state_of(report).attempts()}


def test_the_leaderboard_sample_gives_its_one_resolved_instance(tmp_path):
    if not REAL.exists():
        pytest.skip("the samples are not at hand")
    report = take(REAL, tmp_path / "results")
    assert report.unplaced == ()
    assert (report.records_in, report.records_out) == (13, 13)
    found = attempts(report)
    assert [name for name, one in found.items() if one.correct] == ["astropy__astropy-14309"]
    assert len(found) == 12
    assert state_of(report).tasks["astropy__astropy-14309"].category == "astropy/astropy"
    with LedgerView.open(report.path) as view:
        assert replay(view).metrics.metrics["correct.accuracy"] == pytest.approx(1 / 12)


def test_a_run_of_the_harness_with_all_its_files(tmp_path):
    source = tmp_path / "s"
    add(source, A, report(A), patch__diff="+ fix\n", test_output__txt="ok", eval__sh="run")
    add(source, B, report(B, resolved=False), patch__diff="+ no\n")
    home = add(source, C, None, patch__diff="+ x\n")
    (home / "run_instance.log").write_text("EvaluationError: >>>>> Patch Apply Failed")
    write_json(source / "logs" / "run_evaluation" / "r1" / "run.json", {"dataset": "lite"})
    told_run = run_report(
        submitted=[A, B, C, "x__y-1", "x__y-3"],
        completed=[A, B],
        resolved=[A],
        unresolved=[B],
        error=[C],
        empty_patch=["x__y-1"],
        incomplete=["x__y-2"],
    )
    told_run["failure_reasons"] = {B: "tests_timed_out"}
    write_json(source / "mine__m-1.r1.json", told_run)
    write_lines(
        source / "preds.jsonl",
        {"instance_id": A, "model_patch": "+ fix", "model_name_or_path": "mine/m-1"},
        {"instance_id": B, "model_patch": "+ other", "model_name_or_path": "mine/m-1"},
    )
    done = take(source, tmp_path / "results")
    assert lost(done) == []
    found = attempts(done)
    assert (found[A].status, found[A].correct) == ("completed", True)
    assert (found[B].status, found[B].correct) == ("completed", False)
    assert (found[C].status, found[C].correct) == ("eval_error", None)
    assert (found["x__y-1"].status, found["x__y-1"].correct) == ("run_error", None)
    assert found["x__y-2"].status == "skipped"
    assert found["x__y-3"].status == "eval_error"
    errors = {one.task: one.error.code for one in events(done, "attempt.finished") if one.error}
    assert errors == {C: "patch_apply_failed", "x__y-1": "empty_patch", "x__y-3": "no_verdict"}
    state = state_of(done)
    assert state.finished.status == "completed"
    assert state.request["model"]["id"] == "mine/m-1"
    assert state.request["output"]["run_id"] == "r1"
    assert state.request["source"]["run"] == {"dataset": "lite"}
    verdict = next(one for one in events(done, "evaluation.finished") if one.task == A)
    assert verdict.reason == "FAIL_TO_PASS 1/1, PASS_TO_PASS 1/1"
    assert verdict.tests_status["PASS_TO_PASS"]["success"] == ["t2"]
    assert events(done, "metrics.computed")[0].metrics["resolved_instances"] == 1
    assert any("another patch" in one for one in told(done))
    assert any("only it tells of 2 instances" in one for one in told(done))
    base = f"logs/run_evaluation/r1/mine__m-1/{A}"
    assert originals(done)[f"{base}/test_output.txt"].content == b"ok"
    assert originals(done)[f"{base}/test_output.txt"].task == A


def test_the_report_of_a_run_alone_is_enough(tmp_path):
    value = run_report(submitted=[A, B], completed=[A, B], resolved=[A], unresolved=[B])
    done = take(write_json(tmp_path / "m.run-7.json", value), tmp_path / "results")
    assert done.unplaced == ()
    assert {name: one.correct for name, one in attempts(done).items()} == {A: True, B: False}
    request = state_of(done).request
    assert (request["model"]["id"], request["output"]["run_id"]) == ("m", "run-7")


def test_one_report_of_an_instance_is_a_run(tmp_path):
    done = take(write_json(tmp_path / "report.json", report(A)), tmp_path / "results")
    assert attempts(done)[A].correct is True


def test_the_older_report_alone_is_never_a_whole_run(tmp_path):
    value = {"resolved": [A], "no_generation": [B], "no_logs": []}
    done = take(write_json(tmp_path / "results.json", value), tmp_path / "results")
    assert len(lost(done)) == 1
    assert "not resolved" in lost(done)[0]
    assert state_of(done).finished is None


def test_the_older_report_with_all_that_was_tried_is_whole(tmp_path):
    value = {"generated": [A, B, C], "resolved": [A], "no_generation": [], "no_logs": [C]}
    done = take(write_json(tmp_path / "results.json", value), tmp_path / "results")
    found = attempts(done)
    assert lost(done) == []
    assert (found[A].correct, found[B].correct) == (True, False)
    assert found[C].status == "eval_error"


def test_contradictions_are_told_and_the_instance_report_stands(tmp_path):
    source = tmp_path / "s"
    add(source, A, report(A))
    add(source, B, report(B, resolved=False))
    odd = report(C, resolved=False)
    odd[C]["resolved"] = True
    add(source, C, odd)
    value = run_report(completed=[A, B, C], resolved=[B, C], unresolved=[A], submitted=[A, B, C])
    value["resolved_instances"] = 5
    value["error_ids"] = [C]
    write_json(source / "m.r1.json", value)
    done = take(source, tmp_path / "results")
    found = attempts(done)
    assert [found[name].correct for name in (A, B, C)] == [True, False, True]
    reasons = " | ".join(told(done))
    assert f"it tells of {A} as unresolved, whose report says true" in reasons
    assert f"it tells of {B} as resolved, whose report says false" in reasons
    assert "resolved_instances is 5, and resolved_ids lists 2" in reasons
    assert f"{C} is listed as resolved and as error" in reasons
    assert "its own tests say false" in reasons
    assert lost(done) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"patch_is_None": True, "patch_exists": False}, "empty_patch"),
        ({"patch_exists": False}, "empty_patch"),
    ],
)
def test_without_a_patch_there_is_an_error_and_no_wrong_answer(tmp_path, fields, code):
    source = tmp_path / "s"
    value = report(A, resolved=False, **fields)
    del value[A]["tests_status"]
    add(source, A, value)
    done = take(source, tmp_path / "results")
    attempt = attempts(done)[A]
    assert (attempt.status, attempt.correct) == ("run_error", None)
    assert events(done, "attempt.finished")[0].error.code == code


def test_a_patch_that_was_not_applied_and_broken_houses_are_issues(tmp_path):
    source = tmp_path / "s"
    fields = {"patch_successfully_applied": False, "infra_failure": True}
    add(source, A, report(A, resolved=False, **fields, infra_failure_reason="out_of_memory"))
    done = take(source, tmp_path / "results")
    (end,) = events(done, "attempt.finished")
    assert end.correct is False
    assert [one.code for one in end.issues] == ["patch_not_applied", "infra_failure"]


@pytest.mark.parametrize(
    ("text", "damaged"),
    [
        ("", False),
        (json.dumps(report(A), indent=4)[:70], False),
        ("[]", True),
        ("null", True),
        (json.dumps(report(B)), True),
        ('{"astropy__astropy-1": {"resolved": "yes"}}', True),
        ('{"astropy__astropy-1": []}', True),
        ("{nonsense", True),
    ],
)
def test_a_report_that_is_none_is_named_and_its_instance_an_error(tmp_path, text, damaged):
    source = tmp_path / "s"
    home = add(source, A, None, run_instance__log="log")
    (home / "report.json").write_text(text)
    add(source, B, report(B))
    done = take(source, tmp_path / "results")
    assert done.damaged is damaged
    assert any(one.startswith("logs/run_evaluation/r1/mine__m-1/astropy") for one in lost(done))
    assert attempts(done)[B].correct is True
    if A in attempts(done):
        assert attempts(done)[A].status == "eval_error"


def test_several_runs_are_refused(tmp_path):
    source = tmp_path / "s"
    add(source, A, report(A))
    add(source, B, report(B), model="other")
    with pytest.raises(UsageError, match="several runs"):
        take(source, tmp_path / "results")


def test_a_newer_report_is_refused_by_name(tmp_path):
    value = {**run_report(resolved=[A], completed=[A]), "schema_version": 3}
    with pytest.raises(VersionUnsupported, match="schema_version 3"):
        take(write_json(tmp_path / "m.r.json", value), tmp_path / "results")


def test_trajectories_named_after_an_instance_belong_to_it(tmp_path):
    source = tmp_path / "s"
    add(source, A, report(A))
    (source / "trajs").mkdir()
    (source / "trajs" / f"{A}.traj.json").write_text("{}")
    (source / "README.md").write_text("mine")
    kept = originals(take(source, tmp_path / "results"))
    assert kept[f"trajs/{A}.traj.json"].task == A
    assert kept["README.md"].task is None


def test_a_file_of_no_known_kind_is_named_and_kept(tmp_path):
    source = tmp_path / "s"
    add(source, A, report(A))
    (source / "README.md").write_text("mine")
    write_json(source / "results" / "resolved_by_repo.json", {"astropy": {"resolved": 1}})
    write_json(source / "airline.json", [{"task_id": 1, "reward": 1.0}])
    done = take(source, tmp_path / "results")
    why = "it is no part of the harness's results, and only kept"
    assert lost(done) == [f"airline.json: {why}"]
    assert told(done) == [f"README.md: {why}"]
    assert (done.records_in, done.records_out) == (4, 3)
    assert set(originals(done)) >= {"README.md", "airline.json", "results/resolved_by_repo.json"}


@pytest.mark.parametrize("form", ["list", "object"])
def test_predictions_come_in_two_more_forms(tmp_path, form):
    source = tmp_path / "s"
    add(source, A, report(A))
    one = {"instance_id": B, "model_patch": None, "model_name_or_path": "m", "cost": 1}
    write_json(source / "preds.json", [one] if form == "list" else {B: one})
    done = take(source, tmp_path / "results")
    assert lost(done) == []
    assert attempts(done)[B].status == "run_error"
    assert state_of(done).request["model"]["id"] == "m"


def test_reports_that_other_programs_keep_are_not_a_run(tmp_path):
    write_json(tmp_path / "trial" / "verifier" / "report.json", report(A))
    assert recognised(tmp_path / "trial") == []
