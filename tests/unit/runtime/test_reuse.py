import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.canonical import BINARY_PIECE, Binary
from ledger.errors import NotALedger, RunNotFound, UsageError
from ledger.view import LedgerView
from runtime.contracts import AttemptContext, Task
from runtime.reuse import freeze_reuse_source
from tests.fake_plugins import Ran, evaluate, request, task
from tests.ledger_checks import check_ledger

TASKS = [task(name) for name in "abcd"]


class Agent:
    """Answers right but for `wrong`, fails on `broken`, and counts what it was asked."""

    def __init__(self, *, wrong: str = "", broken: str = "") -> None:
        self.wrong = wrong
        self.broken = broken
        self.asked: list[str] = []

    def __call__(self, t: Task, context: AttemptContext) -> Any:
        self.asked.append(t.task_id)
        if t.task_id in self.broken:
            raise RuntimeError("no")
        return "no" if t.task_id in self.wrong else {"text": "right", "long": "x" * 9000}


def source(results: Path, tasks: list[Task] = TASKS, **how: Any) -> Ran:
    return evaluate(results, Agent(wrong="b", broken="c"), tasks, output={"run_id": "first"}, **how)


def reusing(results: Path, agent: Agent, tasks: list[Task] = TASKS, **how: Any) -> Ran:
    runtime = how.pop("runtime", {"reuse_run_id": "first"})
    return evaluate(results, agent, tasks, runtime=runtime, **how)


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
        assert event.leaves == Binary(leaves + bytes(-len(leaves) % BINARY_PIECE))
        assert (event.chained, event.lineage) == (False, None)
        assert event.checkpoint == last_note
        assert list(event.sequence) == [r.seq for r in first.events if r.task == event.task]


def test_the_decision_is_told_before_the_run_starts(tmp_path: Path) -> None:
    first = source(tmp_path)
    ran = reusing(tmp_path, Agent())
    (frozen,) = ran.of(ev.ReuseFrozen)
    assert (frozen.mode, frozen.run_id) == ("explicit", "first")
    assert (frozen.ledger_id, frozen.size) == (first.state.ledger_id, first.state.size)
    assert frozen.root == first.state.root.hex()


def test_the_source_does_not_change_by_a_byte(tmp_path: Path) -> None:
    first = source(tmp_path)
    assert first.outcome.path is not None
    before = digests(first.outcome.path)
    reusing(tmp_path, Agent())
    assert digests(first.outcome.path) == before


def test_a_task_whose_input_changed_runs_again(tmp_path: Path) -> None:
    source(tmp_path)
    changed = [Task("a", ground_truth="right", checksum="another"), *TASKS[1:]]
    agent = Agent()
    ran = reusing(tmp_path, agent, changed)
    assert sorted(agent.asked) == ["a", "c"]
    assert "task a changed" in Path(ran.outcome.paths["log_file"]).read_text()


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
    assert "were run with k=1" in Path(ran.outcome.paths["log_file"]).read_text()


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
    lineage = by_task["a"].lineage
    assert lineage["source_run_id"] == "first"
    assert lineage["source_ledger_id"] == first.state.ledger_id
    assert by_task["a"].source_ledger_id == second.state.ledger_id
    assert [r.address for r in third.events if r.task == "a"][1:] == [
        r.address for r in first.events if r.task == "a"
    ]
    assert third.outcome.path is not None
    check_ledger(third.outcome.path)


def test_a_chain_of_three_nests_the_lineage(tmp_path: Path) -> None:
    source(tmp_path)
    for before, name in (("first", "second"), ("second", "third")):
        runtime, output = {"reuse_run_id": before}, {"run_id": name}
        evaluate(tmp_path, Agent(), TASKS, runtime=runtime, output=output)
    ran = reusing(tmp_path, Agent(), runtime={"reuse_run_id": "third"})
    lineage = ran.of(ev.TaskReused, "a")[0].lineage
    assert lineage["source_run_id"] == "second"
    assert lineage["lineage"]["source_run_id"] == "first"
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


def test_copies_of_an_attempt_keep_its_identity(tmp_path: Path) -> None:
    first = source(tmp_path)
    ran = reusing(tmp_path, Agent())
    theirs = first.state.tasks["a"].attempts[1].identity
    assert ran.state.tasks["a"].attempts[1].identity == theirs


def test_large_sources_bring_their_leaves_once(tmp_path: Path) -> None:
    many = [task(f"t{number}") for number in range(150)]
    source(tmp_path, many)
    ran = reusing(tmp_path, Agent(), many)
    assert len(ran.of(ev.TaskReused)) == 150
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


# -- where there is nothing to reuse ----------------------------------------------------------


def test_an_id_that_does_not_exist_is_refused_before_any_output(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="'first'"):
        reusing(tmp_path, Agent())
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_a_ledger_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "listed" / "none" / "first").mkdir(parents=True)
    with pytest.raises(NotALedger):
        reusing(tmp_path, Agent())


def test_a_link_is_no_source(tmp_path: Path) -> None:
    source(tmp_path)
    root = tmp_path / "listed" / "none"
    (root / "link").symlink_to(root / "first")
    with pytest.raises(UsageError, match="symbolic link"):
        reusing(tmp_path, Agent(), runtime={"reuse_run_id": "link"})


def test_without_reuse_nothing_is_looked_for(tmp_path: Path) -> None:
    source(tmp_path)
    ran = reusing(tmp_path, Agent(), runtime={})
    assert ran.of(ev.ReuseFrozen)[0].mode == "none"
    assert ran.state.counts().reused == 0


def test_a_damaged_task_of_the_source_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source(tmp_path)
    broken = first.of(ev.ResultRecorded, "b")[0]
    seq = next(r.seq for r in first.events if r.event is broken)
    raw = LedgerView.raw

    def erased(self: LedgerView, wanted: int) -> tuple[bytes, bytes]:
        if wanted == seq:
            raise RunNotFound(f"the body of event {seq} was erased")
        return raw(self, wanted)

    monkeypatch.setattr(LedgerView, "raw", erased)
    agent = Agent()
    ran = reusing(tmp_path, agent)
    assert sorted(agent.asked) == ["b", "c"]
    assert [event.task for event in ran.of(ev.TaskReused)] == ["a", "d"]


# -- implicit ---------------------------------------------------------------------------------


def run_info(ran: Ran, started_at: str) -> None:
    assert ran.outcome.path is not None
    document = json.dumps({"started_at": started_at})
    (ran.outcome.path / "run_info.json").write_text(document)


def test_the_newest_run_with_a_run_info_is_taken(tmp_path: Path) -> None:
    for name, started in (("old", "2026-01-01"), ("new", "2026-03-01"), ("mid", "2026-02-01")):
        run_info(evaluate(tmp_path, Agent(), TASKS, output={"run_id": name}), started)
    evaluate(tmp_path, Agent(), TASKS, output={"run_id": "without"})
    frozen = freeze_reuse_source(request(runtime={"reuse": True}), tmp_path)
    frozen.close()
    assert frozen.source is not None
    assert (frozen.source.mode, frozen.source.run_id) == ("implicit", "new")


def test_a_run_that_was_killed_before_it_took_over_hides_no_older_source(tmp_path: Path) -> None:
    run_info(source(tmp_path), "2026-01-01")
    (tmp_path / "listed" / "none" / "killed").mkdir()
    agent = Agent()
    ran = reusing(tmp_path, agent, runtime={"reuse": True})
    assert agent.asked == ["c"]
    assert ran.of(ev.ReuseFrozen)[0].run_id == "first"


def test_candidates_of_another_model_or_without_a_ledger_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_info(evaluate(tmp_path, Agent(), TASKS, model={"id": "a/b"}), "2026-02-01")
    empty = tmp_path / "listed" / "a_b" / "empty"
    empty.mkdir()
    (empty / "run_info.json").write_text("{")
    asked = request(runtime={"reuse": True}, model={"id": "a:b"})
    assert freeze_reuse_source(asked, tmp_path).source is None
    assert "is not reused: it is of another model, 'a/b'" in caplog.text
    assert "'empty' is not reused" in caplog.text


def test_without_any_candidate_the_run_is_a_new_one(tmp_path: Path) -> None:
    ran = reusing(tmp_path, Agent(), runtime={"reuse": True})
    assert ran.of(ev.ReuseFrozen)[0].mode == "none"
    assert ran.outcome.status == "completed"


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
