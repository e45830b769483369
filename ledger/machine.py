"""The state machines of run, task and attempt: which event is legal when.

One pure transition table, used to refuse an event before it is appended, to fold, and to verify
that a ledger only ever held legal events. States are immutable; `admit` works on an overlay, so
that a refused batch changes nothing. Of an event whose body was erased the header is known, and
nothing that follows is refused for what the body said.

Run      none -run.created-> created -run.started-> preparing -tasks.selected-> running
         -summary.started-> summarizing -run.finished-> terminal; any open state may end in
         failed, timed_out or cancelled. Running, further tasks may be selected. A registry is a
         ledger whose first event is registry.opened.
Task     pending -task.started-> running -task.finished-> over, or -task.reused-> reusing, where
         only copies are legal, until the copied task.finished.
Attempt  -attempt.started-> planning -plan.resolved-> planned -phase.entered-> ... in the order of
         `PHASES` -attempt.finished-> over; attempt.retried goes back.
"""

from collections.abc import Iterable
from typing import Final

from ledger import events as ev
from ledger.stages import AttemptStep, Key, Pending, RunStage, Stage, TaskStep, Unknown
from ledger.transitions import ERROR_STATUSES, PHASES, Step

__all__ = ["ERROR_STATUSES", "PHASES", "Key", "Machine", "Pending", "Stage", "Unknown"]

_OVER: Final = AttemptStep(over=True)


class Machine:
    """The state of one ledger's machines; only `commit` and `take` move it."""

    def __init__(self) -> None:
        self._run = RunStage()
        self._tasks: dict[str, TaskStep] = {}
        self._attempts: dict[Key, AttemptStep] = {}
        self._alone = Step(self, Pending(self._run))
        """For events that come alone: making a step for each takes longer than the step."""

    @property
    def stage(self) -> Stage:
        """Where the run stands."""
        return self._run.stage

    @property
    def sealed(self) -> bool:
        """True once `ledger.sealed` was committed."""
        return self._run.sealed

    def open_attempts(self) -> list[Key]:
        """The attempts that were started and have no terminal event, as (task, number)."""
        return [key for key, attempt in self._attempts.items() if not attempt.over]

    def open_calls(self) -> list[tuple[str, int, str]]:
        """The model calls that were started and neither finished nor lost.

        Those of an attempt of whose calls an event was erased are left out: it may have been one.
        """
        attempts = [(key, one) for key, one in self._attempts.items() if one.calls_known]
        return [(*key, call) for key, attempt in attempts for call in sorted(attempt.calls)]

    def admit(self, batch: Iterable[tuple[ev.AnyEvent | Unknown, bool]]) -> Pending:
        """Check (event, copied) pairs in order; raise LedgerStateError and change nothing.

        The error names the first event that is not legal and the state it met. An event whose body
        was erased is given as `Unknown`.
        """
        step = Step(self, Pending(self._run))
        for event, copied in batch:
            step.take(event, copied)
        return step.pending

    def take(self, event: ev.AnyEvent | Unknown, copied: bool) -> None:
        """Admit one event that is stored already and commit it, or raise and change nothing."""
        step = self._alone
        step.pending.begin_anew(self._run)
        step.take(event, copied)
        self.commit(step.pending)

    def commit(self, pending: Pending) -> None:
        """Take over what `admit` found legal; the batch is stored."""
        self._run = pending.run
        self._tasks |= pending.tasks
        for key, attempt in pending.attempts.items():
            # Of attempts that are over only lost calls can still be told of; forget the rest.
            if attempt.over and not attempt.lost and attempt.calls_known:
                self._attempts[key] = _OVER
            else:
                self._attempts[key] = attempt

    def task(self, task_id: str) -> TaskStep | None:
        """The committed state of a task, or None if it was never selected."""
        return self._tasks.get(task_id)

    def attempt(self, key: Key) -> AttemptStep | None:
        """The committed state of an attempt, or None if it was never started."""
        return self._attempts.get(key)
