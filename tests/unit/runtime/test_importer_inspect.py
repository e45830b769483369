import json
import math

import pytest

from ledger import LedgerView
from ledger.errors import UsageError, VersionUnsupported
from ledger.verify import verify
from runtime.importers import Source
from runtime.importers.inspect import Inspect
from runtime.replay import replay
from tests.importer_runs import events, state_of, stored_bytes
from tests.inspect_logs import (
    DATA,
    SHARED,
    header,
    kept,
    members,
    reasons,
    sample,
    take_in,
    write_eval,
    write_json,
)

HEADLINES = {
    "popularity.json": {"score.avg@1": 2 / 3},
    "log_images.json": {"score.avg@1": 0.0},
    "log_message_deduplication.eval": {"score.avg@1": 0.0},
    "log_streaming.eval": {"score.avg@1": 0.75},
    "mmlu-summary-choices.eval": {"score.avg@1": 0.0},
    "reducers.eval": {"score.avg@1": 0.5625, "correct.pass@2": 5 / 6, "correct.pass^2": 7 / 24},
    "several.eval": {
        "score.avg@1": 0.375,
        "dicts/a.avg@1": 0.625,
        "dicts/b.avg@1": 0.5,
        "nans.avg@1": 1.0,
        "bools.avg@1": 0.5,
        "numbers.avg@1": 3.75,
    },
    "retries.eval": {"score.avg@1": 0.5},
    "scorerfail.eval": {"score.avg@1": 1.0},
    "dictmain.eval": {"score.avg@1": 0.625, "dicts/b.avg@1": 0.5},
    "tools-chunked.eval": {"score.avg@1": 0.0},
    "images.json": {"score.avg@1": 1.0},
    "nanmain.json": {"score.avg@1": 1.0},
}
EPOCHS = "2025-09-15T15-04-34-04-00_popularity_J5EskSJVsBD9iRd47twk8x.eval"


def check_headline(path, tmp_path, wanted):
    report = take_in(path, tmp_path / "results")
    assert reasons(report) == []
    assert report.records_in == report.records_out
    with LedgerView.open(report.path) as view:
        found = replay(view)
    assert found.equal is True
    for name, value in wanted.items():
        assert found.metrics.metrics[name] == pytest.approx(value)
        assert found.recorded.metrics[name] == pytest.approx(value)
    assert [f for f in verify(report.path) if f.severity == "broken"] == []
    return report


@pytest.mark.parametrize("name", sorted(HEADLINES))
def test_replay_gives_the_accuracy_that_the_header_reports(name, tmp_path):
    check_headline(DATA / name, tmp_path, HEADLINES[name])


@pytest.mark.skipif(not SHARED.exists(), reason="the large samples are not here")
def test_five_epochs_are_five_attempts(tmp_path):
    report = check_headline(SHARED / "inspect" / EPOCHS, tmp_path, {"score.avg@1": 0.7})
    state = state_of(report)
    assert (state.k, len(state.tasks), state.counts().attempts) == (5, 10, 50)
    assert sorted(state.tasks["7"].attempts) == [1, 2, 3, 4, 5]
    assert list(state.tasks) == [str(number) for number in range(1, 11)]


def test_a_header_of_a_newer_version_is_refused_by_name(tmp_path):
    with pytest.raises(VersionUnsupported, match="version 4") as caught:
        take_in(DATA / "log_version_3.txt", tmp_path / "results")
    assert caught.value.exit_status == 3
    assert not (tmp_path / "results").exists() or not any((tmp_path / "results").iterdir())


def test_a_newer_archive_is_refused_by_name(tmp_path):
    path = write_eval(tmp_path / "new.eval", members(header(1.0, version=4), [sample()]))
    with pytest.raises(VersionUnsupported, match=r"new\.eval is an Inspect log of version 4"):
        take_in(path, tmp_path / "results")


def test_an_invalid_log_is_recognised_by_nobody_and_refused_by_name(tmp_path):
    path = DATA / "log_invalid.txt"
    assert not Inspect().recognises(Source.open(path))
    with pytest.raises(UsageError, match="cut off after 30 bytes"):
        Inspect().plan(Source.open(path))


def test_an_accuracy_that_is_nan_is_told_and_is_no_metric(tmp_path):
    report = take_in(DATA / "log_with_nan.txt", tmp_path / "results")
    computed = events(report, "metrics.computed")[0]
    assert "model_graded_fact/accuracy" not in computed.metrics
    assert "model_graded_fact/accuracy" in computed.extra["unavailable"]
    told = computed.details["model_graded_fact/accuracy"]["source"]["metric"]["value"]
    assert math.isnan(told)
    assert any("holds none of its samples" in reason for reason in reasons(report))
    assert any("times have no zone" in reason for reason in reasons(report))
    assert state_of(report).finished.status == "completed"


def test_what_the_header_counts_and_the_log_does_not_hold_is_told(tmp_path):
    report = take_in(DATA / "log_tool_call_error.json", tmp_path / "results")
    told = reasons(report, placed=True)
    assert any("count 4 samples, the log holds 1" in reason for reason in told)
    assert any("accuracy of includes is 1.0, but no sample" in reason for reason in told)
    assert report.damaged
    assert sorted(state_of(report).tasks["1"].attempts) == [4]


def test_every_sample_of_other_formats_is_left_to_others():
    if not SHARED.exists():
        pytest.skip("the samples are not here")
    for directory in SHARED.iterdir():
        for path in (directory, *(() if directory.name == "inspect" else directory.iterdir())):
            recognised = Inspect().recognises(Source.open(path))
            assert recognised == (path == SHARED / "inspect"), path


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"PK\x03\x04",
        b"PK\x03\x04" + bytes(60),
        b"{",
        b'{"eval": {',
        b'{"eval": {"a": "\\',
        b'{"version": 2, "status": 7, "eval": {"task": "t", "model": "m", "dataset": {}}}',
        b"\xff\xfe{}",
        b'{"eval" 1}',
        b"[" * 100_000,
        b'{"eval": ' + b"{" * 100_000,
        b'{"a": 1, "a": 2, "eval": {}}',
    ],
)
def test_garbage_is_not_recognised_and_refused(garbage, tmp_path):
    path = tmp_path / "garbage"
    path.write_bytes(garbage)
    source = Source.open(path)
    assert not Inspect().recognises(source)
    with pytest.raises(UsageError):
        Inspect().plan(source)


def test_a_directory_with_one_log_is_that_log(tmp_path):
    path = write_json(tmp_path / "logs" / "one.json", header(1.0), [sample()])
    report = take_in(path.parent, tmp_path / "results")
    assert (report.records_in, report.records_out, reasons(report)) == (2, 2, [])


def test_a_file_beside_the_log_is_named_and_kept(tmp_path):
    path = write_json(tmp_path / "logs" / "one.json", header(1.0), [sample()])
    path.with_name("notes.txt").write_text("nothing")
    report = take_in(path.parent, tmp_path / "results")
    assert reasons(report, placed=False) == ["notes.txt: it is no part of the log"]
    assert (report.records_in, report.records_out) == (3, 2)
    assert kept(report)["notes.txt"].content == b"nothing"


def test_several_logs_are_refused_by_their_names(tmp_path):
    write_json(tmp_path / "logs" / "one.json", header(1.0), [sample()])
    write_eval(tmp_path / "logs" / "two.eval", members(header(1.0), [sample()]))
    with pytest.raises(UsageError, match=r"2 Inspect logs: one\.json, two\.eval"):
        take_in(tmp_path / "logs", tmp_path / "results")


def test_a_log_under_another_name_is_the_same_run(tmp_path):
    path = write_json(tmp_path / "one.json", header(1.0), [sample()])
    first = take_in(path, tmp_path / "results")
    again = take_in(path, tmp_path / "results")
    copy = tmp_path / "copy.txt"
    copy.write_bytes(path.read_bytes())
    other = take_in(copy, tmp_path / "results")
    assert (again.already, other.already) == (True, True)
    assert first.path == again.path == other.path


def test_both_forms_of_a_log_give_the_same_events_of_tasks(tmp_path):
    samples = [sample(n, epoch, "C" if n % 2 else "I") for n in (1, 2) for epoch in (1, 2)]
    head = header(0.5)
    head["eval"]["config"] = {"epochs": 2}
    told = []
    for path in (
        write_json(tmp_path / "a.json", head, samples),
        write_eval(tmp_path / "b.eval", members(head, samples)),
        write_eval(tmp_path / "c.eval", members(head, samples), zstd=True),
    ):
        report = take_in(path, tmp_path / path.stem)
        assert reasons(report) == []
        told.append([e for e in events(report) if e.task and e.type != "original.recorded"])
    assert told[0] == told[1] == told[2]


def test_a_score_changed_by_hand_is_told(tmp_path):
    samples = [sample(1, value="C"), sample(2, value="C"), sample(3, value="I")]
    report = take_in(write_json(tmp_path / "a.json", header(1 / 3), samples), tmp_path / "results")
    told = "its accuracy of match is 0.3333333333333333, but its samples give 0.6666666666666666"
    assert reasons(report) == [f"a.json: {told}"]
    assert report.damaged
    with LedgerView.open(report.path) as view:
        found = replay(view)
    assert [d.name for d in found.differences] == ["metrics/score.avg@1"]


def test_summaries_and_reductions_that_say_otherwise_are_told(tmp_path):
    files = members(header(1.0), [sample(1)])
    files["summaries.json"] = [
        {"id": 1, "epoch": 1, "scores": {"match": {"value": "I"}}},
        {"id": 2, "epoch": 1, "scores": {}},
    ]
    files["reductions.json"] = [{"scorer": "match", "samples": [{"value": 0, "sample_id": 1}]}]
    report = take_in(write_eval(tmp_path / "a.eval", files), tmp_path / "results")
    told = reasons(report)
    assert any("match 'I', the sample 'C'" in reason for reason in told)
    assert any("reductions of match are not those of its samples: 1: 0, not 1.0" in r for r in told)
    assert any("sample '2' in epoch 1: the sample itself is not in the log" in r for r in told)


def test_a_secret_in_a_packed_member_does_not_get_in(tmp_path):
    secret = "sk-live-" + "a1B2c3D4e5F6" * 3
    files = members(header(1.0), [sample(1, store={"key": f"Bearer {secret}"})])
    report = take_in(write_eval(tmp_path / "a.eval", files), tmp_path / "results")
    assert not any(secret.encode() in data for data in stored_bytes(report.path))
    files_kept = kept(report)
    assert files_kept["a.eval/samples/1_epoch_1.json"].redactions
    assert files_kept["a.eval"].content is None
    assert files_kept["a.eval"].bytes == (tmp_path / "a.eval").stat().st_size


def test_originals_kept_unredacted_are_the_file_itself(tmp_path):
    path = write_eval(tmp_path / "a.eval", members(header(1.0), [sample(1)]))
    report = take_in(path, tmp_path / "results", keep_originals=True)
    assert kept(report)["a.eval"].content == path.read_bytes()
    assert len(kept(report)) == 1


def test_members_are_kept_byte_for_byte(tmp_path):
    files = members(header(1.0), [sample(1)])
    report = take_in(write_eval(tmp_path / "a.eval", files), tmp_path / "results")
    files_kept = kept(report)
    assert files_kept["a.eval/header.json"].content == json.dumps(files["header.json"]).encode()
    placed = files_kept["a.eval/samples/1_epoch_1.json"]
    assert (placed.task, placed.attempt) == ("1", 1)
