"""One attempt: its tries, its verdict, its end. Whatever happens, it ends in one terminal event."""

import asyncio
import logging
from contextlib import AsyncExitStack

from ledger import events as ev
from ledger.errors import NotStored, ValueRefused
from runtime.collecting import Collection, collect
from runtime.containment import named
from runtime.contracts import Task
from runtime.harvest import attempt_status, discarded, expected, refused_error, result_event
from runtime.judging import analyze, judge
from runtime.results import ErrorInfo, RunResult
from runtime.retry import HOUSE_FAULTS, Retry
from runtime.stages import StageTimeout, explain, stage
from runtime.trail import Trail, Work
from runtime.tries import Tried, Try

_log = logging.getLogger(__name__)


class Attempt:
    """Attempt `number` of a task. `run` makes it; `abandon` ends one that ignores everything."""

    def __init__(self, work: Work, task: Task, number: int) -> None:
        self.trail = Trail(work, task, number)
        self.status: ev.AttemptStatus | None = None
        self.fatal = False
        self._work = work

    @property
    def _name(self) -> str:
        return f"task {self.trail.task.task_id}, attempt {self.trail.attempt}"

    @property
    def solved(self) -> bool:
        """True if it ended well, with an answer that is right."""
        return self.status == "completed" and self.trail.verdict[0] is True

    async def run(self) -> None:
        """Make the attempt; raises no plug-in's errors, but the ledger's, and CancelledError.

        Cancelled, it cleans up within the grace and records that it was cancelled.
        """
        try:
            while (retry := await self._once()) is not None:
                await self._work.sleep(retry.delay)
        except asyncio.CancelledError:
            await self.abandon()
            raise

    async def abandon(self) -> None:
        """Record that the attempt was cancelled, unless it ended or never began."""
        if self.trail.started and not self.trail.finished:
            await self.trail.finish("cancelled")
            self.status = "cancelled"

    async def _once(self) -> Retry | None:
        """One physical try with all that follows; returns how to try again, if that is to be."""
        async with self._work.limits.slot():
            if not self.trail.started:
                task, attempt = self.trail.task.task_id, self.trail.attempt
                await self.trail.record(ev.AttemptStarted(task=task, attempt=attempt))
            async with AsyncExitStack() as place:
                tried = await Try(self.trail, place).run()
                retry = self._retry(tried.error)
                if retry is None:
                    await self._keep(tried)
                    verdict = await self._verdict(tried)
            if retry is not None:
                await self._again(retry, "attempt", tried.error, discarded(tried.result))
                return retry
            if verdict is not None:
                await analyze(self.trail, tried, verdict)
            await self._finish(tried, verdict)
            return None

    def _retry(self, error: ErrorInfo | None) -> Retry | None:
        if error is None:
            return None
        return self._work.setup.retry.decide(error, self.trail.retry)

    async def _again(
        self,
        retry: Retry,
        scope: ev.attempt.RetryScope,
        error: ErrorInfo | None,
        dropped: dict[str, object] | None,
    ) -> None:
        assert error is not None
        _log.info("%s is tried again in %.1f s: %s", self._name, retry.delay, error.message)
        await self.trail.record(
            ev.AttemptRetried(
                task=self.trail.task.task_id,
                attempt=self.trail.attempt,
                retry=self.trail.retry + 1,
                max_retries=self._work.setup.retry.max_retries,
                retry_delay_seconds=retry.delay,
                stage=error.phase or ("evaluate" if scope == "evaluate" else "run_harness"),
                scope=scope,
                matched_pattern=retry.pattern,
                error=error,
                discarded_result=dropped,
            )
        )

    # -- result and artifacts -------------------------------------------------------------------

    async def _keep(self, tried: Tried) -> None:
        """Record the result; where it cannot be stored, record that instead."""
        task, attempt = self.trail.task, self.trail.attempt
        try:
            await self.trail.record(result_event(task.task_id, attempt, tried.result, tried.error))
        except (NotStored, ValueRefused) as error:
            fatal = isinstance(error, NotStored)
            tried.error = explain(error, "collect_result", fatal=fatal)
            tried.result = RunResult(
                task.task_id, category=task.category, ground_truth=expected(task)
            )
            await self.trail.record(result_event(task.task_id, attempt, tried.result, tried.error))
        if tried.context is not None:
            await self._collect(tried)

    async def _collect(self, tried: Tried) -> None:
        """Take the artifacts while the environment is open; a failure is told and fails nothing."""
        assert tried.context is not None
        context, session = tried.context, tried.context.session
        await self.trail.enter("collect_artifacts")
        found = Collection()
        setup = self._work.setup

        async def take() -> None:
            paths = await setup.benchmark.collect_artifacts(self.trail.task, context)
            if session is not None:
                limits = setup.request.execution.artifact_limits
                await collect(session, paths, limits, self._work.recorder.redactor, found)

        try:
            await stage(take, timeout=tried.limits.artifacts, grace=self._work.grace)
        except StageTimeout as error:
            found.truncated = True
            self.trail.issue("artifacts_timeout", str(error))
        except Exception as error:  # noqa: BLE001 - plug-ins may raise anything
            self.trail.issue("artifacts_failed", named(error))
        if found.truncated:
            self.trail.issue("artifacts_truncated", "not all artifacts were kept")
        event = found.event(self.trail.task.task_id, self.trail.attempt)
        if event is not None:
            await self.trail.record(event)

    # -- verdict and end ------------------------------------------------------------------------

    async def _verdict(self, tried: Tried) -> ev.EvaluationFinished | None:
        """Evaluate, again where the verifier failed and that may pass; None if there is no point.

        A fault of the house says nothing about the agent: there is nothing to judge then.
        """
        error = tried.error
        if tried.result.status == "skipped" or tried.context is None:
            return None
        if error is not None and (error.fatal or error.code in HOUSE_FAULTS):
            return None
        while True:
            event = await self._judge(tried)
            retry = self._retry(event.evaluation_error)
            if retry is None:
                await self.trail.record(event)
                return event
            dropped = event.model_dump(
                include={"correct", "score", "metrics", "reason"}, exclude_none=True
            )
            await self._again(retry, "evaluate", event.evaluation_error, dropped)
            await self._work.sleep(retry.delay)

    async def _judge(self, tried: Tried) -> ev.EvaluationFinished:
        return await judge(self.trail, tried)

    async def _finish(self, tried: Tried, verdict: ev.EvaluationFinished | None) -> None:
        run_error = tried.error
        evaluation_error = None if verdict is None else verdict.evaluation_error
        late = self._work.recorder.refusals(self.trail.task.task_id, self.trail.attempt)
        if late and evaluation_error is None:
            # Values refused since the result was recorded came from the verifier.
            evaluation_error = refused_error(late, "evaluate")
        status = attempt_status(run_error, evaluation_error)
        if status == "completed" and tried.result.status == "skipped":
            status = "skipped"
        error = run_error or evaluation_error
        if error is not None:
            _log.warning("%s ended in %s: %s: %s", self._name, status, error.code, error.message)
        await self.trail.finish(status, error)
        self.status = status
        self.fatal = error is not None and error.fatal
