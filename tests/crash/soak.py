"""Hours of a run in minutes: `python -m tests.crash.soak recorder|run FOLDER TASKS SAMPLES`.

Half a second after half a second it writes down what the process holds: memory, objects (blocks of
Python's allocator), open files, length of the -wal. An attempt of a real run takes about a minute,
sixteen at once are 960 an hour.

A reader of a ledger keeps up to 16 MiB of plain segments of each of its two streams. Here they are
1 MiB: they are full after the first of many attempts, so that nothing can hide in them that grows.
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.content import trajectory
from benchmarks.run_events import record_run
from exporters.live import LiveExport
from ledger import segment
from ledger.store import Ledger
from runtime.contracts import AttemptContext, Task
from runtime.recorder import Recorder
from runtime.redact import Redactor
from runtime.results import RunResult
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task

AT_ONCE = 16
CACHE_BYTES = 1024 * 1024
INTERVAL = 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(process: int | str = "self") -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE


def descriptors(process: int | str = "self") -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


class Samples(threading.Thread):
    """Writes one line each half second until the program ends."""

    def __init__(self, file: Path, folder: Path) -> None:
        super().__init__(daemon=True)
        self._file = file.open("w", buffering=1)
        self._folder = folder
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(INTERVAL):
            lengths = [self._length(wal) for wal in self._folder.rglob("ledger.sqlite-wal")]
            sample = {
                "rss": resident(),
                "fds": descriptors(),
                "wal": max(lengths, default=0),
                "blocks": sys.getallocatedblocks(),
            }
            self._file.write(json.dumps(sample) + "\n")

    def _length(self, file: Path) -> int:
        try:
            return file.stat().st_size
        except FileNotFoundError:
            return 0


class Later:
    """The attempt of one task, whose trajectory is made when it is asked for, and not kept."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.task = f"airline-{number:06d}"
        self.plan = {"name": "act", "instruction": f"Serve customer {number}."}
        self.errors = ("upstream closed the connection",) if number % 5 == 0 else ()
        self.answer = f"reservation {number:06d} is changed"
        self.telemetry = {"input_tokens": number, "cost_usd": 0.01}
        self.correct = number % 3 == 0
        self.score = float(self.correct)

    @property
    def trajectory(self) -> list[dict[str, Any]]:
        return trajectory(self._number)


def soak_recorder(folder: Path, tasks: int) -> None:
    """Everything that a run records, and nothing else that a run does."""
    folder.mkdir()
    recorder = Recorder(Ledger.create(folder), Redactor({}))
    asyncio.run(record_run(recorder, [Later(number) for number in range(tasks)]))  # type: ignore[misc]
    recorder.seal()
    recorder.close()


def soak_run(folder: Path, tasks: int) -> None:
    """A whole run with its live export."""

    def act(t: Task, context: AttemptContext) -> RunResult:
        number = int(t.task_id)
        return RunResult(t.task_id, final_answer="right", trajectory=trajectory(number))

    outcome = asyncio.run(
        run(
            request(task_concurrency=AT_ONCE, output={"run_id": "one"}),
            results_dir=folder,
            projectors=[lambda home: LiveExport(home, home=home)],
            surroundings=Surroundings(
                plugins=plugins(Listed([task(str(n)) for n in range(tasks)]), Scripted(act)),
                environ={},
            ),
        )
    )
    assert outcome.exit_code == 0, outcome


def main(how: str, folder: str, tasks: str, samples: str) -> None:
    segment._CACHE_BYTES = CACHE_BYTES  # type: ignore[misc]
    sampling = Samples(Path(samples), Path(folder))
    sampling.start()
    {"recorder": soak_recorder, "run": soak_run}[how](Path(folder), int(tasks))
    sampling.over.set()
    sampling.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
