"""A run to be killed: `python -m tests.system.killed_run RESULTS RUN_ID [SOURCE_RUN_ID]`.

The answers depend on task and attempt alone, so that a run that was killed and reused can be
compared with one that was never stopped.
"""

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any

from runtime.contracts import AttemptContext, StageError, Task
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task

TASKS = [
    task(f"task-{number:02}", category="odd" if number % 2 else "even") for number in range(16)
]


def act(t: Task, context: AttemptContext) -> Any:
    """Right, wrong, long, or failing once and then right."""
    luck = hashlib.sha256(f"{t.task_id}:{context.attempt}".encode()).digest()[0]
    if luck % 5 == 0 and context.retry == 0:
        raise StageError("sandbox_failed", "no process")
    return "right" if luck % 3 else {"wrong": "x" * (luck * 100)}


async def main(results: Path, run_id: str, source: str = "", pause: float = 0.0) -> int:
    """Run all tasks, with a pause in each attempt."""

    async def slowly(t: Task, context: AttemptContext) -> Any:
        await asyncio.sleep(pause)
        return act(t, context)

    outcome = await run(
        request(
            k=2,
            max_retries=1,
            retry_min_delay_seconds=0.001,
            output={"run_id": run_id},
            runtime={"reuse_run_id": source},
        ),
        results_dir=results,
        surroundings=Surroundings(plugins=plugins(Listed(TASKS), Scripted(slowly)), environ={}),
    )
    return outcome.exit_code


if __name__ == "__main__":
    where, name, *more = sys.argv[1:]
    sys.exit(asyncio.run(main(Path(where), name, *more[:1], pause=0.02)))
