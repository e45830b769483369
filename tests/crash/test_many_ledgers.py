"""Two hundred ledgers, and two hundred runs that enter one registry, in as many processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from runtime.registry import registry_file
from tests.crash.disks import ROOT
from tests.ledger_checks import check_ledger

pytestmark = pytest.mark.crash

MANY = 200

# One process forks them all: two hundred interpreters would each load everything.
LEDGERS = """
import os, sys
from pathlib import Path
from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say

children = []
for n in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            place = Path(sys.argv[1], str(n))
            place.mkdir()
            with Ledger.create(place) as ledger:
                ledger.append(*say.opening("t"))
                for attempt in range(5):
                    ledger.append(ev.AnnotationAdded(text="x" * 2000, author=str(attempt)))
                ledger.append(*say.whole_task("t", say.attempt("t")))
                ledger.append(*say.ending())
                ledger.seal()
            status = 0
        finally:
            os._exit(status)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""

RUNS = """
import asyncio, os, sys
from pathlib import Path
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task

found = plugins(Listed([task("t")]), Scripted(lambda t, c: "right"))
children = []
first = int(sys.argv[2])
for n in range(first, first + int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            around = Surroundings(plugins=found, environ={})
            work = run(request(output={"run_id": f"r{n}"}), results_dir=Path(sys.argv[1]),
                       surroundings=around)
            status = asyncio.run(work).exit_code
        finally:
            os._exit(status)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def test_two_hundred_ledgers_are_written_at_once(tmp_path: Path) -> None:
    program = [sys.executable, "-c", LEDGERS, str(tmp_path), str(MANY)]
    assert subprocess.run(program, cwd=ROOT, check=False).returncode == 0
    ids = set()
    for n in range(MANY):
        with LedgerView.open(tmp_path / str(n)) as view:
            assert view.sealed
            ids.add(view.ledger_id)
    assert len(ids) == MANY
    for n in range(0, MANY, 10):
        check_ledger(tmp_path / str(n))


def enter(results: Path, first: int, many: int) -> None:
    program = [sys.executable, "-c", RUNS, str(results), str(first), str(many)]
    assert subprocess.run(program, cwd=ROOT, check=False).returncode == 0


def test_two_hundred_runs_enter_one_registry(tmp_path: Path) -> None:
    """Each waits as long as any run does; whom that was too short for the next command enters."""
    enter(tmp_path, 0, MANY)
    late = len(list((tmp_path / "registry.waiting").glob("*")))
    print(f"{late} of {MANY} runs waited in vain for one of their two turns")
    enter(tmp_path, MANY, 1)
    assert not list((tmp_path / "registry.waiting").glob("*"))
    check_ledger(registry_file(tmp_path))
    with LedgerView.open(registry_file(tmp_path)) as view:
        found = [recorded.event for recorded in view.events()]
    opened = [one.path for one in found if isinstance(one, ev.RegistryOpened)]
    sealed = [one.path for one in found if isinstance(one, ev.RegistrySealed)]
    paths = sorted(f"listed/none/r{n}" for n in range(MANY + 1))
    assert sorted(opened) == sorted(sealed) == paths
    assert len(found) == 2 * len(paths)
    for number, path in enumerate(paths):
        assert_whole(tmp_path / path)
        if number % 20 == 0:
            check_ledger(tmp_path / path)


def assert_whole(run: Path) -> None:
    with LedgerView.open(run) as view:
        assert view.sealed
        events = [recorded.event for recorded in view.events()]
    finished = [one for one in events if isinstance(one, ev.RunFinished)]
    assert [one.status for one in finished] == ["completed"]
    attempts = [one for one in events if isinstance(one, ev.AttemptFinished)]
    assert len(attempts) == 1
