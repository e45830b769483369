"""Importing the layout `details`: what is trusted, what is named, and where it stands."""

import json
import shutil
from pathlib import Path

import pytest

from exporters.live import LiveExport
from ledger import LedgerView, fold
from ledger import events as ev
from ledger.errors import RunNotFound, UsageError, VersionUnsupported
from ledger.verify import verify
from runtime.importers import Source, import_for_reuse, needs_import
from runtime.importers.details import Details
from tests.details_runs import (
    do_import,
    edit,
    export,
    failed,
    foreign_run,
    points,
    record,
    right,
    write_json,
)
from tests.golden.runs import RUNS, create, opening, ref, task
from tests.golden.runs import attempt as an_attempt
from tests.importer_runs import create as new_ledger
from tests.importer_runs import events, originals, small_run, state_of, stored_bytes


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The export of a run that has everything."""
    (tmp_path / "run").mkdir()
    RUNS["full"](tmp_path / "run")
    export(tmp_path / "run", tmp_path / "tree")
    return tmp_path / "tree"


def told(report) -> dict[str, str]:
    return {remark.source: remark.reason for remark in report.unplaced}


# -- the door -----------------------------------------------------------------------------------


def test_an_exported_tree_is_a_sealed_ledger_under_its_own_ids(tmp_path: Path, tree: Path) -> None:
    report = do_import(tree, tmp_path / "results")
    assert report.path == tmp_path / "results" / "golden" / "demo-bench" / "model-1" / "full-1"
    assert (report.format, report.damaged) == ("details", False)
    state = state_of(report)
    assert state.sealed_size == state.size
    assert (state.status, state.imported.format_version) == (
        "completed",
        "agentcompass.run_info.v1",
    )
    assert (state.imported.source_run_id, state.imported.source_status) == ("full-1", "completed")
    assert state.started_at == "2025-06-15T15:06:40Z"


def test_the_same_tree_under_another_name_is_the_same_run(tmp_path: Path, tree: Path) -> None:
    first = do_import(tree, tmp_path / "results")
    shutil.copytree(tree, tmp_path / "copy")
    again = do_import(tmp_path / "copy", tmp_path / "results")
    assert (again.already, again.path) == (True, first.path)


def test_every_file_is_kept_byte_for_byte(tmp_path: Path, tree: Path) -> None:
    kept = originals(do_import(tree, tmp_path / "results"))
    files = {p.relative_to(tree).as_posix(): p for p in tree.rglob("*") if p.is_file()}
    assert {path: event.content for path, event in kept.items()} == {
        path: file.read_bytes() for path, file in files.items()
    }


def test_the_directory_of_a_run_with_its_ledger_is_nothing_to_import(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RUNS["full"](tmp_path / "run")
    write_json(tmp_path / "run" / "run_info.json", {"schema_version": "agentcompass.run_info.v1"})
    with pytest.raises(UsageError, match="holds a run with its ledger"):
        do_import(tmp_path / "run", tmp_path / "results")


@pytest.mark.parametrize(
    ("files", "fits"),
    [
        ({"run_info.json": {"schema_version": "agentcompass.run_info.v1"}}, True),
        ({"details/x.json": {}}, True),
        ({"run_info.json": {}, "details/x.json": {}}, True),
        ({"run_info.json": {"schema_version": "agentcompass.run_info.v3"}}, False),
        ({"run_info.json": {}, "params.json": {}}, False),
        ({"details/normal/x/task.json": {}}, False),
        ({"other/x.json": {}}, False),
    ],
)
def test_a_source_is_recognised_by_its_schema_or_its_records(
    tmp_path: Path, files: dict, fits: bool
) -> None:
    for path, value in files.items():
        write_json(tmp_path / "source" / path, value)
    assert Details().recognises(Source.open(tmp_path / "source")) is fits


def test_each_layout_has_its_own_importer(tmp_path: Path, tree: Path) -> None:
    small_run(tmp_path / "other")
    assert do_import(tmp_path / "other", tmp_path / "results").format == "agentcompass"
    assert do_import(tree, tmp_path / "results").format == "details"


def test_what_a_newer_release_wrote_is_refused(tmp_path: Path, tree: Path) -> None:
    edit(tree / "run_info.json", lambda info: info["acl"].update(schema="acl.export.v2"))
    with pytest.raises(VersionUnsupported, match=r"acl\.export\.v2"):
        do_import(tree, tmp_path / "results")
    write_json(tmp_path / "v4" / "run_info.json", {"schema_version": "agentcompass.run_info.v4"})
    with pytest.raises(VersionUnsupported, match=r"run_info\.v4"):
        do_import(tmp_path / "v4", tmp_path / "results", format="details")


def test_a_directory_without_anything_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="nothing of a run"):
        do_import(tmp_path / "empty", tmp_path / "results", format="details")


# -- as far as files go ---------------------------------------------------------------------------


def test_a_changed_file_is_named_and_imported_as_it_is(tmp_path: Path, tree: Path) -> None:
    edit(tree / "details" / "math-2_math.json", lambda r: r["attempts"]["1"].update(score=1.0))
    report = do_import(tree, tmp_path / "results")
    assert report.damaged
    assert "bytes are not those" in told(report)["details/math-2_math.json"]
    assert state_of(report).tasks["math-2"].score == 1.0


def test_a_missing_file_is_named_and_so_are_the_counts_that_lack_it(
    tmp_path: Path, tree: Path
) -> None:
    (tree / "details" / "math-2_math.json").unlink()
    report = do_import(tree, tmp_path / "results")
    assert report.damaged
    assert "missing" in told(report)["details/math-2_math.json"]
    reasons = [r.reason for r in report.unplaced if r.source == ".summary_counts.json"]
    assert "it counts evaluated 4, not 3" in reasons
    task = state_of(report).tasks["math-2"]
    assert (task.stage, task.bin) == ("cancelled", "missing")


def test_an_added_file_is_named(tmp_path: Path, tree: Path) -> None:
    shutil.copy(tree / "details" / "loose.json", tree / "details" / "more.json")
    edit(tree / "details" / "more.json", lambda r: r.update(task_id="more"))
    report = do_import(tree, tmp_path / "results")
    assert report.damaged
    assert "does not list it" in told(report)["details/more.json"]
    assert "does not select 'more'" in told(report)["run_info.json"]


def test_a_record_of_another_ledger_is_named(tmp_path: Path, tree: Path) -> None:
    edit(tree / "details" / "loose.json", lambda r: r["acl"].update(ledger_id="00" * 16))
    report = do_import(tree, tmp_path / "results")
    reasons = [r.reason for r in report.unplaced if r.source == "details/loose.json"]
    assert any("of ledger 0000" in reason for reason in reasons)


def test_changed_metrics_are_named(tmp_path: Path, tree: Path) -> None:
    def improve(counts):
        counts["metrics"]["correct.accuracy"]["value"] = 1.0

    edit(tree / ".summary_counts.json", improve)
    report = do_import(tree, tmp_path / "results")
    reasons = [r.reason for r in report.unplaced if r.source == ".summary_counts.json"]
    assert "metric 'correct.accuracy' is not the one that was recorded" in reasons


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"a": 1, "a": 2}', b""])
@pytest.mark.parametrize(
    "path", ["details/loose.json", "run_info.json", "params.json", ".summary_counts.json"]
)
def test_a_file_that_is_none_is_named_and_kept(
    tmp_path: Path, tree: Path, path: str, content: bytes
) -> None:
    (tree / path).write_bytes(content)
    report = do_import(tree, tmp_path / "results")
    assert report.damaged
    assert path in told(report)
    assert report.records_out < report.records_in
    assert originals(report)[path].content == content
    assert [f for f in verify(report.path) if f.severity == "broken"] == []


def test_a_reference_to_pieces_that_no_file_has_is_no_value(tmp_path: Path, tree: Path) -> None:
    envelope = {"$acl": ["text", ["ab" * 32], ""]}
    edit(
        tree / "details" / "loose.json",
        lambda r: r["attempts"]["1"].update(final_answer=envelope),
    )
    report = do_import(tree, tmp_path / "results")
    assert "refers to pieces" in told(report)["details/loose.json"]


def test_a_tree_without_a_manifest_was_never_whole(tmp_path: Path, tree: Path) -> None:
    (tree / "MANIFEST.json").unlink()
    report = do_import(tree, tmp_path / "results")
    assert told(report) == {"MANIFEST.json": "there is none: no export was ended here"}
    assert not report.damaged


def test_a_manifest_that_lists_nothing_is_named(tmp_path: Path, tree: Path) -> None:
    edit(tree / "MANIFEST.json", lambda manifest: manifest.update(files=["x"]))
    assert "lists no files" in told(do_import(tree, tmp_path / "results"))["MANIFEST.json"]


def test_foreign_files_and_half_written_ones_are_named_and_kept(tmp_path: Path, tree: Path) -> None:
    (tree / "notes.txt").write_text("mine")
    (tree / "details" / ".acl-0123.tmp").write_text("{")
    report = do_import(tree, tmp_path / "results")
    assert {"notes.txt", "details/.acl-0123.tmp"} <= set(originals(report))
    assert told(report)["notes.txt"] == "no file of this layout"
    assert told(report)["details/.acl-0123.tmp"] == "its writing was cut short"


def test_unknown_fields_are_kept_in_extra(tmp_path: Path, tree: Path) -> None:
    def add(value):
        value["reviewed_by"] = "somebody"
        value["attempts"]["1"]["mood"] = {"calm": True}

    edit(tree / "details" / "loose.json", add)
    edit(tree / "run_info.json", lambda info: info.update(cluster="c1"))
    report = do_import(tree, tmp_path / "results")
    export(report.path, tmp_path / "again")
    again = json.loads((tmp_path / "again" / "details" / "loose.json").read_text())
    extra = again["attempts"]["1"]["extra"]
    assert (extra["reviewed_by"], extra["mood"]) == ("somebody", {"calm": True})
    assert state_of(report).request["source"]["run_info"] == {"cluster": "c1"}


def test_names_of_files_say_nothing(tmp_path: Path, tree: Path) -> None:
    (tree / "details" / "loose.json").rename(tree / "details" / "whatever--ab.json")
    state = state_of(do_import(tree, tmp_path / "results"))
    assert state.tasks["loose"].score == 0.5
    assert "whatever" not in state.tasks


def test_a_run_that_never_ended_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RUNS["interrupted"](tmp_path / "run")
    export(tmp_path / "run", tmp_path / "tree")
    report = do_import(tmp_path / "tree", tmp_path / "results")
    state = state_of(report)
    assert (state.status, state.sealed_size) == ("interrupted", state.size)
    assert events(report, "run.finished") == []
    assert {task_id: task.stage for task_id, task in state.tasks.items()} == {
        "t1": "done",
        "t2": "running",
        "t3": "pending",
    }


def test_what_a_killed_live_export_left_is_an_interrupted_run(tmp_path: Path) -> None:
    with create(tmp_path / "run", "live") as ledger:
        project = LiveExport(tmp_path / "out")
        with LedgerView.open(tmp_path / "run") as view:
            for batch in (opening("r", ref("a"), ref("b")), task("a", an_attempt("a"))):
                ledger.append(*batch)
                project(fold(view.events()), view)
    report = do_import(tmp_path / "out", tmp_path / "results")
    state = state_of(report)
    assert state.status == "interrupted"
    assert (state.tasks["a"].correct, state.tasks["b"].stage) == (True, "pending")
    assert not report.damaged


# -- other programs -------------------------------------------------------------------------------


def test_a_directory_of_another_program_is_imported_with_its_numbers(tmp_path: Path) -> None:
    foreign_run(tmp_path / "old")
    report = do_import(tmp_path / "old", tmp_path / "results")
    assert report.path == tmp_path / "results" / "bench" / "model" / "old"
    assert (report.unplaced, report.damaged) == ((), False)
    state = state_of(report)
    assert (state.status, state.k, state.strategy) == ("completed", 1, "all")
    one, two = state.tasks["t1"].attempts[1], state.tasks["t2"].attempts[1]
    assert (one.correct, one.score, one.status) == (True, 1.0, "completed")
    assert (two.status, state.tasks["t2"].has_error) == ("run_error", True)
    assert one.evaluator == ("import:details", "agentcompass.run_info.v1")
    (error,) = [event.error for event in events(report, "attempt.finished") if event.error]
    assert (error.code, error.message) == ("429", "slow down")
    assert [f for f in verify(report.path) if f.severity == "broken"] == []


def test_its_own_words_stay_beside_a_request_that_had_to_be_completed(tmp_path: Path) -> None:
    request = {"benchmark": {"id": "bench"}, "execution": {"k": "three", "speed": 9}}
    foreign_run(tmp_path / "old", request=request)
    state = state_of(do_import(tmp_path / "old", tmp_path / "results"))
    assert state.request["execution"] == {"k": 1, "speed": 9, "strategy": "all"}
    assert state.request["model"]["id"] == "unknown"
    assert state.request["source"]["request"] == request


def test_a_directory_with_records_alone_is_a_run_of_unknown_ids(tmp_path: Path) -> None:
    write_json(tmp_path / "old" / "details" / "t1.json", record("t1", right(), k=4))
    report = do_import(tmp_path / "old", tmp_path / "results")
    assert report.path == tmp_path / "results" / "unknown" / "unknown" / "unknown"
    state = state_of(report)
    assert (state.status, state.k) == ("interrupted", 4)


def test_the_ids_of_params_are_used_where_there_is_no_run_info(tmp_path: Path) -> None:
    write_json(tmp_path / "old" / "details" / "t1.json", record("t1", right()))
    params = {
        "benchmark": {"id": "bench"},
        "model": {"id": "m"},
        "output": {"run_id": "r", "run_name": "n"},
    }
    write_json(tmp_path / "old" / "params.json", params)
    report = do_import(tmp_path / "old", tmp_path / "results")
    assert report.path == tmp_path / "results" / "n" / "bench" / "m" / "r"


def test_an_error_never_takes_the_place_of_a_normal_result(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    write_json(run / "details" / "_error_t1.json", record("t1", failed()))
    write_json(run / "details" / "t2_late.json", record("t2", right()))
    report = do_import(run, tmp_path / "results")
    state = state_of(report)
    assert [state.tasks[name].correct for name in ("t1", "t2")] == [True, True]
    assert told(report) == {
        "details/_error_t1.json": "another save of task 't1'; details/t1.json stands",
        "details/_error_t2.json": "another save of task 't2'; details/t2_late.json stands",
    }
    assert {"details/_error_t1.json", "details/_error_t2.json"} <= set(originals(report))
    export(report.path, tmp_path / "again")
    names = {path.name for path in (tmp_path / "again" / "details").iterdir()}
    assert names == {"t1.json", "t2.json"}


def test_a_record_whose_name_says_error_is_no_result(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    write_json(run / "details" / "_error_t3.json", record("t3", {"final_answer": "?"}))
    report = do_import(run, tmp_path / "results")
    assert state_of(report).tasks["t3"].has_error
    assert "its content tells none" in told(report)["details/_error_t3.json"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "completed"),
        ({"error": "boom"}, "run_error"),
        ({"evaluation_error": "judge: gone"}, "eval_error"),
        ({"error": "boom", "evaluation_error": "gone"}, "run_error_or_eval_error"),
        ({"status": "skipped"}, "skipped"),
        ({"status": "timeout"}, "run_error"),
        ({"status": "eval failed"}, "eval_error"),
        ({"status": 7}, "completed"),
        ({"error": "", "correct": True}, "completed"),
    ],
)
def test_a_status_that_is_missing_or_unknown_follows_from_the_errors(
    tmp_path: Path, fields: dict, status: str
) -> None:
    run = foreign_run(tmp_path / "old")
    write_json(run / "details" / "t3.json", record("t3", fields))
    state = state_of(do_import(run, tmp_path / "results"))
    assert state.tasks["t3"].attempts[1].status == status


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("429: slow down", "429", "slow down"),
        ("RuntimeError", "RuntimeError", ""),
        ("it broke in the middle", "unknown", "it broke in the middle"),
        ({"type": "x"}, "unknown", "{'type': 'x'}"),
    ],
)
def test_the_words_of_an_error_are_kept(
    tmp_path: Path, text: object, code: str, message: str
) -> None:
    run = foreign_run(tmp_path / "old")
    write_json(run / "details" / "t3.json", record("t3", {"error": text}))
    report = do_import(run, tmp_path / "results")
    (error,) = [e.error for e in events(report, "result.recorded") if e.task == "t3"]
    assert (error.code, error.message) == (code, message)


def test_a_record_without_attempts_is_its_only_one(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    flat = {"task_id": "t3", "category": "c", "correct": True, "final_answer": "42", "note": "x"}
    write_json(run / "details" / "t3_c.json", flat)
    report = do_import(run, tmp_path / "results")
    task = state_of(report).tasks["t3"]
    assert (task.correct, task.category, list(task.attempts)) == (True, "c", [1])
    (result,) = [event for event in events(report, "result.recorded") if event.task == "t3"]
    assert (result.final_answer, result.extra) == ("42", {"note": "x"})


def test_usage_of_another_program_is_the_harness_and_odd_measures_go_to_extra(
    tmp_path: Path,
) -> None:
    run = foreign_run(tmp_path / "old")
    metrics = {"tokens": 5, "model": "m", "speed": [1]}
    write_json(run / "details" / "t3.json", record("t3", right(metrics=metrics)))
    report = do_import(run, tmp_path / "results")
    (result,) = [event for event in events(report, "result.recorded") if event.task == "t3"]
    assert result.metrics == {"tokens": 5}
    assert result.extra == {"metrics": {"model": "m", "speed": [1]}}
    assert "holds what is no measure" in told(report)["details/t3.json"]


@pytest.mark.parametrize("name", ["correct", "score"])
def test_a_verdict_that_is_none_goes_to_extra(tmp_path: Path, name: str) -> None:
    run = foreign_run(tmp_path / "old")
    write_json(run / "details" / "t3.json", record("t3", {**right(), name: "yes"}))
    report = do_import(run, tmp_path / "results")
    (result,) = [event for event in events(report, "result.recorded") if event.task == "t3"]
    assert result.extra == {name: "yes"}


def test_a_user_key_of_another_program_is_no_envelope(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    answer = {"$acl": ["float", "nan"]}
    write_json(run / "details" / "t3.json", record("t3", right(final_answer=answer)))
    report = do_import(run, tmp_path / "results")
    (result,) = [event for event in events(report, "result.recorded") if event.task == "t3"]
    assert result.final_answer == answer


def test_discarded_tries_are_placed_by_what_they_say(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    for name, retry, scope in (("b", 1, "attempt"), ("a", 2, "evaluate")):
        write_json(
            run / "retry_details" / f"{name}.json",
            {
                "task_id": "t1",
                "attempt": 1,
                "retry": retry,
                "stage": "run",
                "scope": scope,
                "error": "429: slow",
                "discarded_result": {"final_answer": "41"},
                "host": "h1",
            },
        )
    report = do_import(run, tmp_path / "results")
    state = state_of(report)
    assert len(state.tasks["t1"].attempts[1].retries) == 2
    assert state.tasks["t1"].correct is True
    scopes = [event.scope for event in events(report, "attempt.retried")]
    assert scopes == ["attempt", "evaluate"]
    assert told(report)["retry_details/a.json"] == "kept in the original only: host"


def test_a_try_without_a_place_is_named_and_kept(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    write_json(run / "retry_details" / "x.json", {"task_id": "t1", "attempt": 0, "retry": 1})
    report = do_import(run, tmp_path / "results")
    assert told(report)["retry_details/x.json"] == "its attempt is 0"
    assert "retry_details/x.json" in originals(report)


def test_tasks_that_only_plans_name_are_missing_tasks(tmp_path: Path) -> None:
    plans = {"t9": {"attempts": {"1": {"environment": {"id": "docker"}}}}}
    run = foreign_run(tmp_path / "old", status="running", resolved_execution_plans=plans)
    report = do_import(run, tmp_path / "results")
    state = state_of(report)
    assert (state.status, state.tasks["t9"].stage, state.tasks["t9"].bin) == (
        "interrupted",
        "running",
        "missing",
    )
    (plan,) = events(report, "plan.resolved")
    assert plan.plan == {"environment": {"id": "docker"}}


def test_its_metrics_are_told_as_those_of_an_import(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    table = {"accuracy": {"value": 0.5, "denominator": 2}, "pass": 0.25, "f1": {"value": None}}
    write_json(run / ".summary_counts.json", {"total": 2, "metrics": table})
    report = do_import(run, tmp_path / "results")
    (computed,) = events(report, "metrics.computed")
    assert computed.metrics == {"accuracy": 0.5, "pass": 0.25}
    assert computed.extra == {"unavailable": {"f1": "the source has no value"}}
    assert computed.source == "import"


def test_an_end_in_an_unknown_state_is_a_failure_that_names_it(tmp_path: Path) -> None:
    report = do_import(foreign_run(tmp_path / "old", status="exploded"), tmp_path / "results")
    (end,) = events(report, "run.finished")
    assert (end.status, end.error.code) == ("failed", "exploded")


def test_a_source_of_reuse_of_another_program_keeps_no_path(tmp_path: Path) -> None:
    reused = {"run_id": "older", "path": "/data/results/older"}
    report = do_import(foreign_run(tmp_path / "old", reused_from=reused), tmp_path / "results")
    (frozen,) = events(report, "reuse.frozen")
    assert (frozen.mode, frozen.run_id, frozen.path) == ("implicit", "older", None)


def test_secrets_of_another_program_do_not_enter_the_ledger(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "old")
    secret = "sk-live-0123456789abcdef"
    write_json(run / "details" / "t3.json", record("t3", right(final_answer=f"key {secret}")))
    report = do_import(run, tmp_path / "results")
    assert not any(secret.encode() in data for data in stored_bytes(report.path))
    assert originals(report)["details/t3.json"].redactions == 1


# -- reuse ----------------------------------------------------------------------------------------


def test_a_source_of_reuse_without_a_ledger_is_imported_once_and_only_read(
    tmp_path: Path,
) -> None:
    source = foreign_run(tmp_path / "results" / "bench" / "model" / "old")
    before = {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    assert needs_import(source)
    options = {"results_dir": tmp_path / "results", "create": new_ledger, "points": points}
    report = import_for_reuse(source, **options)
    assert report.path.parent == source.parent
    assert state_of(report).tasks["t1"].stage == "done"
    assert import_for_reuse(source, **options).path == report.path
    assert {path: path.stat().st_mtime_ns for path in source.rglob("*")} == before


def test_a_directory_with_its_ledger_or_without_a_run_needs_no_import(tmp_path: Path) -> None:
    with create(tmp_path / "run", "with a ledger") as ledger:
        ledger.append(*opening("r"))
    write_json(tmp_path / "run" / "run_info.json", {})
    (tmp_path / "empty").mkdir()
    for directory in (tmp_path / "run", tmp_path / "empty", tmp_path / "nothing"):
        assert not needs_import(directory)
        with pytest.raises(RunNotFound):
            import_for_reuse(directory, results_dir=tmp_path, create=new_ledger)


def test_claims_of_origin_are_told_as_claims(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RUNS["reused"](tmp_path / "run")
    export(tmp_path / "run", tmp_path / "tree")
    report = do_import(tmp_path / "tree", tmp_path / "results")
    state = state_of(report)
    claim = state.tasks["math-3"].claim
    assert isinstance(claim, ev.Claim)
    assert claim.run_id == "source-1"
    assert state.tasks["t2"].claim is None
    assert state.counts().reused == 1
    assert state.tasks["math-3"].attempts[1].copied
    claims = [f for f in verify(report.path) if f.code == "origin_claim"]
    assert [(f.severity, f.task) for f in claims] == [("unproven", "math-3")]
