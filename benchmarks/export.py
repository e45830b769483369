"""Export of a run against writing the very same files bare, and the looks of live exports.

python -m benchmarks.export [--quick] [--json FILE] [--tasks N] [--rounds N]
"""

import argparse
import os
import shutil
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks import ledgers
from benchmarks.measure import Report, Timing, arguments, tell, timed
from benchmarks.subjects import scratch
from exporters import find_exporter
from exporters.details import LAYOUT
from exporters.identity import Identity
from exporters.jobs.live import LiveJob
from exporters.live import LiveExport
from exporters.syncing import Syncing
from exporters.write import write_tree
from ledger import LedgerView, RunState, fold

ABOUT: Final = (
    "A finished run with trajectories of 20 kB is read from its ledger, folded and written in a"
    " layout; beside it a plain loop writes the same bytes, which it has in memory, to a directory"
    " of another name, syncs each file and directory, and renames it. Medians of rounds in turns."
)
_LAYOUTS: Final = ("details", "jobs", "agentcompass", "jsonl", "parquet")
_LOOKS: Final = 8
_NEW_EVENTS: Final = 144
"""As many as 16 tasks at once record from their begin to their end."""

Files = Mapping[str, bytes]


def ours(run: Path, layout: str, target: Path) -> None:
    """All that `acl export` does once the ledger was verified."""
    with LedgerView.open(run) as view:
        state = fold(view.events())
        files = find_exporter(layout)(state, view)
        write_tree(files, target, identity=Identity.of(state), layout=layout)


def bare(files: Files, target: Path, *, sync: bool) -> None:
    """The plain loop; with `sync` nothing of it can be lost, nor is there ever half of it."""
    new = target.with_name(f"{target.name}.new")
    places = _make_places(files, new)
    for path, data in files.items():
        with (new / path).open("xb", buffering=0) as file:
            file.write(data)
            if sync:
                os.fsync(file.fileno())
    for place in places if sync else ():
        _sync(place)
    new.rename(target)
    if sync:
        _sync(target.parent)


def side_by_side(files: Files, target: Path) -> None:
    """The plain loop with threads that sync, as the exporters have them."""
    new = target.with_name(f"{target.name}.new")
    places = _make_places(files, new)
    syncing = Syncing(lambda _, error: error)
    for path, data in files.items():
        descriptor = os.open(new / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, data)
        syncing.add(path, descriptor)
    syncing.settle()
    for place in places:
        syncing.add(str(place), os.open(place, os.O_RDONLY))
    syncing.settle()
    new.rename(target)
    _sync(target.parent)


def _make_places(files: Files, top: Path) -> list[Path]:
    places = {top} | {parent for path in files for parent in (top / path).parents if parent > top}
    for place in sorted(places):
        place.mkdir(exist_ok=True)
    return sorted(places)


def _sync(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_tree(directory: Path) -> dict[str, bytes]:
    """All files below a directory."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


@dataclass(slots=True)
class Rounds:
    """Subjects that take turns; what each wrote is removed, and written back, before the next."""

    place: Path
    taken: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def run(self, rounds: int, subjects: Mapping[str, Callable[[Path], object]]) -> None:
        for _ in range(rounds):
            for name, subject in subjects.items():
                target = self.place / "target"
                os.sync()
                self.taken.setdefault(name, []).append(timed(partial(subject, target)))
                shutil.rmtree(target)

    def timing(self, name: str) -> Timing:
        walls, cpus = zip(*self.taken[name], strict=True)
        return Timing(statistics.median(walls), statistics.median(cpus))


def measure(run: Path, layout: str, place: Path, rounds: int, report: Report) -> None:
    """Add the figures of one layout."""
    place.mkdir()
    ours(run, layout, place / "first")
    files = read_tree(place / "first")
    found = Rounds(place)
    subjects: dict[str, Callable[[Path], object]] = {
        "export": partial(ours, run, layout),
        "bare": partial(bare, files, sync=True),
        "bare, synced side by side": partial(side_by_side, files),
        "bare, never synced": partial(bare, files, sync=False),
    }
    found.run(rounds, subjects)
    for name in subjects:
        timing = found.timing(name)
        report.row(
            layout=layout,
            files=len(files),
            kB=sum(map(len, files.values())) // 1000,
            subject=name,
            wall_s=timing.wall,
            cpu_s=timing.cpu,
        )
    whole = found.timing("export").wall
    report.ratio(f"export / bare, {layout}", whole / found.timing("bare").wall, most=1.5)
    for name in ("bare, synced side by side", "bare, never synced"):
        report.ratio(f"export / {name}, {layout}", whole / found.timing(name).wall)


def looks(run: Path, place: Path, tasks: int, report: Report) -> None:
    """What a live export costs for each look, early and late in the run, by CPU."""
    place.mkdir()
    with LedgerView.open(run) as view:
        new = min(_NEW_EVENTS, view.size // (3 * _LOOKS))
        end = view.size - (_LOOKS + 1) * new
        for name, live in (("details", LiveExport(place / LAYOUT)), ("jobs", LiveJob(place))):
            early = _look(view, live, end // 8, new)
            late = _look(view, live, end, new)
            for at, cpu in ((end // 8, early), (end, late)):
                report.row(layout=f"{name}, live", events=at, subject="a look", cpu_s=cpu)
            report.ratio(f"CPU of a look, {name}: late in the run / early", late / early)
    report.note(f"a look of a live export: {tasks} tasks, {new} new events each")


def _look(view: LedgerView, live: LiveExport | LiveJob, at: int, new: int) -> float:
    """Seconds of CPU of one look with `new` events after event `at`: the mean of several."""
    state = fold(view.events(until=at), RunState())
    live(state, view)
    taken = []
    for _ in range(_LOOKS):
        fold(view.events(since=state.size, until=state.size + new), state)
        taken.append(timed(partial(live, state, view))[1])
    return statistics.mean(taken)


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", type=int, help="of a run of so many tasks")
    parser.add_argument("--rounds", type=int, help="as many rounds for each")


def main() -> None:
    """Measure, and tell."""
    chosen = arguments(ABOUT, _more)
    usual = (24, 1) if chosen.quick else (1600, 3)
    tasks, rounds = chosen.tasks or usual[0], chosen.rounds or usual[1]
    report = Report("export", ABOUT)
    layouts = [one for one in _LAYOUTS if one != "parquet" or find_spec("pyarrow")]
    with scratch() as place:
        run = ledgers.realistic(place / "run", tasks)
        for layout in layouts:
            measure(run, layout, place / layout, rounds, report)
        looks(run, place / "live", tasks, report)
    report.note("jobs: the job alone, without the analysis and the archive beside it")
    report.note("a verification comes before an export; its figures are those of `verify`")
    tell(report, chosen)


if __name__ == "__main__":
    main()
