import asyncio
import gc
import json
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.errors import AclError, ExportRefused, LedgerExists, NotStored, UsageError
from ledger.state import RunState
from ledger.store import Copy, Ledger, Receipt
from ledger.view import Blobs
from runtime import progress
from runtime.contracts import AttemptContext, StageError, Task
from runtime.interrupt import StopSignal
from runtime.results import MetricResult
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, evaluate, plugins, request, task
from tests.ledger_checks import check_ledger

TASKS = [task("a", category="x"), task("b")]


def right(t: Task, context: AttemptContext) -> str:
    return "right"


def test_a_run_goes_from_created_to_sealed(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, TASKS)
    assert [name for name in ran.types if name.startswith(("run", "tasks", "reuse"))] == [
        "run.created",
        "reuse.frozen",
        "run.started",
        "tasks.selected",
        "run.finished",
    ]
    assert ran.types[-4:] == [
        "summary.started",
        "metrics.computed",
        "run.finished",
        "ledger.sealed",
    ]
    assert (ran.outcome.status, ran.outcome.exit_code, ran.outcome.error) == ("completed", 0, None)
    assert ran.outcome.path is not None
    assert ran.outcome.path.parent == tmp_path / "listed" / "none"
    assert not (ran.outcome.path / "ledger.sqlite-wal").exists()
    check_ledger(ran.outcome.path)


def test_a_run_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    gc.disable()  # a thread must not need it to end
    try:
        evaluate(tmp_path, right, TASKS)
        for thread in set(threading.enumerate()) - before:
            thread.join(30)
            assert not thread.is_alive(), thread.name
    finally:
        gc.enable()


def test_the_first_event_tells_what_was_asked_and_what_ran(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, TASKS, k=2, model={"id": "m", "api_key": "sk-123456789012"})
    created = ran.of(ev.RunCreated)[0]
    assert created.run_id == ran.outcome.run_id
    assert created.request["execution"]["k"] == 2
    assert created.request["model"]["api_key"] == "********"
    assert created.packages["pydantic"]
    assert str(tmp_path) not in repr(created)


def test_the_plan_is_told_before_the_first_attempt(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, TASKS)
    (selected,) = ran.of(ev.TasksSelected)
    assert [ref.task_id for ref in selected.tasks] == ["a", "b"]
    assert selected.tasks[0].category == "x"
    assert selected.tasks[0].checksum == "sum of a"


def test_metrics_are_of_the_prefix_that_they_name(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, TASKS)
    (computed,) = ran.of(ev.MetricsComputed)
    assert computed.size == ran.types.index("metrics.computed")
    assert computed.metrics["correct.accuracy"] == 1.0
    assert ran.outcome.result is not None
    assert ran.outcome.result.metrics is not None
    assert ran.outcome.result.metrics.metrics == computed.metrics
    assert computed.counts == {"total": 2, "evaluated": 2, "error": 0, "missing": 0, "skipped": 0}


def test_no_task_at_all_is_a_run_too(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, [])
    assert ran.outcome.status == "completed"
    assert ran.of(ev.MetricsComputed)[0].metrics == {"evaluated_tasks": 0}


def test_paths_name_what_exists(tmp_path: Path) -> None:
    paths = evaluate(tmp_path, right, TASKS).outcome.paths
    assert set(paths) == {"output_dir", "ledger", "log_file", "progress_json", "progress_jsonl"}
    assert all(Path(path).exists() for path in paths.values())
    assert json.loads(Path(paths["progress_json"]).read_text())["status"] == "completed"


def test_an_explicit_id_must_be_new(tmp_path: Path) -> None:
    output = {"run_id": "mine", "run_name": "suite/first"}
    ran = evaluate(tmp_path, right, TASKS, output=output)
    assert ran.outcome.path == tmp_path / "suite" / "first" / "listed" / "none" / "mine"
    with pytest.raises(LedgerExists):
        evaluate(tmp_path, right, TASKS, output=output)


# -- what goes wrong ----------------------------------------------------------------------------


def test_a_request_that_does_not_fit_leaves_no_trace(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        evaluate(tmp_path, right, TASKS, harness={"id": "other"})
    assert list(tmp_path.iterdir()) == []


class Unloadable(Listed):
    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        raise OSError("no such data")


class Exiting(Listed):
    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        raise SystemExit(3)


OUTPUT = {"run_id": "mine"}


@pytest.mark.parametrize(("kind", "why"), [(Unloadable, "no such data"), (Exiting, "SystemExit")])
def test_tasks_that_cannot_be_loaded_leave_no_trace(
    tmp_path: Path, kind: type[Listed], why: str
) -> None:
    with pytest.raises(UsageError, match=f"the tasks of listed cannot be loaded: .*{why}"):
        evaluate(tmp_path, right, benchmark=kind(), output=OUTPUT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tasks", "params", "why"),
    [
        ([task("a"), task("b"), task("a")], {}, "tasks 0 and 2 have the same id 'a'"),
        ([task("a", category=3)], {}, "category of task 'a'"),
        (TASKS, {"limit": -1}, "limit: -1"),
        (TASKS, {"limit": "2"}, "limit: '2'"),
        (TASKS, {"limit": True}, "limit: True"),
        (TASKS, {"task_ids": "a"}, "task_ids: 'a' is not a list"),
        (TASKS, {"task_ids": ["b", "c"]}, "there is no task 'c'"),
    ],
)
def test_a_plan_that_cannot_be_leaves_no_trace(
    tmp_path: Path, tasks: list[Task], params: dict[str, Any], why: str
) -> None:
    around = Surroundings(plugins=plugins(Listed(tasks), Scripted(right)), environ={})
    asked = request(benchmark={"id": "listed", "params": params})
    with pytest.raises(UsageError, match=re.escape(why)):
        asyncio.run(run(asked, results_dir=tmp_path, surroundings=around))
    assert list(tmp_path.iterdir()) == []


def test_tasks_are_loaded_once(tmp_path: Path) -> None:
    loaded: list[int] = []

    class Counting(Listed):
        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            loaded.append(1)
            return super().load_tasks(params)

    assert evaluate(tmp_path, right, benchmark=Counting(TASKS)).outcome.status == "completed"
    assert loaded == [1]


def test_a_stop_while_tasks_are_loaded_begins_no_run(tmp_path: Path) -> None:
    stop, never = StopSignal(), threading.Event()

    class Hanging(Listed):
        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            stop.request("SIGTERM")
            never.wait(60)
            return []

    around = Surroundings(
        plugins=plugins(Hanging(), Scripted(right)), environ={}, grace_seconds=0.05
    )
    work = run(request(), results_dir=tmp_path, stop=stop, surroundings=around)
    outcome = asyncio.run(work)
    never.set()
    assert (outcome.status, outcome.exit_code, outcome.path) == ("cancelled", 143, None)
    assert list(tmp_path.iterdir()) == []


def test_metadata_that_no_ledger_holds_is_named_in_it(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, [task("a", metadata={"tags": {1, 2}, "level": 2})])
    (named,) = [one for one in ran.of(ev.ExtensionRecorded) if one.name == "acl.values-refused"]
    (found,) = named.payload
    assert (found["task"], found["path"]) == ("a", "$.metadata.tags")
    assert "set" in found["why"]


# -- secrets ------------------------------------------------------------------------------------

SECRET = "correct-horse-battery"
ENVIRON = {"SERVICE_TOKEN": SECRET}


def test_what_an_outcome_shows_is_without_secrets(tmp_path: Path) -> None:
    class Telling(Listed):
        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            raise ValueError(f"with {SECRET}")

    ran = evaluate(tmp_path, right, benchmark=Telling(TASKS), environ=ENVIRON)
    (end,) = ran.of(ev.RunFinished)
    assert ran.outcome.error == end.error
    assert "ValueError: with ********" in str(end.error.traceback)
    assert SECRET not in repr(ran.outcome)


def test_metrics_that_an_outcome_shows_are_those_of_the_ledger(tmp_path: Path) -> None:
    class Telling(Listed):
        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            return metrics.model_copy(update={"metrics": {f"of {SECRET}": 0.5}})

    ran = evaluate(tmp_path, right, benchmark=Telling(TASKS), environ=ENVIRON)
    assert ran.outcome.result is not None
    assert ran.outcome.result.metrics is not None
    assert ran.outcome.result.metrics.metrics == ran.of(ev.MetricsComputed)[0].metrics
    assert SECRET not in repr(ran.outcome)


def test_an_error_before_the_run_is_without_secrets(tmp_path: Path) -> None:
    class Telling(Listed):
        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            raise ValueError(f"with {SECRET}")

    with pytest.raises(UsageError) as caught:
        evaluate(tmp_path, right, benchmark=Telling(), environ=ENVIRON)
    assert "ValueError: with ********" in str(caught.value)


def test_no_secret_names_a_directory_and_the_run_is_found_again(tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "model": {"id": f"https://user:pa55word-x@host/{SECRET}"},
        "output": {"run_name": f"suite/{SECRET}"},
        "environ": ENVIRON,
    }
    first = evaluate(tmp_path, right, TASKS, **asked)
    again = evaluate(tmp_path, right, TASKS, runtime={"reuse": True}, **asked)
    names = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")]
    assert not [name for name in names if SECRET in name or "pa55word" in name]
    assert first.outcome.path is not None
    assert again.outcome.path is not None
    assert again.outcome.path.parent == first.outcome.path.parent
    named = {"reuse_run_id": first.outcome.run_id}
    third = evaluate(tmp_path, right, TASKS, runtime=named, **asked)
    assert len(third.of(ev.TaskReused)) == 2


def test_a_fatal_attempt_fails_the_run_and_metrics_are_computed_all_the_same(
    tmp_path: Path,
) -> None:
    def act(t: Task, context: AttemptContext) -> str:
        if t.task_id == "a":
            raise StageError("lost", "it is gone", fatal=True)
        return "right"

    ran = evaluate(tmp_path, act, TASKS)
    assert (ran.outcome.status, ran.outcome.exit_code) == ("failed", 1)
    assert ran.of(ev.MetricsComputed) != []
    assert ran.of(ev.RunFinished)[0].error.message == "1 attempts ended in a fatal error"


def test_a_fatal_error_that_another_try_mended_fails_nothing(tmp_path: Path) -> None:
    def act(t: Task, context: AttemptContext) -> str:
        if context.retry == 0:
            raise StageError("lost", "it is gone", fatal=True)
        return "right"

    ran = evaluate(tmp_path, act, TASKS, max_retries=1, retry_pattern_list=[])
    assert ran.outcome.status == "completed"


def test_metrics_that_cannot_be_computed_fail_the_run(tmp_path: Path) -> None:
    class Broken(Listed):
        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            raise ZeroDivisionError

    ran = evaluate(tmp_path, right, benchmark=Broken(TASKS))
    assert ran.outcome.status == "failed"
    assert ran.of(ev.MetricsComputed) == []
    assert [end.status for end in ran.of(ev.AttemptFinished)] == ["completed", "completed"]


def test_a_benchmark_may_add_metrics(tmp_path: Path) -> None:
    class Adding(Listed):
        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            return metrics.model_copy(update={"metrics": {**metrics.metrics, "own": 0.5}})

    ran = evaluate(tmp_path, right, benchmark=Adding(TASKS))
    assert ran.of(ev.MetricsComputed)[0].metrics["own"] == 0.5


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The disk is full for events of the types that are put into the list."""
    full: list[str] = []
    append = Ledger.append_group

    def failing(
        self: Ledger, batches: Sequence[Iterable[ev.AnyEvent | Copy]]
    ) -> list[Receipt | AclError]:
        lists = [list(batch) for batch in batches]
        for items in lists:
            for item in items:
                if not isinstance(item, Copy) and item.type in full:
                    why = f"{item.type} was not stored as event {self.size}: disk is full"
                    return [NotStored(why)] * len(batches)
        return append(self, lists)

    monkeypatch.setattr(Ledger, "append_group", failing)
    return full


def test_a_full_disk_ends_the_run_and_leaves_what_was_stored(
    tmp_path: Path, full_disk: list[str]
) -> None:
    def act(t: Task, context: AttemptContext) -> str:
        full_disk[:] = ["result.recorded", "attempt.finished", "run.finished"]
        return "right"

    ran = evaluate(tmp_path, act, TASKS, task_concurrency=1)
    assert (ran.outcome.status, ran.outcome.exit_code) == ("failed", 1)
    assert ran.outcome.error is not None
    assert "disk is full" in ran.outcome.error.message
    assert str(ran.outcome.paths["ledger"]) in ran.outcome.error.message
    assert ran.of(ev.AttemptStarted) != []
    assert ran.of(ev.RunFinished) == []
    assert ran.state.status == "interrupted"
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)


def test_a_result_that_cannot_be_stored_fails_its_attempt_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Ledger.append_group

    def failing(
        self: Ledger, batches: Sequence[Iterable[ev.AnyEvent | Copy]]
    ) -> list[Receipt | AclError]:
        lists = [list(batch) for batch in batches]
        large = any(
            isinstance(item, ev.ResultRecorded) and item.final_answer == "large"
            for items in lists
            for item in items
        )
        return [NotStored("no room")] * len(lists) if large else append(self, lists)

    monkeypatch.setattr(Ledger, "append_group", failing)
    ran = evaluate(
        tmp_path, lambda t, c: "large" if t.task_id == "a" else "right", TASKS, task_concurrency=1
    )
    first, second = ran.of(ev.AttemptFinished)
    assert (first.status, first.error.code) == ("run_error", "not_stored")
    assert second.status == "completed"


# -- following ----------------------------------------------------------------------------------


class Following:
    """A projector that remembers what it was shown."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.seen: list[tuple[str, int, bool]] = []

    def __call__(self, state: RunState, blobs: Blobs) -> None:
        done = sum(found.stage == "done" for found in state.tasks.values())
        self.seen.append((state.status, done, state.sealed_size is not None))


def test_projectors_see_the_run_while_it_goes_on_and_sealed_at_the_end(tmp_path: Path) -> None:
    made: list[Following] = []

    def make(directory: Path) -> Following:
        made.append(Following(directory))
        return made[-1]

    ran = evaluate(tmp_path, right, TASKS, projectors=[make])
    (following,) = made
    assert following.directory == ran.outcome.path
    assert following.seen[0][0] == "interrupted"
    assert following.seen[-1] == ("completed", 2, True)


def test_files_that_cannot_be_written_do_not_touch_the_run(tmp_path: Path) -> None:
    def make(directory: Path) -> Any:
        def refuse(state: RunState, blobs: Blobs) -> None:
            raise ExportRefused("somebody else's files")

        return refuse

    ran = evaluate(tmp_path, right, TASKS, projectors=[make])
    assert ran.state.status == "completed"
    assert ran.outcome.status == "completed"
    assert ran.outcome.exit_code == 5
    assert ran.outcome.error is not None
    assert ran.outcome.error.code == "export_refused"


def test_the_log_tells_the_steps_and_the_errors(tmp_path: Path) -> None:
    def fail(t: Task, context: AttemptContext) -> None:
        raise RuntimeError("no")

    ran = evaluate(tmp_path, fail, TASKS)
    text = Path(ran.outcome.paths["log_file"]).read_text()
    assert "2 tasks are selected" in text
    assert "task a, attempt 1 ended in run_error: RuntimeError: no" in text


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    ran = evaluate(tmp_path, right, TASKS)
    lines = Path(ran.outcome.paths["progress_jsonl"]).read_text().splitlines()
    last = json.loads(lines[-1])
    assert (last["status"], last["total"], last["done"]) == ("completed", 2, 2)
    assert set(last) == set(progress.Progress.__dataclass_fields__)


def test_a_plug_in_that_changes_the_working_directory_moves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)

    def leave(t: Task, context: AttemptContext) -> str:
        os.chdir(there)
        return "right"

    around = Surroundings(plugins=plugins(Listed(TASKS), Scripted(leave)), environ={})
    work = run(request(), results_dir=Path("results"), surroundings=around)
    outcome = asyncio.run(work)
    assert list(there.iterdir()) == []
    assert outcome.path is not None
    assert outcome.path.parts[0] == "results"
    assert (here / outcome.paths["ledger"]).is_file()
    assert (here / outcome.paths["progress_json"]).is_file()
