"""A disk that fills up during a run of 16 attempts: one report, nothing lost, on with new room."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.disks import ROOT, ext4, tmpfs
from tests.crash.killing import Program, check_left, read_told
from tests.crash.running import TASKS
from tests.run_comparison import metrics, projected

Disk = Callable[[Path], list[str]]
DISKS = [
    pytest.param(lambda place: tmpfs(place, "12m"), id="tmpfs"),
    pytest.param(
        lambda place: ext4(place, place.with_name("image"), 12), id="ext4", marks=pytest.mark.crash
    ),
]
# Of twelve megabytes these are taken: what is left is enough for some attempts, or hardly any.
BALLAST = 11_000_000


def fill(folder: Path, disk: Disk, patience: float, *more: str) -> tuple[int, dict, list[str]]:
    """Run on a disk that is nearly full; return status, outcome, and what was said."""
    place, kept = folder / "disk", folder / "kept"
    place.mkdir()
    kept.mkdir()
    ballast = f'head -c {BALLAST} /dev/zero >"{place}/ballast"; exec "$@"'
    program = [sys.executable, "-m", "tests.crash.filling", str(place), str(kept)]
    done = subprocess.run(
        [
            *(*disk(place), "sh", "-c", ballast, "sh"),
            *(*program, str(folder / "acks"), str(patience), *more),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout, done.stderr
    said = (kept / "said").read_text().splitlines()
    return done.returncode, json.loads(done.stdout), said


def left(folder: Path) -> Path:
    return folder / "kept" / "disk" / "results" / "listed" / "none" / "one"


@pytest.mark.parametrize("disk", DISKS)
def test_a_run_waits_for_room_says_so_once_and_ends_whole(tmp_path: Path, disk: Disk) -> None:
    status, outcome, said = fill(tmp_path, disk, 60, "0.5")
    assert (status, outcome["status"]) == (0, "completed")
    of_ledger = [line for line in said if "/one/ledger.sqlite: " in line]
    assert len(of_ledger) == 2
    assert " was not stored as event " in of_ledger[0]
    assert "the disk is full" in of_ledger[0]
    assert of_ledger[0].endswith("waiting for room")
    assert of_ledger[1].endswith("there is room again, events are stored")
    state = check_left(left(tmp_path), tmp_path / "acks")
    assert state.status == "completed"
    assert list(state.tasks) == [t.task_id for t in TASKS]
    # As a run that always had room.
    elsewhere = tmp_path / "elsewhere"
    Program(tmp_path / "other", ["run", str(elsewhere), "two"]).to_the_end()
    unbroken = elsewhere / "listed" / "none" / "two"
    assert metrics(left(tmp_path)) == metrics(unbroken)
    assert projected(left(tmp_path)) == projected(unbroken)


@pytest.mark.crash
@pytest.mark.parametrize("disk", DISKS)
def test_a_run_without_room_for_good_fails_and_the_next_one_takes_it_over(
    tmp_path: Path, disk: Disk
) -> None:
    status, outcome, said = fill(tmp_path, disk, 0.3)
    assert (status, outcome["status"]) == (1, "failed")
    assert "\n" not in outcome["error"]
    assert "the disk is full" in outcome["error"]
    assert "make room" in outcome["error"]
    assert not [line for line in said if "fault of" in line]
    run = left(tmp_path)
    state = check_left(run, tmp_path / "acks")
    assert state.status in {"interrupted", "failed"}
    assert read_told(tmp_path / "acks").size
    # There is room where it was copied to: the next run takes over what is finished.
    results = tmp_path / "kept" / "disk" / "results"
    again = Program(tmp_path / "again", ["run", str(results), "again", "reuse"])
    again.to_the_end()
    assert check_left(run.with_name("again"), again.acks).status == "completed"
