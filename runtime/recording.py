"""Recording from somebody's own loop: no harness, no environment, the same ledger.

>>> with record(results_dir, benchmark="mine", model="gpt") as run:  # doctest: +SKIP
...     for question, answer in questions:
...         with run.attempt(question) as attempt:
...             attempt.result(ask(question))
...             attempt.evaluation(correct=attempt.answer == answer)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ledger import events as ev
from ledger.errors import AclError, UsageError
from ledger.store import Ledger
from ledger.transitions import ERROR_STATUSES
from ledger.version import __version__
from runtime.commits import commits
from runtime.contracts import Task
from runtime.ending import compute
from runtime.masking import public_names
from runtime.models import (
    BenchmarkSpec,
    EnvironmentSpec,
    ExecutionSpec,
    HarnessSpec,
    ModelSpec,
    RunRequest,
    Strategy,
)
from runtime.outcome import LOG_NAME
from runtime.own_attempt import RecordedAttempt
from runtime.paths import reserve, run_root
from runtime.publishing import ProjectorFor
from runtime.recorder import Recorder
from runtime.redact import POLICY_VERSION, Redactor
from runtime.registry import Registration
from runtime.results import ErrorInfo, MetricResult
from runtime.runlog import run_log
from runtime.selection import check_ids, selection_events
from runtime.stages import explain
from runtime.surroundings import Surroundings, program

OWN: Final = "own"
"""Stands for the harness and the environment, of which a recorded loop tells nothing."""


@contextmanager
def record(
    results_dir: Path | str,
    *,
    benchmark: str,
    model: str,
    k: int = 1,
    strategy: Strategy = "all",
    tasks: Sequence[str | Task] | None = None,
    projectors: Sequence[ProjectorFor] = (),
    surroundings: Surroundings | None = None,
) -> Iterator["Recording"]:
    """Open a new run below `results_dir`; leaving the block ends and seals it.

    With `tasks` the plan is fixed; without, a task is taken into it when its first attempt begins.
    Left by an exception the run ends as failed, by KeyboardInterrupt as cancelled.
    """
    plan = None if tasks is None else [_task(task) for task in tasks]
    check_ids(benchmark, plan or ())
    around = surroundings or Surroundings()
    signers = around.keys()
    results = Path(results_dir)
    request = RunRequest(
        benchmark=BenchmarkSpec(id=benchmark),
        harness=HarnessSpec(id=OWN),
        environment=EnvironmentSpec(id=OWN),
        model=ModelSpec(id=model),
        execution=ExecutionSpec(k=k, strategy=strategy),
    )
    redactor = Redactor(around.environ)
    public = public_names(request, redactor)
    root = run_root(results, "", public.benchmark.id, public.model.id)
    directory = reserve(results, root, "", around.clock()[0])
    ledger = Ledger.create(directory, clock=around.clock, entropy=around.entropy)
    with run_log(directory / LOG_NAME, redactor):
        recorder = Recorder(ledger, redactor, signers=signers, patience=around.patience)
        try:
            recording = Recording(directory, recorder, request)
            entering = around.registration(results, directory, ledger.ledger_id, signers)
            recording.begin(plan, entering, required=around.require_registry)
            try:
                yield recording
            except BaseException as error:
                recording.fail(error)
                raise
            else:
                recording.finish()
            finally:
                recorder.seal()
                entering.seal()
                with recorder.reading() as (state, view):
                    for make in projectors:
                        make(directory)(state, view)
        finally:
            recorder.close()


@dataclass(slots=True)
class _TaskBook:
    """One task: attempts that began and ended, whether any ended in an error."""

    task: Task
    begun: int = 0
    ended: int = 0
    error: bool = False
    enough: bool = False
    over: bool = False


class Recording:
    """A run that somebody's own loop records; its methods may be called in several threads."""

    def __init__(self, path: Path, recorder: Recorder, request: RunRequest) -> None:
        self.path = path
        self.metrics: MetricResult | None = None
        self._recorder = recorder
        self._request = request
        self._lock = Lock()
        self._fixed = False
        self._tasks: dict[str, _TaskBook] = {}

    @property
    def run_id(self) -> str:
        """The id of the run, which is the name of its directory."""
        return self.path.name

    @contextmanager
    def attempt(self, task: str | Task) -> Iterator["RecordedAttempt"]:
        """Record the next attempt of a task.

        An exception in the block becomes the attempt's error and goes no further, so that the loop
        goes on; errors of acl itself, KeyboardInterrupt and the like end the run.
        """
        attempt = self._begin_attempt(task)
        try:
            yield attempt
        except Exception as error:  # what the loop does may raise anything
            attempt.end(error)
            self._end_attempt(attempt)
            if isinstance(error, AclError):
                raise
        except BaseException:
            attempt.cancel()
            self._tasks[attempt.task.task_id].ended += 1
            raise
        else:
            attempt.end(None)
            self._end_attempt(attempt)

    def _begin_attempt(self, given: str | Task) -> "RecordedAttempt":
        task = _task(given)
        with self._lock:
            book = self._tasks.get(task.task_id)
            if book is None:
                if self._fixed:
                    raise UsageError(
                        f"task {task.task_id!r} is not in the plan", hint="name it in `tasks`"
                    )
                book = self._select([task])[0]
            if book.over or book.begun >= self._request.execution.k:
                raise UsageError(
                    f"task {task.task_id!r} has had its attempts", hint="record with a larger k"
                )
            book.begun += 1
            number = book.begun
            starting: list[ev.AnyEvent] = [ev.AttemptStarted(task=task.task_id, attempt=number)]
            if number == 1:
                starting.insert(0, ev.TaskStarted(task=task.task_id))
            self._recorder.record_sync(*starting)
        return RecordedAttempt(self._recorder, book.task, number, self._request.benchmark.id)

    def _end_attempt(self, attempt: "RecordedAttempt") -> None:
        execution = self._request.execution
        with self._lock:
            book = self._tasks[attempt.task.task_id]
            book.ended += 1
            book.error = book.error or attempt.status in ERROR_STATUSES
            solved = attempt.status == "completed" and attempt.correct is True
            book.enough = book.enough or (execution.strategy == "stop_on_correct" and solved)
            if book.ended == book.begun and (book.enough or book.begun == execution.k):
                self._finish_task(book)

    def _finish_task(self, book: "_TaskBook") -> None:
        early = book.begun < self._request.execution.k
        self._recorder.record_sync(
            ev.TaskFinished(
                task=book.task.task_id,
                reason="stopped_early" if early else "all_attempts",
                error=book.error,
            )
        )
        book.over = True

    # -- the run --------------------------------------------------------------------------------

    def begin(self, plan: Sequence[Task] | None, entering: Registration, *, required: bool) -> None:
        """Enter the run in the registry, record that it began, and the plan if there is one.

        Raises UsageError where it must be in the registry and cannot; then it ended as failed.
        """
        known: dict[str, Any] = program()
        created = ev.RunCreated(
            run_id=self.run_id,
            request=self._request.to_task_payload(),
            persistence_params=self._request.to_persistence_params(),
            acl_version=__version__,
            repos=commits([Path()]),
            redaction_policy=POLICY_VERSION,
            **known,
        )
        entering.open(created, self._recorder.redactor, len(plan or ()))
        frozen = ev.ReuseFrozen(mode="none")
        self._recorder.record_sync(created, frozen, entering.told())
        if required and entering.fault is not None:
            refusal = entering.refusal()
            self._end("failed", explain(refusal, "run", fatal=True), refusal.exit_status)
            self._recorder.seal()
            raise refusal
        self._recorder.record_sync(ev.RunStarted())
        self._select(plan or ())
        self._fixed = plan is not None

    def _select(self, tasks: Sequence[Task]) -> "list[_TaskBook]":
        check_ids(self._request.benchmark.id, tasks)
        events = selection_events(self._request.benchmark.id, None, {}, tasks)
        self._recorder.record_sync(*events)
        books = [_TaskBook(task) for task in tasks]
        self._tasks |= {book.task.task_id: book for book in books}
        return books

    def finish(self) -> None:
        """End all tasks, compute the metrics, and end the run."""
        with self._lock:
            for book in self._tasks.values():
                if book.over:
                    continue
                if book.begun:
                    self._finish_task(book)
                else:
                    self._cancel_task(book, "no attempt was made")
            self._recorder.record_sync(ev.SummaryStarted())
            self.metrics, event = compute(self._recorder)
            self._recorder.record_sync(event)
            self._end("completed", None, 0)

    def fail(self, error: BaseException) -> None:
        """End the run as it is, for an exception that left its block."""
        with self._lock:
            for book in self._tasks.values():
                if not book.over and book.ended == book.begun:
                    self._cancel_task(book, f"the run ended with {type(error).__name__}")
            if isinstance(error, KeyboardInterrupt):
                self._recorder.record_sync(ev.InterruptRequested(signal="SIGINT", count=1))
                self._end("cancelled", None, 130)
            else:
                self._end("failed", explain(error, "run", fatal=True), 1)

    def _cancel_task(self, book: "_TaskBook", reason: str) -> None:
        self._recorder.record_sync(ev.TaskCancelled(task=book.task.task_id, reason=reason))
        book.over = True

    def _end(self, status: ev.RunStatus, error: ErrorInfo | None, exit_code: int) -> None:
        counts = asdict(self._recorder.state().counts())
        self._recorder.record_sync(
            ev.RunFinished(status=status, error=error, exit_code=exit_code, counts=counts)
        )


def _task(given: str | Task) -> Task:
    return given if isinstance(given, Task) else Task(given)
