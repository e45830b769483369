"""The events of one run of AgentCompass, told as its store writes the files of the run.

Every method records what it is told, and returns once that is on disk. What stands in an event is
read from the file that AgentCompass has written, so that ledger and files agree.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError
from runtime.agentcompass_hook.attempts import AttemptBook, still_open
from runtime.agentcompass_hook.ending import as_metrics, how_it_ended
from runtime.agentcompass_hook.files import artifacts_of, find_task, source_of, task_source
from runtime.agentcompass_hook.opening import RUN_INFO, Opened
from runtime.importers.agentcompass.artifacts import collected
from runtime.importers.agentcompass.attempt import NO_RESULT, AttemptReader
from runtime.importers.agentcompass.layout import TaskFiles
from runtime.importers.agentcompass.plans import Plans
from runtime.importers.agentcompass.result import take_apart
from runtime.importers.agentcompass.task import TaskIndex, parse_index
from runtime.importers.jsontext import read_record
from runtime.importers.originals import original_events
from runtime.importers.plan import Item, Original, SourceEnd, SourceMetrics
from runtime.importers.source import Source

FORMAT_VERSION: Final = "agentcompass.run_info.v3"
_MEASURES: Final = ("metrics.json", "summary.md", "params.json")
_ANALYSES: Final = ("analysis_summary.json", "analysis_summary.md")
_COUNTS: Final = ("total", "evaluated", "error", "missing", "skipped")
_PLANS: Final = "resolved_execution_plans"
_TRIES: Final = 3
_NO_RESULT: Final = ev.ErrorInfo(code=NO_RESULT, message="the run ended before it had a result")


@dataclass(slots=True)
class TaskBook:
    """One selected task."""

    task_id: str
    ground_truth: Any = None
    started: bool = False
    over: bool = False
    attempts: dict[int, AttemptBook] = field(default_factory=dict)


class RunBook:
    """Tells one run to its ledger; not thread-safe."""

    def __init__(self, run: Path, opened: Opened) -> None:
        self._run = run
        self._recorder = opened.recorder
        self._registration = opened.registration
        self._tasks: dict[str, TaskBook] = {}
        self._selected = False
        self._summarised = False
        self._parameters_kept = False
        self._keep(RUN_INFO, "params.json")

    # -- the plan -------------------------------------------------------------------------------

    def select(
        self, benchmark: str, tasks: Iterable[tuple[str, str | None, Any]], reused: Iterable[str]
    ) -> None:
        """The tasks, each with category and ground truth, and those that were taken over."""
        refs = []
        for task_id, category, truth in tasks:
            self._tasks[task_id] = TaskBook(task_id, truth)
            refs.append(ev.TaskRef(task_id=task_id, category=category or None))
        self._selected = True
        self._record(ev.TasksSelected(benchmark=benchmark, tasks=tuple(refs)))
        plans = Plans.read(read_record((self._run / RUN_INFO).read_bytes()).value.get(_PLANS))
        for task_id in reused:
            self._take_over(task_id, plans)

    def _take_over(self, task_id: str, plans: Plans) -> None:
        """A task that ran in another run: AgentCompass copied its files, which are told."""
        for number, plan in plans.by_task.get(task_id, {}).items():
            self._attempt(task_id, number).plan = plan
        self.task_saved(self._home(task_id))

    # -- attempts -------------------------------------------------------------------------------

    def planned(self, task_id: str, number: int, plan: dict[str, Any]) -> None:
        """The plan of an attempt, which begins with it."""
        attempt = self._attempt(task_id, number)
        resolved = Plans.read({task_id: {"attempts": {str(number): plan}}}).of(task_id, number)
        assert resolved is not None
        self._record(*self._begin(task_id), *attempt.resolve(resolved))

    def returned(self, task_id: str, number: int, result: dict[str, Any]) -> None:
        """What the harness gave back, before anybody judged it."""
        attempt = self._attempt(task_id, number)
        self._record(*self._begin(task_id), *attempt.record(take_apart(result)))

    def retried(self, path: str, data: bytes) -> None:
        """A discarded try, by the file that tells of it."""
        record = read_record(data).value
        task_id, number = record["task_id"], record["attempt"]
        attempt = self._attempt(task_id, number)
        told = [*self._begin(task_id), *attempt.retry(record)]
        self._record(*told, *self._originals(source_of(self._run, path), task_id, number))

    def evaluated(self, task_id: str, number: int, data: bytes | None, error: str) -> None:
        """An attempt ended, with its result as it was saved; without one it gave none.

        What is saved before the tasks are known was made by another run, and is told when its task
        ends or it is made again.
        """
        if not self._selected:
            return
        attempt = self._attempt(task_id, number)
        begun = self._begin(task_id)
        if data is None:
            fault = ev.ErrorInfo(code=NO_RESULT, message=error or _NO_RESULT.message)
            self._record(*begun, *attempt.give_up(fault))
            return
        result = take_apart(read_record(data).value)
        self._record(*begun, *attempt.end(result, self._collected(attempt)))
        self._record(*self._settled(lambda: self._at_work(task_id, number)))

    def _collected(self, attempt: AttemptBook) -> list[ev.AnyEvent]:
        """What an attempt left behind."""

        def gathered() -> Iterator[ev.AnyEvent]:
            source = artifacts_of(self._run, attempt.task, attempt.number)
            if source.files:
                files = collected(source, attempt.task, attempt.number, source.files)
                yield from self._events(source, files)

        return self._settled(gathered)

    def _at_work(self, task_id: str, number: int) -> Iterator[ev.AnyEvent]:
        """The files of a task that goes on, as far as they tell of this attempt."""
        home = self._home(task_id)
        index = source_of(self._run, f"{home}/task.json")
        result = source_of(self._run, f"{home}/attempt-{number}/result.json")
        yield from self._originals(index, task_id, None)
        yield from self._originals(result, task_id, number)

    @staticmethod
    def _settled(gather: Callable[[], Iterable[ev.AnyEvent]]) -> list[ev.AnyEvent]:
        """What `gather` reads; read again where files were moved meanwhile.

        Only a run that does not wait for us any more moves them while we read.
        """
        for _ in range(_TRIES):
            with suppress(OSError, UsageError):
                return list(gather())
        return list(gather())

    # -- tasks ----------------------------------------------------------------------------------

    def task_saved(self, directory: str) -> None:
        """A task is over: its files stand in `directory`, below the run."""
        source, files = task_source(self._run, directory)
        assert files.index is not None
        index = parse_index(source.read(files.index))
        task = self._tasks[index.task_id]
        if task.over:
            return
        told = [*self._begin(task.task_id)]
        for number in sorted(index.attempts):
            if not self._attempt(task.task_id, number).over:
                told += self._rest_of(source, files, task, number)
        # All at once: a run that is killed here holds the task, or nothing of its end.
        self._record(
            *told, *self._events(source, _kept(files, task.task_id)), _finished(task, index)
        )
        task.over = True
        task.ground_truth = None
        # Step by step: at the end there is no time to go through the whole run.
        self._recorder.state()
        if not self._parameters_kept:
            self._parameters_kept = True
            self._keep("params.json")

    def _rest_of(
        self, source: Source, files: TaskFiles, task: TaskBook, number: int
    ) -> Iterator[ev.AnyEvent]:
        """Tell an attempt that came from elsewhere, or of which the end was not seen."""
        attempt = self._attempt(task.task_id, number)
        result = files.attempts[number].result
        if attempt.started and result is None:
            yield from attempt.give_up(_NO_RESULT)
        elif attempt.started and result is not None:
            whole = take_apart(read_record(source.read(result)).value)
            yield from attempt.end(whole, self._collected(attempt))
        else:
            reader = AttemptReader(
                source=source,
                task=task.task_id,
                number=number,
                files=files.attempts[number],
                ground_truth=task.ground_truth,
                plan=attempt.plan,
                version=FORMAT_VERSION,
                close=True,
                remarks=[],
            )
            items = (item for item in reader.items() if not isinstance(item, Original))
            for event in self._events(source, items):
                attempt.note(event)
                yield event

    # -- the end --------------------------------------------------------------------------------

    def measured(self) -> None:
        """The report was written."""
        self._close_tasks()
        if not self._summarised:
            self._record(ev.SummaryStarted())
            self._summarised = True
        metrics = as_metrics((self._run / "metrics.json").read_bytes())
        if metrics is not None:
            self._record(self._of_prefix(metrics))
        self._keep(*_MEASURES)

    def analysed(self) -> None:
        """The summary of the analyses was written."""
        self._keep(*_ANALYSES)

    def ended(self, status: str, error: str) -> None:
        """The run ended; the ledger is sealed."""
        self._close_tasks()
        end = how_it_ended(status, error)
        if end.status == "completed" and not self._summarised:
            self._record(ev.SummaryStarted())
        self._keep(RUN_INFO)
        self._record(self._of_prefix(end))
        self._recorder.seal()
        self._registration.seal()
        self._recorder.close()

    def abandon(self) -> None:
        """Leave the ledger as it is: what was recorded stays, and the run is told no further."""
        self._recorder.close()

    def _close_tasks(self) -> None:
        if self._summarised:
            return
        if not self._selected:
            return
        for task in self._tasks.values():
            if not task.over:
                for attempt in still_open(task.attempts.values()):
                    self._record(*attempt.give_up(_NO_RESULT))
                reason = "the run holds no result of it"
                self._record(ev.TaskCancelled(task=task.task_id, reason=reason))
                task.over = True

    # -- recording ------------------------------------------------------------------------------

    def _attempt(self, task_id: str, number: int) -> AttemptBook:
        task = self._tasks[task_id]
        known = task.attempts.get(number)
        if known is None:
            known = AttemptBook(task_id, number, task.ground_truth, FORMAT_VERSION)
            task.attempts[number] = known
        return known

    def _begin(self, task_id: str) -> list[ev.AnyEvent]:
        task = self._tasks[task_id]
        if task.started:
            return []
        task.started = True
        return [ev.TaskStarted(task=task_id)]

    def _home(self, task_id: str) -> str:
        home = find_task(self._run, task_id)
        if home is None:
            raise FileNotFoundError(f"task {task_id!r} has no directory")
        return home

    def _keep(self, *paths: str) -> None:
        there = [path for path in paths if (self._run / path).is_file()]
        self._record(*self._originals(source_of(self._run, *there), None, None))

    def _originals(
        self, source: Source, task: str | None, attempt: int | None
    ) -> Iterator[ev.AnyEvent]:
        return self._events(source, (Original(file, task, attempt) for file in source.files))

    def _events(self, source: Source, items: Iterable[Item]) -> Iterator[ev.AnyEvent]:
        for item in items:
            if isinstance(item, Original):
                if not item.repeated:
                    gate = self._recorder.redactor
                    yield from original_events(
                        source, item.file, gate, task=item.task, attempt=item.attempt
                    )
            else:
                assert isinstance(item, ev.Event)
                yield item

    def _of_prefix(self, item: SourceMetrics | SourceEnd) -> ev.AnyEvent:
        """An event that tells of the prefix before it."""
        state = self._recorder.state()
        counts = state.counts()
        told = {name: getattr(counts, name) for name in _COUNTS}
        if isinstance(item, SourceEnd):
            return ev.RunFinished(
                status=item.status, error=item.error, exit_code=item.exit_code, counts=told
            )
        return ev.MetricsComputed(
            metrics=item.metrics,
            counts=item.counts or told,
            details=item.details,
            extra=item.extra,
            reducers=item.reducers,
            size=state.size,
            root=state.root.hex(),
            source=item.source,
        )

    def _record(self, *events: ev.AnyEvent) -> None:
        if events:
            self._recorder.record_sync(*events)


def _kept(files: TaskFiles, task_id: str) -> Iterator[Original]:
    """The files of a task that are kept whole; artifacts stand in an event of their own."""
    for file in (files.index, *files.foreign):
        if file is not None:
            yield Original(file, task_id)
    for number, attempt in sorted(files.attempts.items()):
        for file in (*attempt.retries, *attempt.archived, *attempt.foreign, attempt.result):
            if file is not None:
                yield Original(file, task_id, number)


def _finished(task: TaskBook, index: TaskIndex) -> ev.TaskFinished:
    attempts = task.attempts.values()
    correct = any(attempt.correct for attempt in attempts)
    stopped = index.strategy == "pass" and correct and len(index.attempts) < (index.k or 0)
    return ev.TaskFinished(
        task=task.task_id,
        reason="stopped_early" if stopped else "all_attempts",
        error=any(attempt.error for attempt in attempts),
    )
