"""`progress.jsonl`: the order of the tasks, and what was started and never came to a file.

Its times are seconds since 1970 as floats; they stay in the original only.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import Remark

MAX_ATTEMPT: Final = 999_999_999


@dataclass(slots=True)
class Progress:
    """Per task: when it came, its category, and the attempts that were started.

    `total` is how many tasks the source says it selected, named here or not.
    """

    total: int | None = None
    order: dict[str, int] = field(default_factory=dict)
    categories: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, set[int]] = field(default_factory=dict)


def read_progress(name: str, data: bytes) -> tuple[Progress, list[Remark]]:
    """Read the log of a run. A cut last line is the work of a crash; other bad lines are damage."""
    progress = Progress()
    remarks = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = read_record(line)
        except NotARecord as fault:
            torn = number == len(lines) and fault.cut
            what = "the last line, cut by a crash" if torn else f"line {number}"
            remarks.append(Remark(name, f"{what}: {fault}", placed=True, damage=not torn))
            continue
        _take(progress, record.value)
    return progress, remarks


def _take(progress: Progress, line: dict[str, Any]) -> None:
    payload = line.get("payload")
    task = line.get("task_id")
    match line.get("event"):
        case "tasks_loaded" if isinstance(payload, dict):
            progress.total = _count(payload.get("total_tasks"))
        case "task_started" if isinstance(task, str):
            index = _count(payload.get("index")) if isinstance(payload, dict) else None
            progress.order.setdefault(task, len(progress.order) if index is None else index)
            category = line.get("category")
            if isinstance(category, str) and category:
                progress.categories[task] = category
        case "attempt_started" if isinstance(task, str):
            number = _count(line.get("attempt"))
            if number and number <= MAX_ATTEMPT:
                progress.attempts.setdefault(task, set()).add(number)
        case _:
            pass


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
