"""Clocks that go backwards or stand still: ids, order and durations stay sound."""

import asyncio
import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.store import Ledger
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests import events_of as say
from tests.crash.disks import ROOT
from tests.crash.running import main_run
from tests.fake_plugins import Listed, Scripted, at_once, plugins, read, request, task
from tests.ledger_checks import check_ledger
from tests.run_comparison import metrics, state_of

START = 1_700_000_000_000_000_000


def test_a_ledger_takes_clocks_that_go_backwards_as_they_are(tmp_path: Path) -> None:
    walls, monotonics = itertools.count(START, -(10**9)), itertools.count(10**15, -(10**6))
    with Ledger.create(tmp_path, clock=lambda: (next(walls), next(monotonics))) as ledger:
        for batch in (say.opening("t"), say.whole_task("t", say.attempt("t")), say.ending()):
            ledger.append(*batch)
        ledger.seal()
    check_ledger(tmp_path)
    with LedgerView.open(tmp_path) as view:
        times = [one.wall_ns for one in view.events()]
    assert times == sorted(times, reverse=True)
    assert times[0] <= START


@pytest.mark.crash
def test_a_run_whose_clocks_jump_back_ends_as_any_other(tmp_path: Path) -> None:
    jumps = itertools.count()

    def jumping() -> tuple[int, int]:
        back = (next(jumps) // 50) * 3600 * 10**9
        return time.time_ns() - back, max(0, time.monotonic_ns() - back)

    assert main_run(tmp_path, "steady") == 0
    assert main_run(tmp_path, "jumping", clock=jumping) == 0
    runs = tmp_path / "listed" / "none"
    check_ledger(runs / "jumping")
    assert state_of(runs / "jumping").status == "completed"
    assert metrics(runs / "jumping") == metrics(runs / "steady")


def test_phases_last_no_negative_time_where_the_monotonic_clock_goes_backwards(
    tmp_path: Path,
) -> None:
    monotonics = itertools.count(10**15, -(10**9))
    around = Surroundings(
        plugins=plugins(Listed([task("t")]), Scripted(lambda t, c: "right")),
        environ={},
        clock=lambda: (START, next(monotonics)),
        sleep=at_once,
    )
    outcome = asyncio.run(run(request(), results_dir=tmp_path, surroundings=around))
    assert outcome.status == "completed"
    phases = [one.duration_ms for one in read(outcome).of(ev.PhaseEntered)]
    assert set(phases) == {None, 0.0}


FROZEN = """
import asyncio, sys
from pathlib import Path
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task

found = plugins(Listed([task("t")]), Scripted(lambda t, c: "right"))
around = Surroundings(plugins=found, environ={}, clock=lambda: (1_700_000_000 * 10**9, 1))
sys.stdin.readline()
outcome = asyncio.run(run(request(), results_dir=Path(sys.argv[1]), surroundings=around))
print(outcome.run_id, outcome.status)
"""


@pytest.mark.crash
def test_runs_of_one_second_in_many_processes_get_a_directory_each(tmp_path: Path) -> None:
    many = [
        subprocess.Popen(
            [sys.executable, "-c", FROZEN, str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for one in many:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    told = [one.communicate()[0].split() for one in many]
    assert {status for _, status in told} == {"completed"}
    names = {name for name, _ in told}
    assert len(names) == len(many)
    assert "20231114_221320" in names
    for name in names:
        check_ledger(tmp_path / "listed" / "none" / name)


def test_two_runs_begun_in_one_second_do_not_touch_each_other(tmp_path: Path) -> None:
    around = Surroundings(
        plugins=plugins(Listed([task("t")]), Scripted(lambda t, c: "right")),
        environ={},
        clock=lambda: (START, 1),
        sleep=at_once,
    )

    async def both() -> list[str]:
        runs = [run(request(), results_dir=tmp_path, surroundings=around) for _ in range(2)]
        return [outcome.run_id for outcome in await asyncio.gather(*runs)]

    first, second = asyncio.run(both())
    assert first != second
    ids = set()
    for name in (first, second):
        check_ledger(tmp_path / "listed" / "none" / name)
        with LedgerView.open(tmp_path / "listed" / "none" / name) as view:
            ids.add(view.ledger_id)
    assert len(ids) == 2
