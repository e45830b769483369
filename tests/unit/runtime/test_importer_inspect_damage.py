import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.errors import AclError, UsageError
from runtime.importers import Source
from runtime.importers.inspect import Inspect, jsonfile
from tests.importer_runs import events, state_of, stored_bytes
from tests.inspect_logs import (
    DATA,
    header,
    kept,
    members,
    reasons,
    sample,
    take_in,
    write_eval,
    write_json,
)


def cut(path: Path, name: str, keep: int) -> Path:
    target = path.with_name(name)
    target.write_bytes(path.read_bytes()[:keep])
    return target


def four_samples(tmp_path: Path, *, zstd: bool = False) -> Path:
    samples = [sample(number, store={"n": list(range(50))}) for number in (1, 2, 3, 4)]
    return write_eval(tmp_path / "a.eval", members(header(1.0), samples), zstd=zstd)


def places_in(path: Path) -> dict[str, int]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: info.header_offset for info in archive.infolist()}


# -- archives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("zstd", [False, True])
def test_an_archive_cut_in_a_member_gives_all_before_it(tmp_path, zstd):
    path = four_samples(tmp_path, zstd=zstd)
    torn = cut(path, "torn.eval", places_in(path)["samples/3_epoch_1.json"] + 60)
    report = take_in(torn, tmp_path / "results")
    told = reasons(report)
    assert "torn.eval/samples/3_epoch_1.json: the file ends in it" in told
    assert any("found by their own headers" in reason for reason in told)
    assert any("never ended" in reason for reason in told)
    assert [one.torn for one in report.unplaced if not one.placed] == [True]
    assert not report.damaged
    state = state_of(report)
    assert sorted(state.tasks) == ["1", "2"]
    assert state.finished is None
    assert (report.records_in, report.records_out) == (4, 3)


def test_an_archive_that_only_lacks_its_directory_is_whole(tmp_path):
    path = four_samples(tmp_path)
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    report = take_in(cut(path, "torn.eval", start), tmp_path / "results")
    assert [reason for reason in reasons(report) if "headers" not in reason] == []
    assert state_of(report).finished.status == "completed"
    assert (report.records_in, report.records_out) == (6, 6)


def test_a_real_log_of_a_killed_run_is_interrupted(tmp_path):
    report = take_in(DATA / "cancelled.eval", tmp_path / "results")
    state = state_of(report)
    assert state.finished is None
    assert sorted(task for task, found in state.tasks.items() if found.attempts) == ["1", "2"]
    assert len(state.tasks) == 4
    assert reasons(report) == [
        "cancelled.eval: it has no header.json: the evaluation of 'task' never ended"
    ]


def test_members_written_with_descriptors_are_found_without_a_directory(tmp_path):
    class Pipe:
        def __init__(self, stream):
            self.stream = stream

        def write(self, data):
            return self.stream.write(data)

        def flush(self):
            self.stream.flush()

    path = tmp_path / "piped.eval"
    with path.open("wb") as stream, zipfile.ZipFile(Pipe(stream), "w", 8) as archive:
        for name, value in members(header(1.0), [sample(1), sample(2)]).items():
            archive.writestr(name, json.dumps(value))
        end = archive.start_dir
    report = take_in(cut(path, "torn.eval", end), tmp_path / "results")
    assert sorted(state_of(report).tasks) == ["1", "2"]
    assert (report.records_in, report.records_out) == (4, 4)


def test_a_member_with_a_wrong_checksum_is_damage_and_named(tmp_path):
    files = {
        name: json.dumps(v) for name, v in members(header(1.0), [sample(1), sample(2)]).items()
    }
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    data = path.read_bytes().replace(b'"it"', b'"at"', 1)
    path.write_bytes(data)
    report = take_in(path, tmp_path / "results")
    lost = "a.eval/samples/1_epoch_1.json: its checksum is wrong"
    assert reasons(report, placed=False) == [lost]
    assert report.damaged
    assert [task for task, found in state_of(report).tasks.items() if found.attempts] == ["2"]


def test_of_two_members_with_one_name_the_last_stands(tmp_path):
    path = write_eval(tmp_path / "a.eval", members(header(1.0), [sample(1, value="I")]))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, value="C")))
    report = take_in(path, tmp_path / "results")
    assert reasons(report) == [
        "a.eval/samples/1_epoch_1.json: it was written anew; the last one stands"
    ]
    assert state_of(report).tasks["1"].attempts[1].correct is True


def test_an_archive_without_any_header_is_refused(tmp_path):
    path = write_eval(tmp_path / "a.eval", {"samples/1_epoch_1.json": sample(1)})
    with pytest.raises(UsageError, match=r"no header\.json and no _journal/start\.json"):
        Inspect().plan(Source.open(path))


def test_a_member_of_no_known_name_is_named_and_kept(tmp_path):
    files = {**members(header(1.0), [sample(1)]), "more/notes.txt": b"notes"}
    report = take_in(write_eval(tmp_path / "a.eval", files), tmp_path / "results")
    assert reasons(report) == ["a.eval/more/notes.txt: no member of this format"]
    assert kept(report)["a.eval/more/notes.txt"].content == b"notes"


def test_a_bomb_is_refused_before_it_unpacks(tmp_path):
    files = members(header(1.0), [])
    path = write_eval(tmp_path / "a.eval", files)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", bytes(1 << 20))
    data = bytearray(path.read_bytes())
    # The directory says 2 GiB: no log packs so well.
    at = data.rindex(b"samples/1_epoch_1.json") - 46
    data[at + 24 : at + 28] = struct.pack("<I", 2 << 30)
    path.write_bytes(data)
    with pytest.raises(UsageError, match="no log does"):
        Inspect().plan(Source.open(path))


def test_a_member_that_unpacks_to_more_than_it_says_is_damage(tmp_path):
    path = four_samples(tmp_path)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"samples/2_epoch_1.json") - 46
    data[at + 24 : at + 28] = struct.pack("<I", 100)
    path.write_bytes(data)
    report = take_in(path, tmp_path / "results")
    (reason,) = reasons(report, placed=False)
    assert reason == (
        "a.eval/samples/2_epoch_1.json: it unpacks to more than the 100 bytes that are allowed"
    )


def test_a_damaged_part_beside_a_chunked_sample_is_named_and_the_sample_told(tmp_path):
    path = tmp_path / "a.eval"
    data = bytearray((DATA / "tools-chunked.eval").read_bytes())
    data[places_in(DATA / "tools-chunked.eval")["samples/1_epoch_1/skeleton.json"] + 90] ^= 255
    path.write_bytes(data)
    report = take_in(path, tmp_path / "results")
    (reason,) = reasons(report, placed=False)
    assert reason.startswith("a.eval/samples/1_epoch_1/skeleton.json: ")
    assert report.damaged
    assert report.records_in - report.records_out == 1
    assert state_of(report).tasks["1"].attempts[1].status == "completed"


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = four_samples(tmp_path)
    data = bytearray(path.read_bytes())
    first, second = (data.rindex(b"samples/%d_epoch_1.json" % n) - 46 for n in (1, 2))
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)
    with pytest.raises(UsageError, match="lie in each other"):
        Inspect().plan(Source.open(path))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 8000), to=st.integers(0, 255))
def test_no_flipped_byte_of_an_archive_is_an_unforeseen_error(tmp_path_factory, at, to):
    data = bytearray((DATA / "tools.eval").read_bytes())
    data[at % len(data)] = to
    path = tmp_path_factory.mktemp("flip") / "a.eval"
    path.write_bytes(data)
    try:
        plan = Inspect().plan(Source.open(path))
    except AclError:
        return
    for _ in plan.items():
        pass


# -- JSON -----------------------------------------------------------------------------------------


def test_a_json_log_cut_in_a_sample_gives_all_before_it(tmp_path):
    path = write_json(tmp_path / "a.json", header(1.0), [sample(1), sample(2), sample(3)])
    at = path.read_bytes().index(b'"id": 3')
    report = take_in(cut(path, "torn.json", at + 30), tmp_path / "results")
    told = reasons(report)
    assert any("sample 3: the file ends in it" in reason for reason in told)
    assert any("it is cut off after" in reason for reason in told)
    assert [one.torn for one in report.unplaced if not one.placed] == [True]
    assert sorted(state_of(report).tasks) == ["1", "2"]
    assert (report.records_in, report.records_out) == (4, 3)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(keep=st.integers(0, 4000))
def test_a_cut_json_log_is_refused_or_named_and_never_guessed(tmp_path_factory, keep):
    directory = tmp_path_factory.mktemp("cut")
    whole = write_json(directory / "a.json", header(1.0), [sample(1), sample(2)])
    path = cut(whole, "torn.json", keep)
    try:
        plan = Inspect().plan(Source.open(path))
    except UsageError:
        return
    complete = keep >= len(whole.read_bytes())
    assert complete or any("cut off" in remark.reason for remark in plan.remarks)
    # The file, its samples, and what may have been another sample where it breaks off.
    assert plan.records_out <= plan.records_in <= 4
    for _ in plan.items():
        pass


@pytest.mark.parametrize("tail", [b"{}", b"x", b"\n[]"])
def test_something_behind_a_json_log_is_damage(tmp_path, tail):
    path = write_json(tmp_path / "a.json", header(1.0), [sample(1)])
    path.write_bytes(path.read_bytes() + tail)
    report = take_in(path, tmp_path / "results")
    assert "a.json: something follows the log" in reasons(report)
    assert report.damaged


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("null", "holds null, not an object"),
        ("[]", "holds a list, not an object"),
        ('{"id": 1, "id": 2}', "two keys are 'id'"),
        ('{"epoch": 1}', "its id is None"),
        ('{"id": true, "epoch": 1}', "its id is True"),
        ('{"id": 9, "epoch": 0}', "its epoch is 0"),
        ('{"id": 9, "epoch": "1"}', "its epoch is '1'"),
    ],
)
def test_a_sample_that_is_none_is_damage_and_named(tmp_path, bad, why):
    path = write_json(tmp_path / "a.json", header(1.0), [sample(1), sample(2)])
    text = path.read_text()
    second = text.rindex('    {\n      "id": 2')
    path.write_text(text[:second] + bad + "]}")
    report = take_in(path, tmp_path / "results")
    assert f"a.json, sample 2: {why}" in reasons(report, placed=False)
    assert report.damaged
    assert (report.records_in, report.records_out) == (3, 2)


def test_one_sample_told_twice_counts_once_and_another_content_is_damage(tmp_path):
    twice = [sample(1), sample(1), sample(1, value="I")]
    report = take_in(write_json(tmp_path / "a.json", header(1.0), twice), tmp_path / "results")
    same, other = reasons(report)
    assert same == (
        "a.json, sample 2: sample 1 in epoch 1 stands before, as a.json, sample 1,"
        " with the same content"
    )
    assert other.endswith("as a.json, sample 1, with other content, which counts")
    assert report.damaged
    assert len(events(report, "evaluation.finished")) == 1
    assert (report.records_in, report.records_out) == (4, 3)


def test_the_ids_1_and_text_1_are_two_tasks(tmp_path):
    samples = [sample(1, value="C"), sample("1", value="I")]
    report = take_in(write_json(tmp_path / "a.json", header(), samples), tmp_path / "results")
    tasks = state_of(report).tasks
    assert set(tasks) == {"1", "1 (number)"}
    assert tasks["1"].attempts[1].correct is False
    assert tasks["1 (number)"].attempts[1].correct is True


def test_a_large_json_log_is_kept_in_pieces_that_are_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonfile, "KEPT_WHOLE", 100)
    path = write_json(tmp_path / "a.json", header(1.0), [sample(1), sample(2)])
    pieces_of = kept(take_in(path, tmp_path / "results"))
    whole = pieces_of.pop("a.json")
    assert whole.bytes == path.stat().st_size
    pieces = sorted(pieces_of.items(), key=lambda item: int(item[0].split("=")[1].split("-")[0]))
    assert b"".join(piece.content for _, piece in pieces) == path.read_bytes()
    samples = [piece for _, piece in pieces if piece.task is not None]
    assert [json.loads(piece.content)["id"] for piece in samples] == [1, 2]


def test_a_secret_in_the_header_of_a_large_json_log_does_not_get_in(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonfile, "KEPT_WHOLE", 100)
    head = header(1.0)
    head["eval"]["model_args"] = {"api_key": "hunter2-hunter2"}
    report = take_in(write_json(tmp_path / "a.json", head, [sample(1)]), tmp_path / "results")
    assert not any(b"hunter2-hunter2" in data for data in stored_bytes(report.path))


def test_the_memory_for_a_json_log_depends_on_its_samples_and_not_on_their_number(tmp_path):
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.json"
        text = json.dumps(sample(1, store={"text": "x" * 200_000}))
        with path.open("w") as out:
            out.write(json.dumps({**header(1.0), "samples": []})[:-2])
            for number in range(count):
                out.write(("," if number else "") + text.replace('"id": 1', f'"id": {number}', 1))
            out.write("]}")
        source = Source.open(path)
        tracemalloc.start()
        plan = Inspect().plan(source)
        for _ in plan.items():
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(plan.selected.tasks) == count
        return most

    assert peak(60) < 1.5 * peak(6)


@pytest.mark.parametrize("place", [2**64 - 1, 2**63, 2**40])
def test_a_directory_that_names_places_outside_the_file_is_not_followed(tmp_path, place):
    path = four_samples(tmp_path)
    data = path.read_bytes()
    # The last entry gets a ZIP64 field with its place, where its 32 bits say to look for it.
    at = data.rindex(b"PK\x01\x02")
    end = data.rindex(b"PK\x05\x06")
    name, extra = struct.unpack_from("<HH", data, at + 28)
    assert extra == 0
    entry = bytearray(data[at : at + 46 + name])
    struct.pack_into("<H", entry, 30, 12)
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    entry += struct.pack("<HHQ", 1, 8, place)
    tail = bytearray(data[end:])
    struct.pack_into("<I", tail, 12, struct.unpack_from("<I", tail, 12)[0] + 12)
    path.write_bytes(data[:at] + entry + tail)
    assert any(
        "by their own headers" in reason for reason in reasons(take_in(path, tmp_path / "r"))
    )


def test_a_directory_is_not_followed_to_before_the_file(tmp_path):
    path = four_samples(tmp_path)
    data = path.read_bytes()
    # Its places are counted from its end: of what it tells, the first member is at -20.
    at = places_in(path)["samples/4_epoch_1.json"] + 60
    path.write_bytes(data[:at] + data[at + 20 :])
    assert any(
        "by their own headers" in reason for reason in reasons(take_in(path, tmp_path / "r"))
    )
