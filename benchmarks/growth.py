"""Whether an event costs the same in a large ledger: CPU of appending, early and late in one run.

Child of `benchmarks.record`: `python -m benchmarks.growth EVENTS DIRECTORY`

Batches of 100 small events through `Ledger.append_group`, as a recorder hands them over: tasks of
one attempt with eight model calls. Making the events is not measured, checkpoints are left out.
Prints one JSON document: microseconds of CPU for an event, in windows of the numbers of events.
"""

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.run_events import opening
from ledger import events as ev
from ledger.store import Ledger

BATCH: Final = 100
_JUDGE: Final = ev.Evaluator(id="airline", version="1")
_CALLS: Final = 8
_TASKS_TOLD: Final = 1_000
_SIZES: Final = (10**4, 10**5, 10**6)
_LEAST_WIDTH: Final = 5_000


def run_events(count: int) -> Iterator[ev.AnyEvent]:
    """The events of a run of small attempts, at least `count`; tasks are told of as they come."""
    yield from opening([])
    yield ev.RunStarted()
    made, number = 0, 0
    while made < count:
        names = [f"airline-{number + n:08d}" for n in range(_TASKS_TOLD)]
        refs = tuple(ev.TaskRef(task_id=name) for name in names)
        yield ev.TasksSelected(benchmark="airline", tasks=refs)
        for name in names:
            yield from _attempt(name)
            made += _CALLS * 2 + 6
        number += _TASKS_TOLD


def _attempt(task: str) -> Iterator[ev.AnyEvent]:
    at = {"task": task, "attempt": 1}
    yield ev.TaskStarted(task=task)
    yield ev.AttemptStarted.model_validate(at)
    for index in range(_CALLS):
        call = {**at, "call_id": f"{task}-{index}"}
        question = [{"role": "user", "content": f"step {index} of {task}"}]
        yield ev.CallStarted.model_validate({**call, "call_index": index, "messages": question})
        answer = {"role": "assistant", "content": f"done with {index}"}
        yield ev.CallFinished.model_validate({**call, "success": True, "response": answer})
    yield ev.ResultRecorded.model_validate({**at, "status": "completed", "final_answer": task})
    yield ev.EvaluationFinished.model_validate({**at, "correct": True, "evaluator": _JUDGE})
    yield ev.AttemptFinished.model_validate({**at, "status": "completed", "correct": True})
    yield ev.TaskFinished(task=task, reason="all_attempts", error=False)


def main(count: int, directory: Path) -> None:
    """Append, and tell what the events of each window took."""
    windows = {size: _Window(size) for size in sorted({*_SIZES, count}) if size <= count}
    events = run_events(count + count // 20 + _LEAST_WIDTH)
    last = max(one.end for one in windows.values())
    with Ledger.create(directory) as ledger:
        while ledger.size < last and (batch := list(islice(events, BATCH))):
            cpu = time.process_time()
            (outcome,) = ledger.append_group([batch])
            cpu = time.process_time() - cpu
            if isinstance(outcome, Exception):
                raise outcome
            for window in windows.values():
                window.add(ledger.size, len(batch), cpu)
    each = {str(size): window.cpu / window.events * 1e6 for size, window in windows.items()}
    print(json.dumps({"events": count, "microseconds": each}))


class _Window:
    """Batches that end near `size` events."""

    def __init__(self, size: int) -> None:
        width = max(size // 20, _LEAST_WIDTH)
        self.begin, self.end = size - width, size + width
        self.events, self.cpu = 0, 0.0

    def add(self, size: int, events: int, cpu: float) -> None:
        if self.begin < size <= self.end:
            self.events += events
            self.cpu += cpu


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
