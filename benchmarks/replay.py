"""Replay of metrics, the fold, and one task of a large ledger."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import ledgers
from benchmarks.measure import Report, arguments, tell, timed
from benchmarks.verify import peak
from ledger import LedgerView, fold
from ledger.opening import Source
from runtime.replay import replay

ABOUT: Final = (
    "Metrics computed again from the events alone, what the fold costs, and one task shown out of"
    " a large ledger: as a call, and as a whole process."
)
_SHOWN: Final = 9


@contextmanager
def counted(table: str) -> Iterator[list[int]]:
    """Count the rows of one table that anybody reads from a ledger meanwhile."""
    rows = [0]
    query = Source.query

    def counting(self: Source, sql: str, *args: Any, **options: Any) -> Iterator[tuple[Any, ...]]:
        for row in query(self, sql, *args, **options):
            rows[0] += f"FROM {table}" in sql
            yield row

    Source.query = counting  # type: ignore[method-assign]
    try:
        yield rows
    finally:
        Source.query = query  # type: ignore[method-assign]


def replayed(run: Path) -> None:
    """Replay the metrics; they must be the recorded ones."""
    with LedgerView.open(run) as view:
        assert replay(view).equal


def folded(run: Path, events: int) -> None:
    """Fold so many first events."""
    with LedgerView.open(run) as view:
        fold(view.events(until=events))


def without_trajectories(report: Report, run: Path) -> None:
    """Prove that a replay reads no large value: no row of their segments is asked for."""
    with counted("blobsegment") as rows:
        replayed(run)
    stored = run.joinpath("ledger.sqlite").stat().st_size
    report.row(what="replay, 20 kB trajectories", file_mb=stored / 1e6, blob_rows_read=rows[0])
    report.ratio("rows of large values read by a replay", rows[0], most=0)


def costs(report: Report, run: Path, attempts: int) -> None:
    """CPU time of replay and fold."""
    events = attempts * ledgers.SMALL_EVENTS
    for what, count, subject in (
        (f"replay, {attempts} attempts", events, lambda: replayed(run)),
        (f"fold, {attempts} attempts", events, lambda: folded(run, events)),
        ("fold, a tenth of the events", events // 10, lambda: folded(run, events // 10)),
    ):
        _, cpu = timed(subject)
        report.row(what=what, events=count, cpu_s=cpu, us_an_event=cpu / count * 1e6)
        report.ratio(f"us of CPU an event, {what}", cpu / count * 1e6)
    code = (
        "from ledger import LedgerView, fold\n"
        "with LedgerView.open(sys.argv[1]) as view: state = fold(view.events())"
    )
    report.ratio(f"memory of a fold, {attempts} attempts, MB", peak(run, code))


def one_task(report: Report, run: Path, attempts: int, folder: Path) -> None:
    """Show one task: what the first look costs, then the work of a look, and whole processes."""
    os.environ |= {"ACL_CACHE_DIR": str(folder / "cache"), "ACL_STATE_DIR": str(folder / "state")}
    from acl import one_task as library  # noqa: PLC0415 - it must find the folders above

    def shown(task: int) -> None:
        with LedgerView.open(run) as view:
            state = library.state_with(view, f"task-{task:07d}")
            assert state.size > attempts * ledgers.SMALL_EVENTS

    # What was written a moment ago is not remembered.
    time.sleep(2.5)
    first, _ = timed(partial(shown, 0))
    # The first look also loads code.
    shown(1)
    tasks = [attempts * number // _SHOWN for number in range(_SHOWN)]
    walls, cpus = zip(*(timed(partial(shown, task)) for task in tasks), strict=True)
    report.row(what="one task, first look", wall_ms=first * 1e3)
    report.row(
        what="one task, later looks",
        wall_ms=statistics.median(walls) * 1e3,
        cpu_ms=statistics.median(cpus) * 1e3,
    )
    report.ratio("ms of work to show one task", statistics.median(walls) * 1e3, most=50)
    command = [sys.executable, "-m", "acl", "show", str(run), f"task-{attempts // 2:07d}"]
    for what, line in (("python -c pass", [sys.executable, "-c", "pass"]), ("acl show", command)):
        taken = [timed(partial(_run, line))[0] * 1e3 for _ in range(_SHOWN)]
        report.row(what=f"whole process, {what}", wall_ms=statistics.median(taken))
    report.ratio("ms of a whole process that shows one task", statistics.median(taken))


def _run(line: list[str]) -> None:
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Make the ledgers, read them, tell the figures."""
    chosen = arguments(ABOUT)
    report = Report("replay", ABOUT)
    tasks, attempts = (60, 3_000) if chosen.quick else (1_600, 125_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        without_trajectories(report, ledgers.realistic(folder / "realistic", tasks))
        large = ledgers.small(folder / "large", attempts)
        costs(report, large, attempts)
        one_task(report, large, attempts, folder)
    report.note(
        "The first look at a task reads the whole ledger; what it remembers is no part of the"
        " ledger, and later looks say the same bytes without it."
    )
    tell(report, chosen)


if __name__ == "__main__":
    main()
