import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import AclError
from ledger.fold import fold
from ledger.state import RunState
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]


def state_of(results: Path) -> RunState | None:
    try:
        with LedgerView.open(results / "listed" / "none" / "r") as view:
            return fold(view.events())
    except (AclError, OSError):
        return None


def started(results: Path, *more: str) -> "subprocess.Popen[bytes]":
    """Start the run, and return when its quick task is done and the slow one at work."""
    command = [sys.executable, "-m", "tests.system.signalled_run", str(results), *more]
    process = subprocess.Popen(command, cwd=ROOT)

    def at_work(state: RunState) -> bool:
        if not state.tasks or state.tasks["quick"].stage != "done":
            return False
        attempts = state.tasks["slow"].attempts.values()
        return any(attempt.phase == "run_harness" for attempt in attempts)

    wait_for(results, at_work)
    return process


def wait_for(results: Path, happened: Callable[[RunState], bool]) -> None:
    deadline = time.monotonic() + 60
    while (state := state_of(results)) is None or not happened(state):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_run_cleanly(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    assert process.wait(60) == code
    path = tmp_path / "listed" / "none" / "r"
    check_ledger(path)
    state = state_of(tmp_path)
    assert state is not None
    assert state.status == "cancelled"
    assert state.interrupts == [number.name]
    assert state.sealed_size == state.size
    stages = {name: found.stage for name, found in state.tasks.items()}
    assert stages == {"quick": "done", "slow": "cancelled", "never": "cancelled"}
    assert state.tasks["slow"].attempts[1].status == "cancelled"


def test_the_second_signal_leaves_at_once_and_the_ledger_is_whole(tmp_path: Path) -> None:
    process = started(tmp_path, "stubborn")
    process.send_signal(signal.SIGINT)
    wait_for(tmp_path, lambda state: state.interrupts != [])
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    check_ledger(tmp_path / "listed" / "none" / "r")
    state = state_of(tmp_path)
    assert state is not None
    assert state.status == "interrupted"
