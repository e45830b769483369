"""The transition table behind `Machine`: what each event needs to be legal, and what it changes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NoReturn, Protocol, get_args

from ledger import events as ev
from ledger.errors import LedgerStateError

Stage = Literal["none", "created", "preparing", "running", "summarizing", "terminal", "registry"]
TaskStage = Literal["pending", "reusing", "running", "over"]
Key = tuple[str, int]

PHASES: Final = tuple(name for name in get_args(ev.Phase) if name != "run_task")
ERROR_STATUSES: Final = frozenset({"run_error", "eval_error", "run_error_or_eval_error"})
_OPEN: Final = frozenset({"created", "preparing", "running", "summarizing"})


def _rank(phase: ev.Phase) -> int:
    # `run_task` is the name of `run_harness` where there is no harness.
    return PHASES.index("run_harness" if phase == "run_task" else phase)


_EVALUATE: Final = _rank("evaluate")


@dataclass(frozen=True, slots=True)
class RunStage:
    stage: Stage = "none"
    unfinished: int = 0
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class TaskStep:
    stage: TaskStage = "pending"
    error: bool = False
    open_attempts: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class AttemptStep:
    over: bool = False
    planned: bool = False
    announced: bool = False  # by attempt.reused; the copied attempt.started comes next
    reusing: bool = False  # copies are coming in, up to the result
    reused: bool = False
    rank: int = -1
    retry: int = 0
    result: bool = False
    verdict: tuple[bool | None, float | None] | None = None
    calls: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


@dataclass(slots=True)
class Pending:
    """What an admitted batch would change; hand it to `Machine.commit` once it is stored."""

    run: RunStage
    tasks: dict[str, TaskStep] = field(default_factory=dict)
    attempts: dict[Key, AttemptStep] = field(default_factory=dict)


class States(Protocol):
    """The committed states that a step reads through to."""

    def task(self, task_id: str) -> TaskStep | None:
        """The state of a task, or None if it was never selected."""

    def attempt(self, key: Key) -> AttemptStep | None:
        """The state of an attempt, or None if it was never started."""


class Step:
    """One batch under examination: reads through to the machine, writes to its overlay."""

    def __init__(self, states: States, pending: Pending) -> None:
        self.states = states
        self.pending = pending
        self.event: ev.AnyEvent
        self.copied = False

    def take(self, event: ev.AnyEvent, copied: bool) -> None:
        self.event, self.copied = event, copied
        if self.pending.run.sealed and not isinstance(event, ev.PayloadErased | ev.AnnotationAdded):
            self.refuse("the ledger is sealed")
        if copied and not isinstance(event, ev.OneTaskEvent | ev.OneAttemptEvent):
            self.refuse("only events of a task can be copies")
        RULES[type(event)](self, event)

    def refuse(self, why: str) -> NoReturn:
        where = "" if self.event.task is None else f" of task {self.event.task!r}"
        if self.event.attempt is not None:
            where += f", attempt {self.event.attempt}"
        raise LedgerStateError(f"{self.event.type}{where} is not legal: {why}")

    # -- run ------------------------------------------------------------------------------------

    def stage_in(self, *stages: str) -> None:
        stage = self.pending.run.stage
        if stage not in stages:
            self.refuse(f"the run is in state {stage}")

    def go(self, stage: Stage) -> None:
        self.pending.run = replace(self.pending.run, stage=stage)

    def created(self, _: Any) -> None:
        self.stage_in("none")
        self.go("created")

    def while_created(self, _: Any) -> None:
        self.stage_in("created")

    def started(self, _: Any) -> None:
        self.stage_in("created")
        self.go("preparing")

    def selected(self, event: ev.TasksSelected) -> None:
        self.stage_in("preparing", "running")
        for task in event.tasks:
            known = self.pending.tasks.get(task.task_id) or self.states.task(task.task_id)
            if known is not None:
                self.refuse(f"two tasks have the id {task.task_id!r}")
            self.pending.tasks[task.task_id] = TaskStep()
        unfinished = self.pending.run.unfinished + len(event.tasks)
        self.pending.run = replace(self.pending.run, stage="running", unfinished=unfinished)

    def summary(self, _: Any) -> None:
        self.stage_in("running")
        if self.pending.run.unfinished:
            self.refuse(f"{self.pending.run.unfinished} tasks are not finished")
        self.go("summarizing")

    def computed(self, _: Any) -> None:
        self.stage_in("summarizing")

    def while_open(self, _: Any) -> None:
        self.stage_in(*_OPEN)

    def finished(self, event: ev.RunFinished) -> None:
        if event.status == "completed":
            self.stage_in("summarizing")
        else:
            self.stage_in(*_OPEN)
        self.go("terminal")

    # -- the book -------------------------------------------------------------------------------

    def always(self, _: Any) -> None:
        if self.pending.run.stage == "none":
            self.refuse("a ledger begins with run.created or registry.opened")

    def sealed(self, _: Any) -> None:
        self.always(_)
        self.pending.run = replace(self.pending.run, sealed=True)

    def extension(self, _: Any) -> None:
        self.stage_in(*_OPEN, "registry")

    def registry(self, _: Any) -> None:
        self.stage_in("none", "registry")
        self.go("registry")

    # -- task -----------------------------------------------------------------------------------

    def task(self) -> TaskStep:
        self.stage_in("running")
        task_id = self.event.task
        assert task_id is not None
        task = self.pending.tasks.get(task_id) or self.states.task(task_id)
        if task is None:
            self.refuse("the task was not selected")
        return task

    def put_task(self, task: TaskStep) -> None:
        assert self.event.task is not None
        self.pending.tasks[self.event.task] = task

    def task_reused(self, _: Any) -> None:
        task = self.task()
        if task.stage != "pending" or self.copied:
            self.refuse(f"the task is {task.stage}")
        self.put_task(replace(task, stage="reusing"))

    def task_started(self, _: Any) -> None:
        task = self.task()
        wanted = "reusing" if self.copied else "pending"
        if task.stage != wanted or task.attempts:
            self.refuse(f"the task is {task.stage}")
        self.put_task(replace(task, stage="reusing" if self.copied else "running"))

    def task_in_work(self) -> TaskStep:
        task = self.task()
        wanted = "reusing" if self.copied else "running"
        if task.stage != wanted:
            self.refuse(f"the task is {task.stage}{' and the event a copy' * self.copied}")
        return task

    def task_over(self, task: TaskStep) -> None:
        if task.open_attempts:
            self.refuse(f"{task.open_attempts} attempts are open")
        self.put_task(replace(task, stage="over"))
        run = self.pending.run
        self.pending.run = replace(run, unfinished=run.unfinished - 1)

    def task_finished(self, event: ev.TaskFinished) -> None:
        task = self.task_in_work()
        if event.error is not task.error:
            self.refuse(f"error={event.error} contradicts its attempts")
        self.task_over(task)

    def task_cancelled(self, _: Any) -> None:
        task = self.task()
        if self.copied or task.stage not in ("pending", "running"):
            self.refuse(f"the task is {task.stage}")
        self.task_over(task)

    # -- attempt --------------------------------------------------------------------------------

    def key(self) -> Key:
        assert self.event.task is not None
        assert self.event.attempt is not None
        return self.event.task, self.event.attempt

    def find(self) -> AttemptStep | None:
        key = self.key()
        return self.pending.attempts.get(key) or self.states.attempt(key)

    def put(self, attempt: AttemptStep) -> None:
        self.pending.attempts[self.key()] = attempt

    def attempt_reused(self, _: Any) -> None:
        self.task_in_work()
        if self.find() is not None:
            self.refuse("the attempt was already started")
        self.put(AttemptStep(announced=True, reused=True))

    def attempt_started(self, _: Any) -> None:
        before = self.find()
        if before is not None and not (before.announced and self.copied):
            self.refuse("the attempt was already started")
        task = self.task_in_work() if before is None else self.task()
        self.put_task(
            replace(task, open_attempts=task.open_attempts + 1, attempts=task.attempts + 1)
        )
        # In a copy of the whole task, that the attempt came alone is history: all is copied.
        alone = before is not None and task.stage == "running"
        self.put(AttemptStep(reusing=alone, reused=before is not None))

    def attempt(self) -> AttemptStep:
        """The open attempt of the event, after the rules that hold for all its events."""
        attempt = self.find()
        if attempt is None or attempt.over or attempt.announced:
            self.refuse("the attempt is not open")
        if attempt.reusing and self.copied:
            if attempt.result:
                self.refuse("copies of a reused attempt end with its result")
            return attempt
        self.task_in_work()
        if attempt.reusing:
            if not attempt.result:
                self.refuse("the reused attempt has no result")
            return replace(attempt, reusing=False, planned=True, rank=_EVALUATE - 1)
        return attempt

    def plan(self, _: Any) -> None:
        attempt = self.attempt()
        if attempt.planned:
            self.refuse("the try has a plan")
        self.put(replace(attempt, planned=True))

    def phase(self, event: ev.PhaseEntered) -> None:
        attempt = self.attempt()
        rank = _rank(event.phase)
        if not attempt.planned:
            self.refuse("the try has no plan")
        if rank <= attempt.rank:
            self.refuse(f"phase {event.phase} cannot follow")
        self.put(replace(attempt, rank=rank))

    def result(self, _: Any) -> None:
        attempt = self.attempt()
        if attempt.result:
            self.refuse("the try has a result")
        # A reused attempt may have been planned where it ran alone.
        self.put(replace(attempt, result=True, planned=attempt.planned or attempt.reused))

    def evaluation(self, event: ev.EvaluationFinished) -> None:
        attempt = self.attempt()
        if not attempt.result or attempt.verdict is not None:
            self.refuse("there is no result" if not attempt.result else "there is a verdict")
        self.put(replace(attempt, verdict=(event.correct, event.score)))

    def during(self, _: Any) -> None:
        self.put(self.attempt())

    def retried(self, event: ev.AttemptRetried) -> None:
        attempt = self.attempt()
        if event.retry != attempt.retry + 1:
            self.refuse(f"retry {event.retry} follows retry {attempt.retry}")
        if attempt.calls:
            self.refuse(f"{len(attempt.calls)} model calls are open")
        if event.scope == "evaluate":
            if not attempt.result:
                self.refuse("there is no result to evaluate again")
            again = replace(attempt, planned=True, rank=_EVALUATE - 1, verdict=None)
        else:
            again = AttemptStep(lost=attempt.lost, reusing=attempt.reusing, reused=attempt.reused)
        self.put(replace(again, retry=event.retry))

    def attempt_finished(self, event: ev.AttemptFinished) -> None:
        attempt = self.attempt()
        if attempt.calls:
            self.refuse(f"{len(attempt.calls)} model calls are open")
        if event.retries != attempt.retry:
            self.refuse(f"it counts {event.retries} retries, not {attempt.retry}")
        if (event.correct, event.score) != (attempt.verdict or (None, None)):
            self.refuse("its verdict is not the evaluation's")
        if event.status == "completed" and not attempt.result:
            self.refuse("there is no result")
        task = self.task()
        self.put_task(
            replace(
                task,
                open_attempts=task.open_attempts - 1,
                error=task.error or event.status in ERROR_STATUSES,
            )
        )
        self.put(replace(attempt, over=True))

    # -- model calls ----------------------------------------------------------------------------

    def call_started(self, event: ev.CallStarted) -> None:
        attempt = self.attempt()
        if event.call_id in attempt.calls | attempt.lost:
            self.refuse(f"call {event.call_id!r} was already started")
        self.put(replace(attempt, calls=attempt.calls | {event.call_id}))

    def call_finished(self, event: ev.CallFinished) -> None:
        attempt = self.find()
        if attempt is not None and event.call_id in attempt.lost:
            self.put(replace(attempt, lost=attempt.lost - {event.call_id}))
            return
        attempt = self.attempt()
        if event.call_id not in attempt.calls:
            self.refuse(f"call {event.call_id!r} is not open")
        self.put(replace(attempt, calls=attempt.calls - {event.call_id}))

    def call_lost(self, event: ev.CallLost) -> None:
        attempt = self.attempt()
        if event.call_id not in attempt.calls:
            self.refuse(f"call {event.call_id!r} is not open")
        one = {event.call_id}
        self.put(replace(attempt, calls=attempt.calls - one, lost=attempt.lost | one))


RULES: Final[dict[type[ev.Event], Callable[[Step, Any], None]]] = {
    ev.RunCreated: Step.created,
    ev.RunImported: Step.while_created,
    ev.ReuseFrozen: Step.while_created,
    ev.RunStarted: Step.started,
    ev.TasksSelected: Step.selected,
    ev.SummaryStarted: Step.summary,
    ev.MetricsComputed: Step.computed,
    ev.InterruptRequested: Step.while_open,
    ev.RunFinished: Step.finished,
    ev.OriginalRecorded: Step.while_open,
    ev.SourceRecorded: Step.while_open,
    ev.TaskReused: Step.task_reused,
    ev.TaskStarted: Step.task_started,
    ev.TaskFinished: Step.task_finished,
    ev.TaskCancelled: Step.task_cancelled,
    ev.AttemptStarted: Step.attempt_started,
    ev.PlanResolved: Step.plan,
    ev.PhaseEntered: Step.phase,
    ev.ResultRecorded: Step.result,
    ev.ArtifactsCollected: Step.during,
    ev.EvaluationFinished: Step.evaluation,
    ev.AnalysisFinished: Step.during,
    ev.AttemptRetried: Step.retried,
    ev.AttemptFinished: Step.attempt_finished,
    ev.AttemptReused: Step.attempt_reused,
    ev.CallStarted: Step.call_started,
    ev.CallFinished: Step.call_finished,
    ev.CallLost: Step.call_lost,
    ev.ToolFinished: Step.during,
    ev.PayloadErased: Step.always,
    ev.AnnotationAdded: Step.always,
    ev.LedgerSealed: Step.sealed,
    ev.ExtensionRecorded: Step.extension,
    ev.RegistryOpened: Step.registry,
    ev.RegistrySealed: Step.registry,
}
assert set(RULES) == set(ev.BY_CODE.values()), "every event type needs a rule"
