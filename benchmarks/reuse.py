"""Reuse of finished tasks against copying their bytes, and beside AgentCompass.

python -m benchmarks.reuse [--quick] [--json FILE] [--peers-python PYTHON]
"""

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import zstandard

from benchmarks import ledgers
from benchmarks.export import Rounds
from benchmarks.measure import Report, arguments, tell
from benchmarks.peers import environment
from benchmarks.subjects import AGENTCOMPASS, child, scratch
from exporters import find_exporter
from exporters.identity import Identity
from exporters.write import write_tree
from ledger import LedgerView, fold
from ledger import events as ev
from ledger.schema import PART_BITS
from ledger.segment import MAX_RECORD, RUNNING
from ledger.store import Ledger
from runtime.contracts import AttemptContext, Benchmark, Task
from runtime.models import RunRequest
from runtime.paths import run_root
from runtime.recorder import Recorder
from runtime.redact import Redactor
from runtime.results import Evaluation, RunResult
from runtime.reuse import freeze_reuse_source
from runtime.reuse_takeover import materialize_reused

ABOUT: Final = (
    "All tasks of a finished run with trajectories of 20 kB are taken over into the ledger of a new"
    " one: from the choice of the source to a closed ledger. Medians of rounds in turns."
)
_PEER: Final = Path(__file__).parent / "peer_agentcompass_reuse.py"
_MOST_FOR_AGENTCOMPASS: Final = 1600
_SOURCE: Final = "reading"
_REQUEST: Final = RunRequest.model_validate(
    {
        "benchmark": {"id": "airline"},
        "harness": {"id": "tools"},
        "model": {"id": "model-1"},
        "runtime": {"reuse": True, "reuse_run_id": _SOURCE},
        "output": {"run_id": "again"},
    }
)


class Airline(Benchmark):
    """What the source was a run of; nothing is evaluated."""

    id: ClassVar[str] = "airline"

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:  # noqa: ARG002 - the protocol's
        """There is none to load."""
        return []

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        """Not called: every task is over."""
        raise NotImplementedError


def ours(results: Path, tasks: list[Task], target: Path) -> None:
    """What a run that reuses another does before its first task."""
    target.mkdir()
    frozen = freeze_reuse_source(_REQUEST, results, tell=lambda _: None)
    recorder = Recorder(Ledger.create(target), Redactor({}))

    async def take_over() -> int:
        await recorder.record(_created(), frozen.event(), ev.RunStarted())
        refs = tuple(ev.TaskRef(task_id=task.task_id) for task in tasks)
        await recorder.record(ev.TasksSelected(benchmark="airline", tasks=refs))
        found = await materialize_reused(recorder, frozen, tasks, _REQUEST, Airline())
        return len(found.done)

    done = asyncio.run(take_over())
    recorder.close()
    assert done == len(tasks), f"{done} tasks were reused"


def _created() -> ev.RunCreated:
    return ev.RunCreated(
        run_id="again",
        request=_REQUEST.to_task_payload(),
        persistence_params={},
        acl_version="0",
        python="3",
        platform="linux",
        redaction_policy="1",
    )


def copy(ledger: Path, target: Path) -> None:
    """Copy the file, and have it on disk."""
    target.mkdir()
    shutil.copyfile(ledger, target / ledger.name)
    with (target / ledger.name).open("rb") as file:
        os.fsync(file.fileno())


def bare(ledger: Path, target: Path) -> None:
    """Decompress, hash and compress all content anew, into a new database, in one transaction."""
    target.mkdir()
    with (
        closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target / ledger.name, isolation_level=None)) as new,
    ):
        new.execute("PRAGMA journal_mode = WAL")
        new.execute("PRAGMA synchronous = FULL")
        new.execute("CREATE TABLE content(id INTEGER PRIMARY KEY, hash BLOB, data BLOB)")
        new.execute("BEGIN")
        for table in ("segment", "blobsegment"):
            _again(source, new, table)
        new.execute("COMMIT")


def _again(source: sqlite3.Connection, new: sqlite3.Connection, table: str) -> None:
    rows = source.execute(f"SELECT id >> {PART_BITS}, data FROM {table} ORDER BY id")
    frame, held = b"", None
    for segment, data in [*rows, (None, b"")]:
        if segment != held:
            if frame:
                plain = zstandard.ZstdDecompressor().stream_reader(frame).read(MAX_RECORD)
                digest = hashlib.sha256(plain).digest()
                again = zstandard.ZstdCompressor(level=RUNNING.level).compress(plain)
                new.execute("INSERT INTO content(hash, data) VALUES (?, ?)", (digest, again))
            frame, held = b"", segment
        frame += data


def theirs(run: Path, place: Path, python: Path) -> dict[str, Any]:
    """AgentCompass reuses the same tasks out of a directory in its own layout."""
    place.mkdir()
    with LedgerView.open(run) as view:
        state = fold(view.events())
        names = place / "names.json"
        names.write_text(json.dumps(list(state.tasks)), encoding="utf-8")
        files = find_exporter("agentcompass")(state, view)
        source, identity = place / _SOURCE, Identity.of(state)
        write_tree(files, source, identity=identity, layout="agentcompass")
    os.sync()
    return child([python, _PEER, source, place / "results", names])


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peers-python", type=Path, help="a Python 3.12 or newer for AgentCompass")


def _beside(chosen: argparse.Namespace, tasks: int, place: Path, report: Report) -> None:
    """AgentCompass, and this program for as many tasks."""
    if chosen.peers_python is None:
        report.note("AgentCompass is left out: --peers-python says where a Python for it is.")
        return
    python = environment("agentcompass", AGENTCOMPASS, chosen.peers_python)
    count = min(tasks, _MOST_FOR_AGENTCOMPASS)
    results, run, plan = _source(place / "few", count)
    found = Rounds(place / "few")
    found.run(1, {"ours": partial(ours, results, plan)})
    mine = found.timing("ours")
    told = theirs(run, place / "theirs", python)
    assert told["copied"] == count, told
    report.row(subject="reuse", tasks=count, wall_s=mine.wall, cpu_s=mine.cpu)
    report.row(subject="AgentCompass", tasks=count, wall_s=told["wall"], cpu_s=told["cpu"])
    report.ratio(f"AgentCompass / reuse, wall, {count} tasks", told["wall"] / mine.wall)
    report.ratio(f"AgentCompass / reuse, CPU, {count} tasks", told["cpu"] / mine.cpu)
    report.note(f"{AGENTCOMPASS}: what its runner has its store do, one round, {count} tasks.")


def _source(place: Path, count: int) -> tuple[Path, Path, list[Task]]:
    """Results with one finished run, that run, and its tasks."""
    results = place / "results"
    run = run_root(results, "", "airline", "model-1") / _SOURCE
    ledgers.realistic(run, count)
    return results, run, [Task(task_id=f"airline-{number:06d}") for number in range(count)]


def main() -> None:
    """Measure, and tell."""
    chosen = arguments(ABOUT, _more)
    count, rounds = (40, 1) if chosen.quick else (5000, 3)
    report = Report("reuse", ABOUT)
    with scratch() as place:
        results, run, tasks = _source(place / "many", count)
        ledger = run / "ledger.sqlite"
        found = Rounds(place / "many")
        subjects = {
            "reuse": partial(ours, results, tasks),
            "copy": partial(copy, ledger),
            "bare": partial(bare, ledger),
        }
        found.run(rounds, subjects)
        for name in subjects:
            taken = found.timing(name)
            report.row(subject=name, tasks=count, wall_s=taken.wall, cpu_s=taken.cpu)
        mine, loop = found.timing("reuse"), found.timing("bare")
        report.ratio(f"reuse / copy, wall, {count} tasks", mine.wall / found.timing("copy").wall)
        report.ratio(f"reuse / bare, wall, {count} tasks", mine.wall / loop.wall)
        report.ratio(f"reuse / bare, CPU, {count} tasks", mine.cpu / loop.cpu)
        _beside(chosen, count, place, report)
    report.note("Copy: the file as it is, synced; no events are read, so none is checked.")
    report.note(
        "Bare: every segment decompressed, hashed with SHA-256, compressed and inserted, in one"
        " transaction; no event is decoded, admitted, indexed or told where it comes from."
    )
    tell(report, chosen)


if __name__ == "__main__":
    main()
