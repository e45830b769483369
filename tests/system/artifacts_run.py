"""`acl run` with a benchmark that takes its time: `python -m tests.system.artifacts_run ARGUMENTS`."""

import sys
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from acl.main import main
from runtime import plugins
from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.contracts import AttemptContext, Task
from runtime.results import Evaluation, RunResult

PAUSE = 0.1


class Slow(ArithBenchmark):
    """The arithmetic of the built-in benchmark, judged slowly."""

    id: ClassVar[str] = "slow-arith"

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        return super().load_tasks(params)

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        time.sleep(PAUSE)
        return await super().evaluate(task, result, context)


class Point:
    name = "slow-arith"

    def load(self) -> type[Slow]:
        return Slow


def found(group: str) -> list[Any]:
    points = list(plugins.metadata.entry_points(group=group))
    return [*points, Point()] if group == "acl.benchmarks" else points


if __name__ == "__main__":
    plugins.Plugins.__init__.__defaults__ = (found,)
    main(sys.argv[1:])
