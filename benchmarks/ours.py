"""Child of `benchmarks.record`: this product records a run.

    python -m benchmarks.ours PAYLOADS COUNT DIRECTORY

Prints one JSON document. `commits.json` in the directory tells how many blobs and events each
commit stored, for the bare loop.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from benchmarks.counting import written
from benchmarks.payloads import read
from benchmarks.run_events import record_run
from ledger.database import Database, Rows
from ledger.opening import LEDGER_NAME
from ledger.store import Ledger
from runtime.recorder import Recorder
from runtime.redact import Redactor


def main(payloads: Path, count: int, directory: Path) -> None:
    """Record, seal, and tell what it took."""
    attempts = read(payloads, count)
    commits = _watch_commits()
    before = written()
    began, cpu = time.perf_counter(), time.process_time()
    recorder = Recorder(Ledger.create(directory), Redactor(os.environ))
    asyncio.run(record_run(recorder, attempts))
    recorded, recorded_cpu = time.perf_counter(), time.process_time()
    recorder.seal()
    recorder.close()
    wall, cpu_taken = time.perf_counter() - began, time.process_time() - cpu
    handed_over = written() - before
    (directory / "commits.json").write_text(json.dumps(commits))
    told = {
        "wall": wall,
        "cpu": cpu_taken,
        "seal": wall - (recorded - began),
        "seal_cpu": cpu_taken - (recorded_cpu - cpu),
        "commits": len(commits),
        "events": sum(events for _, events in commits),
        "written": handed_over,
        "bytes": (directory / LEDGER_NAME).stat().st_size,
    }
    json.dump(told, sys.stdout)


def _watch_commits() -> list[tuple[int, int]]:
    """Note from now on how many blobs and events each commit stores."""
    found: list[tuple[int, int]] = []
    store = Database.store

    def watched(self: Database, rows: Rows) -> None:
        store(self, rows)
        found.append((len(rows.blobs), len(rows.events)))

    Database.store = watched  # type: ignore[method-assign]
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
