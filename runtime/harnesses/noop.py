"""The harness that does nothing; every benchmark must give it 0."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

from typing import Any, ClassVar

from runtime.contracts import AttemptContext, BaseHarness, Task
from runtime.results import RunResult


class NoopHarness(BaseHarness):
    """Answers with what it was given: the broken source of a repair task, else nothing."""

    id: ClassVar[str] = "noop"

    async def run_task(
        self, task: Task, config: Any, session: Any, context: AttemptContext
    ) -> RunResult:
        """Hand the task back untouched."""
        return RunResult(
            task.task_id, category=task.category, final_answer=task.input.get("source", "")
        )
