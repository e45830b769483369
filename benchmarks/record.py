"""What it costs to record a run: beside the bare loop, AgentCompass and Inspect.

    python -m benchmarks.record [--quick] [--json FILE] [--peers-python PYTHON]

N tasks of one attempt with trajectories of 20 kB, one in five tried twice, 16 at once; every event
is on disk before its worker goes on, and the ledger is sealed at the end: all of that is measured,
making the payloads is not. Each subject has a process of its own; they take turns.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from benchmarks.measure import Report, arguments, tell
from benchmarks.payloads import payload_file

BUILD: Final = Path(__file__).resolve().parents[1] / "build" / "bench"
COUNTS: Final = (100, 400, 1_600, 6_400)
QUICK: Final = (40,)
_ROUNDS: Final = {40: 1, 100: 5, 400: 5, 1_600: 3, 6_400: 3}
Told = dict[str, Any]


def child(command: Iterable[str | Path]) -> Told:
    """Run a subject; what it told on its last line."""
    done = subprocess.run([*command], stdout=subprocess.PIPE, check=True, text=True)
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told


def module(name: str, *more: str | Path | int) -> Told:
    """Run a module of ours as a subject."""
    return child([sys.executable, "-m", f"benchmarks.{name}", *map(str, more)])


class Rounds:
    """The subjects for one N, in turns, each in a directory of its own."""

    def __init__(self, payloads: Path, count: int, scratch: Path) -> None:
        self._payloads = payloads
        self._count = count
        self._scratch = scratch
        self.told: dict[str, list[Told]] = {}

    def take(self, peers: dict[str, Callable[[Path, int, Path], Told]]) -> None:
        """One round."""
        place = Path(mkdtemp(dir=self._scratch))
        try:
            ours, bare = place / "ours", place / "bare"
            ours.mkdir()
            bare.mkdir()
            self._add("ours", module("ours", self._payloads, self._count, ours))
            self._add("bare", module("bare", ours, bare))
            for name, peer in peers.items():
                there = place / name
                there.mkdir()
                self._add(name, peer(self._payloads, self._count, there))
        finally:
            shutil.rmtree(place)

    def _add(self, name: str, told: Told) -> None:
        self.told.setdefault(name, []).append(told)

    def median(self, name: str, figure: str) -> float:
        """The median of a figure of a subject."""
        return float(statistics.median(one[figure] for one in self.told[name]))


def measure(report: Report, counts: Iterable[int], chosen: argparse.Namespace) -> None:
    """All subjects for each N."""
    BUILD.mkdir(parents=True, exist_ok=True)
    payloads = payload_file(BUILD, max(counts))
    for count in counts:
        rounds = Rounds(payloads, count, BUILD)
        for _ in range(chosen.rounds or _ROUNDS[count]):
            rounds.take({})
        _tell(report, count, rounds)


def _tell(report: Report, count: int, rounds: Rounds) -> None:
    wall = rounds.median("ours", "wall")
    for name in rounds.told:
        first = rounds.told[name][0]
        report.row(
            tasks=count,
            subject=name,
            wall_s=rounds.median(name, "wall"),
            cpu_s=rounds.median(name, "cpu"),
            times_ours=rounds.median(name, "wall") / wall,
            commits=first.get("commits", ""),
            events=first.get("events", ""),
            seal_s=rounds.median(name, "seal") if "seal" in first else "",
            mb=first["bytes"] / 1e6,
        )
    bare = rounds.median("bare", "wall"), rounds.median("bare", "cpu")
    report.ratio(f"bare / ours, wall, {count} tasks", bare[0] / wall, least=0.6)
    report.ratio(f"bare / ours, CPU, {count} tasks", bare[1] / rounds.median("ours", "cpu"))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", type=int, nargs="+", help="only these numbers of tasks")
    parser.add_argument("--rounds", type=int, help="as many rounds for each")
    parser.add_argument("--peers-python", type=Path, help="a Python 3.12 or newer for the peers")


def main() -> None:
    """Measure and tell."""
    chosen = arguments(__doc__ or "", _options)
    counts = chosen.tasks or (QUICK if chosen.quick else COUNTS)
    report = Report("record", "Recording a run, 16 attempts at once, durable at each step.")
    measure(report, counts, chosen)
    tell(report, chosen)


if __name__ == "__main__":
    main()
