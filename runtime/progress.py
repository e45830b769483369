"""How far a run is: counted from its state, written beside its ledger, shown by whoever asks."""

import json
import logging
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

from ledger.state import Counts, RunState, TaskStage, TaskState
from ledger.tally import Share, Tally

PROGRESS_JSON: Final = "progress.json"
PROGRESS_JSONL: Final = "progress.jsonl"

_STAGES: Final = get_args(TaskStage)
_COUNTED: Final = (*_STAGES, "reused", "correct", "attempts", "retries")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of tasks and attempts; total = pending + running + done + error + cancelled.

    `reused` of the tasks were taken over. Rate and time left are guessed from the tasks that were
    worked on in `elapsed_seconds`, and None while there is nothing to guess from.
    """

    run_id: str
    status: str
    at: str
    total: int
    pending: int
    running: int
    done: int
    error: int
    cancelled: int
    reused: int
    correct: int
    attempts: int
    retries: int
    elapsed_seconds: float
    tasks_per_minute: float | None
    remaining_seconds: float | None


def counting() -> Tally:
    """What `measure` counts with: it follows the state of one run."""
    return Tally(_share)


def _share(task: TaskState) -> Share:
    stages = (int(task.stage == stage) for stage in _STAGES)
    counts = Counts()
    counts.add(task)
    return (*stages, counts.reused, counts.correct, counts.attempts, counts.retries)


def measure(
    state: RunState, wall_ns: int, elapsed: float, *, over: bool = False, tally: Tally | None = None
) -> Progress:
    """Count `state`, `elapsed` seconds after the work began; unless `over`, the run goes on.

    `wall_ns` is the time by the run's own clock: of its events the copies are older than the run.
    With the `tally` that earlier states of the run were counted with, only what moved is counted.
    """
    tally = counting() if tally is None else tally
    tally.follow(state)
    counts = dict(zip(_COUNTED, tally.sums or (0,) * len(_COUNTED), strict=True))
    counts["pending"] += len(state.tasks) - tally.begun
    # The events of a reused task bring it from pending to done in one transaction.
    worked = counts["done"] + counts["error"] - counts["reused"]
    left = counts["pending"] + counts["running"]
    rate = worked / elapsed if worked > 0 and elapsed > 0 else None
    return Progress(
        run_id=state.run_id,
        status=state.status if over or state.finished else "running",
        at=datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        total=len(state.tasks),
        elapsed_seconds=round(elapsed, 3),
        tasks_per_minute=None if rate is None else round(rate * 60, 3),
        remaining_seconds=None if rate is None else round(left / rate, 3),
        **counts,
    )


class ProgressFiles:
    """`progress.json`, the latest, and `progress.jsonl`, one line each time.

    They serve those who watch; where they cannot be written the run goes on.
    """

    def __init__(self, directory: Path) -> None:
        self._latest = directory / PROGRESS_JSON
        self._lines = directory / PROGRESS_JSONL
        self._complained = False

    def write(self, progress: Progress) -> None:
        """Replace the latest, and add a line."""
        line = json.dumps(asdict(progress), allow_nan=False)
        new = self._latest.with_suffix(".json.new")
        try:
            new.write_text(line + "\n", encoding="utf-8")
            new.replace(self._latest)
            with self._lines.open("a", encoding="utf-8") as lines:
                lines.write(line + "\n")
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            if not self._complained:
                _log.warning("progress cannot be written: %s", error)
            self._complained = True
