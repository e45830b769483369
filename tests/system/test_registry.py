"""The registry among processes: many at once, some that die, one that holds the lock for ever."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.opening import LEDGER_NAME
from runtime import record
from runtime.registry import UNREGISTERED, registry_file
from runtime.surroundings import Surroundings
from tests.ledger_checks import check_ledger

PROGRAM = Path(__file__).with_name("registered_run.py")


def begun(results: Path, where: str) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(PROGRAM), str(results), where]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def run(results: Path, wait: float = 30.0) -> Path:
    around = Surroundings(environ={}, registry_wait=wait)
    with (
        record(results, benchmark="mine", model="m", surroundings=around) as recording,
        recording.attempt("a") as one,
    ):
        one.result(1)
        one.evaluation(correct=True)
    return recording.path


def types(results: Path) -> list[tuple[str, str]]:
    check_ledger(registry_file(results))
    with LedgerView.open(registry_file(results)) as view:
        return [(recorded.type, recorded.event.run_id) for recorded in view.events()]


def killed(results: Path, where: str) -> Path:
    """Kill a run; return its directory."""
    with begun(results, where) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "dying\n"
        assert process.wait(timeout=60) == -signal.SIGKILL
    (ledger,) = results.rglob(LEDGER_NAME)
    return ledger.parent


def test_a_run_killed_between_its_seal_and_the_entry_is_completed_by_the_next(
    tmp_path: Path,
) -> None:
    dead = killed(tmp_path, "before-sealed-entry")
    assert types(tmp_path) == [("registry.opened", dead.name)]
    other = run(tmp_path)
    assert types(tmp_path) == [
        ("registry.opened", dead.name),
        ("registry.opened", other.name),
        ("registry.sealed", dead.name),
        ("registry.sealed", other.name),
    ]


def test_a_run_killed_before_its_entry_never_had_an_event(tmp_path: Path) -> None:
    """Nothing of it can be published: there is nothing to be entered."""
    dead = killed(tmp_path, "before-entry")
    with LedgerView.open(run(tmp_path)) as view:
        assert view.size
    assert dead.name not in {run_id for _, run_id in types(tmp_path)}
    assert any(finding.code == "empty" for finding in check_ledger(dead / LEDGER_NAME))


@contextmanager
def stopped(results: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock of the registry, and is stopped."""
    results.mkdir(exist_ok=True)
    with begun(results, "holding") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_run_does_not_wait_for_ever_for_a_process_that_is_stopped(tmp_path: Path) -> None:
    with stopped(tmp_path):
        directory = run(tmp_path, wait=0.3)
    with LedgerView.open(directory) as view:
        names = [getattr(recorded.event, "name", None) for recorded in view.events()]
    assert UNREGISTERED in names
    run(tmp_path)
    assert [one for one in types(tmp_path) if one[1] == directory.name] == [
        ("registry.opened", directory.name),
        ("registry.sealed", directory.name),
    ]


def wait_for_words(results: Path, count: int) -> None:
    """Return once so many runs wait for the lock, each with its word left."""
    while len([*results.glob("registry.waiting/" + "[0-9a-f]" * 32)]) < count:
        time.sleep(0.01)


def test_a_run_killed_while_it_waits_is_entered_by_whoever_comes_next(tmp_path: Path) -> None:
    with stopped(tmp_path), begun(tmp_path, "waiting") as dying:
        wait_for_words(tmp_path, 1)
        dying.kill()
    (dead,) = (path.parent for path in tmp_path.rglob(LEDGER_NAME))
    other = run(tmp_path)
    assert types(tmp_path) == [
        ("registry.opened", other.name),
        ("registry.opened", dead.name),
        ("registry.sealed", other.name),
    ]


def test_who_was_entered_by_a_run_that_is_killed_then_is_entered_once(tmp_path: Path) -> None:
    """It dies with all on disk, before it takes back the words of those whom it entered."""
    with stopped(tmp_path) as holding, ExitStack() as stack:
        dying = stack.enter_context(begun(tmp_path, "before-words-are-taken-back"))
        others = [stack.enter_context(begun(tmp_path, "waiting")) for _ in range(3)]
        wait_for_words(tmp_path, 4)
        holding.kill()
        assert dying.wait(timeout=60) == -signal.SIGKILL
        assert [other.wait(timeout=60) for other in others] == [0, 0, 0]
    run(tmp_path)
    found = types(tmp_path)
    assert len(found) == len(set(found))
    runs = {path.parent.name for path in tmp_path.rglob(LEDGER_NAME)}
    assert {name for kind, name in found if kind == "registry.opened"} == runs
    assert len(runs) == 5
    assert len([1 for kind, _ in found if kind == "registry.sealed"]) >= 4
    assert not [*(tmp_path / "registry.waiting").iterdir()]


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_runs_that_start_at_once_all_get_in(tmp_path: Path, count: int) -> None:
    with begun(tmp_path, f"{count} at once") as process:
        assert process.wait(timeout=120) == 0
    assert sorted(types(tmp_path)) == sorted(
        ("registry.opened", f"run {number}") for number in range(count)
    )
