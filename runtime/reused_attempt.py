"""An attempt that ran in another run: judged by what was recorded of it, not made again.

Its environment is gone. The verifier finds the files that were kept; where it asks for anything
else, its verdict would be of less than it was to see, so it is dropped and the attempt is made
anew, which its ledger tells as a retry.
"""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final, NoReturn

from ledger import events as ev
from ledger.canonical import Binary
from runtime.attempt_calls import AttemptCalls
from runtime.attempts import Attempt
from runtime.containment import contained
from runtime.contracts import AttemptContext, ExecOutcome, StageError, Task
from runtime.harvest import discarded
from runtime.judging import analyze
from runtime.planning import build_plan, timeouts
from runtime.recorder import Recorder
from runtime.results import RunResult
from runtime.retry import Retry
from runtime.reuse_copies import AttemptEvents
from runtime.stages import explain
from runtime.stored_attempt import stored_result
from runtime.trail import Work
from runtime.tries import Tried

GONE: Final = "environment_gone"


class _OutOfReach(Exception):
    """The attempt cannot be judged by what was recorded."""

    def __init__(self, error: ev.ErrorInfo, result: RunResult | None) -> None:
        super().__init__(error.message)
        self.error = error
        self.result = result


class ReusedAttempt(Attempt):
    """Attempt of which the copies up to its result are in the ledger; `taken` says which."""

    def __init__(self, work: Work, task: Task, taken: AttemptEvents) -> None:
        super().__init__(work, task, taken.number)
        trail = self.trail
        trail.started = True
        trail.retry = taken.retries
        trail.plan_hash, trail.applied_recipes = taken.plan_hash, taken.applied_recipes
        trail.call_numbers = count(taken.calls)
        self._files: RecordedFiles | None = None

    async def _once(self) -> Retry | None:
        if self._files is not None:
            return await super()._once()
        async with self._work.limits.slot():
            try:
                tried = await self._recorded()
                verdict = await self._verdict(tried)
            except _OutOfReach as error:
                anew = Retry(0.0)
                await self._again(anew, "attempt", error.error, discarded(error.result))
                return anew
            if verdict is not None:
                await analyze(self.trail, tried, verdict)
            await self._finish(tried, verdict)
            return None

    async def _recorded(self) -> Tried:
        """What the attempt came to, with its files in the place of its environment."""
        trail, setup = self.trail, self._work.setup
        result, files = await asyncio.to_thread(self._read)
        self._files = RecordedFiles(self._work.recorder, files)
        try:
            with contained():
                plan = build_plan(
                    setup.request, setup.benchmark, setup.harness, setup.recipes, trail.task
                )
            limits = timeouts(plan, setup.request.execution)
        except Exception as error:  # plans are made by plug-ins
            raise _OutOfReach(explain(error, "plan", fatal=True), result) from error
        context = AttemptContext(
            request=setup.request,
            attempt=trail.attempt,
            retry=trail.retry,
            plan=plan,
            session=self._files,
            calls=AttemptCalls.of(
                trail.work.recorder, trail.task.task_id, trail.attempt, trail.call_numbers
            ),
            tool=trail.tool,
            api_key=setup.api_key,
        )
        return Tried(result, context=context, limits=limits)

    def _read(self) -> tuple[RunResult, ev.ArtifactsCollected | None]:
        with self._work.recorder.reading() as (state, view):
            attempt = state.tasks[self.trail.task.task_id].attempts[self.trail.attempt]
            assert attempt.result is not None
            result = view.event(attempt.result).event
            files = None if attempt.artifacts is None else view.event(attempt.artifacts).event
            assert isinstance(result, ev.ResultRecorded)
            assert files is None or isinstance(files, ev.ArtifactsCollected)
            return stored_result(view, result, self.trail.task.category), files

    async def _judge(self, tried: Tried) -> ev.EvaluationFinished:
        event = await super()._judge(tried)
        session = None if tried.context is None else tried.context.session
        if isinstance(session, RecordedFiles) and session.missed is not None:
            message = f"it cannot be judged by what was recorded: {session.missed}"
            error = ev.ErrorInfo(code=GONE, message=message, phase="evaluate", fatal=True)
            raise _OutOfReach(error, tried.result)
        return event


class RecordedFiles:
    """The session of an environment that is gone: its kept files, and nothing else.

    `missed` tells the first thing that was asked for in vain, whatever came of it.
    """

    def __init__(self, recorder: Recorder, event: ev.ArtifactsCollected | None) -> None:
        contents = None if event is None else event.contents
        self.missed: str | None = None
        self._recorder = recorder
        self._contents = contents if isinstance(contents, dict) else {}

    async def exec(
        self, command: Sequence[str], *, timeout: float | None = None, stdin: str | None = None
    ) -> ExecOutcome:
        """Refuse."""
        self._miss("a command was to be run")

    async def upload(self, source: Path, target: str) -> None:
        """Refuse."""
        self._miss(f"{target!r} was to be written")

    async def download(self, source: str, target: Path) -> None:
        """Write a kept file to `target`."""
        target.write_bytes(await self.read_bytes(source))

    async def read_text(self, path: str) -> str:
        """Return a kept file as text."""
        return (await self.read_bytes(path)).decode("utf-8")

    async def write_text(self, path: str, text: str) -> None:
        """Refuse."""
        self._miss(f"{path!r} was to be written")

    async def files(self) -> list[str]:
        """Refuse: what was not kept is not known."""
        self._miss("the files were to be listed")

    async def size(self, path: str) -> int:
        """The size of a kept file in bytes."""
        return len(await self.read_bytes(path))

    async def read_bytes(self, path: str) -> bytes:
        """Return a kept file."""
        if path not in self._contents:
            self._miss(f"{path!r} was to be read")
        return await asyncio.to_thread(self._read, path)

    async def close(self) -> None:
        """Nothing is open."""

    def _read(self, path: str) -> bytes:
        with self._recorder.reading() as (_, view):
            content = view.resolve(self._contents[path])
        if isinstance(content, Binary):
            return content.data
        return str(content).encode("utf-8", "surrogatepass")

    def _miss(self, what: str) -> NoReturn:
        self.missed = self.missed or what
        raise StageError(GONE, f"the environment is gone: {what}", fatal=True)
