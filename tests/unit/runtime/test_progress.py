import errno
import json
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.fold import fold
from ledger.state import RunState
from ledger.store import Ledger
from runtime.progress import ProgressFiles, counting, measure
from tests import events_of as say

NOON = 1_000_000_000 * 10**9  # 2001-09-09T01:46:40Z


def state_of(tmp_path: Path, *events: ev.AnyEvent) -> RunState:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*events)
        with ledger.view() as view:
            return fold(view.events())


@pytest.fixture
def state(tmp_path: Path) -> RunState:
    return state_of(
        tmp_path,
        *say.opening("a", "b", "c", "d", "e"),
        *say.whole_task("a", say.attempt("a")),
        *say.whole_task("b", say.failed_attempt("b"), error=True),
        ev.TaskStarted(task="c"),
        ev.AttemptStarted(task="c", attempt=1),
        ev.TaskCancelled(task="d", reason="stopped"),
    )


def test_every_task_is_counted_in_one_place(state: RunState) -> None:
    found = measure(state, NOON, 30.0)
    parts = (found.pending, found.running, found.done, found.error, found.cancelled)
    assert parts == (1, 1, 1, 1, 1)
    assert sum(parts) == found.total
    assert (found.attempts, found.correct, found.retries) == (3, 1, 0)
    assert found.status == "running"


def test_a_run_that_is_measured_again_and_again_is_told_as_if_it_were_for_the_first_time(
    tmp_path: Path,
) -> None:
    steps: list[list[ev.AnyEvent]] = [
        say.opening("a", "b", "c"),
        [ev.TaskStarted(task="b"), ev.AttemptStarted(task="b", attempt=1)],
        [*say.whole_task("a", say.attempt("a")), *say.attempt("b")[1:]],
        [ev.TaskFinished(task="b", reason="all_attempts", error=False)],
        say.whole_task("c", say.failed_attempt("c"), error=True),
    ]
    tally, state = counting(), RunState()
    with Ledger.create(tmp_path) as ledger:
        for step in steps:
            ledger.append(*step)
            with ledger.view() as view:
                state = fold(view.events(since=state.size), state)
            assert measure(state, NOON, 5.0, tally=tally) == measure(state, NOON, 5.0)
    found = measure(state, NOON, 5.0, tally=tally)
    assert (found.done, found.error, found.correct, found.attempts) == (2, 1, 2, 3)


def test_the_time_left_is_guessed_from_the_tasks_worked_on(state: RunState) -> None:
    found = measure(state, NOON, 30.0)
    assert found.tasks_per_minute == 4.0  # two tasks in half a minute
    assert found.remaining_seconds == 30.0  # two are left


def test_before_the_first_task_nothing_is_guessed(tmp_path: Path) -> None:
    found = measure(state_of(tmp_path, *say.opening("a")), NOON, 5.0)
    assert (found.tasks_per_minute, found.remaining_seconds) == (None, None)


def test_a_run_that_is_over_without_an_end_was_interrupted(state: RunState) -> None:
    assert measure(state, NOON, 1.0, over=True).status == "interrupted"


def test_the_latest_is_replaced_and_the_lines_add_up(state: RunState, tmp_path: Path) -> None:
    files = ProgressFiles(tmp_path)
    files.write(measure(state, NOON, 1.0))
    files.write(measure(state, NOON, 2.0))
    assert json.loads((tmp_path / "progress.json").read_text())["elapsed_seconds"] == 2.0
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["elapsed_seconds"] for line in lines] == [1.0, 2.0]
    assert {path.name for path in tmp_path.glob("progress*")} == {"progress.json", "progress.jsonl"}


def test_where_progress_cannot_be_written_the_run_goes_on(
    state: RunState, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = ProgressFiles(tmp_path / "missing")
    files.write(measure(state, NOON, 1.0))
    files.write(measure(state, NOON, 2.0))
    assert caplog.text.count("progress cannot be written") == 1


def test_the_time_is_that_of_the_run_and_not_of_its_events(state: RunState) -> None:
    assert measure(state, NOON, 1.0).at == "2001-09-09T01:46:40.000000Z"


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    state: RunState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: str, **options: Any) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    ProgressFiles(tmp_path).write(measure(state, NOON, 1.0))
    assert list(tmp_path.glob("progress*")) == []
