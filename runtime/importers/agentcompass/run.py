"""A whole AgentCompass run: what its own files say, and the plan of the import."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError, VersionUnsupported
from runtime.importers.agentcompass.layout import Layout, arrange
from runtime.importers.agentcompass.metrics import source_metrics
from runtime.importers.agentcompass.plans import Plans
from runtime.importers.agentcompass.progress import Progress, read_progress
from runtime.importers.agentcompass.request import our_request, payload, persistence_params
from runtime.importers.agentcompass.task import ForeignTask, TaskReader, read_tasks
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import (
    ImportPlan,
    Item,
    Original,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.source import Source, SourceFile
from runtime.importers.times import utc

FORMAT: Final = "agentcompass"
RUN_INFO: Final = "agentcompass.run_info.v3"

_VERSION: Final = re.compile(r"agentcompass\.run_info\.v([0-9]+)")
_NEWEST: Final = 3
_ENDS: Final[dict[str, tuple[ev.RunStatus, int]]] = {
    "completed": ("completed", 0),
    "failed": ("failed", 1),
    "timed_out": ("timed_out", 1),
    "cancelled": ("cancelled", 130),
}
_HEAD: Final = ("params.json", "run_info.json")
_LOGS: Final = ("run.log", "progress.jsonl", "progress.json")
# The last is of an export of ours in this layout.
_TAIL: Final = ("summary.md", "analysis_summary.json", "analysis_summary.md", "MANIFEST.json")


@dataclass(slots=True)
class ForeignRun:
    """Everything small that is known of the run; the records of its tasks stay on disk."""

    source: Source
    layout: Layout
    remarks: list[Remark] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    plans: Plans = field(default_factory=Plans)
    tasks: list[ForeignTask] = field(default_factory=list)
    metrics: SourceMetrics | None = None

    @property
    def ended(self) -> bool:
        """True if the source says how the run ended."""
        return bool(_text(self.info.get("status")))

    @property
    def version(self) -> str:
        """The schema of the run, as far as it is told."""
        schema = self.info.get("schema_version")
        return schema if isinstance(schema, str) else RUN_INFO

    @property
    def request(self) -> dict[str, Any]:
        """The request in the source's words, from params.json if run_info.json has none."""
        request = self.info.get("request")
        return request if isinstance(request, dict) else self.params


def read_run(source: Source) -> ForeignRun:
    """Read what the run's own files and the indices of its tasks say."""
    run = ForeignRun(source, arrange(source))
    if not run.layout.run and not run.layout.tasks:
        raise UsageError(f"{source.root} holds nothing of an {FORMAT} run")
    run.info = _read(run, "run_info.json") or {}
    _refuse_newer(run.info.get("schema_version"))
    run.params = _read(run, "params.json") or {}
    run.plans = Plans.read(run.info.pop("resolved_execution_plans", None))
    if (log := run.layout.run.get("progress.jsonl")) is not None:
        run.progress, remarks = read_progress(log.path, source.read(log))
        run.remarks += remarks
    run.tasks = _tasks(run)
    report = _read(run, "metrics.json")
    run.metrics = source_metrics(report) if report is not None else None
    if report is not None and run.metrics is None:
        run.remarks.append(Remark("metrics.json", "it holds no series of metrics", damage=True))
    _tell_times(run)
    _tell_lost_tasks(run)
    _tell_the_rest(run)
    return run


def plan_of(run: ForeignRun) -> ImportPlan:
    """Walk through the whole run once, keeping nothing but what must be told; then the plan."""
    remarks = list(run.remarks)
    for _ in run_items(run, remarks):
        pass
    run_id = _text(run.info.get("run_id")) or _text(_section(run.request, "output").get("run_id"))
    request = payload(our_request(run.request, run_id))
    output = _section(run.request, "output")
    lost = {remark.source for remark in remarks if not remark.placed}
    files = {file.path for file in run.source.files}
    return ImportPlan(
        format=FORMAT,
        format_version=run.version if run.info else None,
        run_name=_text(output.get("run_name")),
        benchmark=_text(_section(run.request, "benchmark").get("id")),
        model=_text(_section(run.request, "model").get("id")),
        run_id=run_id,
        request=request | {"source": _own_words(run)},
        persistence_params=persistence_params(request),
        selected=_selected(run),
        items=lambda: run_items(run, []),
        records_in=len(run.source.files),
        records_out=len(files - lost),
        frozen=_frozen(run),
        source_status=_text(run.info.get("status")) or None,
        started_at=utc(run.info.get("started_at")),
        finished_at=utc(run.info.get("finished_at")),
        remarks=tuple(remarks),
    )


def run_items(run: ForeignRun, remarks: list[Remark]) -> Iterator[Item]:
    """Everything after `tasks.selected`, one task at a time."""
    yield from _originals(run, _HEAD)
    for task in run.tasks:
        yield from TaskReader(run.source, task, run.plans, run.version, run.ended, remarks).items()
    for file in _homeless(run):
        yield Original(file)
    yield from _originals(run, _LOGS)
    yield from _end(run, remarks)


def _end(run: ForeignRun, remarks: list[Remark]) -> Iterator[Item]:
    over = run.ended or all(task.published for task in run.tasks)
    if over and (run.ended or run.metrics is not None):
        yield ev.SummaryStarted()
    yield from _originals(run, ("metrics.json",))
    if run.metrics is not None and over:
        yield run.metrics
    elif run.metrics is not None:
        remarks.append(Remark("metrics.json", "it was computed before all tasks were over"))
    yield from _originals(run, _TAIL)
    if run.ended:
        yield ended_as(run.info)


def ended_as(info: Mapping[str, Any]) -> SourceEnd:
    """How the run ended, by the `status` and `error` that its run_info.json tells."""
    word = str(info["status"])
    status, code = _ENDS.get(word, ("failed", 1))
    return SourceEnd(status, _run_error(info, word), code)


def _run_error(info: Mapping[str, Any], word: str) -> ev.ErrorInfo | None:
    message = info.get("error")
    if isinstance(message, str) and message:
        return ev.ErrorInfo(code=word, message=message)
    if word not in _ENDS:
        return ev.ErrorInfo(code=word, message="the source ended in a state that is not known")
    return None


def _tasks(run: ForeignRun) -> list[ForeignTask]:
    """All tasks that any file names, in the order in which the source took them up."""
    tasks = read_tasks(run.source, run.layout.tasks, run.remarks)
    progress = run.progress
    for task_id in (*progress.order, *run.plans.by_task):
        tasks.setdefault(task_id, ForeignTask(task_id))
    for task in tasks.values():
        task.started |= task.task_id in progress.order
        task.category = task.category or progress.categories.get(task.task_id)
        task.attempts |= progress.attempts.get(task.task_id, set())
        task.attempts |= set(run.plans.by_task.get(task.task_id, {}))
    if progress.total is not None and progress.total > len(tasks):
        unnamed = progress.total - len(tasks)
        reason = f"{progress.total} tasks were selected; {unnamed} of them no file names"
        run.remarks.append(Remark("progress.jsonl", reason, placed=True))
    last = len(tasks)
    return sorted(
        tasks.values(), key=lambda task: (progress.order.get(task.task_id, last), task.task_id)
    )


def _selected(run: ForeignRun) -> ev.TasksSelected:
    return ev.TasksSelected(
        benchmark=_text(_section(run.request, "benchmark").get("id")) or "unknown",
        selection=None if run.progress.total is None else {"total": run.progress.total},
        tasks=tuple(
            ev.TaskRef(
                task_id=task.task_id,
                category=task.category,
                metadata={"source": task.index.other} if task.index and task.index.other else {},
            )
            for task in run.tasks
        ),
    )


def _frozen(run: ForeignRun) -> ev.ReuseFrozen | None:
    reused = run.info.get("reused_from")
    if not isinstance(reused, dict):
        return None
    asked = _text(_section(run.request, "runtime").get("reuse_run_id"))
    # Its path is one of the source's machine; it stands among the source's own words.
    return ev.ReuseFrozen(
        mode="explicit" if asked else "implicit", run_id=_text(reused.get("run_id")) or None
    )


def _own_words(run: ForeignRun) -> dict[str, Any]:
    rest = {key: value for key, value in run.info.items() if key != "request"}
    return {"format": FORMAT, "request": run.request, "run_info": rest}


def _homeless(run: ForeignRun) -> list[SourceFile]:
    """Files of no task that can be told; they are kept all the same."""
    told = {id(task.files) for task in run.tasks}
    told |= {id(other) for task in run.tasks for other in task.superseded}
    lost = [file for files in run.layout.tasks if id(files) not in told for file in files.all()]
    return [*lost, *run.layout.foreign, *run.layout.unfinished]


def _tell_lost_tasks(run: ForeignRun) -> None:
    """Name the tasks of a run that completed of which it can have left more than is there."""
    if run.info.get("status") != "completed":
        return
    for task in run.tasks:
        if not task.published:
            reason = f"the run completed, and holds no result of task {task.task_id!r}"
            run.remarks.append(Remark("details", reason, damage=True))


def _tell_times(run: ForeignRun) -> None:
    for name in ("started_at", "finished_at"):
        value = run.info.get(name)
        if value is not None and utc(value) is None:
            reason = f"{name} is {value!r}, no ISO-8601 time with a zone"
            run.remarks.append(Remark("run_info.json", reason, placed=True))


def _tell_the_rest(run: ForeignRun) -> None:
    """Name whatever is no part of the layout, and kept JSON files that are none."""
    foreign = [*run.layout.foreign]
    for task in run.layout.tasks:
        foreign += task.foreign
        for attempt in task.attempts.values():
            foreign += attempt.foreign
            for file in (attempt.checkpoint, *attempt.archived):
                if file is not None and file.path.endswith(".json"):
                    _check_kept(run, file)
    if (file := run.layout.run.get("progress.json")) is not None:
        _check_kept(run, file)
    told = {remark.source for remark in run.remarks if not remark.placed}
    run.remarks += [
        Remark(file.path, "no file of this layout") for file in foreign if file.path not in told
    ]
    run.remarks += [
        Remark(file.path, "its writing was cut short") for file in run.layout.unfinished
    ]
    run.remarks += [Remark(path, f"left alone: {why}") for path, why in run.source.skipped]


def _check_kept(run: ForeignRun, file: SourceFile) -> None:
    if "/artifacts/" in file.path:
        return
    try:
        read_record(run.source.read(file))
    except NotARecord as fault:
        run.remarks.append(Remark(file.path, str(fault), damage=True))


def _originals(run: ForeignRun, names: tuple[str, ...]) -> Iterator[Original]:
    for name in names:
        if name in run.layout.run:
            yield Original(run.layout.run[name])


def _read(run: ForeignRun, name: str) -> dict[str, Any] | None:
    file = run.layout.run.get(name)
    if file is None:
        return None
    try:
        record = read_record(run.source.read(file))
    except NotARecord as fault:
        run.remarks.append(Remark(name, str(fault), damage=True))
        return None
    if record.oddities:
        words = ", ".join(record.oddities)
        reason = f"holds {words}, which JSON has no word for"
        run.remarks.append(Remark(name, reason, placed=True))
    return record.value


def _refuse_newer(schema: Any) -> None:
    match = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    if match and int(match[1]) > _NEWEST:
        raise VersionUnsupported(f"the run has schema {schema}, newer than {RUN_INFO}")


def _section(value: dict[str, Any], name: str) -> dict[str, Any]:
    section = value.get(name)
    return section if isinstance(section, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
