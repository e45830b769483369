"""All reports of a source as a run: one attempt at each instance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
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
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import (
    ImportPlan,
    Item,
    Original,
    OwnMetrics,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.source import Source, SourceFile
from runtime.importers.swebench.layout import FORMAT, Instance, Layout, layout_of, repository
from runtime.importers.swebench.predictions import Predictions, add_predictions
from runtime.importers.swebench.summary import Summary, read_summary
from runtime.importers.swebench.telling import Telling, unread

_LISTED: Final = 5


@dataclass(slots=True)
class Outline:
    """What the files say of the run as a whole."""

    source: Source
    layout: Layout
    summary: Summary | None = None
    summary_path: str = ""
    predictions: Predictions = field(default_factory=Predictions)
    metadata: dict[str, Any] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def lists_all(self) -> bool:
        """False if a report alone tells of the run, and only of what was resolved or failed."""
        known = self.summary is None or self.summary.complete
        return known or bool(self.layout.instances or self.predictions.patches)

    def instances(self) -> list[str]:
        """Every instance that any file tells of, sorted."""
        told = set(self.layout.instances) | set(self.predictions.patches)
        return sorted(told | set(self.summary.kinds if self.summary else ()))


def plan_of(source: Source) -> ImportPlan:
    """The plan of the import; walks through all reports once for what must be told."""
    found = _outline(source)
    names = found.instances()
    if not names:
        raise UsageError(f"{source.root} tells of no instance")
    remarks = list(found.remarks)
    for name in names:
        _telling(found, name, remarks).attempt()
    _tell_of_summary(found, remarks)
    run_id, model = _names(found)
    summary = found.summary
    request = foreign_request(
        benchmark=FORMAT,
        model=model,
        run_id=run_id,
        source={
            "format": FORMAT,
            **({"report": summary.words} if summary else {}),
            **({"run": found.metadata} if found.metadata else {}),
        },
    )
    lost = {remark.source for remark in remarks if not remark.placed}
    return ImportPlan(
        format=FORMAT,
        format_version=summary.version if summary else None,
        run_name="",
        benchmark=FORMAT,
        model=model,
        run_id=run_id,
        request=request,
        persistence_params=persistence_of(request),
        selected=ev.TasksSelected(
            benchmark=FORMAT,
            tasks=tuple(ev.TaskRef(task_id=one, category=repository(one)) for one in names),
        ),
        items=lambda: _items(found, names),
        records_in=len(source.files),
        records_out=len({file.path for file in source.files} - lost),
        remarks=tuple(remarks),
    )


def _outline(source: Source) -> Outline:
    layout = layout_of(source)
    found = Outline(source, layout)
    found.remarks += [Remark(path, f"left alone: {why}") for path, why in source.skipped]
    if len(layout.reports) > 1 or len(layout.runs) > 1:
        names = [file.path for file in layout.reports] + ["/".join(run) for run in layout.runs]
        raise UsageError(
            f"{source.root} holds several runs: {', '.join(sorted(names)[:_LISTED])}",
            hint="import each by itself",
        )
    for file in layout.others:
        if not _is_derived(file.path):
            found.remarks.append(stranger(file, "the harness's results"))
    for file, first in layout.doubles:
        found.remarks.append(Remark(file.path, f"of the same instance as {first}", damage=True))
    for file in layout.reports:
        _read_summary(found, file)
    for file in layout.predictions:
        _read_predictions(found, file)
    for file in layout.metadata:
        try:
            found.metadata = read_record(source.read(file)).value
        except NotARecord as fault:
            found.remarks.append(
                Remark(file.path, str(fault), damage=not fault.cut, torn=fault.cut)
            )
    return found


def _is_derived(path: str) -> bool:
    """True for tables that the leaderboard makes of results, such as `resolved_by_repo.json`."""
    return PurePosixPath(path).name.startswith("resolved_by_")


def _read_summary(found: Outline, file: SourceFile) -> None:
    try:
        found.summary = read_summary(found.source.read(file), file.path)
    except NotARecord as fault:
        found.remarks.append(unread(file.path, fault))
        return
    found.summary_path = file.path
    found.remarks += [Remark(file.path, why, placed=True) for why in found.summary.faults]


def _read_predictions(found: Outline, file: SourceFile) -> None:
    predictions = found.predictions
    predictions.faults = []
    add_predictions(predictions, file.path, found.source.read(file))
    found.remarks += [
        Remark(file.path, why, damage=not torn, torn=torn) for why, torn in predictions.faults
    ]


def _telling(found: Outline, name: str, remarks: list[Remark]) -> Telling:
    summary = found.summary
    known = name in found.predictions.patches
    return Telling(
        source=found.source,
        instance=found.layout.instances.get(name, Instance(name)),
        kind=summary.kinds.get(name) if summary else None,
        listed=summary is None or summary.complete,
        why=summary.reasons.get(name) if summary else None,
        patch=found.predictions.patches.get(name),
        predicted=known,
        rest=found.predictions.rest.get(name),
        summary_path=found.summary_path,
        remarks=remarks,
    )


def _tell_of_summary(found: Outline, remarks: list[Remark]) -> None:
    """Name the instances that only one kind of file tells of."""
    summary = found.summary
    if summary is None:
        return
    logged = set(found.layout.instances)
    tried = {one for one, kind in summary.kinds.items() if kind != "incomplete"}
    alone = sorted(tried - logged)
    if alone and logged:
        reason = f"only it tells of {len(alone)} instances: {_few(alone)}"
        remarks.append(Remark(found.summary_path, reason, placed=True))
    missing = sorted(logged - set(summary.kinds))
    if not found.lists_all:
        reason = "it lists no instance that was tried and not resolved: these are not known"
        remarks.append(Remark(found.summary_path, reason))
    total = summary.numbers.get("total_instances")
    if total is not None and total > len(summary.kinds):
        reason = f"of {total} instances it lists {len(summary.kinds)}"
        remarks.append(Remark(found.summary_path, reason, placed=True))
    if missing and summary.complete:
        reason = f"it does not tell of {len(missing)} instances that have logs: {_few(missing)}"
        remarks.append(Remark(found.summary_path, reason, placed=True))


def _items(found: Outline, names: Sequence[str]) -> Iterator[Item]:
    told: set[str] = set()
    for name in names:
        attempt = _telling(found, name, []).attempt()
        told |= {file.path for file in attempt.originals}
        yield from task_items(name, [attempt])
    for file in found.source.files:
        if file.path not in told:
            yield Original(file)
    if not found.lists_all:
        return
    yield ev.SummaryStarted()
    numbers = found.summary.numbers if found.summary else {}
    yield SourceMetrics(dict(numbers), {}, {}, {}, ()) if numbers else OwnMetrics()
    yield SourceEnd("completed", None, 0)


def _names(found: Outline) -> tuple[str, str]:
    """Run id and model: of the directories, else of the report's name, else of predictions."""
    models = found.predictions.models
    model = next(iter(models)) if len(models) == 1 else UNKNOWN
    for run_id, directory in found.layout.runs:
        return run_id, model if model != UNKNOWN else directory
    name = PurePosixPath(found.summary_path).name.removesuffix(".json")
    if found.summary is not None and found.summary.complete and "." in name:
        # The harness calls it <model>.<run id>.json, with a model's slashes as two underscores.
        shown = model.replace("/", "__")
        if model != UNKNOWN and name.startswith(f"{shown}."):
            return name.removeprefix(f"{shown}."), model
        directory, _, run_id = name.rpartition(".")
        return run_id, model if model != UNKNOWN else directory
    return "", model


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
