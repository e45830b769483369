"""Which tasks a run has: loaded, selected, each with an id of its own, and told of in one event."""

import logging
from collections.abc import Sequence
from typing import Any

from ledger import canonical
from ledger.codec import MAX_TASK
from ledger.errors import UsageError
from ledger.events import TaskRef, TasksSelected
from runtime.contracts import Benchmark, Task

_log = logging.getLogger(__name__)


def select(benchmark: Benchmark, params: dict[str, Any]) -> list[Task]:
    """Load and select the tasks; UsageError, with positions, for ids that cannot be told apart."""
    tasks = list(benchmark.select_tasks(benchmark.load_tasks(params), params))
    check_ids(benchmark.id, tasks)
    return tasks


def check_ids(benchmark: str, tasks: Sequence[Task]) -> None:
    """Raise UsageError, with positions, for ids that are no text, too long, or not unique."""
    positions: dict[str, int] = {}
    for position, task in enumerate(tasks):
        if not isinstance(task, Task) or type(task.task_id) is not str:
            raise UsageError(f"task {position} of {benchmark} has no text as its id")
        if len(task.task_id.encode("utf-8", "surrogatepass")) > MAX_TASK:
            raise UsageError(f"the id of task {position} has more than {MAX_TASK} bytes")
        if task.task_id in positions:
            first = positions[task.task_id]
            raise UsageError(
                f"tasks {first} and {position} have the same id {task.task_id!r}",
                hint="give every task an id of its own; positions count from 0",
            )
        positions[task.task_id] = position


def selection_event(
    benchmark: str, version: str | None, params: dict[str, Any], tasks: Sequence[Task]
) -> TasksSelected:
    """The whole plan in order, with the parameters that selected it."""
    return TasksSelected(
        benchmark=benchmark,
        benchmark_version=version,
        selection=params or None,
        tasks=tuple(map(_reference, tasks)),
    )


def _reference(task: Task) -> TaskRef:
    metadata, refusals = canonical.prune(dict(task.metadata))
    for refusal in refusals:
        _log.warning("the metadata of task %s: %s", task.task_id, refusal.message)
    assert isinstance(metadata, dict)
    return TaskRef(
        task_id=task.task_id,
        category=_text(task, "category"),
        checksum=_text(task, "checksum"),
        metadata=metadata,
    )


def _text(task: Task, name: str) -> str | None:
    """A text of a task; of a subclass (of an Enum, say) only the text matters."""
    value = getattr(task, name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"the {name} of task {task.task_id!r} is no text")
    return None if value is None else str.__str__(value)
