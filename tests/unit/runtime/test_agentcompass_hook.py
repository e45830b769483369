"""The live hook, on real runs that are acted again by a stand-in for AgentCompass."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledger.events import AttemptFinished
from ledger.fold import fold
from ledger.verify import verify
from ledger.view import LedgerView
from runtime.agentcompass_hook import RECIPE_DIR, runs, seams
from runtime.agentcompass_hook.book import RunBook
from runtime.agentcompass_hook.desk import Desk
from tests.agentcompass_runs import documents, exported, findings
from tests.agentcompass_stand_in import Acted, install
from tests.importer_runs import do_import, sample


@pytest.fixture(autouse=True)
def no_registry_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACL_SIGNING_KEY", raising=False)


@pytest.fixture(autouse=True)
def nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A run that a test leaves half way is given up, as when its process ends."""
    followed: list[runs.Followed] = []

    class Noted(runs.Followed):
        def __init__(self, run: Path, log: logging.Logger) -> None:
            super().__init__(run, log)
            followed.append(self)

    monkeypatch.setattr(runs, "Followed", Noted)
    # What a test reads must be on disk, however busy the machine is.
    monkeypatch.setitem(Desk.__init__.__kwdefaults__, "patience", 60.0)
    yield
    for one in followed:
        one.desk.finish()
    for thread in threading.enumerate():
        if thread.name == "acl-agentcompass":
            thread.join(60)
            assert not thread.is_alive()
    for one in followed:
        one._abandon()


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    found = install(monkeypatch)
    assert seams.attach(RECIPE_DIR)
    return found


def state_of(run: Path):
    with LedgerView.open(run) as view:
        return fold(view.events())


def acted(kinds: dict[str, type], tmp_path: Path, name: str = "k3-fatal") -> Acted:
    return Acted(kinds, sample(tmp_path / "source", name), tmp_path / "results" / name)


def test_a_live_ledger_tells_what_an_import_of_the_files_tells(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    run.act()
    run.end()
    live = state_of(run.run)
    imported = state_of(do_import(run.source, tmp_path / "imported").path)
    assert [one for one in verify(run.run) if one.severity == "broken"] == []
    assert live.sealed_size is not None
    assert (live.run_id, live.status, live.k) == (imported.run_id, imported.status, imported.k)
    assert live.counts() == imported.counts()
    assert live.metrics[-1][2].metrics == imported.metrics[-1][2].metrics
    told = {(task.id, a.number): (a.status, a.correct, a.score) for task, a in live.attempts()}
    there = {(t.id, a.number): (a.status, a.correct, a.score) for t, a in imported.attempts()}
    assert told == there
    retries = {task.id: task.retry_count for task in live.tasks.values()}
    assert retries == {task.id: task.retry_count for task in imported.tasks.values()}


def test_ledger_and_files_agree_and_an_edited_result_is_found(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    run.act()
    run.end()
    assert {one.code for one in findings(run.run, run.run)} <= {"tree_redacted"}
    victim = next(iter(sorted(run.run.glob("details/normal/*/attempt-2/result.json"))))
    victim.write_text(victim.read_text().replace("true", "false"))
    (found,) = (one for one in findings(run.run, run.run) if one.severity == "broken")
    path = victim.relative_to(run.run).as_posix()
    assert found.message == f"{path} is not what the ledger says"


def test_the_export_gives_the_files_of_the_run(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    run.act()
    run.end()
    tree = exported(run.run, tmp_path / "out")
    imported = exported(do_import(run.source, tmp_path / "imported").path, tmp_path / "other")
    told, there = documents(tree), documents(imported)
    kept = {path for path in there if not path.endswith(("checkpoint.json", "MANIFEST.json"))}
    assert {path: told[path] for path in kept} == {path: there[path] for path in kept}


def test_a_run_that_stops_half_way_keeps_what_was_acknowledged(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    run.act(count=2)
    state = state_of(run.run)
    assert (state.status, state.sealed_size) == ("interrupted", None)
    assert sum(task.has_detail for task in state.tasks.values()) == 2
    found = findings(run.run, run.run)
    assert {one.severity for one in found} <= {"unproven"}
    victim = next(iter(sorted(run.run.glob("details/*/*/attempt-2/result.json"))))
    victim.write_text("{}")
    assert "tree_differs" in {one.code for one in findings(run.run, run.run)}


def test_a_killed_run_exports_the_plans_that_were_recorded(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    run.act(count=2)
    told = documents(exported(run.run, tmp_path / "out"))["run_info.json"]
    plans = told["resolved_execution_plans"]
    assert plans
    assert all(plan == run.plans[task] for task, plan in plans.items())


def test_an_attempt_is_on_disk_when_the_call_that_saved_it_returns(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    seen = []
    original = kinds["RunAttemptCheckpointRepository"].save

    async def looking(self, checkpoint):
        await original(self, checkpoint)
        with LedgerView.open(run.run) as view:
            ends = [one.event for one in view.events() if isinstance(one.event, AttemptFinished)]
        seen.append((ends[-1].task, ends[-1].attempt))

    kinds["RunAttemptCheckpointRepository"].save = looking
    run.act(count=1)
    assert [number for _, number in seen] == [1, 2, 3]


def test_a_run_that_does_not_name_the_directory_is_not_recorded(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin(recipe_dirs=["/somewhere/else"])
    run.act(count=1)
    run.end()
    assert not (run.run / "ledger.sqlite").exists()


def test_what_the_ledger_refuses_never_reaches_the_run_and_is_told_once(
    kinds, tmp_path, monkeypatch, caplog
):
    def refused(self, *given):
        raise ValueError("our own fault")

    monkeypatch.setattr(RunBook, "planned", refused)
    run = acted(kinds, tmp_path)
    run.begin()
    run.act()
    run.end()
    told = [one for one in caplog.records if one.levelno >= logging.ERROR]
    words = "nothing more is recorded: ValueError: our own fault; the run goes on"
    assert [one.getMessage() for one in told] == [f"acl: the ledger of run k3-fatal: {words}"]
    # What was recorded before stays, and can be read.
    assert state_of(run.run).tasks


def test_a_fault_in_reading_what_was_told_never_reaches_the_run(
    kinds, tmp_path, monkeypatch, caplog
):
    def broken(self, this, told, given):
        raise KeyError("no such argument")

    monkeypatch.setattr(runs.LiveRuns, "after_save_partial_result", broken)
    run = acted(kinds, tmp_path)
    run.begin()
    run.act()
    run.end()
    told = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
    assert len(told) == 1
    assert "save_partial_result: KeyError" in told[0]


@pytest.mark.parametrize("obstacle", ["a ledger", "a directory", "a key"])
def test_a_ledger_that_cannot_be_made_is_told_and_the_run_goes_on(
    kinds, tmp_path, monkeypatch, caplog, obstacle
):
    if obstacle == "a key":
        monkeypatch.setenv("ACL_SIGNING_KEY", str(tmp_path / "nothing"))
    else:
        raw = kinds["RunStore"].write_run_info.__wrapped__

        def in_the_way(self, output_dir, request_payload, params):
            raw(self, output_dir, request_payload, params)
            if obstacle == "a ledger":
                (self.run / "ledger.sqlite").write_text("taken")
            else:
                (self.run / "ledger.sqlite").mkdir()

        kinds["RunStore"].write_run_info = in_the_way
        seams.attach(RECIPE_DIR)
    run = acted(kinds, tmp_path)
    run.begin()
    run.act()
    run.end()
    told = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
    assert len(told) == 1
    assert "nothing more is recorded" in told[0]
    assert (run.run / "metrics.json").exists()


def test_errors_and_results_of_the_followed_methods_pass_as_they_are(monkeypatch, tmp_path):
    kinds = install(monkeypatch)
    marker = object()

    async def failing(self, results, params):
        raise RuntimeError("the disk of the run")

    async def giving(self, params, output_dir=None):
        return marker

    monkeypatch.setattr(kinds["RunStore"], "save_results", failing)
    monkeypatch.setattr(kinds["RunStore"], "save_analysis_summary", giving)
    assert seams.attach(RECIPE_DIR)
    store = kinds["RunStore"](tmp_path, tmp_path)
    with pytest.raises(RuntimeError, match="the disk of the run"):
        asyncio.run(store.save_results({}, {}))
    assert asyncio.run(store.save_analysis_summary({})) is marker


def test_following_twice_follows_once(kinds):
    before = kinds["RunStore"].write_run_info
    assert seams.attach(RECIPE_DIR)
    assert kinds["RunStore"].write_run_info is before


def test_a_release_that_lacks_what_is_followed_is_refused_by_name(monkeypatch, caplog):
    kinds = install(monkeypatch, version="2.0.0")
    del kinds["RunStore"].save_retry_detail
    assert not seams.attach(RECIPE_DIR)
    assert not hasattr(kinds["RunStore"].save_results, "_acl_follows")
    words = "AgentCompass 2.0.0 has no RunStore.save_retry_detail as 1.0.1 has"
    assert [one.getMessage() for one in caplog.records] == [f"acl: no ledger is written: {words}"]


def test_another_release_with_the_same_methods_is_followed_and_named(monkeypatch, caplog):
    install(monkeypatch, version="1.0.2")
    assert seams.attach(RECIPE_DIR)
    assert [one.getMessage() for one in caplog.records] == [
        "acl: made for AgentCompass 1.0.1, this is 1.0.2"
    ]


def test_what_is_saved_before_the_tasks_are_known_is_of_another_run(kinds, tmp_path, caplog):
    run = acted(kinds, tmp_path)
    prepare = kinds["UnifiedEvaluationRuntime"].prepare
    task = run.tasks()[0]["task_id"]
    key = SimpleNamespace(task_id=task, attempt_index=1)

    async def preparing(self):
        await run.repository.save(SimpleNamespace(key=key, value=None, error="taken over"))
        return await prepare(self)

    kinds["UnifiedEvaluationRuntime"].prepare = preparing
    run.begin()
    run.act()
    run.end()
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert state_of(run.run).tasks[task].attempts[1].status != "cancelled"


# -- the desk ---------------------------------------------------------------------------------------


def test_nobody_waits_longer_than_the_desk_is_patient():
    said, gate = [], threading.Event()
    desk = Desk(said.append, lambda: None, patience=0.01, budget=0.02)
    done = desk.put(gate.wait)
    desk.wait(done)
    asyncio.run(desk.wait_async(done))
    asyncio.run(desk.wait_async(done))
    assert not done.done()
    assert said == ["events come to disk later than they happen; the run does not wait"]
    gate.set()
    done.result(60)
    desk.finish()


def test_jobs_are_done_in_order_and_late_ones_too():
    made, gate = [], threading.Event()
    desk = Desk(lambda _: None, lambda: None, patience=0.01)
    desk.wait(desk.put(gate.wait))
    last = [desk.put(lambda n=n: made.append(n)) for n in range(5)][-1]
    gate.set()
    last.result(60)
    desk.finish()
    assert made == [0, 1, 2, 3, 4]


def test_more_jobs_than_can_wait_end_the_recording_and_what_is_left_is_given_up():
    said, gate, given_up = [], threading.Event(), threading.Event()
    desk = Desk(said.append, given_up.set, patience=0.01, most=1)
    dones = [desk.put(gate.wait) for _ in range(4)]
    assert dones[-1].done()
    assert said == [
        "nothing more is recorded: its events wait for the disk too long; the run goes on"
    ]
    assert not given_up.is_set()
    gate.set()
    assert given_up.wait(60)
    for done in dones:
        done.result(60)
    desk.finish()


def test_a_job_that_raises_is_the_last_one_and_what_is_left_is_given_up():
    said, given_up, made = [], threading.Event(), []

    def failing() -> None:
        raise SystemExit("no")

    desk = Desk(said.append, given_up.set)
    desk.put(failing).result(60)
    desk.put(lambda: made.append(1)).result(60)
    desk.finish()
    assert given_up.is_set()
    assert made == []
    assert said == ["nothing more is recorded: SystemExit: no; the run goes on"]


def test_a_run_that_saved_no_result_of_an_attempt_is_told(kinds, tmp_path):
    run = acted(kinds, tmp_path)
    run.begin()
    task = run.tasks()[0]["task_id"]
    plan = run.plans[task]["attempts"]["1"]
    asyncio.run(run.store.record_resolved_execution_plan(run.run, task, 1, plan))
    key = SimpleNamespace(task_id=task, attempt_index=1)
    gone = SimpleNamespace(key=key, value=None, error="the scheduler lost it")
    asyncio.run(run.repository.save(gone))
    attempt = state_of(run.run).tasks[task].attempts[1]
    assert attempt.status == "cancelled"
