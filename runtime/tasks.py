"""The attempts of one task, and the workers that make those of all tasks."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ledger import events as ev
from ledger.errors import LedgerDead, LedgerStateError, NotStored
from ledger.transitions import ERROR_STATUSES
from runtime.attempts import Attempt
from runtime.contracts import Task
from runtime.dispatch import Dispatcher, Line
from runtime.interrupt import StopSignal
from runtime.recorder import Recorder
from runtime.reuse_copies import AttemptEvents
from runtime.reused_attempt import ReusedAttempt
from runtime.stages import explain
from runtime.trail import Work

_log = logging.getLogger(__name__)
# Tasks that are cancelled in one transaction.
_GROUP = 500


class TaskRun:
    """One task at work; only `run` and `cancel` move it.

    With `taken` attempts, of which copies are in the ledger, it has begun already.
    """

    def __init__(self, work: Work, task: Task, taken: Sequence[AttemptEvents] = ()) -> None:
        self.task = task
        self.attempts: list[Attempt] = []
        self.over = False
        self._work = work
        self._taken = {one.number: ReusedAttempt(work, task, one) for one in taken}

    async def run(self) -> None:
        """Make attempts 1..k, or fewer where the first right answer ends it; then end the task."""
        execution = self._work.setup.request.execution
        if not self._taken:
            await self._work.recorder.record(ev.TaskStarted(task=self.task.task_id))
        if self._work.setup.parallel:
            await self._all(execution.k)
        else:
            await self._one_by_one(execution.k, stop=execution.strategy == "stop_on_correct")
        error = any(attempt.status in ERROR_STATUSES for attempt in self.attempts)
        early = len(self.attempts) < execution.k
        await self._end(
            ev.TaskFinished(
                task=self.task.task_id,
                reason="stopped_early" if early else "all_attempts",
                error=error,
            )
        )

    async def _all(self, k: int) -> None:
        self.attempts = [self._attempt(number + 1) for number in range(k)]
        outcomes = await asyncio.gather(
            *(attempt.run() for attempt in self.attempts), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _one_by_one(self, k: int, *, stop: bool) -> None:
        for number in range(k):
            attempt = self._attempt(number + 1)
            self.attempts.append(attempt)
            await attempt.run()
            if stop and attempt.solved:
                return

    def _attempt(self, number: int) -> Attempt:
        return self._taken.get(number) or Attempt(self._work, self.task, number)

    async def cancel(self, reason: str) -> None:
        """End whatever is open, and the task, which began and did not end."""
        if not self.over:
            for attempt in {*self.attempts, *self._taken.values()}:
                await attempt.abandon()
            await self._end(ev.TaskCancelled(task=self.task.task_id, reason=reason))

    async def _end(self, event: ev.TaskFinished | ev.TaskCancelled) -> None:
        await self._work.recorder.record(event)
        self.over = True


class Workers:
    """Works on `tasks` in order, as places become free for them, until told to stop.

    `taken` are attempts, by task, that were made elsewhere and only need a verdict.
    Afterwards `failures` tells of tasks that were given up, `fatal` how many attempts ended in a
    fatal error, and `cancelled` how many tasks the stop kept from ending.
    """

    def __init__(
        self,
        work: Work,
        tasks: Sequence[Task],
        dispatcher: Dispatcher,
        stop: StopSignal,
        moved: Callable[[], None],
        taken: Mapping[str, Sequence[AttemptEvents]] = MappingProxyType({}),
    ) -> None:
        self._work = work
        self._taken = taken
        self._dispatcher = dispatcher
        self._stop = stop
        self._moved = moved
        self._running: dict[str, TaskRun] = {}
        self._told = False
        self._line = Line(tasks, self._one, work.setup.request.execution.task_concurrency)
        self.failures: list[ev.ErrorInfo] = []
        self.fatal = 0
        self.cancelled = 0
        self.applied_recipes: dict[str, None] = {}

    def start(self) -> None:
        """Put the tasks in line; they are begun from now on."""
        self._dispatcher.join(self._line)

    async def finish(self) -> None:
        """Return when all tasks are over; raises NotStored or LedgerDead where nothing goes on."""
        stopped = asyncio.create_task(self._stop.wait())
        waiting: list[Task] = []
        try:
            await asyncio.wait({self._line.over, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if self._line.over.done():
                self._line.over.result()
        finally:
            stopped.cancel()
            waiting = self._dispatcher.leave(self._line)
            await self._release()
        if self._stop.requested:
            await self._cancel_all(waiting)

    async def _one(self, task: Task) -> None:
        run = TaskRun(self._work, task, self._taken.get(task.task_id, ()))
        self._running[task.task_id] = run
        try:
            await run.run()
        except (NotStored, LedgerDead):
            raise
        except Exception as error:  # noqa: BLE001 - our own fault: it fails this task only
            _log.exception("task %s was given up", task.task_id)
            self.failures.append(explain(error, "task", fatal=True))
            await run.cancel(f"given up: {type(error).__name__}")
        del self._running[task.task_id]
        self._look_back(run)
        self._moved()

    def _look_back(self, run: TaskRun) -> None:
        for attempt in run.attempts:
            self.fatal += attempt.fatal
            self.applied_recipes |= dict.fromkeys(attempt.trail.applied_recipes)

    async def _release(self) -> None:
        """Cancel who still works, and wait for their cleaning up as long as the grace lasts."""
        if self._stop.requested:
            await self.tell_interrupt()
            reason, grace = self._stop.reason, self._work.grace
            _log.warning("%s: no new attempts; running ones have %g s", reason, grace)
        running = list(self._line.running)
        for one in running:
            one.cancel()
        if running:
            await asyncio.wait(running, timeout=self._work.grace)

    async def tell_interrupt(self) -> None:
        """Record, once, that a signal asked the run to stop, if one did."""
        if not self._told:
            self._told = True
            await tell_interrupt(self._work.recorder, self._stop)

    async def _cancel_all(self, waiting: Sequence[Task]) -> None:
        reason = self._stop.reason
        self.cancelled = len(waiting) + sum(not run.over for run in self._running.values())
        for run in list(self._running.values()):
            try:
                await run.cancel(reason)
            except LedgerStateError as error:
                _log.warning("task %s: %s", run.task.task_id, error.message)
        begun = [task for task in waiting if task.task_id in self._taken]
        for task in begun:
            await TaskRun(self._work, task, self._taken[task.task_id]).cancel(reason)
        waiting = [task for task in waiting if task.task_id not in self._taken]
        for begin in range(0, len(waiting), _GROUP):
            group = waiting[begin : begin + _GROUP]
            cancelled = [ev.TaskCancelled(task=task.task_id, reason=reason) for task in group]
            await self._work.recorder.record(*cancelled)


async def tell_interrupt(recorder: Recorder, stop: StopSignal) -> None:
    """Record that a signal asked the run to stop, if one did."""
    if stop.name is not None:
        await recorder.record(ev.InterruptRequested(signal=stop.name, count=stop.count))
