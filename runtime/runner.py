"""The flow of one request, from preflight to the sealed ledger."""

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from ledger.errors import AclError
from ledger.events import (
    ErrorInfo,
    RunCreated,
    RunFinished,
    RunStarted,
    RunStatus,
    SummaryStarted,
)
from ledger.note import Signer
from ledger.store import Ledger
from ledger.version import __version__
from runtime.commits import commits
from runtime.contracts import Task
from runtime.daemon import Stopped, in_daemon, unless_stopped
from runtime.ending import compute
from runtime.interrupt import StopSignal
from runtime.masking import mask_error, masked_info, masked_metrics, public_names
from runtime.metrics import summarize_results
from runtime.models import EnvName, RunRequest
from runtime.outcome import LOG_NAME, existing_paths
from runtime.paths import reserve, run_root
from runtime.publishing import OnProgress, ProjectorFor, Publisher
from runtime.recorder import Recorder
from runtime.redact import POLICY_VERSION, Redactor
from runtime.registry import Registration
from runtime.results import MetricResult, RequestOutcome
from runtime.reuse import FrozenReuse, freeze_reuse_source
from runtime.reuse_takeover import Materialized, materialize_reused
from runtime.runlog import run_log
from runtime.selection import Selection, load
from runtime.setup import Setup, prepare
from runtime.sharing import Share, alone
from runtime.sources import source_events, sources
from runtime.stages import explain
from runtime.surroundings import Surroundings, program
from runtime.tasks import Workers, tell_interrupt
from runtime.trail import Work

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def run(
    request: RunRequest,
    *,
    results_dir: Path,
    redactor: Redactor | None = None,
    projectors: Sequence[ProjectorFor] = (),
    on_progress: OnProgress | None = None,
    stop: StopSignal | None = None,
    command: Sequence[str] = (),
    surroundings: Surroundings | None = None,
) -> RequestOutcome:
    """Run one request into a new ledger below `results_dir`, and say how it ended.

    `projectors` are given the run directory once, and then the state whenever it moved, the last
    time when the ledger is sealed. Raises UsageError, also for tasks that cannot be had, and what
    opening a reuse source raises, before there is any output; everything later is told by the
    outcome.
    """
    runtime = UnifiedEvaluationRuntime(request, results_dir, surroundings or Surroundings())
    runtime.redactor = redactor
    runtime.stop = stop or StopSignal()
    runtime.command = tuple(command)
    runtime.preflight()
    runtime.freeze_reuse_source()
    return await runtime.carry_out(projectors, on_progress)


class UnifiedEvaluationRuntime:
    """One request. Call `preflight` and `freeze_reuse_source`, then `carry_out`.

    They are apart so that several requests can each take a step before any takes the next: nothing
    is reserved before every source is decided. `share` ties requests together that run at
    the same time; without one the request runs by itself.
    """

    setup: Setup
    public: RunRequest
    directory: Path
    recorder: Recorder
    _registration: Registration

    def __init__(self, request: RunRequest, results_dir: Path, surroundings: Surroundings) -> None:
        self.request = request
        # A plug-in may change the working directory.
        self.results_dir = results_dir.absolute()
        self._given_dir = results_dir
        self.surroundings = surroundings
        self.stop = StopSignal()
        self.redactor: Redactor | None = None
        self.command: tuple[str, ...] = ()
        self.orchestration_id: str | None = None
        self.share: Share | None = None
        self.reuse = FrozenReuse()
        self._reused = Materialized()
        self._selection: Selection
        self._workers: Workers | None = None
        self._publisher: Publisher
        self._signers: Sequence[Signer] = ()

    # -- before the run -------------------------------------------------------------------------

    def preflight(self) -> None:
        """Resolve everything the request names; UsageError for what does not fit."""
        around = self.surroundings
        if self.redactor is None:
            # Before anything can fail: what errors say is without secrets, too.
            key = _api_key(self.request, around.environ)
            secrets = {**around.environ, **self.request.environment.env_variables}
            self.redactor = Redactor(secrets, [key] if key else [])
        self.public = public_names(self.request, self.redactor)
        with self._masking():
            self._signers = around.keys()
            self.setup = prepare(self.request, around.plugins, around.environ, around.uniform)

    def freeze_reuse_source(self) -> None:
        """Decide what is reused, before any output of any request is reserved."""
        version = str(self.setup.benchmark.version)
        with self._masking():
            self.reuse = freeze_reuse_source(
                self.public,
                self.results_dir,
                redactor=self.redactor,
                benchmark_version=version,
                tell=self.surroundings.alarm,
            )

    @contextmanager
    def _masking(self) -> Iterator[None]:
        """What errors say that are raised within is shown as it would be stored."""
        assert self.redactor is not None
        try:
            yield
        except AclError as error:
            mask_error(error, self.redactor)
            raise

    async def load_tasks(self) -> None:
        """Load and select the tasks while nothing is reserved; UsageError if that fails.

        Raises Stopped where the benchmark goes on long after a stop.
        """
        params = dict(self.request.benchmark.params)
        with self._masking():
            self._selection = await self._patiently(in_daemon(load, self.setup.benchmark, params))

    def reserve_output(self) -> None:
        """Make the run directory and its ledger; from here on the run exists."""
        output, around = self.public.output, self.surroundings
        root = run_root(
            self.results_dir, output.run_name, self.public.benchmark.id, self.public.model.id
        )
        self.directory = reserve(self.results_dir, root, output.run_id, around.clock()[0])
        self._ledger = Ledger.create(self.directory, clock=around.clock, entropy=around.entropy)
        self._registration = around.registration(
            self.results_dir, self.directory, self._ledger.ledger_id, self._signers
        )

    def close_source(self) -> None:
        """Let go of what was to be reused."""
        self.reuse.close()

    # -- the run --------------------------------------------------------------------------------

    async def carry_out(
        self, projectors: Sequence[ProjectorFor] = (), on_progress: OnProgress | None = None
    ) -> RequestOutcome:
        """Load the tasks, reserve the output, run; raises only while nothing is reserved."""
        try:
            await self.load_tasks()
            self.reserve_output()
        except Stopped:
            self.close_source()
            return self.never_begun(self.stop.reason)
        except BaseException:
            self.close_source()
            raise
        return await self.execute(projectors, on_progress)

    async def execute(
        self, projectors: Sequence[ProjectorFor] = (), on_progress: OnProgress | None = None
    ) -> RequestOutcome:
        """Run the request in its reserved directory; the outcome tells of every failure."""
        assert self.redactor is not None
        around = self.surroundings
        with run_log(self.directory / LOG_NAME, self.redactor, around.alarm):
            self.reuse.repeat()
            self.recorder = Recorder(
                self._ledger, self.redactor, signers=self._signers, patience=around.patience
            )
            self._publisher = Publisher(
                self.recorder, self.directory, projectors, on_progress, around.clock
            )
            try:
                workers = await self._run_attempts(await self._prepare())
                if workers.cancelled:
                    return await self._end(self.stop.status, exit_code=self.stop.exit_code)
                return await self.finalize()
            except Stopped:
                return await self._stopped()
            except Exception as error:  # noqa: BLE001 - the edge of the run: its outcome tells of it
                _log.exception("the run failed")
                return await self._fail(error)
            finally:
                await self._publisher.close()
                self.close_source()
                await asyncio.to_thread(self.recorder.close)

    async def _prepare(self) -> list[Task]:
        """Begin the run, tell its tasks, take over what is reused; return what is to be run."""
        tasks, request = self._selection.tasks, self.request
        found = await asyncio.to_thread(sources, self.setup)
        created = await asyncio.to_thread(self._created, [source.file for source in found])
        files = await asyncio.to_thread(source_events, found)
        entering = self._registration
        await asyncio.to_thread(entering.open, created, self.recorder.redactor, len(tasks))
        await self.recorder.record(created, self.reuse.event(), entering.told())
        if entering.fault is not None and self.surroundings.require_registry:
            raise entering.refusal()
        await self.recorder.record(RunStarted(), *files)
        _log.info("run %s: %s, %s", self.directory.name, request.benchmark.id, request.model.id)
        await self.recorder.record(*self._selection.events)
        _log.info("%d tasks are selected", len(tasks))
        self._reused = await materialize_reused(
            self.recorder, self.reuse, tasks, request, self.setup.benchmark
        )
        self._publisher.start()
        return [task for task in tasks if task.task_id not in self._reused.done]

    def _created(self, files: Sequence[Path]) -> RunCreated:
        known: dict[str, Any] = program()
        return RunCreated(
            run_id=self.directory.name,
            request=self.request.to_task_payload(),
            persistence_params=self.request.to_persistence_params(),
            acl_version=__version__,
            command=self.command,
            repos=commits([Path(), *files]),
            redaction_policy=POLICY_VERSION,
            orchestration_id=self.orchestration_id,
            request_name=self.request.metadata.request_name,
            **known,
        )

    async def _patiently(self, work: Awaitable[T]) -> T:
        """Await what a plug-in does; raise Stopped where it goes on long after a stop."""
        return await unless_stopped(work, self.stop, self.surroundings.grace_seconds)

    async def _run_attempts(self, tasks: Sequence[Task]) -> Workers:
        """Make the attempts of `tasks`, in order, as many at once as there are places."""
        around = self.surroundings
        share = self.share or alone(self.request.execution, around, self.stop)
        work = Work(
            setup=self.setup,
            recorder=self.recorder,
            limits=share.limits,
            grace=around.grace_seconds,
            monotonic=around.monotonic,
            sleep=around.sleep,
        )
        moved = self._publisher.moved
        taken = self._reused.attempts
        self._workers = Workers(work, tasks, share.dispatcher, self.stop, moved, taken)
        self._workers.start()
        share.prepared.set()
        await self._workers.finish()
        return self._workers

    # -- the end --------------------------------------------------------------------------------

    async def finalize(self) -> RequestOutcome:
        """Compute the metrics of all tasks, new and reused, and end the run.

        Requests that share something are finalized in order.
        """
        if self.share is not None:
            await self.share.turn()
        await self._publisher.stop()
        await self.recorder.record(SummaryStarted())
        computing = in_daemon(compute, self.recorder, self.setup.benchmark)
        metrics, event = await self._patiently(computing)
        await self.recorder.record(event)
        error = self._final_error()
        status: RunStatus = "completed" if error is None else "failed"
        return await self._end(
            status, error=error, exit_code=0 if error is None else 1, metrics=metrics
        )

    def _final_error(self) -> ErrorInfo | None:
        workers = self._workers
        assert workers is not None
        if workers.failures:
            return workers.failures[0]
        if workers.fatal:
            message = f"{workers.fatal} attempts ended in a fatal error"
            return ErrorInfo(code="fatal_attempts", message=message, fatal=True)
        return None

    async def _end(
        self,
        status: RunStatus,
        *,
        error: ErrorInfo | None = None,
        exit_code: int,
        metrics: MetricResult | None = None,
    ) -> RequestOutcome:
        """Record the end, seal, and show the sealed run to whoever follows it."""
        await self._publisher.stop()
        counts = asdict(self.recorder.state().counts())
        await self.recorder.record(
            RunFinished(status=status, error=error, exit_code=exit_code, counts=counts)
        )
        await asyncio.to_thread(self.recorder.seal)
        await asyncio.to_thread(self._registration.seal)
        await self._publisher.last()
        outcome = self._outcome(status, exit_code, error)
        recipes = [] if self._workers is None else list(self._workers.applied_recipes)
        if metrics is not None:
            metrics = masked_metrics(metrics, self.recorder.redactor)
        outcome.result = summarize_results(
            self.recorder.state(), metrics, paths=outcome.paths, applied_recipes=recipes
        )
        if self._publisher.failure is not None and not exit_code:
            error, outcome.exit_code = self._publisher.failure
            outcome.error = masked_info(error, self.recorder.redactor)
        return outcome

    async def _stopped(self) -> RequestOutcome:
        """End a run that was stopped while it was prepared or finalized."""
        _log.warning("%s: a plug-in is left to itself", self.stop.reason)
        if self._workers is None:
            await tell_interrupt(self.recorder, self.stop)
        else:
            await self._workers.tell_interrupt()
        return await self._end(self.stop.status, exit_code=self.stop.exit_code)

    async def _fail(self, error: Exception) -> RequestOutcome:
        """End the run as failed; where not even that can be stored, only the outcome says so."""
        info = explain(error, "run", fatal=True)
        code = error.exit_status if isinstance(error, AclError) else 1
        try:
            return await self._end("failed", error=info, exit_code=code)
        except AclError as second:
            if self._ledger.size:
                _log.error("the end of the run was not stored: %s", second)
            where = f"{self._ledger.path}: {info.message}"
            return self._outcome("failed", code, info.model_copy(update={"message": where}))

    def _outcome(
        self, status: RunStatus, exit_code: int, error: ErrorInfo | None
    ) -> RequestOutcome:
        shown = self._given_dir / self.directory.relative_to(self.results_dir)
        return RequestOutcome(
            name=self.request.metadata.request_name or self.directory.name,
            status=status,
            run_id=self.directory.name,
            path=shown,
            error=None if error is None else masked_info(error, self.recorder.redactor),
            exit_code=exit_code,
            paths=existing_paths(self.directory, shown),
        )

    # -- without a run --------------------------------------------------------------------------

    def never_begun(self, why: str) -> RequestOutcome:
        """The outcome where a stop came before anything was reserved."""
        return RequestOutcome(
            name=self.request.metadata.request_name or self.request.benchmark.id,
            status=self.stop.status,
            error=ErrorInfo(code="never_begun", message=f"it was not begun: {why}"),
            exit_code=self.stop.exit_code,
        )

    def failed(self, error: Exception, phase: str) -> RequestOutcome:
        """The outcome where `error` came before anything was reserved."""
        info = explain(error, phase, fatal=True)
        return RequestOutcome(
            name=self.request.metadata.request_name or self.request.benchmark.id,
            status="failed",
            error=info if self.redactor is None else masked_info(info, self.redactor),
            exit_code=error.exit_status if isinstance(error, AclError) else 1,
        )


def _api_key(request: RunRequest, environ: Mapping[str, str]) -> str | None:
    given = request.model.api_key
    return environ.get(given.env) if isinstance(given, EnvName) else given
