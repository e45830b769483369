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
from tests.crash.killing import LONGEST
from tests.crash.soak import AT_ONCE, descriptors, resident

pytestmark = pytest.mark.crash

ATTEMPTS = 3000
# What the state of a task may take in a process that folds it, and what a sample may vary. Keeping
# one trajectory of each attempt would take 20 kB, keeping its events twenty objects each.
PER_TASK = 4_000
SLACK = 8_000_000
BLOCKS_PER_TASK = 60
BLOCKS_SLACK = 20_000
# An attempt has some 14 events.
EVENTS_AT_ONCE = 20
# Of a -wal that nobody holds open: a thousand pages, and what one commit brings.
LONGEST_WAL = 8_000_000

SHOW = """
import sys, time
from pathlib import Path
from acl.main import call
from ledger import lock, segment
from tests.crash.soak import CACHE_BYTES
segment._CACHE_BYTES = CACHE_BYTES
run = sys.argv[1]
sys.stdout = open("/dev/null", "w")
while not lock.holder(Path(run, "ledger.sqlite")):
    time.sleep(0.1)
while lock.holder(Path(run, "ledger.sqlite")):
    call(["show", run])
    time.sleep(0.5)
"""

FOLLOW = """
import sys
from acl.main import call
from ledger import segment
from tests.crash.soak import CACHE_BYTES
segment._CACHE_BYTES = CACHE_BYTES
sys.exit(call(["log", sys.argv[1], "--follow", "--json"]))
"""

# One arena: what the C library keeps free for each thread would hide what the program keeps.
ALONE = {**os.environ, "MALLOC_ARENA_MAX": "1"}


class Watched:
    """A process beside the run, and what it held each half second."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL, env=ALONE
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
    soaking = subprocess.Popen(
        [sys.executable, *program], cwd=ROOT, stdout=subprocess.DEVNULL, env=ALONE
    )
    while soaking.poll() is None and not (run / "ledger.checkpoint.unsigned").exists():
        time.sleep(0.05)
    readers = [
        Watched("-c", FOLLOW, str(run)),
        Watched("-c", SHOW, str(run)),
    ]
    while soaking.poll() is None:
        for reader in readers:
            reader.sample()
        time.sleep(0.5)
    assert soaking.returncode == 0
    for reader in readers:
        assert reader.process.wait(timeout=LONGEST) == 0
    seen = [json.loads(line) for line in samples.read_text().splitlines()]
    writer = [one["rss"] for one in seen], [one["fds"] for one in seen]
    figures = [writer, *((reader.rss, reader.fds) for reader in readers)]
    for name, (rss, fds) in zip(("writer", "log", "show"), figures, strict=True):
        told = [one // 10**6 for one in rss[:: max(1, len(rss) // 8)]]
        print(f"{how}: {name}: {told} MB, {min(fds)} to {max(fds)} files")
        assert_flat(rss, fds)
    blocks = [one["blocks"] for one in seen]
    print(f"{how}: blocks {[one // 1000 for one in blocks[:: max(1, len(blocks) // 8)]]} thousand")
    assert growth(blocks) <= BLOCKS_SLACK + BLOCKS_PER_TASK * ATTEMPTS // 2, f"{growth(blocks)}"
    lengths = [one["wal"] for one in seen]
    print(f"{how}: -wal at most {max(lengths)} bytes")
    assert max(lengths) <= LONGEST_WAL
    assert_whole(run)


def growth(values: list[int]) -> int:
    """By how much the median of the last third is above that of the middle third."""
    third = len(values) // 3
    middle, last = sorted(values[third : 2 * third]), sorted(values[-third:])
    return last[len(last) // 2] - middle[len(middle) // 2]


def assert_flat(rss: list[int], fds: list[int]) -> None:
    """After the first third nothing is kept but the small state of each task."""
    assert growth(rss) <= SLACK + PER_TASK * ATTEMPTS // 2, f"{growth(rss)} bytes"
    assert max(rss) <= rss[len(rss) // 3] + 2 * SLACK + PER_TASK * ATTEMPTS
    # Files of an export are open until they are synced, 64 at most; none is kept.
    assert growth(fds) <= 2
    assert max(fds) <= 96


def assert_whole(run: Path) -> None:
    assert [finding for finding in verify(run) if finding.severity == "broken"] == []
    with LedgerView.open(run) as view:
        assert view.sealed
        sizes = [size for size, _ in view.checkpoints()]
        assert sizes[-1] == view.size
        steps = [later - earlier for earlier, later in zip([0, *sizes], sizes, strict=False)]
        print(f"{view.size} events, {len(sizes)} checkpoints, {max(steps)} events at most")
        # The commit that reaches the number holds at most what all callers wait with: each with
        # all events of an attempt.
        most = CHECKPOINT_EVENTS + AT_ONCE * EVENTS_AT_ONCE
        assert max(steps) <= most
        assert view.size / most <= len(sizes)
