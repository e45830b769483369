import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import AclError
from tests.ledger_checks import check_ledger
from tests.run_comparison import metrics, projected, state_of
from tests.system.killed_run import TASKS, main

ROOT = Path(__file__).resolve().parents[2]


def directory(results: Path, run_id: str) -> Path:
    return results / "listed" / "none" / run_id


def killed_after(results: Path, run_id: str, events: int, source: str = "") -> Path:
    """Start a run in a process of its own, and kill it once it holds so many events."""
    command = [sys.executable, "-m", "tests.system.killed_run", str(results), run_id, source]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    path = directory(results, run_id)
    deadline = time.monotonic() + 60
    while size(path) < events:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return path


def size(path: Path) -> int:
    try:
        with LedgerView.open(path) as view:
            return view.size
    except (AclError, OSError):
        return 0


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("unbroken")
    assert asyncio.run(main(results, "whole")) == 0
    return directory(results, "whole")


# Before the plan, after it, within the first attempts, in the middle, towards the end.
@pytest.mark.parametrize("events", [1, 4, 23, 200, 420])
def test_a_run_that_was_killed_and_reused_gives_what_an_unbroken_one_gives(
    tmp_path: Path, unbroken: Path, events: int
) -> None:
    killed = killed_after(tmp_path, "killed", events)
    check_ledger(killed)
    before = state_of(killed)
    assert before.status == "interrupted"
    assert before.size >= events
    kept = {name for name, t in before.tasks.items() if t.stage == "done" and not t.has_error}

    assert asyncio.run(main(tmp_path, "again", "killed")) == 0
    again = directory(tmp_path, "again")
    check_ledger(again)
    state = state_of(again)
    assert {name for name, t in state.tasks.items() if t.origin is not None} == kept
    assert projected(again) == projected(unbroken)
    assert metrics(again) == metrics(unbroken)
    assert list(state.tasks) == [t.task_id for t in TASKS]


def test_two_kills_and_two_reuses_give_the_same(tmp_path: Path, unbroken: Path) -> None:
    killed_after(tmp_path, "first", 150)
    killed_after(tmp_path, "second", 300, source="first")
    assert asyncio.run(main(tmp_path, "third", "second")) == 0
    assert projected(directory(tmp_path, "third")) == projected(unbroken)
    assert metrics(directory(tmp_path, "third")) == metrics(unbroken)


def test_the_killed_source_does_not_change_by_a_byte(tmp_path: Path) -> None:
    killed = killed_after(tmp_path, "killed", 200)

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in killed.iterdir() if path.is_file()}

    before = files()
    assert "ledger.sqlite-wal" in before
    assert asyncio.run(main(tmp_path, "again", "killed")) == 0
    assert files() == before


def test_everything_reused_and_nothing_run_gives_the_same(tmp_path: Path, unbroken: Path) -> None:
    assert asyncio.run(main(tmp_path, "one")) == 0
    assert asyncio.run(main(tmp_path, "two", "one")) == 0
    assert state_of(directory(tmp_path, "two")).counts().reused == len(TASKS)
    assert projected(directory(tmp_path, "two")) == projected(unbroken)


@pytest.mark.parametrize("seconds", [0.6, 0.9, 1.2])
def test_wherever_a_run_is_killed_its_ledger_is_whole(tmp_path: Path, seconds: float) -> None:
    command = [sys.executable, "-m", "tests.system.killed_run", str(tmp_path), "killed"]
    process = subprocess.Popen(command, cwd=ROOT)
    time.sleep(seconds)
    process.kill()
    ended_by_itself = process.wait() == 0
    path = directory(tmp_path, "killed")
    if size(path):
        check_ledger(path)
        # On a quick machine the run may have been over already; a killed one never says it ended.
        assert ended_by_itself <= (state_of(path).finished is not None)
