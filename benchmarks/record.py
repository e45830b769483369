"""What it costs to record a run: beside the bare loop, AgentCompass and Inspect.

    python -m benchmarks.record [--quick] [--json FILE] [--peers-python PYTHON]

N tasks of one attempt with trajectories of 20 kB, one in five tried twice, 16 at once; every event
is on disk before its worker goes on, and the ledger is sealed at the end: all of that is measured,
making the payloads is not. Each subject has a process of its own; they take turns.
"""

import argparse
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from benchmarks.measure import Report, arguments, tell
from benchmarks.payloads import payload_file
from benchmarks.subjects import AGENTCOMPASS, BUILD, INSPECT, Peers, Told, module, scratch

COUNTS: Final = (100, 400, 1_600, 6_400)
QUICK: Final = (40,)
EVENTS: Final = 10**6
QUICK_EVENTS: Final = 20_000
_ROUNDS: Final = {40: 1, 100: 5, 400: 5, 1_600: 3, 6_400: 3}
# With more, each takes far longer than five minutes: AgentCompass, and Inspect's flush of a sample.
_MOST: Final = {"agentcompass": 1_600, "inspect, each": 400}
_SLOW: Final = "agentcompass"
_LARGE: Final = 6_400
_EXPECTED: Final = {400: 15.0, 1_600: 50.0}


class Rounds:
    """The subjects for one N, in turns, each in a directory of its own."""

    def __init__(self, payloads: Path, count: int, peers: Peers) -> None:
        self._peers = peers
        self._payloads = payloads
        self._count = count
        self.told: dict[str, list[Told]] = {}

    def take(self, number: int) -> None:
        """One round."""
        with scratch() as place:
            ours, bare = place / "ours", place / "bare"
            ours.mkdir()
            bare.mkdir()
            self._add("ours", module("ours", self._payloads, self._count, ours))
            self._add("bare", module("bare", ours, bare))
            for name in self._of(number):
                there = place / name
                there.mkdir()
                self._add(name, self._peers.run(name, self._payloads, self._count, there))

    def _of(self, number: int) -> list[str]:
        """The peers of a round: AgentCompass in the first only, it is slow."""
        return [
            name
            for name in self._peers.names()
            if self._count <= _MOST.get(name, self._count) and not (number and name == _SLOW)
        ]

    def _add(self, name: str, told: Told) -> None:
        self.told.setdefault(name, []).append(told)

    def median(self, name: str, figure: str) -> float:
        """The median of a figure of a subject."""
        return float(statistics.median(one[figure] for one in self.told[name]))


def measure(report: Report, counts: Iterable[int], chosen: argparse.Namespace) -> None:
    """All subjects for each N."""
    BUILD.mkdir(parents=True, exist_ok=True)
    payloads = payload_file(BUILD, max(counts))
    peers = Peers(chosen.peers_python)
    for count in counts:
        rounds = Rounds(payloads, count, peers)
        for number in range(chosen.rounds or _ROUNDS.get(count, 1)):
            rounds.take(number)
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
    for name in rounds.told:
        if name not in ("ours", "bare"):
            least = _expected(name, count)
            times = rounds.median(name, "wall") / wall
            report.ratio(f"{name} / ours, wall, {count} tasks", times, least=least)


def _expected(name: str, count: int) -> float | None:
    if name == "agentcompass":
        return _EXPECTED.get(count)
    return 5.0 if count >= _LARGE else 1.0


def grow(report: Report, events: int) -> None:
    """What an event costs early and late in one ledger."""
    with scratch() as place:
        told: dict[str, float] = module("growth", events, place)["microseconds"]
    for size, cost in told.items():
        report.row(events=int(size), subject="ours, appending", us_each=cost)
    first, *_, last = told.values()
    name = f"CPU of an event, at {events} / at {next(iter(told))} events"
    report.ratio(name, last / first, most=1.2)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", type=int, nargs="+", help="only these numbers of tasks")
    parser.add_argument("--growth", action="store_true", help="only the cost of 10^6 events")
    parser.add_argument("--rounds", type=int, help="as many rounds for each")
    parser.add_argument("--peers-python", type=Path, help="a Python 3.12 or newer for the peers")


def _say(report: Report, chosen: argparse.Namespace, counts: Iterable[int]) -> None:
    report.note("Medians over rounds in turns; each subject is a process of its own.")
    report.note(
        "Ours: through the recorder and its redaction, durable at each acknowledgement, sealed at"
        " the end (measured with it). No metrics, no export: those are not recording."
    )
    report.note(
        "Bare: SHA-256 of pieces, bodies and leaves, zstd and SQLite for the bytes that ours"
        " stored, in the same commits; no triggers, checkpoints or seal."
    )
    if chosen.peers_python is None:
        report.note("Peers are left out: --peers-python says where a Python for them is.")
        return
    report.note(
        f"{AGENTCOMPASS}: the calls of its runner to its store, one round; no progress files, log"
        f" or metrics. {INSPECT}: its recorder alone, flushed at its default interval, and after"
        " each sample; it syncs at the end only, and its database for live views is left out."
    )
    for name, most in _MOST.items():
        if max(counts) > most:
            report.note(f"{name} with more than {most} tasks takes too long: left out.")


def main() -> None:
    """Measure and tell."""
    chosen = arguments(__doc__ or "", _options)
    counts = chosen.tasks or (QUICK if chosen.quick else COUNTS)
    report = Report("record", "Recording a run, 16 attempts at once, durable at each step.")
    if not chosen.growth:
        measure(report, counts, chosen)
    if chosen.growth or not chosen.tasks:
        grow(report, QUICK_EVENTS if chosen.quick else EVENTS)
    _say(report, chosen, counts)
    tell(report, chosen)


if __name__ == "__main__":
    main()
