import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView
from ledger.errors import AclError
from ledger.fold import fold
from ledger.state import RunState
from tests.ledger_checks import check_ledger
from tests.system.orchestrated_run import MODELS, TASKS, run

ROOT = Path(__file__).resolve().parents[2]


def directory(results: Path, model: str, run_id: str = "r") -> Path:
    return results / "listed" / model / run_id


def state_of(path: Path) -> RunState | None:
    try:
        with LedgerView.open(path) as view:
            return fold(view.events())
    except (AclError, OSError):
        return None


def states(results: Path, run_id: str = "r") -> list[RunState | None]:
    return [state_of(directory(results, model, run_id)) for model in MODELS]


def started(results: Path, *mode: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.system.orchestrated_run", str(results), *mode]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


def wait_for(process: "subprocess.Popen[bytes]", happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, Any]:
    out, _ = process.communicate(timeout=60)
    return process.returncode, json.loads(out) if out else None


def at_work(state: RunState | None) -> bool:
    if state is None or not state.tasks or state.tasks["quick"].stage != "done":
        return False
    return any(a.phase == "run_harness" for a in state.tasks["slow"].attempts.values())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_both_requests_cleanly(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = started(tmp_path, "wait")
    wait_for(process, lambda: all(map(at_work, states(tmp_path))))
    process.send_signal(number)
    cancelled = {"status": "cancelled", "requests": dict.fromkeys(MODELS, "cancelled")}
    assert ended(process) == (code, cancelled)
    for model, state in zip(MODELS, states(tmp_path), strict=True):
        check_ledger(directory(tmp_path, model))
        assert state is not None
        assert state.status == "cancelled"
        assert state.interrupts == [number.name]
        assert state.sealed_size == state.size
        stages = {task.stage for name, task in state.tasks.items() if name != "quick"}
        assert (state.tasks["quick"].stage, stages) == ("done", {"cancelled"})


def test_the_second_signal_leaves_at_once_and_both_ledgers_are_whole(tmp_path: Path) -> None:
    process = started(tmp_path, "stubborn")
    wait_for(process, lambda: all(map(at_work, states(tmp_path))))
    process.send_signal(signal.SIGINT)
    wait_for(process, lambda: all(state and state.interrupts for state in states(tmp_path)))
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, None)
    for model, state in zip(MODELS, states(tmp_path), strict=True):
        check_ledger(directory(tmp_path, model))
        assert state is not None
        assert state.status == "interrupted"


def test_when_the_time_is_over_both_requests_end_as_timed_out(tmp_path: Path) -> None:
    process = started(tmp_path, "time")
    timed_out = {"status": "timed_out", "requests": dict.fromkeys(MODELS, "timed_out")}
    assert ended(process) == (1, timed_out)
    for model, state in zip(MODELS, states(tmp_path), strict=True):
        check_ledger(directory(tmp_path, model))
        assert state is not None
        assert (state.status, state.interrupts) == ("timed_out", [])
        assert state.sealed_size == state.size


def test_a_plugin_that_never_returns_keeps_neither_the_time_nor_the_program(
    tmp_path: Path,
) -> None:
    process = started(tmp_path, "load")
    code, document = ended(process)
    assert (code, document["status"]) == (1, "timed_out")
    assert set(document["requests"].values()) == {"timed_out"}
    first, second = states(tmp_path)
    assert first is not None
    assert first.status == "timed_out"
    assert second is None  # it had no tasks yet, so it has no run


def verdicts(state: RunState) -> dict[str, Any]:
    return {
        name: {n: (a.status, a.correct, a.score) for n, a in task.attempts.items()}
        for name, task in state.tasks.items()
    }


def metrics(state: RunState) -> dict[str, float]:
    return dict(state.metrics[-1][2].metrics)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("unbroken")
    assert asyncio.run(run(results, "work")).status == "completed"
    return results


# In the middle of the first request, and in the middle of the second.
@pytest.mark.parametrize(("model", "done"), [("m1", 4), ("m2", 4)])
def test_an_orchestration_that_was_killed_and_reused_gives_what_an_unbroken_one_gives(
    tmp_path: Path, unbroken: Path, model: str, done: int
) -> None:
    process = started(tmp_path, "work", "killed")

    def is_far_enough() -> bool:
        state = state_of(directory(tmp_path, model, "killed"))
        return state is not None and sum(t.stage == "done" for t in state.tasks.values()) >= done

    wait_for(process, is_far_enough)
    process.kill()
    process.communicate()
    before = {
        name: state
        for name, state in zip(MODELS, states(tmp_path, "killed"), strict=True)
        if state is not None and state.tasks
    }
    assert model in before

    sources = dict.fromkeys(before, "killed")
    result = asyncio.run(run(tmp_path, "work", "again", sources))
    assert result.status == "completed"
    for name in MODELS:
        check_ledger(directory(tmp_path, name, "again"))
        again = state_of(directory(tmp_path, name, "again"))
        whole = state_of(directory(unbroken, name))
        assert again is not None
        assert whole is not None
        known = before[name].tasks if name in before else {}
        kept = {task for task, found in known.items() if found.stage == "done"}
        assert {task for task, found in again.tasks.items() if found.origin} == kept
        assert list(again.tasks) == TASKS
        assert verdicts(again) == verdicts(whole)
        assert metrics(again) == metrics(whole)
