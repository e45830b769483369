"""A run that waits to be stopped: `python -m tests.system.signalled_run RESULTS [stubborn]`."""

import asyncio
import sys
from pathlib import Path

from runtime.contracts import AttemptContext, Task
from runtime.interrupt import StopSignal, listening
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task


async def wait(t: Task, context: AttemptContext) -> str:
    if t.task_id == "quick":
        return "right"
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if "stubborn" not in sys.argv:
                raise


async def main(results: Path) -> int:
    stop = StopSignal()
    tasks = [task("quick"), task("slow"), task("never")]
    with listening(stop):
        outcome = await run(
            request(task_concurrency=2, output={"run_id": "r"}),
            results_dir=results,
            stop=stop,
            surroundings=Surroundings(plugins=plugins(Listed(tasks), Scripted(wait)), environ={}),
        )
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
