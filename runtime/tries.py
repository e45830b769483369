"""One physical try: from its plan to what the harness gave, with the environment left open."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ledger.events import ErrorInfo, Phase
from runtime.attempt_calls import AttemptCalls
from runtime.containment import contained, named
from runtime.contracts import (
    AttemptContext,
    BaseHarness,
    ExecutionPlan,
    HarnessFreeBenchmark,
    Session,
    Task,
)
from runtime.harvest import expected, kept_result, refused_error
from runtime.planning import NO_LIMITS, Timeouts, build_plan, plan_event, timeouts
from runtime.results import RunResult
from runtime.stages import StageTimeout, explain, stage
from runtime.trail import Trail

T = TypeVar("T")


@dataclass(slots=True)
class Tried:
    """What a try came to. Without a `context` there was nowhere to run."""

    result: RunResult
    error: ErrorInfo | None = None
    context: AttemptContext | None = None
    limits: Timeouts = NO_LIMITS


class _Failed(Exception):
    """The try cannot go on."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.error = error


class Try:
    """Runs one try of the attempt of `trail`; `place` holds what is to be released after it."""

    def __init__(self, trail: Trail, place: AsyncExitStack) -> None:
        self._trail = trail
        self._place = place
        self._work = trail.work
        self._setup = trail.work.setup
        self._task = trail.task

    async def run(self) -> Tried:
        """Return the result that is kept, and the error if there was one; raises no plug-in's."""
        tried = Tried(_nothing(self._task))
        try:
            plan, tried.limits = await self._plan()
            tried.context = await self._open(plan)
            given, error = await self._execute(tried.context, tried.limits)
        except _Failed as failed:
            tried.error = failed.error
            return tried
        if given is not None or error is None:
            tried.result, own = await self._keep(given)
            if error is not None and own is not None:
                self._trail.issue(own.code, own.message)
            error = error or own
        refused = self._work.recorder.refusals(self._task.task_id, self._trail.attempt)
        tried.error = error or refused_error(refused, "run_harness")
        return tried

    # -- before ---------------------------------------------------------------------------------

    async def _plan(self) -> tuple[ExecutionPlan, Timeouts]:
        setup, task = self._setup, self._task
        try:
            with contained():
                plan = build_plan(
                    setup.request, setup.benchmark, setup.harness, setup.recipes, task
                )
            limits = timeouts(plan, setup.request.execution)
            redactor = self._work.recorder.redactor
            event = plan_event(task.task_id, self._trail.attempt, plan, limits, redactor)
        except Exception as error:  # plans are made by plug-ins
            raise _Failed(explain(error, "plan", fatal=True)) from error
        await self._trail.record(event, self._trail.entering("open_environment"))
        return plan, limits

    async def _open(self, plan: ExecutionPlan) -> AttemptContext:
        kind = self._setup.environment.id
        await self._place.enter_async_context(self._work.limits.place(kind))
        opening = partial(self._setup.environment.open, plan.environment, plan)
        session = await self._house(opening, "open_environment")
        if not self._setup.request.execution.keep_environment:
            self._place.push_async_callback(self._release, session)
        trail = self._trail
        context = AttemptContext(
            request=self._setup.request,
            attempt=trail.attempt,
            retry=trail.retry,
            plan=plan,
            session=session,
            calls=AttemptCalls.of(
                trail.work.recorder, trail.task.task_id, trail.attempt, trail.call_numbers
            ),
            tool=trail.tool,
            api_key=self._setup.api_key,
        )
        await trail.enter("prepare_task")
        preparing = partial(self._setup.benchmark.prepare_task, self._task, context)
        await self._house(preparing, "prepare_task")
        return context

    async def _house(self, work: Callable[[], Awaitable[T]], phase: Phase) -> T:
        """Do what must work before the agent can begin: its failure says nothing of the agent."""
        try:
            return await stage(work, timeout=None, grace=self._work.grace)
        except Exception as error:  # plug-ins may raise anything
            raise _Failed(explain(error, phase, fatal=True)) from error

    async def _release(self, session: Session) -> None:
        await self._aside(session.close, "environment_not_released")

    async def _aside(self, work: Callable[[], Awaitable[Any]], code: str) -> None:
        """Clean up; a failure is told and fails nothing."""
        try:
            await stage(work, timeout=self._work.grace, grace=self._work.grace)
        except Exception as error:  # noqa: BLE001 - plug-ins may raise anything
            self._trail.issue(code, named(error))

    # -- the run --------------------------------------------------------------------------------

    async def _execute(
        self, context: AttemptContext, limits: Timeouts
    ) -> tuple[Any, ErrorInfo | None]:
        benchmark, harness = self._setup.benchmark, self._setup.harness
        if harness is not None:
            return await self._drive(harness, context, limits)
        assert isinstance(benchmark, HarnessFreeBenchmark)
        await self._trail.enter("run_task")
        running = partial(benchmark.run_task, self._task, context)
        return await self._guarded(running, limits.run, "run_task")

    async def _drive(
        self, harness: BaseHarness, context: AttemptContext, limits: Timeouts
    ) -> tuple[Any, ErrorInfo | None]:
        """Start the agent, let it work, and take what there is, also after a time-out or error."""
        task, config = self._task, self._setup.config
        await self._trail.enter("start_harness")
        starting = partial(harness.start_session, task, config, context)
        agent = await self._house(starting, "start_harness")
        try:
            await self._trail.enter("run_harness")
            running = partial(harness.run_task, task, config, agent, context)
            given, error = await self._guarded(running, limits.run, "run_harness")
            await self._trail.enter("collect_result")
            collecting = partial(harness.collect_result, task, agent, given, context)
            limit = limits.run if error is None else self._work.grace
            collected, second = await self._guarded(collecting, limit, "collect_result")
        finally:
            await self._aside(partial(harness.close_session, agent), "harness_not_closed")
        if second is not None:
            if error is not None:
                self._trail.issue(second.code, second.message)
            return given, error or second
        return collected, error

    async def _guarded(
        self, work: Callable[[], Awaitable[T]], limit: float | None, phase: Phase
    ) -> tuple[T | None, ErrorInfo | None]:
        """Return the outcome of `work`, or None and the error that it ended in."""
        try:
            return await stage(work, timeout=limit, grace=self._work.grace), None
        except StageTimeout as error:
            code = "run_timeout" if phase != "collect_result" else "collect_timeout"
            return None, ErrorInfo(code=code, message=str(error), phase=phase)
        except Exception as error:  # noqa: BLE001 - plug-ins may raise anything
            return None, explain(error, phase)

    async def _keep(self, given: Any) -> tuple[RunResult, ErrorInfo | None]:
        phase: Phase = "run_harness" if self._setup.harness else "run_task"
        try:
            # In a thread: a result may be large, and others are waiting.
            kept, error = await asyncio.to_thread(_kept, self._task, given)
        except Exception as problem:  # noqa: BLE001 - objects of plug-ins may do anything
            return _nothing(self._task), explain(problem, phase)
        if error is not None and error.phase is None:
            error = error.model_copy(update={"phase": phase})
        return kept, error


def _kept(task: Task, given: Any) -> tuple[RunResult, ErrorInfo | None]:
    with contained():
        return kept_result(task, given)


def _nothing(task: Task) -> RunResult:
    return RunResult(task.task_id, category=task.category, ground_truth=expected(task))
