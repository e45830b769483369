"""The attempts of one task, and the workers that make those of all tasks."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from ledger import events as ev
from ledger.errors import LedgerDead, LedgerStateError, NotStored
from ledger.transitions import ERROR_STATUSES
from runtime.attempts import Attempt
from runtime.contracts import Task
from runtime.interrupt import StopSignal
from runtime.stages import explain
from runtime.trail import Work

_log = logging.getLogger(__name__)
# Tasks that are cancelled in one transaction.
_GROUP = 500


class TaskRun:
    """One task at work; only `run` and `cancel` move it."""

    def __init__(self, work: Work, task: Task) -> None:
        self.task = task
        self.attempts: list[Attempt] = []
        self.over = False
        self._work = work

    async def run(self) -> None:
        """Make attempts 1..k, or fewer where the first right answer ends it; then end the task."""
        execution = self._work.setup.request.execution
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
        self.attempts = [Attempt(self._work, self.task, number + 1) for number in range(k)]
        outcomes = await asyncio.gather(
            *(attempt.run() for attempt in self.attempts), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _one_by_one(self, k: int, *, stop: bool) -> None:
        for number in range(k):
            attempt = Attempt(self._work, self.task, number + 1)
            self.attempts.append(attempt)
            await attempt.run()
            if stop and attempt.solved:
                return

    async def cancel(self, reason: str) -> None:
        """End whatever is open, and the task, which began and did not end."""
        if not self.over:
            for attempt in self.attempts:
                await attempt.abandon()
            await self._end(ev.TaskCancelled(task=self.task.task_id, reason=reason))

    async def _end(self, event: ev.TaskFinished | ev.TaskCancelled) -> None:
        await self._work.recorder.record(event)
        self.over = True


class Workers:
    """Works on `tasks` in order, as many at once as the request says, until told to stop.

    Afterwards `failures` tells of tasks that were given up, `fatal` how many attempts ended in a
    fatal error, and `cancelled` how many tasks the stop kept from ending.
    """

    def __init__(
        self, work: Work, tasks: Sequence[Task], stop: StopSignal, moved: Callable[[], None]
    ) -> None:
        self._work = work
        self._waiting = deque(tasks)
        self._stop = stop
        self._moved = moved
        self._running: dict[str, TaskRun] = {}
        self.failures: list[ev.ErrorInfo] = []
        self.fatal = 0
        self.cancelled = 0
        self.applied_recipes: dict[str, None] = {}

    async def run(self) -> None:
        """Return when all tasks are over; raises NotStored or LedgerDead where nothing goes on."""
        count = min(self._work.setup.request.execution.task_concurrency, len(self._waiting))
        workers = [asyncio.create_task(self._worker()) for _ in range(count)]
        stopped = asyncio.create_task(self._stop.wait())
        try:
            waiting = set(workers)
            while waiting and not stopped.done():
                done, _ = await asyncio.wait(
                    {*waiting, stopped}, return_when=asyncio.FIRST_COMPLETED
                )
                waiting -= done
                for worker in done - {stopped}:
                    worker.result()
        finally:
            stopped.cancel()
            await self._release(workers)
        if self._stop.requested:
            await self._cancel_all()

    async def _worker(self) -> None:
        while self._waiting and not self._stop.requested:
            run = TaskRun(self._work, self._waiting.popleft())
            self._running[run.task.task_id] = run
            try:
                await run.run()
            except (NotStored, LedgerDead):
                raise
            except Exception as error:  # noqa: BLE001 - our own fault: it fails this task only
                _log.exception("task %s was given up", run.task.task_id)
                self.failures.append(explain(error, "task", fatal=True))
                await run.cancel(f"given up: {type(error).__name__}")
            del self._running[run.task.task_id]
            self._look_back(run)
            self._moved()

    def _look_back(self, run: TaskRun) -> None:
        for attempt in run.attempts:
            self.fatal += attempt.fatal
            self.applied_recipes |= dict.fromkeys(attempt.trail.applied_recipes)

    async def _release(self, workers: list["asyncio.Task[None]"]) -> None:
        """Cancel who still works, and wait for their cleaning up as long as the grace lasts."""
        if self._stop.requested:
            name, count = self._stop.name or "", self._stop.count
            await self._work.recorder.record(ev.InterruptRequested(signal=name, count=count))
            _log.warning("%s: no new attempts; running ones have %g s", name, self._work.grace)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers, timeout=self._work.grace)
        for worker in workers:
            worker.add_done_callback(_take_outcome)

    async def _cancel_all(self) -> None:
        reason = f"stopped by {self._stop.name}"
        self.cancelled = len(self._waiting) + sum(not run.over for run in self._running.values())
        for run in list(self._running.values()):
            try:
                await run.cancel(reason)
            except LedgerStateError as error:
                _log.warning("task %s: %s", run.task.task_id, error.message)
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(_GROUP, len(self._waiting)))]
            cancelled = [ev.TaskCancelled(task=task.task_id, reason=reason) for task in group]
            await self._work.recorder.record(*cancelled)


def _take_outcome(worker: "asyncio.Task[None]") -> None:
    if not worker.cancelled():
        worker.exception()
