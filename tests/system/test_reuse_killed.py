"""Runs that are killed while they judge or take over, and the runs that reuse them."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import AclError
from ledger.fold import fold
from ledger.state import RunState
from tests.ledger_checks import check_ledger
from tests.system.judged_run import TASKS, main

ROOT = Path(__file__).resolve().parents[2]


class Runs:
    """The runs of one results directory, and how often their agents were asked."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.asked = results / "asked"
        self.asked.touch()

    def path(self, run_id: str) -> Path:
        return self.results / "listed" / "none" / run_id

    def asks(self) -> int:
        return len(self.asked.read_text().splitlines())

    def whole(self, run_id: str, reused: str = "-") -> RunState:
        before = self.asks()
        assert asyncio.run(main(self.results, run_id, reused, 0.0, self.asked)) == 0
        check_ledger(self.path(run_id))
        state = state_of(self.path(run_id))
        assert state.status == "completed"
        # Every task has an answer: from an agent that was asked now, or from another run.
        alone = sum(attempt.origin is not None for _, attempt in state.attempts())
        copied = sum(task.origin is not None for task in state.tasks.values())
        assert self.asks() - before + alone + copied == len(TASKS)
        return state

    def killed(
        self, run_id: str, when: Callable[[RunState], bool], reused: str = "-", pause: float = 0.0
    ) -> RunState:
        """Start a run in a process of its own, and kill it as soon as `when` holds."""
        arguments = [str(self.results), run_id, reused, str(pause), str(self.asked)]
        command = [sys.executable, "-m", "tests.system.judged_run", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        ended = False
        while not ((state := state_of(self.path(run_id))).created and when(state)):
            assert not ended, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline
            ended = process.poll() is not None
            time.sleep(0.001)
        process.kill()
        process.communicate()
        check_ledger(self.path(run_id))
        return state_of(self.path(run_id))


def state_of(path: Path) -> RunState:
    try:
        with LedgerView.open(path) as view:
            return fold(view.events())
    except (AclError, OSError):
        return RunState()


def waiting(state: RunState) -> int:
    """How many attempts have their files and no verdict."""
    return sum(a.artifacts is not None and a.evaluation is None for _, a in state.attempts())


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_what_was_being_judged_when_its_run_was_killed_is_not_run_again(runs: Runs) -> None:
    killed = runs.killed("first", lambda state: waiting(state) >= 4, pause=30.0)
    assert waiting(killed) >= 4
    asked = runs.asks()
    state = runs.whole("second", "first")
    alone = [attempt for _, attempt in state.attempts() if attempt.origin is not None]
    assert len(alone) >= 4
    assert runs.asks() == asked + len(TASKS) - len(alone)
    assert state.counts().correct == len(TASKS)


def test_a_run_that_is_killed_before_its_verdicts_leaves_them_to_the_next(runs: Runs) -> None:
    runs.killed("first", lambda state: waiting(state) >= 4, pause=30.0)
    runs.killed("second", lambda state: waiting(state) >= 4, "first", pause=30.0)
    shutil.rmtree(runs.path("first"))
    state = runs.whole("third", "second")
    origins = {a.origin.run_id for _, a in state.attempts() if a.origin is not None}
    assert origins == {"second"}
    with LedgerView.open(runs.path("third")) as view:
        events = [r.event for r in view.events() if r.type == "attempt.reused"]
    assert sum(isinstance(e, ev.AttemptReused) and e.chained for e in events) >= 4


# Before the tasks are known, between that and the takeover, within what follows it.
@pytest.mark.parametrize("events", [1, 3, 4, 5, 40, 150])
def test_a_run_that_is_killed_while_it_takes_over_hides_no_older_source(
    runs: Runs, events: int
) -> None:
    runs.whole("first")
    before = runs.asks()
    killed = runs.killed("second", lambda state: state.size >= events, "newest")
    whole = [task for task in killed.tasks.values() if task.origin is not None]
    assert len(whole) in (0, len(TASKS)), "materialising is one transaction"
    if not whole:
        assert not (runs.path("second") / "run_info.json").exists()
    state = runs.whole("third", "newest")
    assert state.counts().reused == len(TASKS)
    assert runs.asks() == before


def test_the_files_of_a_killed_source_stay_as_they_are(runs: Runs) -> None:
    runs.killed("first", lambda state: waiting(state) >= 4, pause=30.0)

    def files() -> dict[str, tuple[bytes, int]]:
        found = (path for path in runs.path("first").rglob("*") if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

    before = files()
    assert any(name.endswith("-wal") for name in before)
    runs.whole("second", "first")
    assert files() == before
