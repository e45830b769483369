"""Runs that were cut, edited or mixed with other files: all or named, and never a silent loss."""

import json
import tempfile
from math import isnan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import VersionUnsupported
from ledger.verify import verify
from runtime.importers import ImportReport, Remark
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
    return small_run(tmp_path / "run", tasks=2)


@pytest.fixture
def import_run(tmp_path, run):
    return lambda: import_whole(run, tmp_path / "results")


def import_whole(run: Path, results: Path) -> ImportReport:
    """Import the run; whatever is wrong with it, the ledger verifies and nothing is lost."""
    report = do_import(run, results)
    assert [found for found in verify(report.path) if found.severity == "broken"] == []
    files = [path for path in run.rglob("*") if path.is_file() and not path.is_symlink()]
    names = {path.relative_to(run).as_posix() for path in files}
    lost = {one.source for one in report.unplaced if not one.placed} & names
    assert report.records_in == len(files)
    assert report.records_in - report.records_out == len(lost)
    kept = originals(report)
    assert kept.keys() == names
    for name in names:
        assert kept[name].redactions or kept[name].content == (run / name).read_bytes()
    assert [(one.source, one.reason) for one in events(report)[1].unplaced] == [
        (one.source, one.reason) for one in report.unplaced
    ]
    return report


def test_a_result_that_is_gone_is_damage(run, import_run):
    (task_path(run, "t1") / "attempt-1" / "checkpoint.json").write_text("{}")
    (task_path(run, "t1") / "attempt-1" / "result.json").unlink()
    report = import_run()
    index = (task_path(run, "t1") / "task.json").relative_to(run).as_posix()
    reason = "attempt 1 has no result.json"
    assert report.unplaced == (Remark(index, reason, placed=True, damage=True),)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_a_task_that_is_gone_of_a_run_that_completed_is_damage(tmp_path, status):
    plans = {task: {"attempts": {"1": {}}} for task in ("t1", "t2")}
    run = small_run(tmp_path / "run", status=status, resolved_execution_plans=plans)
    report = import_whole(run, tmp_path / "results")
    reason = "the run completed, and holds no result of task 't2'"
    expected = (Remark("details", reason, damage=True),) if status == "completed" else ()
    assert report.unplaced == expected
    assert sorted(state_of(report).tasks) == ["t1", "t2"]


# An import with all its checks costs a tenth of a second.
EXAMPLES = 25
FILES = (
    "run_info.json",
    "metrics.json",
    "progress.jsonl",
    "task.json",
    "result.json",
    "checkpoint.json",
    "retry.json",
)


def full_run(run: Path) -> dict[str, Path]:
    """A small run with one file of each kind, by the kind."""
    small_run(run, resolved_execution_plans={"t1": {"attempts": {"1": {"environment": {}}}}})
    attempt = result_path(run).parent
    write_json(attempt / "result.json", result(retry_count=1))
    write_json(
        attempt / "checkpoint.json", {"evaluation": {"run_completed": True, "run_result": result()}}
    )
    issue = {"severity": "fatal", "phase": "run", "code": "c", "message": "m"}
    retry = {"retry": 1, "max_retries": 1, "retry_delay_seconds": 0.1, "stage": "attempt"}
    write_json(
        attempt / "retries" / "t.json",
        {**retry, "scope": "attempt", "issues": [issue], "discarded_result": result()},
    )
    counts = dict.fromkeys(("total", "evaluated"), 1) | dict.fromkeys(
        ("error", "unavailable", "invalidated"), 0
    )
    series = {"series_id": "correct.native@1", "metric_id": "correct", "reducer": "native"}
    write_json(
        run / "metrics.json",
        {"series": [{**series, "role": "headline", "k": 1, "value": 1.0, "counts": counts}]},
    )
    lines = [
        {"event": "tasks_loaded", "payload": {"total_tasks": 1}},
        {"event": "task_started", "task_id": "t1", "payload": {"index": 0}},
        {"event": "attempt_started", "task_id": "t1", "attempt": 1},
    ]
    (run / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    paths = (
        *(run / name for name in FILES[:3]),
        task_path(run, "t1") / "task.json",
        *(attempt / name for name in ("result.json", "checkpoint.json", "retries/t.json")),
    )
    return dict(zip(FILES, paths, strict=True))


def test_a_whole_run_of_every_kind_of_file_has_nothing_to_tell(tmp_path):
    full_run(tmp_path / "run")
    report = import_whole(tmp_path / "run", tmp_path / "results")
    assert report.unplaced == ()
    assert state_of(report).counts().evaluated == 1


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_no_cut_or_changed_byte_stops_an_import_or_hides_a_record(data):
    with tempfile.TemporaryDirectory() as place:
        paths = full_run(Path(place) / "run")
        path = paths[data.draw(st.sampled_from(FILES))]
        held = path.read_bytes()
        at = data.draw(st.integers(0, len(held) - 1))
        change = data.draw(st.sampled_from(["cut", "flip", "drop", "double"]))
        if change == "cut":
            path.write_bytes(held[:at])
        elif change == "flip":
            flipped = held[at] ^ data.draw(st.integers(1, 255))
            path.write_bytes(held[:at] + bytes([flipped]) + held[at + 1 :])
        elif change == "drop":
            path.write_bytes(held[:at] + held[at + 1 :])
        else:
            path.write_bytes(held + held)
        import_whole(Path(place) / "run", Path(place) / "results")


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_no_value_of_any_field_stops_an_import_or_hides_a_record(data):
    with tempfile.TemporaryDirectory() as place:
        paths = full_run(Path(place) / "run")
        path = paths[data.draw(st.sampled_from([name for name in FILES if "jsonl" not in name]))]
        value = json.loads(path.read_text())
        holder = value
        while True:
            key = data.draw(st.sampled_from(sorted(holder)))
            deeper = holder[key]
            if not isinstance(deeper, dict) or not deeper or data.draw(st.booleans()):
                break
            holder = deeper
        holder[key] = data.draw(_ODD)
        path.write_text(json.dumps(value, indent=2) + "\n")
        import_whole(Path(place) / "run", Path(place) / "results")


@pytest.mark.parametrize("value", [1700000000, 1700000000.5, "2026-01-01", "2026-01-01T00:00:00"])
def test_a_time_that_could_be_any_is_told_and_not_guessed(run, import_run, value):
    small_run(run, started_at=value)
    report = import_run()
    assert only(report).reason == f"started_at is {value!r}, no ISO-8601 time with a zone"
    state = state_of(report)
    assert state.started_at is None
    assert state.request["source"]["run_info"]["started_at"] == value


def test_a_time_with_any_offset_is_told_in_utc(run, import_run):
    small_run(run, started_at="2026-01-01T01:30:00.25+02:00")
    assert state_of(import_run()).started_at == "2025-12-31T23:30:00.250000Z"


def test_a_run_without_tasks_is_a_run(tmp_path):
    report = import_whole(small_run(tmp_path / "run", tasks=0), tmp_path / "results")
    assert state_of(report).status == "completed"


def only(report: ImportReport) -> Remark:
    (remark,) = report.unplaced
    return remark


def result_path(run: Path, task: str = "t1", attempt: int = 1) -> Path:
    return task_path(run, task) / f"attempt-{attempt}" / "result.json"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[]", "holds a list, not an object"),
        (b"null", "holds null, not an object"),
        (b"", "empty"),
        (b'{"status": "comp', "cut off after 16 characters"),
        (b'{"status": "completed", "status": "completed"}', "two keys are 'status'"),
        (b'{"status": "completed"}}', "not JSON at line 1, column 24: Extra data"),
        (b'{"status": "\xff"}', "not UTF-8 at byte 12"),
        (b'{"status": "finished"}', "its status is 'finished'"),
        (b"{}", "its status is None"),
        (b'{"status": []}', "its status is []"),
        (b'{"status": "completed", "x": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than"),
    ],
)
def test_a_result_that_is_none_is_named_and_its_attempt_has_no_verdict(
    run, import_run, data, reason
):
    result_path(run).write_bytes(data)
    report = import_run()
    remark = only(report)
    assert remark.source == result_path(run).relative_to(run).as_posix()
    assert remark.reason.startswith(reason)
    assert (remark.placed, remark.damage, report.damaged) == (False, True, True)
    state = state_of(report)
    (attempt,) = state.tasks["t1"].attempts.values()
    assert (attempt.status, attempt.verdict) == ("cancelled", False)
    assert state.tasks["t1"].stage == "cancelled"
    assert state.tasks["t2"].correct is True
    counts = state.counts()
    assert (counts.total, counts.evaluated, counts.missing, counts.error) == (2, 1, 1, 0)
    (finished,) = [e for e in events(report, "attempt.finished") if e.task == "t1"]
    assert finished.error.code == "record_unreadable"


def test_other_attempts_of_a_damaged_task_stand(run, import_run):
    add_task(run, "t3", {1: result(), 2: result(metrics={"correct": False})})
    result_path(run, "t3", 1).write_text("[]")
    state = state_of(import_run())
    assert state.tasks["t3"].stage == "done"
    assert state.tasks["t3"].attempts[2].correct is False


def test_a_readable_checkpoint_tells_what_ran_where_the_result_is_damaged(run, import_run):
    result_path(run).write_text("[]")
    run_result = result(final_answer="7", metrics={})
    write_json(
        result_path(run).with_name("checkpoint.json"),
        {"evaluation": {"run_completed": True, "run_result": run_result}},
    )
    report = import_run()
    (recorded,) = [e for e in events(report, "result.recorded") if e.task == "t1"]
    assert recorded.final_answer == "7"
    assert state_of(report).tasks["t1"].attempts[1].status == "cancelled"


def test_nan_is_kept_as_nan_in_values_and_is_no_measure(run, import_run):
    nan = float("nan")
    write_json(
        result_path(run),
        result(trajectory={"steps": [nan, -0.0]}, metrics={"correct": True, "loss": nan}),
    )
    report = import_run()
    assert not report.damaged
    assert [one.placed for one in report.unplaced] == [True, True]
    assert "NaN" in report.unplaced[0].reason
    assert "metric 'loss' is nan" in report.unplaced[1].reason
    (recorded,) = [e for e in events(report, "result.recorded") if e.task == "t1"]
    assert isnan(recorded.trajectory["steps"][0])
    assert isnan(recorded.extra["metrics"]["loss"])
    attempt = state_of(report).tasks["t1"].attempts[1]
    assert (attempt.correct, attempt.metrics) == (True, {})


def test_a_verdict_that_is_no_truth_value_is_none(run, import_run):
    write_json(result_path(run), result(metrics={"correct": float("inf"), "score": "high"}))
    report = import_run()
    assert len(report.unplaced) == 3
    assert state_of(report).tasks["t1"].attempts[1].verdict is False


@pytest.mark.parametrize(
    "name", ["notes.txt", "details/normal/x/y/z", "details/other/task.json", "details/t.json"]
)
def test_foreign_files_are_kept_and_named(run, import_run, name):
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xffmine")
    report = import_run()
    assert only(report).source == name
    assert not only(report).placed


def test_foreign_files_inside_a_task_are_kept_with_it(run, import_run):
    (result_path(run).with_name("stdout.txt")).write_text("x")
    (task_path(run, "t1") / "more.txt").write_text("y")
    report = import_run()
    assert {one.reason for one in report.unplaced} == {"no file of this layout"}
    owners = {e.path.rpartition("/")[2]: (e.task, e.attempt) for e in originals(report).values()}
    assert owners["stdout.txt"] == ("t1", 1)
    assert owners["more.txt"] == ("t1", None)


@pytest.mark.parametrize("name", [".result.json.0a1b.tmp", ".tmp.run_info.0a1b.json"])
def test_a_file_that_a_crash_left_unfinished_is_named_and_no_damage(run, import_run, name):
    result_path(run).with_name(name).write_text('{"sta')
    report = import_run()
    assert only(report).reason == "its writing was cut short"
    assert not report.damaged


def test_links_are_named_and_never_followed(run, import_run, tmp_path):
    (run / "details" / "link").symlink_to(tmp_path)
    report = import_run()
    assert only(report) == Remark("details/link", "left alone: a symbolic link")


def test_the_normal_save_of_a_task_wins_and_the_other_is_named(run, import_run):
    add_task(run, "t1", {1: result(status="run_error", metrics={})}, state="error")
    report = import_run()
    state = state_of(report)
    assert len(state.tasks) == 2
    assert state.tasks["t1"].correct is True
    assert {one.source.split("/")[1] for one in report.unplaced} == {"error"}
    assert len(report.unplaced) == 2
    assert "another save of task 't1'; details/normal/" in report.unplaced[0].reason
    assert all(e.task == "t1" for path, e in originals(report).items() if "/error/" in path)


def test_a_save_that_cannot_be_read_hides_no_other(run, import_run):
    (task_path(run, "t1") / "task.json").write_text("{")
    add_task(run, "t1", {1: result(status="run_error", metrics={})}, state="error")
    state = state_of(import_run())
    assert state.tasks["t1"].attempts[1].status == "run_error"


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("[]", "holds a list"),
        ('{"schema_version": "agentcompass.task.v2", "task_id": "t1"}', "its schema is"),
        ('{"schema_version": "agentcompass.task.v3", "task_id": ""}', "it names no task"),
        ('{"schema_version": "agentcompass.task.v3", "task_id": 1}', "it names no task"),
    ],
)
def test_no_task_is_ever_named_by_its_directory(run, import_run, index, reason):
    (task_path(run, "t1") / "task.json").write_text(index)
    report = import_run()
    assert list(state_of(report).tasks) == ["t2"]
    assert len(report.unplaced) == 2
    assert report.unplaced[0].reason.startswith(reason)
    assert report.unplaced[0].damage


def test_a_directory_without_a_task_file_is_named(run, import_run):
    (task_path(run, "t1") / "task.json").unlink()
    report = import_run()
    assert only(report).reason == "its task cannot be told: task.json: there is no task.json"
    assert only(report).damage


def test_a_task_is_named_by_its_file_wherever_that_stands(run, import_run):
    task_path(run, "t1").rename(run / "details" / "normal" / "moved")
    assert set(state_of(import_run()).tasks) == {"t1", "t2"}


def test_an_attempt_whose_files_are_gone_is_named(run, import_run):
    result_path(run).unlink()
    report = import_run()
    assert only(report).reason == "attempt 1 is named and has no files"
    assert (only(report).placed, only(report).damage) == (True, True)


def test_an_attempt_that_the_index_does_not_name_is_placed_and_told(run, import_run):
    write_json(result_path(run, "t1", 7), result())
    report = import_run()
    assert only(report).reason == "attempt 7 has files and is not named"
    assert sorted(state_of(report).tasks["t1"].attempts) == [1, 7]


@pytest.mark.parametrize(
    ("tail", "damaged", "reason"),
    [
        (b'{"event": "task_sta', False, "the last line, cut by a crash: cut off after"),
        (b"[]", True, "line 4: holds a list"),
        (b"null", True, "line 4: holds null"),
        (b"[]\n", True, "line 4: holds a list"),
        (b'{"event": "task_sta\n', True, "line 4: cut off after"),
    ],
)
def test_only_a_cut_last_line_of_the_log_is_the_work_of_a_crash(
    run, import_run, tail, damaged, reason
):
    lines = [
        {"event": "tasks_loaded", "payload": {"total_tasks": 2}},
        {"event": "task_started", "task_id": "t2", "payload": {"index": 0}},
        {"event": "task_started", "task_id": "t1", "payload": {"index": 1}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (run / "progress.jsonl").write_bytes(text + tail)
    report = import_run()
    assert only(report).reason.startswith(reason)
    assert report.damaged is damaged
    assert list(state_of(report).tasks) == ["t2", "t1"]


def test_importing_a_torn_run_twice_gives_one_run(run, import_run, tmp_path):
    (run / "progress.jsonl").write_text('{"event": "x"}\n{"ev')
    first = import_run()
    again = do_import(run, tmp_path / "results")
    assert (again.already, again.path) == (True, first.path)


def test_a_run_info_that_is_torn_leaves_an_interrupted_run_of_unknown_model(run, import_run):
    (run / "run_info.json").write_text('{"schema_version": "agentcompass.run_info.v3", "run')
    report = import_run()
    assert only(report).source == "run_info.json"
    state = state_of(report)
    assert state.status == "interrupted"
    assert state.counts().evaluated == 2
    assert report.path.parts[-3:] == ("unknown", "unknown", "unknown")


def test_params_tell_the_ids_where_run_info_does_not(run, import_run):
    (run / "run_info.json").unlink()
    write_json(
        run / "params.json",
        {"benchmark": {"id": "b"}, "model": {"id": "m"}, "output": {"run_id": "r"}},
    )
    assert import_run().path.parts[-3:] == ("b", "m", "r")


def test_a_newer_schema_is_refused_by_name(run, tmp_path):
    small_run(run, schema_version="agentcompass.run_info.v4")
    with pytest.raises(VersionUnsupported, match=r"run_info\.v4"):
        do_import(run, tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"series": [{"series_id": 1}]}', '{"series": 1}', "{"]
)
def test_metrics_that_are_none_are_named_and_the_run_stays_whole(run, import_run, text):
    (run / "metrics.json").write_text(text)
    report = import_run()
    assert (only(report).source, only(report).damage) == ("metrics.json", True)
    state = state_of(report)
    assert (state.metrics, state.status) == ([], "completed")


@pytest.mark.parametrize("name", ["checkpoint.json", "retries/" + "a" * 32 + "/checkpoint.json"])
def test_a_damaged_record_that_is_only_kept_is_named(run, import_run, name):
    path = result_path(run).parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[]")
    report = import_run()
    assert (only(report).placed, only(report).damage) == (False, True)


def test_a_run_that_ended_leaves_no_attempt_open(run, import_run):
    small_run(run, status="cancelled")
    add_task(run, "t3", {1: result(), 2: None}, state="running")
    state = state_of(import_run())
    assert state.status == "cancelled"
    assert state.tasks["t3"].stage == "cancelled"
    assert [one.status for one in state.tasks["t3"].attempts.values()] == ["completed", "cancelled"]


def test_a_state_of_the_source_that_is_unknown_is_told_as_a_failure(run, import_run):
    small_run(run, status="exploded")
    state = state_of(import_run())
    assert (state.status, state.finished.error.code) == ("failed", "exploded")
    assert state.imported.source_status == "exploded"


def test_odd_text_in_ids_answers_and_keys_is_kept(run, import_run):
    odd = "a\ud800\0\u2028b"
    path = add_task(run, "plain")
    index = json.loads((path / "task.json").read_text())
    (path / "task.json").write_text(json.dumps({**index, "task_id": odd}))
    (path / "attempt-1" / "result.json").write_text(
        json.dumps(result(final_answer=odd, artifacts={odd: 2**70}))
    )
    report = import_run()
    assert odd in state_of(report).tasks
    (recorded,) = [e for e in events(report, "result.recorded") if e.task == odd]
    assert recorded.final_answer == odd
    assert recorded.artifacts == {odd: 2**70}
