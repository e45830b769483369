"""A whole log as a run: samples are tasks, their epochs the attempts."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES
from runtime.importers.foreign import (
    ForeignAttempt,
    attempt_items,
    foreign_request,
    persistence_of,
)
from runtime.importers.inspect.fields import listed, section, text
from runtime.importers.inspect.log import Log
from runtime.importers.inspect.resolving import Resolver
from runtime.importers.inspect.results import Results, check_results
from runtime.importers.inspect.sample import SampleReader
from runtime.importers.inspect.survey import SampleId, Seen, Survey
from runtime.importers.inspect.unpack import BadMember
from runtime.importers.plan import ImportPlan, Item, Original, Remark, SourceEnd
from runtime.importers.times import utc

FORMAT: Final = "inspect"

_ENDS: Final[dict[str, tuple[ev.RunStatus, int]]] = {
    "success": ("completed", 0),
    "error": ("failed", 1),
    "cancelled": ("cancelled", 130),
}
_STARTED: Final = "started"
_GIVEN_UP: Final = "the log ended without a sample of it in every epoch"
_MAX_NAME: Final = 200
_SPEC_TIMES: Final = ("created",)
_STATS_TIMES: Final = ("started_at", "completed_at")


@dataclass(frozen=True, slots=True)
class Run:
    """A log that was looked through. `others` are the files beside it."""

    log: Log
    survey: Survey
    others: tuple[Original, ...] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """What was evaluated, in the log's own words."""
        return section(self.log.header, "eval")

    @property
    def program(self) -> str:
        """The version of Inspect that wrote the log."""
        return text(section(self.spec, "packages").get("inspect_ai")) or "unknown"

    @property
    def run_id(self) -> str:
        """The id of this evaluation; that of Inspect's run is shared by all tasks of a command."""
        named = (text(self.spec.get(name)) for name in ("eval_id", "task_id", "run_id"))
        return next(filter(None, named), "")

    def plan(self) -> ImportPlan:
        """The plan of the import, with all that is to be said of the log."""
        remarks = [*self.log.remarks, *check_results(self.survey), *self._odd_times()]
        spec, stats = self.spec, section(self.log.header, "stats")
        request = self._request()
        return ImportPlan(
            format=FORMAT,
            format_version=str(self.log.header.get("version", 1)),
            run_name=text(spec.get("task")),
            benchmark=text(spec.get("task")),
            model=text(spec.get("model")),
            run_id=self.run_id,
            request=request,
            persistence_params=persistence_of(request),
            selected=self._selected(),
            items=self.items,
            records_in=self.log.records + len(self.others),
            records_out=self.log.records - self._lost(remarks),
            source_status=self.log.status,
            started_at=utc(stats.get("started_at")) or utc(spec.get("created")),
            finished_at=utc(stats.get("completed_at")),
            remarks=tuple(remarks),
        )

    def items(self) -> Iterator[Item]:
        """Everything after `tasks.selected`, one sample at a time."""
        yield from self._files()
        retries = section(self.spec, "config").get("retry_on_error")
        reader = SampleReader(
            self.survey.scorers,
            f"inspect_ai {self.program}",
            retries if type(retries) is int and retries >= 0 else None,
        )
        for sample_id, seen in self.survey.tasks():
            yield from self._task(reader, sample_id, seen)
        yield from self._untold()
        yield from self._end()
        self.log.data.check()

    def _files(self) -> Iterator[Item]:
        yield Original(self.log.data.file, in_parts=not self.log.keep_file)
        for piece in self.log.pieces:
            yield piece.original()
        yield from self.others

    def _untold(self) -> Iterator[Item]:
        """What can be read of the samples that no event stands for."""
        told = {seen.ref.name for seen in self.survey.seen.values()}
        for ref in self.log.samples:
            if ref.name not in told:
                for piece in ref.pieces:
                    with suppress(BadMember):
                        yield piece.original()

    def _task(self, reader: SampleReader, sample_id: SampleId, seen: list[Seen]) -> Iterator[Item]:
        task = self.survey.ids[sample_id]
        error, over = False, True
        if seen:
            yield ev.TaskStarted(task=task)
        for one in seen:
            sample = one.ref.load().value
            told = reader.attempt({**sample, "epoch": one.epoch}, Resolver.of(sample))
            yield from _with_originals(task, told, one)
            error = error or told.outcome in ERROR_STATUSES
            over = over and told.ended
        if len(seen) == self.survey.epochs:
            yield ev.TaskFinished(task=task, reason="all_attempts", error=error)
        elif self.log.status != _STARTED:
            yield ev.TaskCancelled(task=task, reason=_GIVEN_UP)

    def _end(self) -> Iterator[Item]:
        status = self.log.status
        if status == _STARTED:
            return
        yield ev.SummaryStarted()
        metrics = Results(self.survey).source_metrics()
        if metrics is not None:
            yield metrics
        ending, code = _ENDS.get(status, ("failed", 1))
        yield SourceEnd(ending, _run_error(self.log.header, status), code)

    def _selected(self) -> ev.TasksSelected:
        spec = self.spec
        dataset = {
            name: value for name, value in section(spec, "dataset").items() if name != "sample_ids"
        }
        config = section(spec, "config")
        limits = {name: config[name] for name in ("limit", "sample_id") if config.get(name)}
        version = spec.get("task_version")
        return ev.TasksSelected(
            benchmark=text(spec.get("task")) or "unknown",
            benchmark_version=None if version in (None, 0) else str(version),
            selection={"dataset": dataset, **limits},
            tasks=tuple(
                ev.TaskRef(task_id=task, metadata=self.survey.metadata.get(sample, {}))
                for sample, task in self.survey.ids.items()
            ),
        )

    def _request(self) -> dict[str, Any]:
        spec = self.spec
        config = section(spec, "model_generate_config")
        header = {n: v for n, v in self.log.header.items() if n not in ("results", "reductions")}
        dataset = {n: v for n, v in section(spec, "dataset").items() if n != "sample_ids"}
        own = {**header, "eval": {**spec, "dataset": dataset}}
        return foreign_request(
            benchmark=text(spec.get("task")),
            model=text(spec.get("model")),
            run_id=self.run_id,
            harness=self._harness(),
            k=self.survey.epochs,
            model_params={n: v for n, v in config.items() if v is not None},
            source={
                "format": FORMAT,
                "log": {
                    "bytes": self.log.data.file.size,
                    "sha256": self.log.data.file.sha256.hex(),
                },
                "header": own,
            },
        )

    def _lost(self, remarks: list[Remark]) -> int:
        """How many records of the log no event stands for."""
        lost = {remark.source for remark in remarks if not remark.placed}
        for ref in self.log.samples:
            if ref.name in lost:
                lost |= {piece.name for piece in ref.pieces}
        return len(self.log.names & lost)

    def _harness(self) -> str:
        """The solver, or those that the plan makes one after another."""
        steps = map(section, listed(section(self.log.header, "plan").get("steps")))
        planned = [text(step.get("solver")) for step in steps]
        return text(self.spec.get("solver")) or " + ".join(filter(None, planned))[:_MAX_NAME]

    def _odd_times(self) -> Iterator[Remark]:
        spec, stats = self.spec, section(self.log.header, "stats")
        told = [*(spec.get(n) for n in _SPEC_TIMES), *(stats.get(n) for n in _STATS_TIMES)]
        odd = self.survey.odd_times + sum(1 for value in told if value and utc(value) is None)
        if odd:
            reason = f"{odd} of its times have no zone, or are none: they are in the original only"
            yield Remark(self.log.name, reason, placed=True)


def _with_originals(task: str, told: ForeignAttempt, seen: Seen) -> Iterator[Item]:
    items = attempt_items(task, told)
    yield next(items)
    for piece in seen.ref.pieces:
        with suppress(BadMember):  # named when the sample was looked through
            yield piece.original(task, told.number)
    yield from items


def _run_error(header: dict[str, Any], status: str) -> ev.ErrorInfo | None:
    error = section(header, "error")
    if error:
        return ev.ErrorInfo(
            code=status,
            message=text(error.get("message")) or status,
            traceback=text(error.get("traceback")) or None,
        )
    if status not in _ENDS:
        return ev.ErrorInfo(code=status, message="the log ended in a state that is not known")
    return None
