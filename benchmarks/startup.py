"""Start-up: whole processes of short commands against an interpreter that does nothing."""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks import ledgers
from benchmarks.measure import Report, arguments, tell, timed

ABOUT: Final = (
    "Whole processes, started in turns: medians of the wall clock and of CPU. The ledger has one"
    " task, so what is measured is loading."
)


def main() -> None:
    """Start each in turns, tell the medians."""
    chosen = arguments(ABOUT)
    report = Report("startup", ABOUT)
    rounds = 3 if chosen.quick else 21
    with tempfile.TemporaryDirectory() as name:
        run = str(ledgers.small(Path(name) / "run", 1))
        acl = [sys.executable, "-m", "acl"]
        lines = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "acl --version": [*acl, "--version"],
            "acl --help": [*acl, "--help"],
            "acl show": [*acl, "show", run],
            "acl verify": [*acl, "verify", run],
        }
        taken: dict[str, list[tuple[float, float]]] = {what: [] for what in lines}
        for _ in range(rounds):
            for what, line in lines.items():
                taken[what].append(started(line))
    wall = {what: statistics.median(one for one, _ in found) for what, found in taken.items()}
    cpu = {what: statistics.median(one for _, one in found) for what, found in taken.items()}
    bare = "python -c pass"
    for what in lines:
        report.row(command=what, wall_ms=wall[what] * 1e3, cpu_ms=cpu[what] * 1e3)
        if what != bare:
            report.ratio(f"{what} / {bare}, wall", wall[what] / wall[bare])
    tell(report, chosen)


def started(line: list[str]) -> tuple[float, float]:
    """Run a process to its end; seconds of the wall clock, and of its own CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, _ = timed(lambda: subprocess.run(line, check=True, stdout=subprocess.DEVNULL))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
