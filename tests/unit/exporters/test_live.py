"""An export that follows a run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters import live
from exporters.details import LAYOUT, export_details
from exporters.folder import Folder
from exporters.identity import Identity
from exporters.live import LiveExport
from exporters.write import write_tree
from ledger import canonical
from ledger import events as ev
from ledger.errors import ExportRefused
from ledger.fold import fold
from ledger.state import RunState
from ledger.store import Copy, Ledger
from ledger.view import LedgerView
from tests.golden.runs import (
    attempt,
    broken_attempt,
    create,
    ending,
    finished,
    opening,
    ref,
    task,
)


class Run:
    """A run that is being written, with a live export that follows it."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self.target = target
        self.ledger: Ledger = create(path, "live")
        self.state = RunState()
        self.export = LiveExport(target, home=path)

    def say(self, *events: ev.AnyEvent) -> list[str]:
        """Record events, project, and tell what files there are."""
        self.ledger.append(*events)
        return self.project()

    def project(self) -> list[str]:
        with LedgerView.open(self.path) as view:
            self.state = fold(view.events(since=self.state.size), self.state)
            self.export(self.state, view)
        return self.files()

    def files(self) -> list[str]:
        found = (p.relative_to(self.target) for p in self.target.rglob("*") if p.is_file())
        return sorted(p.as_posix() for p in found if not p.name.startswith("ledger"))

    def read(self, path: str) -> dict:
        return json.loads((self.target / path).read_text())


@pytest.fixture(params=["elsewhere", "home"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    path = tmp_path / "run"
    made = Run(path, path if request.param == "home" else tmp_path / "live" / "out")
    yield made
    made.ledger.close()


def test_each_record_appears_when_its_task_ends(run: Run) -> None:
    assert run.say(*opening("r", ref("a", "c"), ref("b"))) == ["params.json", "run_info.json"]
    one = task("a", attempt("a"))
    assert run.say(*one[:-1]) == ["params.json", "run_info.json"]
    assert run.say(one[-1]) == ["details/a_c.json", "params.json", "run_info.json"]
    assert run.read("details/a_c.json")["acl"]["size"] == run.state.size
    run.say(*task("b", broken_attempt("b"), error=True))
    assert "details/_error_b.json" in run.files()


def test_the_run_is_running_until_it_ends(run: Run) -> None:
    run.say(*opening("r", ref("a")))
    assert run.read("run_info.json")["status"] == "running"
    assert not (run.target / "MANIFEST.json").exists()
    run.say(*task("a", attempt("a")))
    ending(run.ledger, total=1, evaluated=1)
    run.project()
    assert run.read("run_info.json")["status"] == "completed"
    assert (run.target / "MANIFEST.json").exists()


def test_the_last_call_writes_what_an_export_afterwards_writes(run: Run, tmp_path: Path) -> None:
    run.say(*opening("r", ref("a"), ref("A"), ref("_error_")))
    for name in ("a", "A"):
        run.say(*task(name, attempt(name)))
    run.say(*task("_error_", broken_attempt("_error_"), error=True))
    ending(run.ledger, total=3)
    run.project()
    with LedgerView.open(run.path) as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, tmp_path / "later", identity=Identity.of(state), layout=LAYOUT)
    for path in (tmp_path / "later").rglob("*"):
        if path.is_file():
            live_path = run.target / path.relative_to(tmp_path / "later")
            assert live_path.read_bytes() == path.read_bytes()
    later = {p.relative_to(tmp_path / "later").as_posix() for p in (tmp_path / "later").rglob("*")}
    assert set(run.files()) <= later


def test_discarded_tries_appear_before_their_task_ends(run: Run) -> None:
    run.say(*opening("r", ref("a")))
    retried = ev.AttemptRetried(
        task="a",
        attempt=1,
        retry=1,
        max_retries=2,
        retry_delay_seconds=0.1,
        stage="run",
        scope="attempt",
        error=ev.ErrorInfo(code="429", message="slow"),
    )
    start, *rest = attempt("a")
    run.say(ev.TaskStarted(task="a"), start, retried)
    assert "retry_details/a.attempt1.retry1.run.json" in run.files()
    *events, _ = rest
    end = finished("a", correct=True, retries=1)
    run.say(*events, end, ev.TaskFinished(task="a", reason="all_attempts", error=False))
    assert "details/a.json" in run.files()


def test_finished_tasks_are_not_rendered_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = []

    def watch(known: object, *rest: object) -> object:
        rendered.append(known.id)
        return record_file(known, *rest)

    record_file = live.record_file
    monkeypatch.setattr(live, "record_file", watch)
    run.say(*opening("r", *(ref(f"t{n}") for n in range(20))))
    for n in range(20):
        run.say(*task(f"t{n}", attempt(f"t{n}")))
        run.project()
    assert rendered == [f"t{n}" for n in range(20)]


def test_nothing_is_written_when_nothing_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.say(*opening("r", ref("a")))
    monkeypatch.setattr(Folder, "open", lambda path: pytest.fail("the target was opened"))
    run.project()


def test_the_file_by_which_a_run_is_found_waits_for_no_record(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    replace = Folder.replace

    def watch(self: Folder, file: object, **how: bool) -> object:
        written.append(file.path)
        return replace(self, file, **how)

    monkeypatch.setattr(Folder, "replace", watch)
    run.say(*opening("r", ref("a")), *task("a", attempt("a")))
    assert written.index("run_info.json") < written.index("details/a.json")


def test_run_info_is_written_seldom_in_a_long_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    replace = Folder.replace

    def watch(self: Folder, file: object) -> object:
        written.append(file.path)
        return replace(self, file)

    monkeypatch.setattr(Folder, "replace", watch)
    run.say(*opening("r", *(ref(f"t{n}") for n in range(40))))
    for n in range(40):
        run.say(*task(f"t{n}", attempt(f"t{n}")))
    # From 3 to 283 events in steps of a quarter: 21 times at most.
    assert 5 <= written.count("run_info.json") <= 21
    assert written.count("params.json") == 1


def test_a_call_before_the_run_exists_does_nothing(tmp_path: Path) -> None:
    with create(tmp_path / "run", "nothing"), LedgerView.open(tmp_path / "run") as view:
        LiveExport(tmp_path / "out")(RunState(), view)
    assert not (tmp_path / "out").exists()


def test_a_cancelled_task_leaves_no_record(run: Run) -> None:
    run.say(*opening("r", ref("a"), ref("b")))
    run.say(ev.TaskStarted(task="a"), ev.TaskCancelled(task="a", reason="stopped"))
    run.say(ev.RunFinished(status="cancelled", exit_code=130))
    assert [path for path in run.files() if path.startswith("details")] == []
    assert run.read("run_info.json")["status"] == "cancelled"


def test_errors_never_take_the_place_of_a_result(run: Run) -> None:
    run.say(*opening("r", ref("a")))
    place = run.target / "details" / "a.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text("a result")
    run.say(*task("a", broken_attempt("a"), error=True))
    assert place.read_text() == "a result"
    assert "details/_error_a.json" not in run.files()


def test_a_success_removes_a_stale_error_file(run: Run) -> None:
    run.say(*opening("r", ref("a")))
    stale = run.target / "details" / "_error_a.json"
    stale.parent.mkdir(exist_ok=True)
    stale.write_text("an error")
    run.say(*task("a", attempt("a")))
    assert not stale.exists()
    assert "details/a.json" in run.files()


def test_run_info_waits_for_the_reuse_transaction(tmp_path: Path) -> None:
    with create(tmp_path / "source", "source") as source:
        source.append(*opening("old", ref("a")), *task("a", attempt("a")))
    path = tmp_path / "run"
    run = Run(path, path)
    with LedgerView.open(tmp_path / "source") as view:
        origin = {"ledger_id": view.ledger_id.hex(), "size": view.size, "root": view.root().hex()}
        frozen = ev.ReuseFrozen(mode="explicit", run_id="old", path="old", **origin)
        assert run.say(*opening("new", ref("a"), ref("b"), frozen=frozen)) == ["params.json"]
        taken = [r for r in view.events() if r.task == "a"]
        reuse = ev.TaskReused(
            task="a",
            source_run_id="old",
            source_ledger_id=origin["ledger_id"],
            size=origin["size"],
            root=origin["root"],
            leaves=canonical.Binary(view.leaves()),
            sequence=tuple(r.seq for r in taken),
        )
        copies = [Copy(r.header, view.raw(r.seq)[1], view.blob) for r in taken]
        found = run.say(reuse, *copies)
    assert found == ["details/a.json", "params.json", "run_info.json"]
    assert run.read("run_info.json")["reused_from"]["run_id"] == "old"
    run.ledger.close()


def test_a_call_while_another_exporter_works_is_made_up_for(run: Run) -> None:
    run.say(*opening("r", ref("a")))
    with Folder.open(run.target) as other, other.locked():
        run.say(*task("a", attempt("a")))
        assert "details/a.json" not in run.files()
    run.project()
    assert "details/a.json" in run.files()


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    run = Run(tmp_path / "run", tmp_path / "out")
    with pytest.raises(ExportRefused, match=r"notes\.txt"):
        run.say(*opening("r", ref("a")))
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    run.ledger.close()


def test_a_place_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    run = Run(tmp_path / "run", tmp_path / "file" / "out")
    with pytest.raises(ExportRefused, match="cannot be made"):
        run.say(*opening("r", ref("a")))
    run.ledger.close()


def test_a_disk_that_was_full_is_made_up_for_later(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.say(*opening("r", ref("a"), ref("b")))
    with monkeypatch.context() as patch:

        def refuse(descriptor: int, chunk: bytes) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("exporters.folder._write", refuse)
        with pytest.raises(ExportRefused, match="No space left"):
            run.say(*task("a", attempt("a")))
    assert [path for path in run.files() if "acl-" in path] == []
    run.say(*task("b", attempt("b")))
    assert {"details/a.json", "details/b.json"} <= set(run.files())


def test_later_events_of_a_finished_run_bring_the_export_up_to_date(run: Run) -> None:
    run.say(*opening("r"))
    run.say(ev.SummaryStarted(), ev.RunFinished(status="completed", exit_code=0))
    before = run.read("MANIFEST.json")["acl"]["size"]
    run.ledger.seal()
    run.project()
    assert run.read("MANIFEST.json")["acl"]["size"] == before + 1


def test_tasks_that_are_selected_later_are_written_too(run: Run) -> None:
    run.say(*opening("r", ref("a")), *task("a", attempt("a")))
    later = ev.TasksSelected(benchmark="demo-bench", tasks=(ref("b"),))
    assert "details/b.json" in run.say(later, *task("b", attempt("b")))


def test_a_record_whose_name_changed_stands_under_the_new_one_only(run: Run) -> None:
    retried = ev.AttemptRetried(
        task="a",
        attempt=1,
        retry=1,
        max_retries=2,
        retry_delay_seconds=0.1,
        stage="run",
        scope="attempt",
        error=ev.ErrorInfo(code="429", message="slow"),
    )
    start, *rest, _ = attempt("a")
    end = finished("a", correct=True, retries=1)
    run.say(*opening("r", ref("a")), *task("a", [start, retried, *rest, end]))
    assert "details/a.json" in run.files()
    # A file system that folds case would take `A` for `a`, so both get a digest.
    run.say(ev.TasksSelected(benchmark="demo-bench", tasks=(ref("A"),)), *task("A", attempt("A")))
    stems = [path for path in run.files() if path.startswith(("details/", "retry_details/"))]
    assert len(stems) == 3
    assert all("--" in path for path in stems)
    with LedgerView.open(run.path) as view:
        expected = {file.path for file in export_details(fold(view.events()), view)}
    assert set(stems) <= expected


def whole(run: Run) -> dict:
    """Export the state of now, as another process does; returns its manifest."""
    with LedgerView.open(run.path) as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, run.target, identity=Identity.of(state), layout=LAYOUT, home=run.path)
    return run.read("MANIFEST.json")


def test_a_live_export_that_lags_behind_takes_nothing_back(run: Run) -> None:
    run.say(*opening("r", ref("a"), ref("b")))
    with LedgerView.open(run.path) as view:
        stale = fold(view.events())
        run.ledger.append(*task("a", attempt("a")))
        stale = fold(view.events(since=stale.size, until=stale.size + 1), stale)
        run.ledger.append(*task("b", attempt("b")))
        ending(run.ledger, total=2)
        manifest = whole(run)
        before = {path: (run.target / path).read_bytes() for path in run.files()}
        run.export(stale, view)
    assert {path: (run.target / path).read_bytes() for path in run.files()} == before
    assert run.read("run_info.json")["status"] == "completed"
    assert run.read("MANIFEST.json") == manifest


def test_a_live_export_goes_on_after_an_earlier_whole_one(run: Run) -> None:
    run.say(*opening("r", ref("a"), ref("b")))
    run.say(*task("a", attempt("a")))
    whole(run)
    assert "details/b.json" in run.say(*task("b", attempt("b")))


def test_the_end_of_a_run_is_not_told_over_a_later_export(run: Run) -> None:
    run.say(*opening("r", ref("a")))
    run.ledger.append(*task("a", attempt("a")))
    ending(run.ledger, total=1)
    with LedgerView.open(run.path) as view:
        ended = fold(view.events())
        run.ledger.seal()
        manifest = whole(run)
        run.export(ended, view)
    assert run.read("MANIFEST.json") == manifest


def test_a_longer_export_of_another_run_is_refused_at_every_look(tmp_path: Path) -> None:
    with create(tmp_path / "long", "long") as ledger:
        ledger.append(*opening("r", ref("a"), ref("b")))
        ledger.append(*task("a", attempt("a")), *task("b", attempt("b")))
        ending(ledger, total=2)
    with LedgerView.open(tmp_path / "long") as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, tmp_path / "there", identity=Identity.of(state), layout=LAYOUT)
    before = (tmp_path / "there" / "MANIFEST.json").read_bytes()
    made = Run(tmp_path / "short", tmp_path / "there")
    with made.ledger, pytest.raises(ExportRefused, match="another run's files"):
        made.say(*opening("r", ref("a")))
    with create(tmp_path / "ended", "ended") as ledger:
        ledger.append(*opening("r", ref("a")), *task("a", attempt("a")))
        ending(ledger, total=1)
    with LedgerView.open(tmp_path / "ended") as view:
        state = fold(view.events())
        with pytest.raises(ExportRefused, match="another run's files"):
            LiveExport(tmp_path / "there")(state, view)
    assert (tmp_path / "there" / "MANIFEST.json").read_bytes() == before


@pytest.mark.parametrize("content", [None, "empty", "file", "foreign"])
def test_only_a_place_that_holds_nothing_is_left_to_a_new_run(
    tmp_path: Path, content: str | None
) -> None:
    place = tmp_path / "place"
    if content is not None:
        place.mkdir()
    if content == "file":
        (place / "x.txt").touch()
    if content == "foreign":
        (place / "run_info.json").write_text("{}")
    if content in (None, "empty"):
        live.refuse_occupied(place)
        return
    with pytest.raises(ExportRefused):
        live.refuse_occupied(place)
