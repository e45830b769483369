"""A run that judges slowly: `python -m tests.system.judged_run RESULTS RUN_ID REUSED PAUSE ASKED`.

Each answer of the agent adds a line to the file ASKED, so that a test can count how often tasks
were run by several processes together. REUSED is a run id, `newest`, or `-`.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from exporters.live import LiveExport
from runtime.contracts import AttemptContext, Task
from runtime.results import Evaluation, RunResult
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import Listed, Scripted, plugins, request, task

TASKS = [task(f"task-{number:02}") for number in range(12)]


class Slowly(Listed):
    """Keeps a file of each attempt, and judges by it after a pause."""

    def __init__(self, pause: float) -> None:
        super().__init__(TASKS)
        self.pause = pause

    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        return ["answer.txt"]

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        await asyncio.sleep(self.pause)
        assert context.session is not None
        text = await context.session.read_text("answer.txt")
        return await super().evaluate(
            task, RunResult(task.task_id, final_answer=text.split()[0]), context
        )


async def main(results: Path, run_id: str, reused: str, pause: float, asked: Path) -> int:
    """Run all tasks, four at once."""

    async def act(t: Task, context: AttemptContext) -> Any:
        with asked.open("a") as file:
            file.write(t.task_id + "\n")
        assert context.session is not None
        await context.session.write_text("answer.txt", f"right {t.task_id}")
        return f"see the file of {t.task_id}"

    runtime = {"newest": {"reuse": True}, "-": {}}.get(reused, {"reuse_run_id": reused})
    outcome = await run(
        request(output={"run_id": run_id}, runtime=runtime),
        results_dir=results,
        surroundings=Surroundings(plugins=plugins(Slowly(pause), Scripted(act)), environ={}),
        projectors=[lambda home: LiveExport(home, home=home)],
    )
    return outcome.exit_code


if __name__ == "__main__":
    where, name, source, seconds, log = sys.argv[1:]
    sys.exit(asyncio.run(main(Path(where), name, source, float(seconds), Path(log))))
