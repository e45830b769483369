"""JSON lines of the documented form become runs, and whatever is not of the form is named."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import LedgerView
from ledger.errors import UsageError, VersionUnsupported
from runtime.importers import originals as originals_module
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.lines import why_no_record
from runtime.replay import replay
from tests.foreign_sources import lost, recognised, take, told, write_lines
from tests.importer_runs import events, originals, state_of

HEADER = {"acl.generic": 1, "benchmark": "toy", "model": "m", "harness": "h", "run_id": "r1"}


def taken(tmp_path, *lines, end="\n", **options):
    path = write_lines(tmp_path / "results.jsonl", *lines, end=end)
    return take(path, tmp_path / "results", **options)


def metrics(report):
    with LedgerView.open(report.path) as view:
        return replay(view).metrics.metrics


def test_a_header_and_records_become_a_finished_run(tmp_path):
    report = taken(
        tmp_path,
        {**HEADER, "k": 2, "records": 4, "note": "mine"},
        {"task_id": "a", "attempt": 2, "correct": False, "category": "x"},
        {"task_id": "a", "attempt": 1, "correct": True, "score": 0.5},
        {"task_id": "b", "attempt": 1, "correct": False, "error": "run_timeout: too slow"},
        {"task_id": "b", "attempt": 2, "evaluation_error": {"code": "judge", "message": "no"}},
    )
    assert report.unplaced == ()
    state = state_of(report)
    assert state.finished.status == "completed"
    assert (report.records_in, report.records_out) == (4, 4)
    assert report.path.relative_to(tmp_path / "results").as_posix() == "toy/m/r1"
    assert state.request["source"]["note"] == "mine"
    assert state.tasks["a"].category == "x"
    attempts = {(task.id, one.number): one for task, one in state.attempts()}
    assert [attempts["a", n].correct for n in (1, 2)] == [True, False]
    assert attempts["b", 1].status == "run_error"
    assert attempts["b", 1].correct is False
    assert attempts["b", 2].status == "eval_error"
    assert attempts["b", 2].correct is None


def test_records_alone_are_enough(tmp_path):
    report = taken(tmp_path, {"task_id": "a", "correct": True}, {"task_id": "b", "score": 0.25})
    assert report.unplaced == ()
    assert state_of(report).finished.status == "completed"
    assert metrics(report)["correct.accuracy"] == 1.0
    assert metrics(report)["score.avg@1"] == 0.25


def test_every_field_has_a_place(tmp_path):
    report = taken(
        tmp_path,
        HEADER,
        {
            "task_id": "a",
            "correct": 1,
            "final_answer": {"x": [1]},
            "ground_truth": "g",
            "messages": [{"role": "user", "content": "hi"}],
            "metrics": {"bleu": 0.5, "note": "text"},
            "usage": {"prompt_tokens": 10, "output_tokens": 5, "odd": 1},
            "cost_usd": 0.25,
            "started_at": "2026-01-02T03:04:05+02:00",
            "finished_at": 1_767_316_000,
            "reason": "right",
            "evaluator": {"id": "judge", "version": "3"},
            "tests_status": {"t": "passed"},
            "meta": {"seed": 1},
            "extra": {"mine": True},
            "surprise": [1],
        },
    )
    (result,) = events(report, "result.recorded")
    (verdict,) = events(report, "evaluation.finished")
    (call,) = events(report, "call.finished")
    assert result.final_answer == {"x": [1]}
    assert result.ground_truth == "g"
    assert result.trajectory == {"messages": [{"role": "user", "content": "hi"}]}
    assert result.meta["started_at"] == "2026-01-02T01:04:05Z"
    assert result.meta["finished_at"] == "2026-01-02T01:06:40Z"
    assert result.meta["seed"] == 1
    assert result.extra == {
        "mine": True,
        "surprise": [1],
        "usage": {"odd": 1},
        "metrics": {"note": "text"},
    }
    assert (verdict.evaluator.id, verdict.evaluator.version) == ("judge", "3")
    assert verdict.metrics == {"bleu": 0.5}
    assert (verdict.correct, verdict.reason) == (True, "right")
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost_usd) == (10, 5, 0.25)
    assert any("surprise" in one for one in told(report))
    assert any("seconds since 1970" in one for one in told(report))
    assert lost(report) == []


def test_attempts_without_a_number_take_the_free_ones_in_order(tmp_path):
    report = taken(
        tmp_path,
        HEADER,
        {"task_id": "a", "correct": True, "final_answer": "first"},
        {"task_id": "a", "correct": False, "final_answer": "second"},
        {"task_id": "a", "attempt": 1, "correct": True, "final_answer": "numbered"},
    )
    found = {one.attempt: one.final_answer for one in events(report, "result.recorded")}
    assert found == {1: "numbered", 2: "first", 3: "second"}


def test_not_judged_is_neither_right_nor_wrong(tmp_path):
    report = taken(tmp_path, HEADER, {"task_id": "a", "final_answer": "x", "metrics": {"m": 1}})
    assert events(report, "evaluation.finished") == []
    assert events(report, "result.recorded")[0].metrics == {"m": 1}
    assert "correct.accuracy" not in metrics(report)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_score_that_is_not_finite_is_kept_and_no_verdict(tmp_path, word):
    report = taken(tmp_path, HEADER, f'{{"task_id": "a", "score": {word}}}')
    (result,) = events(report, "result.recorded")
    assert not math.isfinite(result.extra["score"])
    assert events(report, "evaluation.finished") == []
    assert lost(report) == []
    assert any("not finite" in one for one in told(report))


def test_numbers_that_no_float_holds_are_kept_as_they_are(tmp_path):
    huge = 10**400
    fields = {"metrics": {"m": huge}, "cost_usd": huge, "started_at": huge, "final_answer": huge}
    report = taken(tmp_path, HEADER, {"task_id": "a", "score": huge, **fields})
    (result,) = events(report, "result.recorded")
    (verdict,) = events(report, "evaluation.finished")
    assert (verdict.score, verdict.metrics["m"], result.final_answer) == (huge, huge, huge)
    assert result.extra == {"cost_usd": huge}
    assert result.meta == {"started_at": huge}
    assert "score.avg@1" not in metrics(report)
    assert lost(report) == []


def test_a_torn_tail_is_one_named_finding_and_the_run_has_no_end(tmp_path):
    lines = [{"task_id": name, "correct": True} for name in "abc"]
    report = taken(tmp_path, *lines, json.dumps(lines[0])[:20], end="")
    assert lost(report) == ["results.jsonl:4: the last line is torn: cut off after 20 characters"]
    assert not report.damaged
    assert report.unplaced[0].torn
    assert (report.records_in, report.records_out) == (4, 3)
    assert state_of(report).finished is None
    again = take(tmp_path / "results.jsonl", tmp_path / "results")
    assert (again.already, again.path) == (True, report.path)


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "3",
        '"text"',
        "{}",
        '{"task_id": "a"} {"task_id": "b"}',
        '{"task_id": "a", "task_id": "b", "correct": true}',
        '{"task_id": null, "correct": true}',
        '{"task_id": true, "correct": true}',
        '{"task_id": 1.5, "correct": true}',
        '{"task_id": "", "correct": true}',
        '{"task_id": "z", "attempt": 0, "correct": true}',
        '{"task_id": "z", "attempt": "1", "correct": true}',
        '{"task_id": "z", "attempt": true, "correct": true}',
        '{"task_id": "z", "correct": "yes"}',
        '{"task_id": "z", "correct": 2}',
        '{"task_id": "z", "score": "0.5"}',
        '{"task_id": "z", "score": true}',
        '{"task_id": "z", "error": 5}',
        '{"task_id": "z", "error": {"what": "no"}}',
    ],
)
def test_what_a_crash_cannot_leave_is_damage(tmp_path, line):
    report = taken(tmp_path, {"task_id": "good", "correct": True}, line, end="")
    assert report.damaged
    assert len(lost(report)) == 1
    assert lost(report)[0].startswith("results.jsonl:2: no record: ")
    assert (report.records_in, report.records_out) == (2, 1)
    assert state_of(report).finished is None


def test_more_records_than_the_header_tells_are_damage(tmp_path):
    report = taken(tmp_path, {**HEADER, "records": 0}, {"task_id": "a", "correct": True})
    assert report.damaged
    assert lost(report) == ["results.jsonl: the header tells 0 records, 1 are there"]


def test_half_a_line_in_the_middle_is_damage(tmp_path):
    report = taken(tmp_path, {"task_id": "a", "correct": True}, '{"task_id": "b', '{"task_id": 3}')
    assert report.damaged


def test_a_task_whose_record_is_damaged_stays_in_the_denominator(tmp_path):
    report = taken(tmp_path, {"task_id": "a", "correct": True}, {"task_id": "b", "correct": "yes"})
    counts = state_of(report).counts()
    assert (counts.total, counts.evaluated, counts.missing) == (2, 1, 1)


def test_two_records_of_one_attempt_are_refused_with_both_places(tmp_path):
    report = taken(
        tmp_path,
        {"task_id": "a", "attempt": 1, "correct": True},
        {"task_id": "a", "attempt": 1, "correct": False},
    )
    assert report.damaged
    assert lost(report) == [
        "results.jsonl:2: task 'a' has an attempt 1 already, at results.jsonl:1"
    ]
    assert state_of(report).tasks["a"].attempts[1].correct is True


def test_a_record_that_is_there_twice_is_one(tmp_path):
    line = {"task_id": "a", "attempt": 1, "correct": True}
    report = taken(tmp_path, line, line, end="")
    assert lost(report) == []
    assert any("counted once" in one for one in told(report))
    assert (report.records_in, report.records_out) == (2, 2)
    assert len(state_of(report).tasks["a"].attempts) == 1


def test_equal_lines_without_a_number_are_never_silently_two_attempts_or_one(tmp_path):
    line = {"task_id": "a", "correct": False}
    report = taken(tmp_path, line, line)
    assert len(lost(report)) == 1
    assert "neither has a number of attempt" in lost(report)[0]


def test_numbers_and_texts_are_never_one_task(tmp_path):
    report = taken(tmp_path, {"task_id": 1, "correct": True}, {"task_id": "1", "correct": False})
    assert report.damaged
    assert state_of(report).tasks["1"].attempts[1].correct is True


def test_planned_tasks_and_attempts_that_are_not_there_are_named(tmp_path):
    report = taken(
        tmp_path,
        {**HEADER, "k": 2, "tasks": ["a", "b"], "records": 3},
        {"task_id": "a", "correct": True},
    )
    assert lost(report) == [
        "results.jsonl: the header tells 3 records, 1 are there",
        "task 'b': the header plans it, and no record tells of it",
        "task 'a': has 1 of 2 attempts",
    ]
    assert not report.damaged
    assert state_of(report).counts().missing == 1
    assert state_of(report).finished is None


@pytest.mark.parametrize("field", ["usage", "cost_usd", "metrics", "reason", "evaluator", "meta"])
def test_an_odd_field_is_kept_in_extra_and_told(tmp_path, field):
    value = [-1, "odd"]
    report = taken(tmp_path, HEADER, {"task_id": "a", "correct": True, field: value})
    assert events(report, "result.recorded")[0].extra == {field: value}
    assert any(one for one in told(report) if field in one)
    assert lost(report) == []


@pytest.mark.parametrize("text", ["\ud835", "a\udc00b", "\u0000"])
def test_any_text_survives(tmp_path, text):
    report = taken(tmp_path, HEADER, {"task_id": text, "correct": True, text: text})
    assert lost(report) == []
    assert list(state_of(report).tasks) == [text]
    assert events(report, "result.recorded")[0].extra == {text: text}


@pytest.mark.parametrize(
    ("header", "refusal"),
    [
        ({"acl.generic": 2}, VersionUnsupported),
        ({"acl.generic": "1"}, UsageError),
        ({"acl.generic": 1, "k": 0}, UsageError),
        ({"acl.generic": 1, "model": 5}, UsageError),
        ({"acl.generic": 1, "tasks": ["a", "a"]}, UsageError),
        ({"acl.generic": 1, "strategy": "some"}, UsageError),
    ],
)
def test_a_header_of_another_kind_is_refused(tmp_path, header, refusal):
    with pytest.raises(refusal):
        taken(tmp_path, header, {"task_id": "a", "correct": True})
    assert not list((tmp_path / "results").glob("*/*/*"))


def test_several_files_are_one_run_if_their_headers_agree(tmp_path):
    source = tmp_path / "source"
    write_lines(source / "1.jsonl", HEADER, {"task_id": "a", "attempt": 1, "correct": True})
    write_lines(source / "2.jsonl", HEADER, {"task_id": "a", "attempt": 2, "correct": False})
    assert metrics(take(source, tmp_path / "results"))["correct.avg@2"] == 0.5
    write_lines(source / "3.jsonl", {**HEADER, "model": "n"}, {"task_id": "c", "correct": True})
    with pytest.raises(UsageError, match="another header"):
        take(source, tmp_path / "results")


def test_other_json_lines_are_not_taken(tmp_path):
    others = {
        "completion": {"task_id": "HumanEval/0", "completion": "x"},
        "prediction": {"instance_id": "a", "model_patch": "x"},
        "sample": {"doc_id": 1, "resps": [], "filtered_resps": []},
        "call": {"role": "user", "content": "x"},
        "table": {"task_id": "a", "correct": True, "root": "00", "run_id": "r"},
        "null": None,
    }
    for name, line in others.items():
        assert "generic" not in recognised(write_lines(tmp_path / f"{name}.jsonl", line))


def test_a_task_without_a_name_is_named_by_its_line(tmp_path):
    source = write_lines(
        tmp_path / "a.jsonl", {"task_id": "a", "correct": True}, {"task_id": "", "correct": True}
    )
    assert lost(take(source, tmp_path / "results")) == [
        "a.jsonl:2: no record: its task_id is empty"
    ]


def test_a_file_that_is_not_read_is_named_and_kept(tmp_path):
    source = tmp_path / "s"
    write_lines(source / "a.jsonl", {"acl.generic": 1}, {"task_id": "a", "correct": True})
    (source / "README.md").write_text("mine")
    (source / "more.json").write_text('{"task_id": "b", "correct": true}')
    report = take(source, tmp_path / "results")
    why = "it is no part of the records, and only kept"
    assert lost(report) == [f"more.json: {why}"]
    assert told(report) == [f"README.md: {why}"]
    assert (report.records_in, report.records_out) == (3, 2)
    assert set(originals(report)) == {"a.jsonl", "README.md", "more.json"}


def test_beside_other_files_only_a_header_is_believed(tmp_path):
    path = write_lines(tmp_path / "s" / "a.jsonl", {"task_id": "a", "correct": True}).parent
    (path / "other.bin").write_bytes(b"\0")
    assert recognised(path) == []
    write_lines(path / "a.jsonl", HEADER, {"task_id": "a", "correct": True})
    assert recognised(path) == ["generic"]


def test_many_lines_are_kept_in_parts_that_are_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(originals_module, "PART", 300)
    lines = [{"task_id": f"t{n}", "correct": True, "final_answer": "x" * 50} for n in range(20)]
    path = write_lines(tmp_path / "results.jsonl", *lines)
    report = take(path, tmp_path / "results")
    kept = events(report, "original.recorded")
    assert kept[0].path == "results.jsonl"
    assert kept[0].content is None
    assert "".join(one.content for one in kept[1:]) == path.read_text()
    assert len(kept) > 3


def test_progress_counts_every_task(tmp_path):
    seen = []
    lines = [{"task_id": str(n), "correct": True} for n in range(3)]
    taken(tmp_path, *lines, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.text(max_size=5), st.text(max_size=10) | st.floats() | st.none(), max_size=4
    ),
    st.data(),
)
def test_every_front_of_a_record_is_a_torn_tail(fields, data):
    line = json.dumps({"task_id": "é", **fields}, ensure_ascii=False)
    whole = line.encode("utf-8", "ignore")
    cut = data.draw(st.integers(1, len(whole) - 1))
    _, damage = why_no_record(whole[:cut], _fault(whole[:cut]))
    assert not damage
    _, damage = why_no_record(whole[:cut] + b"\n", _fault(whole[:cut] + b"\n"))
    assert damage


def _fault(data):
    with pytest.raises(NotARecord) as caught:
        read_record(data)
    return caught.value


def test_a_run_whose_names_begin_with_dots_is_found_again(tmp_path):
    lines = ({**HEADER, "benchmark": "...", "model": ".m", "run_id": "..."}, {"task_id": "a"})
    report = taken(tmp_path, *lines)
    assert report.path.relative_to(tmp_path / "results").as_posix() == "_../_m/_.."
    assert taken(tmp_path, *lines).already
