import hashlib
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from exporters.summary import summary
from ledger import events as ev
from ledger.canonical import BINARY_PIECE, Binary
from ledger.codec import Header
from ledger.errors import RunNotFound, StorageFailed
from ledger.view import LedgerView
from runtime.contracts import AttemptContext, Task
from runtime.importers import import_path
from tests.fake_plugins import Ran, evaluate, task
from tests.importer_runs import create
from tests.ledger_checks import check_ledger
from tests.reuse_runs import TASKS, Agent, exported, reusing, source


def digests(directory: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.iterdir())
    }


def test_what_ended_without_an_error_is_not_run_again(tmp_path: Path) -> None:
    source(tmp_path)
    agent = Agent()
    ran = reusing(tmp_path, agent)
    assert agent.asked == ["c"]
    assert ran.outcome.status == "completed"
    counts = ran.state.counts()
    assert (counts.total, counts.reused, counts.evaluated, counts.error) == (4, 3, 4, 0)
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


@pytest.mark.parametrize("nth", range(0, 24, 3))
def test_a_source_that_cannot_be_read_for_a_moment_costs_tasks_that_run_again_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """What names the source stands in the events of the first task alone."""
    source(tmp_path)
    real, left = LedgerView.stored, [nth]

    def stored(view: LedgerView, sequence: Iterable[int]) -> Iterator[tuple[Header, bytes]]:
        for one in real(view, sequence):
            left[0] -= 1
            if left[0] == -1:
                raise StorageFailed("no more files can be opened")
            yield one

    monkeypatch.setattr(LedgerView, "stored", stored)
    agent = Agent()
    ran = reusing(tmp_path, agent)
    assert left[0] < 0
    assert ran.outcome.status == "completed"
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)
    assert sorted([*agent.asked, *(event.task for event in ran.of(ev.TaskReused))]) == [*"abcd"]
    assert len(agent.asked) > 1


def test_copies_are_verbatim_and_say_so(tmp_path: Path) -> None:
    first = source(tmp_path)
    ran = reusing(tmp_path, Agent())
    before = [r for r in first.events if r.task == "a"]
    copies = [r for r in ran.events if r.task == "a" and r.type != "task.reused"]
    assert [r.address for r in copies] == [r.address for r in before]
    assert [r.wall_ns for r in copies] == [r.wall_ns for r in before]
    assert all(r.copied for r in copies)
    assert [r.event for r in copies] == [r.event for r in before]


def test_every_reused_task_names_its_source(tmp_path: Path) -> None:
    first = source(tmp_path)
    ran = reusing(tmp_path, Agent())
    reused = ran.of(ev.TaskReused)
    assert [event.task for event in reused] == ["a", "b", "d"]
    assert first.outcome.path is not None
    with LedgerView.open(first.outcome.path) as view:
        leaves, size, root = view.leaves(), view.size, view.root()
        last_note = list(view.checkpoints())[-1][1]
    for event in reused:
        assert event.source_run_id == "first"
        assert event.source_path == "listed/none/first"
        assert event.source_ledger_id == first.state.ledger_id
        assert (event.size, event.root) == (size, root.hex())
        assert event.leaves == Binary(leaves + bytes(2 * BINARY_PIECE - len(leaves)))
        assert (event.chained, event.lineage) == (False, None)
        assert event.checkpoint == last_note
        assert list(event.sequence) == [r.seq for r in first.events if r.task == event.task]


def test_the_source_does_not_change_by_a_byte(tmp_path: Path) -> None:
    first = source(tmp_path)
    assert first.outcome.path is not None
    before = digests(first.outcome.path)
    reusing(tmp_path, Agent())
    assert digests(first.outcome.path) == before


def test_only_selected_tasks_are_taken_over(tmp_path: Path) -> None:
    source(tmp_path)
    agent = Agent()
    ran = reusing(tmp_path, agent, [task("d"), task("new")])
    assert agent.asked == ["new"]
    assert [event.task for event in ran.of(ev.TaskReused)] == ["d"]


def test_reused_tasks_keep_their_own_attempts_and_the_difference_is_told(tmp_path: Path) -> None:
    source(tmp_path)
    ran = reusing(tmp_path, Agent(), k=2)
    assert len(ran.state.tasks["a"].attempts) == 1
    assert len(ran.state.tasks["c"].attempts) == 2
    log = Path(ran.outcome.paths["log_file"]).read_text()
    assert "3 of 3 tasks reused from run 'first' keep other attempts" in log
    assert "with k=2, strategy all: 3 tasks hold 1 attempt" in log
    shown = summary(ran.state).data
    assert isinstance(shown, bytes)
    told = "- Reused tasks with another number of attempts than this run makes (k=2, strategy all)"
    assert f"{told}: 3, 3 with 1" in shown.decode()


def test_copies_of_an_attempt_keep_its_identity(tmp_path: Path) -> None:
    first = source(tmp_path)
    ran = reusing(tmp_path, Agent())
    theirs = first.state.tasks["a"].attempts[1].identity
    assert ran.state.tasks["a"].attempts[1].identity == theirs


def test_the_leaves_of_a_source_are_one_blob_that_every_task_names(tmp_path: Path) -> None:
    many = [task(f"t{number}") for number in range(20)]
    source(tmp_path, many)
    ran = reusing(tmp_path, Agent(), many)
    reused = [r for r in ran.events if r.type == "task.reused"]
    assert len(reused) == 20
    assert max(r.header.body_length for r in reused) < 2000
    assert ran.outcome.path is not None
    with sqlite3.connect(ran.outcome.path / "ledger.sqlite") as ledger:
        (blobs,) = ledger.execute("SELECT count(*), sum(len) FROM blob WHERE len > 60000")
    ledger.close()
    assert blobs == (2, 2 * BINARY_PIECE)
    check_ledger(ran.outcome.path)


def test_a_damaged_task_of_the_source_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source(tmp_path)
    broken = first.of(ev.ResultRecorded, "b")[0]
    seq = next(r.seq for r in first.events if r.event is broken)
    real = LedgerView.stored

    def erased(view: LedgerView, sequence: Iterable[int]) -> Iterator[tuple[Header, bytes]]:
        for header, body in real(view, sequence):
            if header.seq == seq:
                raise RunNotFound(f"the body of event {seq} was erased")
            yield header, body

    monkeypatch.setattr(LedgerView, "stored", erased)
    agent = Agent()
    ran = reusing(tmp_path, agent)
    assert sorted(agent.asked) == ["b", "c"]
    assert [event.task for event in ran.of(ev.TaskReused)] == ["a", "d"]


def test_a_read_only_source_can_be_reused(tmp_path: Path) -> None:
    first = source(tmp_path)
    path = first.outcome.path
    assert path is not None
    moved = tmp_path / "other" / "listed" / "none" / "first"
    moved.parent.mkdir(parents=True)
    shutil.copytree(path, moved)
    moved.chmod(0o555)
    try:
        ran = reusing(tmp_path / "other", Agent())
    finally:
        moved.chmod(0o755)
    assert ran.state.counts().reused == 3


def test_a_task_whose_input_changed_runs_again(tmp_path: Path) -> None:
    source(tmp_path)
    changed = [Task("a", ground_truth="right", checksum="another"), *TASKS[1:]]
    agent = Agent()
    ran = reusing(tmp_path, agent, changed)
    assert sorted(agent.asked) == ["a", "c"]
    assert "task a changed" in Path(ran.outcome.paths["log_file"]).read_text()


def test_a_chain_keeps_the_whole_lineage(tmp_path: Path) -> None:
    first = source(tmp_path)
    second = evaluate(
        tmp_path, Agent(), TASKS, runtime={"reuse_run_id": "first"}, output={"run_id": "second"}
    )
    agent = Agent()
    third = reusing(tmp_path, agent, runtime={"reuse_run_id": "second"})
    assert agent.asked == []
    by_task = {event.task: event for event in third.of(ev.TaskReused)}
    assert [by_task[name].chained for name in "abcd"] == [True, True, False, True]
    (lineage,) = by_task["a"].lineage.items()
    assert lineage[0] == second.state.ledger_id
    assert lineage[1]["source_run_id"] == "first"
    assert lineage[1]["source_ledger_id"] == first.state.ledger_id
    assert by_task["a"].source_ledger_id == second.state.ledger_id
    assert [r.address for r in third.events if r.task == "a"][1:] == [
        r.address for r in first.events if r.task == "a"
    ]
    assert third.outcome.path is not None
    check_ledger(third.outcome.path)


def test_a_chain_of_three_tells_what_each_ledger_told(tmp_path: Path) -> None:
    source(tmp_path)
    ids = {}
    for before, name in (("first", "second"), ("second", "third")):
        runtime, output = {"reuse_run_id": before}, {"run_id": name}
        run = evaluate(tmp_path, Agent(), TASKS, runtime=runtime, output=output)
        ids[name] = run.state.ledger_id
    ran = reusing(tmp_path, Agent(), runtime={"reuse_run_id": "third"})
    lineage = ran.of(ev.TaskReused, "a")[0].lineage
    told = {name: lineage[ledger]["source_run_id"] for name, ledger in ids.items()}
    assert told == {"second": "first", "third": "second"}
    assert lineage[ids["third"]]["source_ledger_id"] == ids["second"]
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


def test_where_equality_is_required_an_equal_source_is_reused_whatever_its_k(
    tmp_path: Path,
) -> None:
    source(tmp_path)
    agent = Agent()
    runtime = {"reuse_run_id": "first", "reuse_require_equal": True}
    ran = reusing(tmp_path, agent, runtime=runtime, k=2)
    assert ran.state.counts().reused == 3
    assert [one.path for one in ran.of(ev.ReuseFrozen)[0].differences] == ["execution.k"]
    log = Path(ran.outcome.paths["log_file"]).read_text()
    assert "3 of 3 tasks reused from run 'first' keep other attempts than are made now" in log


def test_tasks_that_stopped_at_the_right_answer_are_as_asked_for(tmp_path: Path) -> None:
    how: dict[str, Any] = {"k": 3, "strategy": "stop_on_correct"}
    source(tmp_path, [TASKS[0]], **how)
    ran = reusing(tmp_path, Agent(), [TASKS[0]], **how)
    assert "keep other attempts" not in Path(ran.outcome.paths["log_file"]).read_text()


# -- changed input --------------------------------------------------------------------------------


def test_a_changed_task_is_taken_over_where_that_is_asked_for(tmp_path: Path) -> None:
    source(tmp_path)
    changed = [Task("a", ground_truth="right", checksum="another"), *TASKS[1:]]
    agent = Agent()
    runtime = {"reuse_run_id": "first", "reuse_changed": True}
    ran = reusing(tmp_path, agent, changed, runtime=runtime)
    assert agent.asked == ["c"]
    log = Path(ran.outcome.paths["log_file"]).read_text()
    assert "task a changed since run first: reused all the same" in log
    assert [event.source_checksum for event in ran.of(ev.TaskReused)] == ["sum of a", None, None]


@pytest.mark.parametrize(("before", "now"), [(None, "sum"), ("sum", None)])
def test_a_task_of_which_nobody_can_tell_whether_it_changed_is_reused_and_that_is_told(
    tmp_path: Path, before: str | None, now: str | None
) -> None:
    """R1 compares no checksums: only a change that is known keeps a task from being reused."""
    source(tmp_path, [Task("a", ground_truth="right", checksum=before)])
    agent = Agent()
    ran = reusing(tmp_path, agent, [Task("a", ground_truth="right", checksum=now)])
    assert agent.asked == []
    assert "of 1 task nobody can tell" in Path(ran.outcome.paths["log_file"]).read_text()
    assert ran.of(ev.TaskReused)[0].source_checksum is None


# -- sources of other kinds -----------------------------------------------------------------------


@pytest.mark.parametrize("runtime", [{"reuse_run_id": "files"}, {"reuse": True}])
def test_exported_files_are_reused_like_their_run(tmp_path: Path, runtime: Any) -> None:
    first = source(tmp_path)
    root = tmp_path / "listed" / "none"
    exported(first, root / "files")
    shutil.rmtree(root / "first")
    before = digests(root / "files" / "details")
    agent = Agent()
    ran = reusing(tmp_path, agent, runtime=runtime)
    assert agent.asked == ["c"]
    assert ran.state.counts().reused == 3
    assert ran.state.tasks["b"].correct is False
    assert digests(root / "files" / "details") == before
    (frozen,) = ran.of(ev.ReuseFrozen)
    assert (frozen.run_id, frozen.path) == ("first", "listed/none/files")
    for event in ran.of(ev.TaskReused):
        assert event.claim is not None
        assert event.claim.ledger_id == first.state.ledger_id
        assert event.source_ledger_id != first.state.ledger_id
    log = Path(ran.outcome.paths["log_file"]).read_text()
    assert "is reused from exported files in listed/none/files" in log
    assert ran.outcome.path is not None
    claims = [f.message for f in check_ledger(ran.outcome.path) if f.code == "origin_claim"]
    assert sum(first.state.ledger_id[:16] in message for message in claims) == 3


def test_a_run_that_goes_on_is_reused_as_it_is_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    again: list[Ran] = []

    def reuse_meanwhile(t: Task, context: AttemptContext) -> Any:
        if t.task_id == "c":
            again.append(in_a_thread(lambda: reusing(tmp_path, agent)))
        return "right"

    agent = Agent()
    first = evaluate(
        tmp_path, reuse_meanwhile, TASKS, output={"run_id": "first"}, task_concurrency=1
    )
    (ran,) = again
    (frozen,) = ran.of(ev.ReuseFrozen)
    assert frozen.running is True
    assert frozen.size < first.state.size
    assert sorted(agent.asked) == ["c", "d"]
    assert "run 'first' is being written by process" in caplog.text
    assert first.outcome.path is not None
    assert not (first.outcome.path / "ledger.sqlite-wal").exists()
    for path in (first.outcome.path, ran.outcome.path):
        assert path is not None
        check_ledger(path)


def in_a_thread(call: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_files_of_an_import_are_not_taken_along(tmp_path: Path) -> None:
    """They are originals of the import, not events of the task."""
    first = source(tmp_path)
    exported(first, tmp_path / "files")
    report = import_path(tmp_path / "files", results_dir=tmp_path / "imported", create=create)
    agent = Agent()
    ran = reusing(tmp_path / "imported", agent, runtime={"reuse_run_id": report.run_id})
    assert agent.asked == ["c"]
    assert "original.recorded" not in ran.types


def test_whoever_waits_is_told_at_once_what_to_know_of_the_reuse(tmp_path: Path) -> None:
    many = [task(f"t{number:02}") for number in range(12)]
    evaluate(tmp_path, Agent(), many, output={"run_id": "first"})
    changed = [Task(t.task_id, ground_truth="right", checksum="new") for t in many]
    said: list[str] = []
    model = {"id": "none", "params": {"top_p": 2}}
    reusing(tmp_path, Agent(), changed, model=model, alarm=said.append)
    assert said == [
        "run 'first' was run otherwise: model.params.top_p was null, is 2",
        "12 tasks changed since run 'first', run again: "
        + ", ".join(repr(t.task_id) for t in many[:10])
        + " and 2 more",
    ]
