"""A job that grows with its run."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporters import OutFile
from exporters.folder import Folder
from exporters.jobs import live
from exporters.jobs.job import JobOptions, TrialFiles, job_trials, trials_at
from exporters.jobs.job_result import job_result
from exporters.jobs.live import LiveJob
from exporters.jobs.place import write_job
from exporters.jobs.sums import Tasks, TrialSums
from exporters.jobs.trial import Trial
from ledger import events as ev
from ledger.errors import ExportRefused
from ledger.fold import fold
from ledger.state import RunState, TaskState
from ledger.store import Ledger
from ledger.view import LedgerView
from tests import job_runs as say

JOB = "bench-agent-model-1-20250615150640"


class Run:
    """A run that goes on, and whoever follows it."""

    def __init__(self, ledger: Ledger, artifacts: Path, options: JobOptions) -> None:
        self.ledger = ledger
        self.job = artifacts / "jobs" / (options.name or JOB)
        self.follow = LiveJob(artifacts, options)

    def record(self, *events: ev.AnyEvent) -> None:
        self.ledger.append(*events)
        self.look()

    def look(self) -> None:
        with LedgerView.open(self.ledger.path) as view:
            self.follow(fold(view.events()), view)

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.job / "result.json").read_text())
        return found

    def trials(self) -> list[str]:
        return sorted(entry.name for entry in self.job.iterdir() if entry.is_dir())


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with say.create(tmp_path / "run") as ledger:
        yield Run(ledger, tmp_path / "artifacts", JobOptions())


def whole(run: Run) -> dict[str, bytes]:
    return {
        path.relative_to(run.job).as_posix(): path.read_bytes()
        for path in run.job.rglob("*")
        if path.is_file() and path.name != "MANIFEST.json"
    }


def test_the_result_says_running_at_every_attempts_end_and_trials_appear(run: Run) -> None:
    run.record(*say.opening("a", "b"))
    assert run.result()["acl"]["status"] == "running"
    assert run.trials() == []
    assert {"config.yaml", "config.json"} <= {entry.name for entry in run.job.iterdir()}
    run.record(ev.TaskStarted(task="a"), ev.AttemptStarted(task="a", attempt=1))
    counts = run.result()["stats"]
    assert (counts["n_running_trials"], counts["n_pending_trials"]) == (1, 1)
    run.record(*say.call("a", 1, 0), *say.attempt("a")[1:])
    assert run.trials() == ["a"]
    found = run.result()
    assert (found["acl"]["status"], found["stats"]["n_completed_trials"]) == ("running", 1)
    assert found["finished_at"] is None
    assert json.loads((run.job / "a" / "result.json").read_text())["acl"]["correct"] is True
    assert not (run.job / "MANIFEST.json").exists()


def test_with_the_end_the_whole_job_takes_its_place(run: Run) -> None:
    run.record(*say.opening("a", "b"))
    run.record(*say.whole("a", say.attempt("a", 1, *say.call("a", 1, 0))))
    run.record(*say.whole("b", say.broken("b")))
    run.record(*say.ending())
    assert run.result()["acl"]["status"] == "completed"
    assert whole(run) == say.exported(run.ledger.path)
    assert json.loads((run.job / "MANIFEST.json").read_text())["acl"]["size"] == run.ledger.size
    assert [entry.name for entry in run.job.parent.iterdir()] == [JOB]


def test_between_ends_of_attempts_nothing_is_written(run: Run) -> None:
    run.record(*say.opening("a"), ev.TaskStarted(task="a"))
    run.record(ev.AttemptStarted(task="a", attempt=1))
    before = (run.job / "result.json").stat().st_ino
    run.record(*say.call("a", 1, 0))
    assert (run.job / "result.json").stat().st_ino == before
    run.record(*say.attempt("a")[1:])
    assert (run.job / "result.json").stat().st_ino != before


def test_a_trial_that_stands_there_is_not_written_again(run: Run) -> None:
    run.record(*say.opening("a", "b"), *say.whole("a", say.attempt("a")))
    before = (run.job / "a" / "result.json").stat().st_ino
    run.record(*say.whole("b", say.attempt("b")))
    assert run.trials() == ["a", "b"]
    assert (run.job / "a" / "result.json").stat().st_ino == before


def test_tasks_that_come_later_may_change_names_of_trials(run: Run) -> None:
    run.record(*say.opening("A"), *say.whole("A", say.attempt("A")))
    assert run.trials() == ["A"]
    more = ev.TasksSelected(
        benchmark="bench", benchmark_version="3", tasks=(ev.TaskRef(task_id="a"),)
    )
    run.record(more, *say.whole("a", say.attempt("a")))
    assert "A" not in run.trials()
    assert sorted(name.split("--")[0] for name in run.trials()) == ["A", "a"]


def test_a_second_attempt_is_a_second_trial(tmp_path: Path) -> None:
    with say.create(tmp_path / "run") as ledger:
        run = Run(ledger, tmp_path / "artifacts", JobOptions("mine", "delta"))
        run.record(*say.opening("a", execution={"k": 2}), ev.TaskStarted(task="a"))
        run.record(*say.attempt("a", 1, correct=False))
        assert run.trials() == ["a__1"]
        run.record(*say.attempt("a", 2))
        assert run.trials() == ["a__1", "a__2"]
        assert run.job.name == "mine"


def made_anew(run: Run) -> bytes:
    """The result of the job as it would be if the run were looked at for the first time."""
    with LedgerView.open(run.ledger.path) as view:
        state = fold(view.events())
        known = TrialSums.of(TrialFiles.of(trial, view).facts() for trial in job_trials(state))
        data = job_result(state, Tasks.of(state), known, live=True).data
    assert isinstance(data, bytes)
    return data


@pytest.mark.parametrize("strategy", ["all", "stop_on_correct"])
@pytest.mark.parametrize("k", [1, 2])
def test_every_state_of_the_result_is_that_of_a_job_made_anew(
    run: Run, k: int, strategy: str
) -> None:
    run.record(*say.opening("a", "b", "c", "d", "e", execution={"k": k, "strategy": strategy}))
    numbers = range(1, k + 1)
    for number in numbers:
        during = [*say.call("c", number, 0), say.retried("c", number, 1)]
        begin = [ev.TaskStarted(task="c")] if number == 1 else []
        start, *rest = say.attempt("c", number, *during, correct=number == 2, retries=1)
        run.record(*begin, start)
        assert (run.job / "result.json").read_bytes() == made_anew(run)
        run.record(*rest)
        assert (run.job / "result.json").read_bytes() == made_anew(run)
    run.record(ev.TaskFinished(task="c", reason="all_attempts", error=False))
    broken = [say.broken("a", number) for number in numbers]
    start, *rest = say.attempt("e", 1, *say.call("e", 1, 0), correct=k == 2)
    for events in (
        say.whole("a", *broken),
        say.whole("b", *(say.attempt("b", n, correct=None, score=n / 3) for n in numbers)),
        [ev.TaskStarted(task="d"), *say.cancelled("d")],
        [ev.TaskCancelled(task="d", reason="SIGINT"), ev.TaskStarted(task="e"), start],
        rest,
    ):
        run.record(*events)
        assert (run.job / "result.json").read_bytes() == made_anew(run)
    assert run.result()["stats"]["n_retries"] == k


def test_a_look_at_a_job_that_nobody_touched_reads_what_moved_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.record(*say.opening("a", "b", "c"), *say.whole("a", say.attempt("a")))
    looked_at: list[str] = []

    def watch(task: TaskState, *rest: Any, **how: Any) -> Iterator[Trial]:
        looked_at.append(task.id)
        return trials_at(task, *rest, **how)

    monkeypatch.setattr(live, "trials_at", watch)
    monkeypatch.setattr(live, "look", lambda *_: pytest.fail("the job was read again"))
    monkeypatch.setattr(Folder, "names", lambda _: pytest.fail("the directory was listed"))
    run.record(*say.whole("c", say.attempt("c")))
    assert looked_at == ["c"]
    assert run.trials() == ["a", "c"]
    run.record(*say.whole("b", say.attempt("b")))
    assert looked_at == ["c", "b"]
    assert (run.job / "result.json").read_bytes() == made_anew(run)


def test_a_trial_that_somebody_removed_stands_there_again_after_the_next_attempt(run: Run) -> None:
    run.record(*say.opening("a", "b"), *say.whole("a", say.attempt("a")))
    shutil.rmtree(run.job / "a")
    run.record(*say.whole("b", say.attempt("b")))
    assert run.trials() == ["a", "b"]
    assert (run.job / "result.json").read_bytes() == made_anew(run)


def test_a_disk_that_was_full_is_made_up_for_and_nothing_counts_twice(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.record(*say.opening("a", "b", "c"), *say.whole("a", say.attempt("a")))
    take = Folder.take

    def refuse(self: Folder, other: Folder, path: str) -> None:
        if path == "c":
            raise ExportRefused("the disk is full")
        take(self, other, path)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "take", refuse)
        with pytest.raises(ExportRefused, match="full"):
            run.record(*say.whole("b", say.attempt("b")), *say.whole("c", say.attempt("c")))
    assert run.trials() == ["a", "b"]
    run.look()
    assert run.trials() == ["a", "b", "c"]
    assert (run.job / "result.json").read_bytes() == made_anew(run)


@pytest.mark.parametrize("files", [1, 2])
def test_a_job_that_was_killed_after_its_first_files_is_gone_on_with(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    replace, written = Folder.replace, []

    def until(self: Folder, file: OutFile, **how: bool) -> object:
        if len(written) == files:
            raise KeyboardInterrupt
        written.append(file.path)
        return replace(self, file, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "replace", until)
        with pytest.raises(KeyboardInterrupt):
            run.record(*say.opening("a"), *say.whole("a", say.attempt("a")))
    assert len(written) == files
    run.follow = LiveJob(tmp_path / "artifacts", JobOptions())
    run.look()
    assert (run.job / "result.json").read_bytes() == made_anew(run)
    with LedgerView.open(run.ledger.path) as view:
        assert write_job(tmp_path / "artifacts", fold(view.events()), view).is_new


def test_while_somebody_else_has_the_job_nothing_is_written_and_then_made_up_for(run: Run) -> None:
    run.record(*say.opening("a"))
    with Folder.open(run.job) as other, other.locked():
        run.record(*say.whole("a", say.attempt("a")))
        assert run.trials() == []
    run.look()
    assert run.trials() == ["a"]


def test_an_export_that_comes_between_is_gone_on_from(run: Run, tmp_path: Path) -> None:
    run.record(*say.opening("a", "b"), *say.whole("a", say.attempt("a")))
    with LedgerView.open(run.ledger.path) as view:
        write_job(tmp_path / "artifacts", fold(view.events()), view)
    assert run.result()["acl"]["status"] == "interrupted"
    run.record(*say.whole("b", say.attempt("b")))
    assert run.result()["acl"]["status"] == "running"
    assert run.trials() == ["a", "b"]
    assert not (run.job / "MANIFEST.json").exists()
    run.record(*say.ending())
    assert whole(run) == say.exported(run.ledger.path)


def test_what_a_killed_run_left_is_replaced_by_the_next_export(run: Run, tmp_path: Path) -> None:
    run.record(*say.opening("a", "b"), *say.whole("a", say.attempt("a")))
    run.ledger.close()
    with say.opened(run.ledger.path) as (state, view):
        placed = write_job(tmp_path / "artifacts", state, view)
    assert placed.is_new
    assert run.result()["acl"]["status"] == "interrupted"


def test_two_runs_that_begin_in_one_second_have_a_job_each(run: Run, tmp_path: Path) -> None:
    run.record(*say.opening("a"))
    with say.create(tmp_path / "other", "other") as ledger:
        other = Run(ledger, tmp_path / "artifacts", JobOptions())
        other.record(*say.opening("a"))
        other.look()
        other.record(*say.whole("a", say.attempt("a")), *say.ending())
        run.record(*say.whole("a", say.attempt("a", 1, correct=False)), *say.ending())
        names = sorted(entry.name for entry in run.job.parent.iterdir())
        with say.opened(ledger.path) as (state, _):
            second = f"bench-agent-model-1-{state.ledger_id[:8]}-20250615150640"
    assert names == sorted([JOB, second])
    assert run.result()["acl"]["n_resolved"] == 0


def test_a_name_that_is_taken_is_refused(run: Run, tmp_path: Path) -> None:
    run.record(*say.opening("a"))
    with say.create(tmp_path / "other", "other") as ledger:
        other = Run(ledger, tmp_path / "artifacts", JobOptions(JOB))
        with pytest.raises(ExportRefused, match="another run's"):
            other.record(*say.opening("a"))


def test_before_the_run_exists_nothing_is_written(run: Run, tmp_path: Path) -> None:
    run.ledger.append(*say.opening("a"))
    with LedgerView.open(run.ledger.path) as view:
        run.follow(RunState(), view)
    assert not (tmp_path / "artifacts").exists()
