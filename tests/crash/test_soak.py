"""Hours of a run in minutes: memory and open files stay what they are, and the -wal stays short.

3,000 attempts are about three hours of sixteen at once, each of a minute: some 50,000 events. Two
readers follow all of it.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.verify import verify
from runtime.recorder import CHECKPOINT_EVENTS
from tests.crash.disks import ROOT
from tests.crash.soak import descriptors, resident

pytestmark = pytest.mark.crash

ATTEMPTS = 3000
# What the state of a task may take in a process that folds it, and what a sample may vary.
PER_TASK = 6_000
SLACK = 16_000_000
# Plain segments of a ledger that a reader keeps.
CACHE = 16 * 1024 * 1024
# Of a -wal that nobody holds open: a thousand pages, and what one commit brings.
LONGEST_WAL = 8_000_000

SHOW = """
import sys, time
from contextlib import suppress
from pathlib import Path
from acl.main import call
from ledger import lock
run, out = sys.argv[1:]
sys.stdout = open("/dev/null", "w")
while not lock.holder(Path(run, "ledger.sqlite")):
    time.sleep(0.1)
while lock.holder(Path(run, "ledger.sqlite")):
    call(["show", run])
    time.sleep(0.5)
"""


class Watched:
    """A process beside the run, and what it held each half second."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        self.rss: list[int] = []
        self.fds: list[int] = []

    def sample(self) -> None:
        if self.process.poll() is None:
            self.rss.append(resident(self.process.pid))
            self.fds.append(descriptors(self.process.pid))


@pytest.mark.parametrize("how", ["recorder", "run"])
def test_in_a_soak_nothing_grows(tmp_path: Path, how: str) -> None:
    folder, samples = tmp_path / "soak", tmp_path / "samples"
    run = folder if how == "recorder" else folder / "listed" / "none" / "one"
    program = ["-m", "tests.crash.soak", how, str(folder), str(ATTEMPTS), str(samples)]
    # One arena: what the C library keeps for each thread would hide what the program keeps.
    soaking = subprocess.Popen(
        [sys.executable, *program],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    while soaking.poll() is None and not (run / "ledger.checkpoint.unsigned").exists():
        time.sleep(0.05)
    readers = [
        Watched("-m", "acl", "log", str(run), "--follow", "--json"),
        Watched("-c", SHOW, str(run), str(tmp_path / "out")),
    ]
    while soaking.poll() is None:
        for reader in readers:
            reader.sample()
        time.sleep(0.5)
    assert soaking.returncode == 0
    for reader in readers:
        assert reader.process.wait(timeout=60) == 0
    seen = [json.loads(line) for line in samples.read_text().splitlines()]
    writer = [one["rss"] for one in seen], [one["fds"] for one in seen]
    figures = [writer, *((reader.rss, reader.fds) for reader in readers)]
    for name, (rss, fds) in zip(("writer", "log", "show"), figures, strict=True):
        told = [one // 10**6 for one in rss[:: max(1, len(rss) // 8)]]
        print(f"{how}: {name}: {told} MB, {min(fds)} to {max(fds)} files")
        assert_flat(rss, fds)
    lengths = [one["wal"] for one in seen]
    print(f"{how}: -wal at most {max(lengths)} bytes")
    assert max(lengths) <= LONGEST_WAL
    assert_whole(run)


def assert_flat(rss: list[int], fds: list[int]) -> None:
    """After the first third nothing is kept but caches that are full one day, and small state."""
    third = len(rss) // 3
    warm, last = sorted(rss[third : 2 * third]), sorted(rss[-third:])
    growth = last[len(last) // 2] - warm[len(warm) // 2]
    assert growth <= SLACK + PER_TASK * ATTEMPTS // 2, f"{growth} bytes"
    assert last[-1] <= warm[0] + CACHE + SLACK + PER_TASK * ATTEMPTS
    # Some are open for a moment: none is kept.
    assert sorted(fds[-third:])[third // 2] <= sorted(fds[third : 2 * third])[third // 2] + 2
    assert max(fds) <= 128


def assert_whole(run: Path) -> None:
    assert [finding for finding in verify(run) if finding.severity == "broken"] == []
    with LedgerView.open(run) as view:
        assert view.sealed
        sizes = [size for size, _ in view.checkpoints()]
        assert sizes[-1] == view.size
        steps = [later - earlier for earlier, later in zip([0, *sizes], sizes, strict=False)]
        print(f"{view.size} events, {len(sizes)} checkpoints, {max(steps)} events at most")
        # One commit holds at most what sixteen callers wait with.
        assert max(steps) <= CHECKPOINT_EVENTS + 64
        assert view.size / (CHECKPOINT_EVENTS + 64) <= len(sizes)
