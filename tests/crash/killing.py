"""Killing a run of `tests.crash.running` at some moment, and what must be true of what is left."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import LedgerView
from ledger.errors import AclError
from ledger.fold import fold
from ledger.state import RunState
from ledger.verify import verify

ROOT = Path(__file__).resolve().parents[2]
# Of any run here, on the most loaded machine.
LONGEST = 600.0
_OF_NO_BATCH = frozenset({"task.reused", "attempt.reused", "ledger.sealed"})

Said = tuple[str, str | None, int | None]


@dataclass
class Told:
    """What a program wrote down: the batches it gave away, and the receipts that it got."""

    batches: dict[int, list[Said]] = field(default_factory=dict)
    receipts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many events were acknowledged."""
        return max((receipt["size"] for receipt in self.receipts), default=0)


def read_told(acks: Path) -> Told:
    told = Told()
    for line in acks.read_bytes().splitlines(keepends=True) if acks.exists() else []:
        if not line.endswith(b"\n"):
            continue
        what = json.loads(line)
        if "batch" in what:
            told.batches[what["batch"]] = [(k, t, a) for k, t, a in what["events"]]
        else:
            told.receipts.append(what)
    return told


@dataclass
class Program:
    """A run in a process of its own."""

    acks: Path
    arguments: Sequence[str]

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.crash.running", str(self.acks), *self.arguments]
        return subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def to_the_end(self) -> int:
        """Let it end by itself; return how many bytes of acknowledgements it wrote."""
        process = self.start()
        _, errors = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, errors
        return self.acks.stat().st_size

    def kill(self, chance: random.Random, whole: int) -> bool:
        """Kill it at some moment of its life; whether it lived to be killed.

        `whole` is how many bytes of acknowledgements it would write, so that the moments are the
        same for a slow machine and a quick one.
        """
        process = self.start()
        moment = chance.randrange(whole) if chance.random() < 0.9 else 0
        pause = chance.random() * (0.003 if moment else 0.3)
        deadline = time.monotonic() + LONGEST
        while process.poll() is None and _size(self.acks) <= moment:
            assert time.monotonic() < deadline
            time.sleep(0.0005)
        time.sleep(pause)
        process.kill()
        _, errors = process.communicate()
        assert process.returncode in {0, -signal.SIGKILL}, errors
        return process.returncode != 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


# -- what is left ----------------------------------------------------------------------------------


def check_left(run: Path, acks: Path) -> RunState:
    """All that was acknowledged is there, batches are whole, verify passes; return the state."""
    told = read_told(acks)
    if not (run / "ledger.sqlite").exists():
        assert not told.receipts
        return RunState()
    findings = list(verify(run))
    assert [finding for finding in findings if finding.severity == "broken"] == []
    if any(finding.code == "empty" for finding in findings):
        assert not told.receipts
        return RunState()
    with LedgerView.open(run) as view:
        assert view.size >= told.size
        for receipt in told.receipts:
            assert view.root(receipt["size"]).hex() == receipt["root"]
        events = [(one.type, one.task, one.attempt) for one in view.events()]
        # Copies come in one transaction of their own, and the seal is no caller's.
        others = {one.seq for one in view.events() if one.copied or one.type in _OF_NO_BATCH}
        check_batches(events, told, others)
        state = fold(view.events())
    assert (state.finished is None) == (state.status == "interrupted")
    return state


def check_batches(events: Sequence[Said], told: Told, others: set[int]) -> None:
    """Every event, the `others` aside, is of a batch that is there from first to last."""
    pending = dict(told.batches)
    covered = set(others)
    for receipt in told.receipts:
        place = range(receipt["first"], receipt["size"])
        covered.update(place)
        if receipt["stored"] is not None:
            assert pending.pop(receipt["stored"]) == list(events[place.start : place.stop])
    at = 0
    while at < len(events):
        if at in covered:
            at += 1
            continue
        number = next(
            (n for n, batch in pending.items() if list(events[at : at + len(batch)]) == batch),
            None,
        )
        assert number is not None, f"event {at}, {events[at]}, is a piece of no batch"
        at += len(pending.pop(number))


# -- what a run amounts to -------------------------------------------------------------------------


def done(state: RunState) -> set[str]:
    """The tasks that the next run takes over."""
    return {name for name, t in state.tasks.items() if t.stage == "done" and not t.has_error}


def size_of(run: Path) -> int:
    try:
        with LedgerView.open(run) as view:
            return view.size
    except (AclError, OSError):
        return 0
