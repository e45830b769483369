"""A whole run in this layout: what its own files say, and the plan of the import."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from ledger import events as ev
from ledger.errors import UsageError, VersionUnsupported
from runtime.importers.details import manifest
from runtime.importers.details.counting import Tally
from runtime.importers.details.errors import error_of
from runtime.importers.details.files import EMPTY, Files
from runtime.importers.details.layout import (
    COUNTS,
    HEAD,
    LOGS,
    MANIFEST,
    PARAMS,
    RUN_INFO,
    TAIL,
    arrange,
)
from runtime.importers.details.metrics import differing, source_metrics
from runtime.importers.details.placing import place_tasks
from runtime.importers.details.reading import Document
from runtime.importers.details.request import (
    completed,
    persistence_params,
    section_of,
    text,
    text_or_none,
)
from runtime.importers.details.tasks import ForeignTask, TaskReader
from runtime.importers.plan import (
    ImportPlan,
    Item,
    Original,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.source import Source
from runtime.importers.times import utc

FORMAT: Final = "details"
SCHEMA: Final = "agentcompass.run_info.v1"

_VERSION: Final = re.compile(r"agentcompass\.run_info\.v([0-9]+)")
_FIELDS: Final = frozenset(
    {
        "error",
        "finished_at",
        "metric_artifacts",
        "request",
        "resolved_execution_plans",
        "reused_from",
        "run_id",
        "schema_version",
        "started_at",
        "status",
    }
)
_ENDS: Final[dict[str, tuple[ev.RunStatus, int]]] = {
    "completed": ("completed", 0),
    "failed": ("failed", 1),
    "timed_out": ("timed_out", 1),
    "cancelled": ("cancelled", 130),
}
_NOT_ENDED: Final = frozenset({"", "running", "interrupted"})


@dataclass(slots=True)
class ForeignRun:
    """Everything small that is known of the run; the records of its tasks stay on disk."""

    files: Files
    info: Document = EMPTY
    params: Document = EMPTY
    counts: Document = EMPTY
    request: dict[str, Any] = field(default_factory=dict)
    tasks: list[ForeignTask] = field(default_factory=list)
    metrics: SourceMetrics | None = None

    @property
    def status(self) -> str:
        """What the source says of its end."""
        return text(self.info.value.get("status"))

    @property
    def ended(self) -> bool:
        """True if the source ended by itself."""
        return self.status not in _NOT_ENDED

    @property
    def close(self) -> bool:
        """True if no task can have been left open: the run was summed up."""
        return self.status == "completed" or self.metrics is not None

    @property
    def version(self) -> str:
        """The schema of the run, as far as it is told."""
        return text(self.info.value.get("schema_version")) or SCHEMA


def read_run(source: Source) -> ForeignRun:
    """Read what the run's own files say, and of each record and retry whose it is."""
    files = Files(source, arrange(source))
    if not files.layout.run and not files.layout.records:
        raise UsageError(f"{source.root} holds nothing of a run in the layout {FORMAT}")
    run = ForeignRun(files, info=files.read(RUN_INFO))
    _refuse_newer(run.info.value.get("schema_version"))
    run.params = files.read(PARAMS)
    run.counts = files.read(COUNTS)
    _compare_with_manifest(run)
    run.tasks = place_tasks(files, run.info)
    _read_request(run)
    _read_metrics(run)
    _tell_the_rest(run)
    return run


def plan_of(run: ForeignRun) -> ImportPlan:
    """Walk through the whole run once, keeping nothing but what must be told; then the plan."""
    remarks, tally = list(run.files.remarks), Tally()
    for _ in run_items(run, remarks, tally):
        pass
    if run.counts.ours:
        remarks += [
            Remark(COUNTS, f"it counts {words}", placed=True, damage=True)
            for words in tally.differing(run.counts.value)
        ]
    output = section_of(run.request, "output")
    lost = {remark.source for remark in remarks if not remark.placed}
    files = {file.path for file in run.files.source.files}
    info = run.info.value
    return ImportPlan(
        format=FORMAT,
        format_version=run.version if info else None,
        run_name=text(output.get("run_name")),
        benchmark=text(section_of(run.request, "benchmark").get("id")),
        model=text(section_of(run.request, "model").get("id")),
        run_id=text(info.get("run_id")) or text(output.get("run_id")),
        request=run.request,
        persistence_params=persistence_params(run.params.value, run.request),
        selected=_selected(run, tally.redactions),
        items=lambda: run_items(run, [], Tally()),
        records_in=len(run.files.source.files),
        records_out=len(files - lost),
        frozen=_frozen(run),
        source_status=run.status or None,
        started_at=utc(info.get("started_at")),
        finished_at=utc(info.get("finished_at")),
        remarks=tuple(remarks),
    )


def run_items(run: ForeignRun, remarks: list[Remark], tally: Tally) -> Iterator[Item]:
    """Everything after `tasks.selected`, one task at a time."""
    yield from _originals(run, HEAD)
    layout = run.files.layout
    execution = section_of(run.request, "execution")
    for task in run.tasks:
        reader = TaskReader(
            source=run.files.source,
            task=task,
            version=run.version,
            strategy=text(execution.get("strategy")),
            k=execution["k"],
            close=run.close,
            size=run.info.words.get("size"),
            remarks=remarks,
        )
        yield from reader.items()
        tally.add(reader)
    for file in (*run.files.homeless, *layout.foreign, *layout.unfinished):
        yield Original(file)
    yield from _originals(run, LOGS)
    yield from _end(run)


def _end(run: ForeignRun) -> Iterator[Item]:
    if run.close:
        yield ev.SummaryStarted()
    yield from _originals(run, (COUNTS,))
    if run.metrics is not None:
        yield run.metrics
    yield from _originals(run, TAIL)
    if run.ended:
        status, code = _ENDS.get(run.status, ("failed", 1))
        yield SourceEnd(status, _run_error(run), code)


def _run_error(run: ForeignRun) -> ev.ErrorInfo | None:
    error = error_of(run.info.value.get("error"), run.info.words.get("error_info"))
    if error is None and run.status not in _ENDS:
        message = "the source ended in a state that is not known"
        return ev.ErrorInfo(code=run.status, message=message)
    return error


def _selected(run: ForeignRun, told: int) -> ev.TasksSelected:
    """The task list; it carries the count of replacements that no result tells of."""
    chosen = section_of(run.info.words, "selected")
    total = run.info.words.get("redactions")
    return ev.TasksSelected(
        benchmark=text(chosen.get("benchmark")) or run.request["benchmark"]["id"],
        benchmark_version=text_or_none(chosen.get("version")),
        tasks=tuple(
            ev.TaskRef(
                task_id=task.task_id,
                category=task.category,
                checksum=task.checksum,
                metadata=task.metadata,
            )
            for task in run.tasks
        ),
        redactions=total - told if type(total) is int and total > told else None,
    )


# -- the run's own files --------------------------------------------------------------------------


def _read_request(run: ForeignRun) -> None:
    """The request as it stands; what it lacks is made up, and then its own words stay beside it."""
    info = run.info.value
    given = info.get("request")
    words = given if isinstance(given, dict) else run.params.value
    counts = [task.record.k for task in run.tasks if task.record is not None and task.record.k]
    run.request, replaced = completed(words, max(counts, default=None))
    rest = {name: info[name] for name in sorted(info.keys() - _FIELDS)}
    own: dict[str, Any] = {"format": FORMAT}
    if replaced:
        own["request"] = words
    if given is not None and words is not given:
        rest["request"] = given
    if rest:
        own["run_info"] = rest
    if len(own) > 1:
        run.request["source"] = own


def _read_metrics(run: ForeignRun) -> None:
    artifacts = section_of(run.info.value, "metric_artifacts")
    metrics = source_metrics(run.counts, artifacts.get("source"))
    if metrics is None:
        return
    # An export of one prefix has both files; what a live one left may be of any.
    together = run.counts.ours and run.counts.words.get("size") == run.info.words.get("size")
    if not (run.ended or together or all(task.record is not None for task in run.tasks)):
        run.files.tell(COUNTS, "its metrics were computed before all tasks were over")
        return
    for name in differing(run.counts, metrics):
        reason = f"metric {name!r} is not the one that was recorded"
        run.files.tell(COUNTS, reason, damage=True)
    run.metrics = metrics


def _frozen(run: ForeignRun) -> ev.ReuseFrozen | None:
    reused = run.info.value.get("reused_from")
    if not isinstance(reused, dict):
        return None
    asked = text(section_of(run.request, "runtime").get("reuse_run_id"))
    return ev.ReuseFrozen(
        mode="explicit" if asked else "implicit",
        run_id=text_or_none(reused.get("run_id")),
        # Of other programs it is a path of their machine.
        path=text_or_none(reused.get("path")) if run.info.ours else None,
        ledger_id=text_or_none(reused.get("ledger_id")),
        root=text_or_none(reused.get("root")),
        differences=_differences(reused.get("differences")),
    )


def _differences(told: object) -> tuple[ev.Differing, ...] | None:
    """With which settings reused tasks ran otherwise; what is no such list is left out."""
    try:
        listed = told if isinstance(told, list) else []
        found = tuple(ev.Differing.model_validate(one) for one in listed)
    except ValidationError:
        return None
    return found or None


def _compare_with_manifest(run: ForeignRun) -> None:
    if MANIFEST in run.files.layout.run:
        document = run.files.read(MANIFEST)
        _tell_salvage(run, document)
        if document.value:
            run.files.remarks += manifest.compare(document, run.files.source)
    elif run.info.ours:
        run.files.tell(MANIFEST, "there is none: no export was ended here")


def _tell_salvage(run: ForeignRun, listing: Document) -> None:
    """Say where the exported ledger was damaged, as far as its files know."""
    for name, document in ((RUN_INFO, run.info), (MANIFEST, listing)):
        damaged_at = section_of(document.words, "salvaged").get("damaged_at")
        if type(damaged_at) is int:
            reason = f"salvaged: the exported ledger was damaged at event {damaged_at}, and what"
            run.files.tell(name, f"{reason} followed is not told")
            return


def _tell_the_rest(run: ForeignRun) -> None:
    """Name whatever is no part of the layout."""
    for file in run.files.layout.foreign:
        run.files.remarks.append(Remark(file.path, "no file of this layout"))
    for file in run.files.layout.unfinished:
        run.files.remarks.append(Remark(file.path, "its writing was cut short"))
    for name in ("started_at", "finished_at"):
        value = run.info.value.get(name)
        if value is not None and utc(value) is None:
            run.files.tell(RUN_INFO, f"{name} is {value!r}, no ISO-8601 time with a zone")
    run.files.remarks += [
        Remark(path, f"left alone: {why}") for path, why in run.files.source.skipped
    ]


def _originals(run: ForeignRun, names: tuple[str, ...]) -> Iterator[Original]:
    for name in names:
        if name in run.files.layout.run:
            yield Original(run.files.layout.run[name])


def _refuse_newer(schema: Any) -> None:
    match = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    if match and int(match[1]) > 1:
        raise VersionUnsupported(
            f"the run has schema {schema}, not {SCHEMA}", hint="it may be for -f agentcompass"
        )
