"""kill -9 at any moment of a run with 16 attempts at once, and of the run that takes it over."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.state import RunState
from tests.crash.killing import Program, check_left, done
from tests.crash.running import TASKS
from tests.run_comparison import metrics, projected, state_of

# How often a chain of runs is killed before the last one may end, and how many chains there are.
KILLS = 3
FEW, MANY = range(1), range(1, 25)


def seeds(few: range, many: range) -> list[object]:
    return [*few, *(pytest.param(seed, marks=pytest.mark.crash) for seed in many)]


def run_of(results: Path, run_id: str) -> Path:
    return results / "listed" / "none" / run_id


def program(folder: Path, run_id: str, *, reuse: bool) -> Program:
    more = ["reuse"] if reuse else []
    return Program(folder / f"{run_id}.acks", ["run", str(folder), run_id, *more])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A run that nobody killed, and how many bytes of acknowledgements it wrote."""
    folder = tmp_path_factory.mktemp("unbroken")
    whole = program(folder, "whole", reuse=False).to_the_end()
    return run_of(folder, "whole"), whole


@pytest.mark.parametrize("seed", seeds(FEW, MANY))
def test_a_run_killed_again_and_again_ends_as_one_that_was_never_killed(
    tmp_path: Path,
    unbroken: tuple[Path, int],
    record_property: Callable[[str, object], None],
    seed: int,
) -> None:
    chance = random.Random(f"run {seed}")
    known, whole = unbroken
    finished: set[str] = set()
    kills = 0
    for n in range(KILLS):
        one = program(tmp_path, f"killed-{n}", reuse=n > 0)
        left = 1 - len(finished) / len(TASKS)
        was_killed = one.kill(chance, int(whole * left) + 1000)
        state = check_left(run_of(tmp_path, f"killed-{n}"), one.acks)
        assert was_killed or state.finished is not None
        kills += was_killed
        taken = {name for name, t in state.tasks.items() if t.origin is not None}
        assert taken in (set(), finished)
        # By this file the next run finds it; it is written as soon as all is taken over.
        if (run_of(tmp_path, f"killed-{n}") / "run_info.json").exists():
            finished |= done(state)
    record_property("runs killed", kills)
    last = program(tmp_path, "last", reuse=True)
    last.to_the_end()
    ended = check_left(run_of(tmp_path, "last"), last.acks)
    assert ended.status == "completed"
    assert {name for name, t in ended.tasks.items() if t.origin is not None} == finished
    assert list(ended.tasks) == [t.task_id for t in TASKS]
    assert metrics(run_of(tmp_path, "last")) == metrics(known)
    assert projected(run_of(tmp_path, "last")) == projected(known)


def ran_by_itself(results: Path) -> Path | None:
    found = sorted((results / "own" / "none").glob("*/"))
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("recorded")
    whole = Program(folder / "acks", ["record", str(folder)]).to_the_end()
    run = ran_by_itself(folder)
    assert run is not None
    return run, whole


@pytest.mark.parametrize("seed", seeds(range(1), range(1, 40)))
def test_an_own_loop_of_16_threads_that_is_killed_keeps_what_was_acknowledged(
    tmp_path: Path,
    recorded: tuple[Path, int],
    record_property: Callable[[str, object], None],
    seed: int,
) -> None:
    known, whole = recorded
    one = Program(tmp_path / "acks", ["record", str(tmp_path)])
    was_killed = one.kill(random.Random(f"record {seed}"), whole)
    record_property("own loops killed", was_killed)
    run = ran_by_itself(tmp_path)
    state = RunState() if run is None else check_left(run, one.acks)
    assert was_killed or state.finished is not None
    # What was finished is as it is in a loop that was never killed.
    untouched = state_of(known)
    for name in done(state):
        assert state.tasks[name].attempts.keys() == untouched.tasks[name].attempts.keys()
    if seed % 4 != 1:
        return
    Program(tmp_path / "again.acks", ["record", str(tmp_path / "again")]).to_the_end()
    again = ran_by_itself(tmp_path / "again")
    assert again is not None
    assert metrics(again) == metrics(known)
