"""Which tasks a run has: loaded, selected, each with an id of its own, and told of in one event."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger import canonical
from ledger.codec import MAX_TASK
from ledger.errors import AclError, UsageError
from ledger.events import AnyEvent, ExtensionRecorded, TaskRef, TasksSelected
from runtime.containment import contained, named
from runtime.contracts import Benchmark, Task

REFUSED: Final = "acl.values-refused"
"""The extension that names what was left out of the plan: `[{task, path, why}]`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tasks of a run in order, and the events that tell of them."""

    tasks: list[Task]
    events: tuple[AnyEvent, ...]


def load(benchmark: Benchmark, params: dict[str, Any]) -> Selection:
    """Load and select the tasks; nothing is recorded yet.

    Raises UsageError where the benchmark fails, and for tasks that no ledger can tell of.
    """
    try:
        with contained():
            tasks = select(benchmark, params)
            events = selection_events(benchmark.id, str(benchmark.version), params, tasks)
    except AclError:
        raise
    except Exception as error:  # a plug-in may raise anything
        why = f"the tasks of {benchmark.id} cannot be loaded: {named(error)}"
        raise UsageError(why) from error
    return Selection(tasks, events)


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


def selection_events(
    benchmark: str, version: str | None, params: dict[str, Any], tasks: Sequence[Task]
) -> tuple[AnyEvent, ...]:
    """The whole plan in order, with the parameters that selected it.

    Metadata that no ledger holds is left out of it, and named by a second event.
    """
    refused: list[dict[str, str]] = []
    plan = TasksSelected(
        benchmark=benchmark,
        benchmark_version=version,
        selection=params or None,
        tasks=tuple(_reference(task, refused) for task in tasks),
    )
    if not refused:
        return (plan,)
    return plan, ExtensionRecorded(name=REFUSED, payload=refused)


def _reference(task: Task, refused: list[dict[str, str]]) -> TaskRef:
    metadata, refusals = canonical.prune(dict(task.metadata))
    for one in refusals:
        path = f"$.metadata{one.path[1:]}"
        refused.append({"task": task.task_id, "path": path, "why": one.why})
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
