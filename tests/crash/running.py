"""Runs that tests kill: `python -m tests.crash.running ACKS run|record|cli …`.

Before each batch goes to the recorder a line of ACKS says what is in it, and another one, once the
recorder has returned, where it is and what the root was. What follows is the answer to each task and
attempt, always the same, so that any run that came to its end has the same metrics.
"""

import asyncio
import hashlib
import itertools
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from exporters.live import LiveExport
from ledger.errors import AclError
from ledger.store import Clock, Receipt, system_clock
from runtime.contracts import AttemptContext, StageError, Task
from runtime.recorder import Recorder
from runtime.recording import record
from runtime.results import RunResult
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task

AT_ONCE = 16
TASKS = [task(f"task-{n:02}", category="odd" if n % 2 else "even") for n in range(40)]


def luck(name: str, attempt: int) -> int:
    return hashlib.sha256(f"{name}:{attempt}".encode()).digest()[0]


@cache
def trajectory(number: int) -> list[dict[str, str]]:
    """Some kilobytes that do not compress, and differ."""
    noise = [hashlib.sha512(f"{number}:{n}".encode()).hexdigest() for n in range(number)]
    return [{"role": "assistant", "content": text} for text in noise]


async def act(t: Task, context: AttemptContext) -> Any:
    """Right, wrong, long, or failing once and then right; after a while that is its own."""
    chance = luck(t.task_id, context.attempt)
    await asyncio.sleep(chance / 255 * 0.02)
    if chance % 5 == 0 and context.retry == 0:
        raise StageError("sandbox_failed", "no process")
    answer = "right" if chance % 3 else "wrong"
    return RunResult(t.task_id, final_answer=answer, trajectory=trajectory(chance))


def main_run(
    results: Path,
    run_id: str,
    reuse: str = "",
    *,
    patience: float = 60.0,
    alarm: Callable[[str], object] | None = None,
    clock: Clock = system_clock,
) -> int:
    """Run all tasks, 16 attempts at once; with `reuse` take over what earlier runs finished."""
    outcome = asyncio.run(
        run(
            request(
                k=2,
                max_retries=1,
                task_concurrency=AT_ONCE,
                retry_min_delay_seconds=0.001,
                output={"run_id": run_id},
                runtime={"reuse": bool(reuse)},
            ),
            results_dir=results,
            projectors=[lambda home: LiveExport(home, home=home)],
            surroundings=Surroundings(
                clock=clock,
                plugins=plugins(Listed(TASKS), Scripted(act)),
                environ={},
                patience=patience,
                alarm=alarm,
            ),
        )
    )
    print(json.dumps({"status": outcome.status, "error": outcome.error and outcome.error.message}))
    return outcome.exit_code


def main_record(results: Path, _run_id: str = "") -> int:
    """The same from an own loop of 16 threads."""

    def attempt(given: Task) -> None:
        with recording.attempt(given) as one:
            chance = luck(given.task_id, one.number)
            one.result("right" if chance % 3 else "wrong", trajectory=trajectory(chance))
            correct = one.answer == "right"
            one.evaluation(correct=correct, score=float(correct))

    around = Surroundings(environ={})
    with (
        record(
            results, benchmark="own", model="none", k=2, tasks=TASKS, surroundings=around
        ) as recording,
        ThreadPoolExecutor(AT_ONCE) as threads,
    ):
        list(threads.map(attempt, [*TASKS, *TASKS]))
    return 0


# -- what was acknowledged -----------------------------------------------------------------------


def tell_acknowledgements(acks: Path) -> None:
    """From now on write down what is given to any recorder, and what it acknowledges."""
    file = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    numbers = itertools.count()

    def tell(**what: Any) -> None:
        os.write(file, json.dumps(what).encode() + b"\n")

    def intend(events: Any) -> int:
        number = next(numbers)
        tell(batch=number, events=[[e.type, e.task, e.attempt] for e in events])
        return number

    def stored(number: int | None, receipt: Receipt | AclError) -> None:
        if isinstance(receipt, Receipt):
            place = {"first": receipt.first, "size": receipt.size, "root": receipt.root.hex()}
            tell(stored=number, **place)

    ask, ask_sync, ask_streams = Recorder.record, Recorder.record_sync, Recorder.record_streams

    async def record_told(self: Recorder, *events: Any) -> Receipt:
        number = intend(events)
        receipt = await ask(self, *events)
        stored(number, receipt)
        return receipt

    def record_sync_told(self: Recorder, *events: Any) -> Receipt:
        number = intend(events)
        receipt = ask_sync(self, *events)
        stored(number, receipt)
        return receipt

    async def record_streams_told(self: Recorder, streams: Any) -> Any:
        receipts = await ask_streams(self, streams)
        for receipt in receipts:
            stored(None, receipt)
        return receipts

    Recorder.record = record_told  # type: ignore[method-assign]
    Recorder.record_sync = record_sync_told  # type: ignore[method-assign]
    Recorder.record_streams = record_streams_told  # type: ignore[method-assign]


def main(acks: str, how: str, *arguments: str) -> int:
    tell_acknowledgements(Path(acks))
    if how == "cli":
        from acl.main import call

        return call(list(arguments))
    where, *more = arguments
    return {"run": main_run, "record": main_record}[how](Path(where), *more)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
