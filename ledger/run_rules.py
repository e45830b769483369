"""The rules of run, book and tasks: what each of their events needs, and what it changes."""

from typing import Any, Final, NoReturn

from ledger import events as ev
from ledger.errors import LedgerStateError
from ledger.stages import Pending, Stage, States, TaskStep, Unknown, task_but

_SELECTED: Final = TaskStep()
_OPEN: Final = frozenset({"created", "preparing", "running", "summarizing"})


class RunRules:
    """One batch under examination: reads through to the machine, writes to its overlay."""

    def __init__(self, states: States, pending: Pending) -> None:
        self.states = states
        self.pending = pending
        self.event: ev.AnyEvent | Unknown
        self.copied = False

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
        self.pending.run = self.pending.run._replace(stage=stage)

    def created(self, _: Any) -> None:
        self.stage_in("none")
        self.go("created")

    def while_created(self, _: Any) -> None:
        self.stage_in("created")

    def started(self, _: Any) -> None:
        self.stage_in("created")
        self.go("preparing")

    def selected(self, event: ev.TasksSelected | Unknown) -> None:
        self.stage_in("preparing", "running")
        if isinstance(event, Unknown):
            self.pending.run = self.pending.run._replace(stage="running", any_task=True)
            return
        for task in event.tasks:
            known = self.pending.tasks.get(task.task_id) or self.states.task(task.task_id)
            if known is not None:
                self.refuse(f"two tasks have the id {task.task_id!r}")
            self.select(task.task_id)
        self.go("running")

    def select(self, task_id: str) -> TaskStep:
        task = self.pending.tasks[task_id] = _SELECTED
        run = self.pending.run
        self.pending.run = run._replace(unfinished=run.unfinished + 1)
        return task

    def summary(self, _: Any) -> None:
        self.stage_in("running")
        if self.pending.run.unfinished:
            self.refuse(f"{self.pending.run.unfinished} tasks are not finished")
        self.go("summarizing")

    def computed(self, _: Any) -> None:
        self.stage_in("summarizing")

    def while_open(self, _: Any) -> None:
        self.stage_in(*_OPEN)

    def finished(self, event: ev.RunFinished | Unknown) -> None:
        if not isinstance(event, Unknown) and event.status == "completed":
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
        self.pending.run = self.pending.run._replace(sealed=True)

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
            if not self.pending.run.any_task:
                self.refuse("the task was not selected")
            task = self.select(task_id)
        return task

    def put_task(self, task: TaskStep) -> None:
        assert self.event.task is not None
        self.pending.tasks[self.event.task] = task

    def task_reused(self, _: Any) -> None:
        task = self.task()
        if task.stage != "pending" or self.copied:
            self.refuse(f"the task is {task.stage}")
        self.put_task(task_but(task, stage="reusing"))

    def task_started(self, _: Any) -> None:
        task = self.task()
        wanted = "reusing" if self.copied else "pending"
        if task.stage != wanted or task.attempts:
            self.refuse(f"the task is {task.stage}")
        self.put_task(task_but(task, stage="reusing" if self.copied else "running"))

    def task_in_work(self) -> TaskStep:
        task = self.task()
        wanted = "reusing" if self.copied else "running"
        if task.stage != wanted:
            self.refuse(f"the task is {task.stage}{' and the event a copy' * self.copied}")
        return task

    def task_over(self, task: TaskStep) -> None:
        if task.open_attempts:
            self.refuse(f"{task.open_attempts} attempts are open")
        self.put_task(task_but(task, stage="over"))
        run = self.pending.run
        self.pending.run = run._replace(unfinished=run.unfinished - 1)

    def task_finished(self, event: ev.TaskFinished | Unknown) -> None:
        task = self.task_in_work()
        told = None if isinstance(event, Unknown) else event.error
        if None not in (told, task.error) and told is not task.error:
            self.refuse(f"error={told} contradicts its attempts")
        self.task_over(task)

    def task_cancelled(self, _: Any) -> None:
        task = self.task()
        if self.copied or task.stage not in ("pending", "running"):
            self.refuse(f"the task is {task.stage}")
        self.task_over(task)
