"""An evaluation as a run: each document of each task is a task of ours, `<task>/<doc_id>`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError
from runtime.importers.foreign import (
    UNKNOWN,
    foreign_request,
    persistence_of,
    stranger,
    task_items,
)
from runtime.importers.jsontext import read_record
from runtime.importers.lm_eval.aggregates import (
    expected_samples,
    means_of,
    source_metrics,
    tasks_of,
)
from runtime.importers.lm_eval.files import FORMAT, Files, files_of, object_of
from runtime.importers.lm_eval.sample import Sample, read_sample
from runtime.importers.lm_eval.task import TaskScan, scan_task, told_of
from runtime.importers.lm_eval.telling import attempt_of
from runtime.importers.plan import ImportPlan, Item, Original, OwnMetrics, Remark, SourceEnd
from runtime.importers.source import Source
from runtime.importers.times import read_time

# Kept in the original only: long, and about the machine.
_LONG: Final = frozenset({"results", "groups", "configs", "samples", "pretty_env_info"})


@dataclass(slots=True)
class Outline:
    """All that was read; `whole` is False if samples or aggregates are not there.

    `beside` are the remarks about files that are no part of it.
    """

    source: Source
    files: Files
    scans: dict[str, TaskScan] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    beside: list[Remark] = field(default_factory=list)
    whole: bool = True

    def lose(self, place: str, reason: str, *, damage: bool = False, torn: bool = False) -> None:
        """Name what is not there, or has no place."""
        self.remarks.append(Remark(place, reason, damage=damage, torn=torn))
        self.whole = False

    def tell(self, place: str, reason: str) -> None:
        """Name something odd about what has its place."""
        self.remarks.append(Remark(place, reason, placed=True))


def plan_of(source: Source) -> ImportPlan:
    """The plan of the import; lines of samples are records, and so is the file of aggregates."""
    found = _outline(source)
    document = found.files.document
    tasks = [
        ev.TaskRef(task_id=f"{name}/{doc_id}", category=name, checksum=scan.checksums[doc_id])
        for name, scan in found.scans.items()
        for doc_id in scan.docs
    ]
    benchmark = next(iter(found.scans)) if len(found.scans) == 1 else FORMAT
    model = _model(document)
    time = found.files.time
    request = foreign_request(
        benchmark=benchmark,
        model=model,
        harness=FORMAT,
        run_id=time or "",
        source={
            "format": FORMAT,
            **{name: item for name, item in document.items() if name not in _LONG},
        },
    )
    scans = found.scans.values()
    aggregates = 1 if found.files.results is not None else 0
    beside = len(found.beside) + len(found.files.strangers)
    return ImportPlan(
        format=FORMAT,
        format_version=None,
        run_name="",
        benchmark=benchmark,
        model=model,
        run_id=time or "",
        request=request,
        persistence_params=persistence_of(request),
        selected=ev.TasksSelected(benchmark=benchmark, tasks=tuple(tasks)),
        items=lambda: _items(found),
        records_in=sum(scan.records for scan in scans) + aggregates + beside,
        records_out=sum(scan.placed for scan in scans)
        + (aggregates if document else 0)
        + sum(one.placed for one in found.beside),
        started_at=read_time(document.get("date"))[0],
        remarks=tuple(found.remarks),
    )


def _outline(source: Source) -> Outline:
    files = files_of(source)
    found = Outline(source, files)
    found.remarks += [Remark(path, f"left alone: {why}") for path, why in source.skipped]
    if files.fault is not None and files.results is not None:
        found.lose(files.results.path, f"no results: {files.fault}", damage=not files.fault.cut)
    for one in files.strangers:
        found.lose(one.file.path, "samples of another evaluation than the results")
    found.beside = [stranger(file, "the evaluation") for file in files.others]
    found.remarks += found.beside
    for samples in files.samples:
        scan = found.scans.setdefault(samples.task, TaskScan(samples.task))
        scan_task(source, samples, scan)
    found.scans = {name: scan for name, scan in found.scans.items() if scan.records}
    if not any(scan.docs for scan in found.scans.values()):
        raise UsageError(
            f"{source.root} holds no samples, and aggregates alone tell of no task",
            hint="evaluate with --log_samples, and import both",
        )
    for scan in found.scans.values():
        found.remarks += [*scan.remarks, *told_of(scan)]
        found.whole = found.whole and not scan.remarks
    _compare(found)
    return found


def _compare(found: Outline) -> None:
    """Name what samples and aggregates do not agree in."""
    results, document = found.files.results, found.files.document
    if results is None:
        found.tell(found.source.root.name, "there are no aggregates, only samples")
        return
    for word in found.files.oddities:
        found.tell(results.path, f"holds {word}, which is not JSON: kept")
    if not document:
        return
    for task in tasks_of(document):
        if task not in found.scans:
            found.lose(results.path, f"{task}: no samples of it are there")
    for scan in found.scans.values():
        _compare_task(found, results.path, scan)


def _compare_task(found: Outline, path: str, scan: TaskScan) -> None:
    name, document = scan.name, found.files.document
    table = object_of(document.get("results")).get(name)
    if table is None:
        found.tell(path, f"{name}: there are samples of it, and no aggregates")
    expected = expected_samples(document, name)
    if expected not in (None, len(scan.docs)):
        reason = f"it is over {expected} samples, and {len(scan.docs)} are there"
        found.lose(path, f"{name}: {reason}", torn=any(one.torn for one in scan.remarks))
        return
    for reason in scan.differing(object_of(table), means_of(document, name)):
        found.tell(path, reason)
    hashed = object_of(document.get("task_hashes")).get(name)
    if hashed is not None and hashed != scan.hashed.hexdigest():
        found.tell(path, f"{name}: its samples are others than its hash is of")


def _items(found: Outline) -> Iterator[Item]:
    for name, scan in found.scans.items():
        for doc_id in scan.docs:
            attempt = attempt_of(scan, _samples(found.source, scan, doc_id))
            yield from task_items(f"{name}/{doc_id}", [attempt])
    for file in found.source.files:
        yield Original(file)
    yield ev.SummaryStarted()
    only = next(iter(found.scans)) if found.whole and len(found.scans) == 1 else None
    yield source_metrics(found.files.document, only) or OwnMetrics()
    # Without an end the run shows that not all of it is here.
    if found.whole:
        yield SourceEnd("completed", None, 0)


def _samples(source: Source, scan: TaskScan, doc_id: int) -> list[Sample]:
    lines = scan.docs[doc_id].values()
    return [read_sample(read_record(source.read_part(one.file, one.part)).value) for one in lines]


def _model(document: dict[str, Any]) -> str:
    """The name of the model, else what `model_args` call it, else the kind of its program."""
    config = object_of(document.get("config"))
    named = document.get("model_name")
    if isinstance(named, str) and named:
        return named
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        pairs = (pair.partition("=") for pair in arguments.split(","))
        arguments = {key.strip(): value for key, mark, value in pairs if mark}
    for key in ("pretrained", "model", "engine"):
        value = object_of(arguments).get(key)
        if isinstance(value, str) and value:
            return value
    kind = config.get("model")
    return kind if isinstance(kind, str) and kind else UNKNOWN
