"""The lines as a run."""

from collections.abc import Iterator
from typing import Any

from ledger import events as ev
from runtime.importers.foreign import (
    UNKNOWN,
    ForeignAttempt,
    foreign_request,
    persistence_of,
    task_items,
)
from runtime.importers.generic.header import FORMAT, VERSION
from runtime.importers.generic.record import read_line
from runtime.importers.generic.scan import Scan, Task
from runtime.importers.generic.telling import Telling
from runtime.importers.jsontext import read_record
from runtime.importers.lines import Line
from runtime.importers.plan import ImportPlan, Item, Original, OwnMetrics, Remark, SourceEnd


def plan_of(found: Scan) -> ImportPlan:
    """The plan of the import; every line that is not a header is a record."""
    header = found.header
    benchmark = header.benchmark or found.only("benchmark") or UNKNOWN
    model = header.model or found.only("model") or UNKNOWN
    request = foreign_request(
        benchmark=benchmark,
        model=model,
        harness=header.harness or found.only("harness") or UNKNOWN,
        run_id=header.run_id,
        k=_k(found),
        strategy=header.strategy,
        source={"format": FORMAT, **header.words},
    )
    times = found.times
    return ImportPlan(
        format=FORMAT,
        format_version=str(VERSION),
        run_name=header.run_name,
        benchmark=benchmark,
        model=model,
        run_id=header.run_id,
        request=request,
        persistence_params=persistence_of(request),
        selected=ev.TasksSelected(
            benchmark=benchmark,
            benchmark_version=header.benchmark_version or None,
            tasks=tuple(_ref(task) for task in found.tasks.values()),
        ),
        items=lambda: _items(found, model),
        records_in=found.lines + len(found.beside),
        records_out=found.placed + sum(one.placed for one in found.beside),
        started_at=header.started_at or (times[0] if times else None),
        finished_at=header.finished_at or (times[-1] if times else None),
        remarks=found.all_remarks(),
    )


def _k(found: Scan) -> int:
    most = max((max(task.attempts, default=1) for task in found.tasks.values()), default=1)
    told = found.header.k
    if told is not None and told < most:
        reason = f"the header tells k={told}, and an attempt has number {most}"
        found.remarks.append(Remark(found.source.root.name, reason, placed=True))
    return max(told or 1, most)


def _ref(task: Task) -> ev.TaskRef:
    return ev.TaskRef(
        task_id=task.id, category=task.category, checksum=task.checksum, metadata=task.metadata
    )


def _items(found: Scan, model: str) -> Iterator[Item]:
    """Every task that has a record, one attempt at a time, then the files as they were."""
    for task in found.tasks.values():
        if task.attempts:
            numbered = sorted(task.attempts.items())
            yield from task_items(
                task.id, (_attempt(found, number, entry, model) for number, entry in numbered)
            )
    for file in found.source.files:
        yield Original(file)
    if not found.broken:
        yield ev.SummaryStarted()
        yield OwnMetrics()
        yield SourceEnd("completed", None, 0)


def _attempt(found: Scan, number: int, entry: Line, model: str) -> ForeignAttempt:
    value: dict[str, Any] = read_record(found.source.read_part(entry.file, entry.part)).value
    return Telling(read_line(value)).attempt(number, "" if model == UNKNOWN else model)
