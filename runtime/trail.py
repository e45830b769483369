"""The trail of one attempt: every event of it is recorded here, and what it needs later is kept."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from ledger import events as ev
from runtime.contracts import Task
from runtime.limits import Limits
from runtime.recorder import Recorder
from runtime.setup import Setup

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Work:
    """What all attempts of a run share. `grace` is for plug-ins that are told to stop, seconds."""

    setup: Setup
    recorder: Recorder
    limits: Limits
    grace: float
    monotonic: Callable[[], float]
    sleep: Sleep


class Trail:
    """What was recorded of one attempt; only `record` moves it."""

    def __init__(self, work: Work, task: Task, attempt: int) -> None:
        self.work = work
        self.task = task
        self.attempt = attempt
        self.started = False
        self.finished = False
        self.retry = 0
        self.plan_hash: str | None = None
        self.verdict: tuple[bool | None, float | None] = (None, None)
        self.issues: list[ev.Issue] = []
        self.applied_recipes: tuple[str, ...] = ()
        self.call_numbers = count()
        self._phase: ev.Phase | None = None
        self._phase_began = 0.0

    async def record(self, *events: ev.OneAttemptEvent) -> None:
        """Record events of this attempt; also when cancelled meanwhile, they are kept in mind.

        Raises what `Recorder.record` raises.
        """
        # Recorder.record lets itself be cancelled only after the events are on disk.
        stored = True
        try:
            await self.work.recorder.record(*events)
        except Exception:
            stored = False
            raise
        finally:
            if stored:
                for event in events:
                    self._note(event)

    def _note(self, event: ev.OneAttemptEvent) -> None:
        match event:
            case ev.AttemptStarted():
                self.started = True
            case ev.PlanResolved():
                self.plan_hash = event.plan_hash
                self.applied_recipes = event.applied_recipes
            case ev.EvaluationFinished():
                self.verdict = (event.correct, event.score)
            case ev.AttemptRetried():
                self.retry = event.retry
                self.verdict = (None, None)
                self._phase = None
            case ev.AttemptFinished():
                self.finished = True
            case _:
                pass

    def entering(self, phase: ev.Phase) -> ev.PhaseEntered:
        """The event that the next phase begins; record it at once."""
        now = self.work.monotonic()
        previous, began = self._phase, self._phase_began
        self._phase, self._phase_began = phase, now
        return ev.PhaseEntered(
            task=self.task.task_id,
            attempt=self.attempt,
            phase=phase,
            previous=previous,
            # A clock that went backwards says nothing, and must not end the attempt.
            duration_ms=None if previous is None else round(max(0.0, now - began) * 1000, 3),
        )

    async def enter(self, phase: ev.Phase) -> None:
        """Record that the next phase begins."""
        await self.record(self.entering(phase))

    def issue(self, code: str, message: str, *, severity: str = "warning") -> None:
        """Note something that is worth telling and is not the error of the attempt."""
        self.issues.append(
            ev.Issue(severity=severity, phase=self._phase, code=code, message=message)
        )

    async def tool(
        self,
        name: str,
        *,
        arguments: Any = None,
        output: Any = None,
        exit_code: int | None = None,
        is_error: bool = False,
        duration_ms: float | None = None,
        call_id: str | None = None,
    ) -> None:
        """Record that a tool which the agent used has returned."""
        await self.record(
            ev.ToolFinished(
                task=self.task.task_id,
                attempt=self.attempt,
                name=name,
                arguments=arguments,
                output=output,
                exit_code=exit_code,
                is_error=is_error,
                duration_ms=duration_ms,
                call_id=call_id,
            )
        )

    async def finish(self, status: ev.AttemptStatus, error: ev.ErrorInfo | None = None) -> None:
        """Record the end of the attempt."""
        correct, score = self.verdict
        await self.record(
            ev.AttemptFinished(
                task=self.task.task_id,
                attempt=self.attempt,
                status=status,
                correct=correct,
                score=score,
                retries=self.retry,
                error=error,
                issues=tuple(self.issues),
                resolved_plan_hash=self.plan_hash,
            )
        )
