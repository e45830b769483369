import fcntl
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledger.errors import AclError, LedgerExists, NotStored, UsageError
from ledger.verify import verify
from runtime.importers import Source, places
from runtime.importers.agentcompass import AgentCompass
from runtime.importers.plan import SourceEnd
from tests.importer_runs import add_task, create, do_import, events, originals, small_run, state_of


@pytest.fixture
def run(tmp_path) -> Path:
    return small_run(tmp_path / "source" / "run", tasks=2)


def entries(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*"))


def test_an_import_is_a_sealed_ledger_under_the_ids_of_its_source(tmp_path, run):
    report = do_import(run, tmp_path / "results", command=("acl", "import"))
    assert report.path == tmp_path / "results" / "bench" / "model" / "small"
    assert (report.run_id, report.format, report.already) == ("small", "agentcompass", False)
    assert (report.records_in, report.records_out, report.unplaced) == (5, 5, ())
    state = state_of(report)
    assert state.sealed_size == state.size
    assert state.run_id == "small"
    assert state.creation.command == ("acl", "import")
    assert [f for f in verify(report.path) if f.severity == "broken"] == []


def test_the_first_events_are_creation_and_source(tmp_path, run):
    report = do_import(run, tmp_path / "results")
    first, second, *_ = events(report)
    assert first.type == "run.created"
    assert second.type == "run.imported"
    assert second.format == "agentcompass"
    assert second.source_run_id == "small"
    assert second.source_status == "completed"
    assert (second.started_at, second.finished_at) == (
        "2026-01-02T01:04:05Z",
        "2026-01-02T01:05:05Z",
    )
    assert not second.keeps_originals


def test_importing_again_finds_the_run_and_writes_nothing(tmp_path, run):
    results = tmp_path / "results"
    first = do_import(run, results)
    before = entries(results)
    again = do_import(run, results)
    assert again.already
    assert (again.run_id, again.path) == (first.run_id, first.path)
    assert (again.records_in, again.records_out) == (first.records_in, first.records_out)
    assert entries(results) == before


def test_a_copy_under_another_name_is_the_same_run(tmp_path, run):
    first = do_import(run, tmp_path / "results")
    shutil.copytree(run, tmp_path / "elsewhere")
    again = do_import(tmp_path / "elsewhere", tmp_path / "results")
    assert (again.already, again.path) == (True, first.path)


def test_an_import_that_was_moved_is_found_where_it_is(tmp_path, run):
    results = tmp_path / "results"
    first = do_import(run, results)
    (results / "kept").mkdir()
    first.path.rename(results / "kept" / "renamed")
    again = do_import(run, results)
    assert (again.already, again.path) == (True, results / "kept" / "renamed")


def test_the_unplaced_of_a_known_import_are_told_again(tmp_path, run):
    (run / "notes.txt").write_text("mine")
    first = do_import(run, tmp_path / "results")
    again = do_import(run, tmp_path / "results")
    assert [(one.source, one.reason) for one in again.unplaced] == [
        (one.source, one.reason) for one in first.unplaced
    ]


def test_a_damaged_ledger_in_the_results_does_not_stop_an_import(tmp_path, run):
    broken = tmp_path / "results" / "a" / "b" / "c"
    broken.mkdir(parents=True)
    (broken / "ledger.sqlite").write_bytes(b"no ledger")
    assert not do_import(run, tmp_path / "results").already


def test_another_run_of_the_same_id_gets_a_digest_added(tmp_path, run):
    first = do_import(run, tmp_path / "results")
    add_task(run, "t3")
    second = do_import(run, tmp_path / "results")
    assert not second.already
    assert second.path.parent == first.path.parent
    assert second.run_id == second.path.name
    assert second.run_id.startswith("small--")
    assert state_of(second).run_id == second.run_id


def test_a_directory_that_is_not_empty_is_never_written_into(tmp_path, run):
    taken = tmp_path / "results" / "bench" / "model" / "small"
    taken.mkdir(parents=True)
    (taken / "file").write_text("mine")
    report = do_import(run, tmp_path / "results")
    assert report.run_id != "small"
    assert entries(taken) == ["file"]


def test_an_empty_directory_of_a_crash_is_used(tmp_path, run):
    (tmp_path / "results" / "bench" / "model" / "small").mkdir(parents=True)
    assert do_import(run, tmp_path / "results").run_id == "small"


def test_a_place_taken_meanwhile_is_refused_and_left_alone(tmp_path, run):
    results = tmp_path / "results"
    taken = results / "bench" / "model" / "small"

    def create_late(directory: Path):
        taken.mkdir(parents=True)
        (taken / "file").write_text("mine")
        return create(directory)

    with pytest.raises(LedgerExists):
        do_import(run, results, create=create_late)
    assert entries(taken) == ["file"]
    assert not list(results.glob(f"{places.STAGE_PREFIX}*"))


def test_a_dry_run_reports_all_and_writes_nothing(tmp_path, run):
    (run / "notes.txt").write_text("mine")
    results = tmp_path / "results"
    dry = do_import(run, results, dry_run=True)
    assert not results.exists()
    report = do_import(run, results)
    assert dry == report


def test_an_import_that_dies_leaves_nothing_that_looks_like_a_run(tmp_path, run, monkeypatch):
    results = tmp_path / "results"
    real = AgentCompass.plan

    def plan(self, source):
        made = real(self, source)

        def items():
            for number, item in enumerate(made.items()):
                if number == 7:
                    raise OSError("the disk is gone")
                yield item

        return type(made)(
            **{name: getattr(made, name) for name in made.__slots__} | {"items": items}
        )

    with monkeypatch.context() as patch:
        patch.setattr(AgentCompass, "plan", plan)
        with pytest.raises(OSError, match="the disk is gone"):
            do_import(run, results)
    assert list(results.rglob("ledger.sqlite")) == []
    assert not do_import(run, results).already


def test_a_source_that_changes_meanwhile_is_not_imported(tmp_path, run):
    def create_late(directory: Path):
        next(run.glob("details/normal/*/task.json")).write_text("{}")
        return create(directory)

    with pytest.raises(UsageError, match="changed while it was imported"):
        do_import(run, tmp_path / "results", create=create_late)
    assert list((tmp_path / "results").rglob("ledger.sqlite")) == []


def test_what_a_killed_import_left_is_no_run_and_is_cleared(tmp_path, run):
    results = tmp_path / "results"
    first = do_import(run, tmp_path / "other")
    identity = events(first)[1].identity
    left = results / f"{places.STAGE_PREFIX}{identity[:16]}"
    left.mkdir(parents=True)
    shutil.copy(first.path / "ledger.sqlite", left / "ledger.sqlite")
    report = do_import(run, results)
    assert not report.already
    assert not left.exists()


def test_two_imports_of_one_source_at_a_time_are_refused(tmp_path, run):
    results = tmp_path / "results"
    identity = events(do_import(run, tmp_path / "other"))[1].identity
    busy = results / f"{places.STAGE_PREFIX}{identity[:16]}"
    busy.mkdir(parents=True)
    held = os.open(busy, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process is importing"):
            do_import(run, results)
        assert busy.exists()
    finally:
        os.close(held)


def test_a_stage_that_its_owner_takes_away_meanwhile_is_refused(tmp_path, run, monkeypatch):
    results = tmp_path / "results"
    opened = places.os.open

    def opening(path, flags):
        if Path(path).name.startswith(places.STAGE_PREFIX):
            Path(path).rmdir()
        return opened(path, flags)

    monkeypatch.setattr(places.os, "open", opening)
    with pytest.raises(UsageError, match="another process is importing"):
        do_import(run, results)


def test_the_next_stage_of_the_same_source_stays_when_this_one_was_moved(tmp_path):
    with places.stage(tmp_path, "ab" * 16) as staged:
        staged.rename(tmp_path / "whole")
        staged.mkdir()
        (staged / "ledger.sqlite").write_bytes(b"of the next")
    assert (staged / "ledger.sqlite").read_bytes() == b"of the next"


def test_a_full_disk_is_told_and_nothing_stays(tmp_path, run):
    def create_full(directory: Path):
        recorder = create(directory)
        real = recorder.ledger.append_group
        calls = []

        def append_group(batches):
            calls.append(1)
            if len(calls) > 1:
                return [NotStored("disk full")] * len(batches)
            return real(batches)

        recorder.ledger.append_group = append_group
        return recorder

    with pytest.raises(NotStored, match="disk full"):
        do_import(run, tmp_path / "results", create=create_full)
    assert list((tmp_path / "results").rglob("ledger.sqlite")) == []


@pytest.mark.parametrize(
    ("ids", "parts"),
    [
        ({"benchmark": {}, "model": {}, "output": {}}, ("unknown", "unknown")),
        ({"benchmark": {"id": ".."}, "model": {"id": ""}, "output": {}}, ("unknown", "unknown")),
        (
            {"benchmark": {"id": "a/b"}, "model": {"id": "m:x"}, "output": {"run_name": "../n/o"}},
            ("n", "o", "a_b", "m_x"),
        ),
    ],
)
def test_ids_that_are_missing_or_dangerous_never_leave_the_results(tmp_path, run, ids, parts):
    small_run(run, request=ids)
    report = do_import(run, tmp_path / "results")
    assert report.path.parent.relative_to(tmp_path / "results").parts == parts


def test_a_run_without_an_id_is_called_unknown_and_not_by_its_directory(tmp_path, run):
    small_run(run, run_id=None, request={})
    report = do_import(run, tmp_path / "results")
    assert report.run_id == "unknown"
    assert events(report)[1].source_run_id is None


def test_results_may_be_a_link_and_nothing_below_it(tmp_path, run):
    (tmp_path / "real").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "real")
    assert do_import(run, tmp_path / "results").path.exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "bench").symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match="symbolic link"):
        do_import(run, tmp_path / "other")


def test_originals_can_be_kept_with_their_secrets_and_the_run_says_so(tmp_path, run):
    (run / "run.log").write_text("password=hunter2\n")
    plain = do_import(run, tmp_path / "plain")
    kept = do_import(run, tmp_path / "kept", keep_originals=True)
    assert originals(plain)["run.log"].content == b"password=********\n"
    assert originals(plain)["run.log"].redactions == 1
    assert originals(kept)["run.log"].content == b"password=hunter2\n"
    assert originals(kept)["run.log"].redactions is None
    assert events(kept)[1].keeps_originals


def test_every_file_is_kept_beside_what_it_tells_of(tmp_path, run):
    report = do_import(run, tmp_path / "results")
    kept = originals(report)
    for path in run.rglob("*.json"):
        assert kept[path.relative_to(run).as_posix()].content == path.read_bytes()
    names = [(event.type, event.task) for event in events(report)]
    task = names[names.index(("task.started", "t1")) : names.index(("task.finished", "t1"))]
    assert {owner for _, owner in task} == {"t1"}
    assert sum(kind == "original.recorded" for kind, _ in task) == 2


def test_files_are_read_one_task_at_a_time(tmp_path, run):
    small_run(run, tasks=30)
    source = Source.open(run)
    read = []
    real = type(source).read
    plan = AgentCompass().plan(source)
    type(source).read = lambda self, file: (read.append(file.path), real(self, file))[1]
    try:
        items = plan.items()
        for item in items:
            if getattr(item, "type", "") == "task.finished":
                break
        assert {path.split("/")[2] for path in read if path.startswith("details/")} == {
            read[0].split("/")[2]
        }
        assert sum(isinstance(item, SourceEnd) for item in items) == 1
    finally:
        type(source).read = real


@pytest.mark.parametrize("name", [None, "agentcompass", "other"])
def test_what_no_importer_takes_is_refused_with_the_known_formats(tmp_path, name):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").write_text("x")
    with pytest.raises(UsageError, match="agentcompass"):
        do_import(tmp_path / "x", tmp_path / "results", format=name)
    assert not (tmp_path / "results").exists()


def test_two_importers_that_recognise_a_source_are_both_named(tmp_path, run):
    class Other(AgentCompass):
        name = "other"

    two = [
        SimpleNamespace(name=kind.name, load=lambda kind=kind: kind)
        for kind in (AgentCompass, Other)
    ]
    with pytest.raises(UsageError, match="agentcompass, other"):
        do_import(run, tmp_path / "results", points=lambda _: two)
    named = do_import(run, tmp_path / "results", points=lambda _: two, format="other")
    assert named.format == "agentcompass"


def test_a_broken_plugin_is_named(tmp_path, run):
    def load():
        raise ImportError("no module")

    broken = [SimpleNamespace(name="broken", load=load)]
    with pytest.raises(UsageError, match="importer 'broken' cannot be loaded: ImportError"):
        do_import(run, tmp_path / "results", points=lambda _: broken)


def test_results_that_are_a_file_are_refused(tmp_path, run):
    (tmp_path / "results").write_text("x")
    with pytest.raises(AclError):
        do_import(run, tmp_path / "results")
