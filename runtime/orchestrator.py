"""Several requests under one limit: prepared, worked on and finalized in order, failing alone.

Every reuse source is frozen before any output is reserved, so that no request takes for a source
what an earlier one of the same orchestration has begun.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ledger.events import ErrorInfo
from runtime.dispatch import Dispatcher
from runtime.interrupt import StopSignal
from runtime.progress import Progress
from runtime.publishing import ProjectorFor
from runtime.results import OrchestrationResult, OrchestrationStatus, RequestOutcome
from runtime.runner import UnifiedEvaluationRuntime
from runtime.sharing import Share, limits_of
from runtime.suite import Suite, refuse_contradictions
from runtime.surroundings import Surroundings

OnRequestProgress = Callable[[str, Progress], object]
"""Is told how far the request of a name is; called in any thread."""
OnRequestEnd = Callable[[RequestOutcome], object]

_ID_BYTES: Final = 16
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Request:
    """A request that passed its preflight, and its share of what all have."""

    name: str
    runtime: UnifiedEvaluationRuntime
    share: Share


class Orchestrator:
    """Runs the requests of `suite` into new ledgers below `results_dir`; call `run` once."""

    def __init__(
        self,
        suite: Suite,
        results_dir: Path,
        *,
        surroundings: Surroundings | None = None,
        stop: StopSignal | None = None,
        command: Sequence[str] = (),
    ) -> None:
        around = surroundings or Surroundings()
        self.suite = suite
        self.results_dir = results_dir
        self.surroundings = replace(around, grace_seconds=suite.cleanup_grace_seconds)
        self.stop = stop or StopSignal()
        self.command = tuple(command)
        self.orchestration_id = around.entropy(_ID_BYTES).hex()
        self._outcomes: dict[str, RequestOutcome] = {}
        self._projectors: Sequence[ProjectorFor] = ()
        self._on_progress: OnRequestProgress | None = None
        self._on_end: OnRequestEnd | None = None

    async def run(
        self,
        projectors: Sequence[ProjectorFor] = (),
        on_progress: OnRequestProgress | None = None,
        on_end: OnRequestEnd | None = None,
    ) -> OrchestrationResult:
        """Run all requests, and say how each of them ended, in the order in which they stand.

        `projectors` are given each run's directory, as by `runtime.run`. Raises UsageError where
        requests contradict each other, before there is any output; everything later is told by
        the result.
        """
        refuse_contradictions(self.suite, self.results_dir)
        self._projectors, self._on_progress, self._on_end = projectors, on_progress, on_end
        started_at = self._now()
        seconds = self.suite.timeout_seconds
        timer = (
            asyncio.get_running_loop().call_later(seconds, self.stop.expire) if seconds else None
        )
        requests: list[_Request] = []
        broken = False
        try:
            self._preflight(requests)
            await self._run_all(requests)
        except Exception:  # noqa: BLE001 - the edge of the orchestration: its status tells of it
            _log.exception("the orchestration failed")
            broken = True
        finally:
            if timer is not None:
                timer.cancel()
            for request in requests:
                request.runtime.close_source()
        return self._result(started_at, broken=broken)

    # -- before any output ----------------------------------------------------------------------

    def _preflight(self, requests: list[_Request]) -> None:
        """Resolve each request and freeze what it reuses; add those for which that worked."""
        wanted = self.suite.run_requests()
        limits = limits_of(
            [request.execution for request in wanted],
            self.suite.task_concurrency,
            self.surroundings,
        )
        dispatcher = Dispatcher(self.suite.task_concurrency, self.stop)
        for named, request in zip(self.suite.requests, wanted, strict=True):
            runtime = UnifiedEvaluationRuntime(request, self.results_dir, self.surroundings)
            share = Share(limits, dispatcher, [earlier.share for earlier in requests])
            runtime.share, runtime.stop, runtime.command = share, self.stop, self.command
            runtime.orchestration_id = self.orchestration_id
            try:
                runtime.preflight()
                runtime.freeze_reuse_source()
            except Exception as error:  # noqa: BLE001 - plug-ins are loaded and asked here
                self._end(runtime.failed(error, "preflight"))
            else:
                requests.append(_Request(named.name, runtime, share))

    # -- the requests ---------------------------------------------------------------------------

    async def _run_all(self, requests: Sequence[_Request]) -> None:
        """Prepare the next request when too few tasks wait; return when all have ended."""
        running = []
        try:
            for request in requests:
                await request.share.dispatcher.room()
                if self.stop.requested:
                    break
                running.append(asyncio.create_task(self._run_one(request)))
                await request.share.prepared.wait()
        finally:
            await asyncio.gather(*running)

    async def _run_one(self, request: _Request) -> None:
        try:
            outcome = await request.runtime.carry_out(self._projectors, self._progress_of(request))
        except Exception as error:  # noqa: BLE001 - a request that cannot even fail must not touch others
            outcome = request.runtime.failed(error, "prepare")
        finally:
            request.share.prepared.set()
            request.share.ended.set()
        self._end(outcome)

    def _progress_of(self, request: _Request) -> Callable[[Progress], object] | None:
        tell = self._on_progress
        return None if tell is None else lambda progress: tell(request.name, progress)

    def _end(self, outcome: RequestOutcome) -> None:
        self._outcomes[outcome.name] = outcome
        if self._on_end is not None:
            with suppress(Exception):  # whoever watches must not disturb the requests
                self._on_end(outcome)

    # -- the end --------------------------------------------------------------------------------

    def _result(self, started_at: str, *, broken: bool) -> OrchestrationResult:
        for request in self.suite.requests:
            if request.name not in self._outcomes:
                self._end(self._never_begun(request.name))
        outcomes = {request.name: self._outcomes[request.name] for request in self.suite.requests}
        return OrchestrationResult(
            orchestration_id=self.orchestration_id,
            name=self.suite.name,
            status="failed" if broken else self._status(),
            requests=outcomes,
            started_at=started_at,
            finished_at=self._now(),
        )

    def _status(self) -> OrchestrationStatus:
        found = {outcome.status for outcome in self._outcomes.values()}
        if found & {"timed_out", "cancelled"}:
            return self.stop.status
        return "partial_failure" if "failed" in found else "completed"

    def _never_begun(self, name: str) -> RequestOutcome:
        why = self.stop.reason if self.stop.requested else "the orchestration failed"
        return RequestOutcome(
            name=name,
            status="cancelled",
            error=ErrorInfo(code="never_begun", message=f"it was not begun: {why}"),
            exit_code=self.stop.exit_code if self.stop.requested else 1,
        )

    def _now(self) -> str:
        seconds = self.surroundings.clock()[0] / 1e9
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
