"""The state machines of run, task and attempt: which event is legal when.

One pure transition table, used to refuse an event before it is appended, to fold, and to verify
that a ledger only ever held legal events. States are immutable; `admit` works on an overlay, so
that a refused batch changes nothing.

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
from ledger.transitions import (
    ERROR_STATUSES,
    PHASES,
    AttemptStep,
    Key,
    Pending,
    RunStage,
    Stage,
    Step,
    TaskStep,
)

__all__ = ["ERROR_STATUSES", "PHASES", "Key", "Machine", "Pending", "Stage"]

_OVER: Final = AttemptStep(over=True)


class Machine:
    """The state of one ledger's machines; only `commit` moves it."""

    def __init__(self) -> None:
        self._run = RunStage()
        self._tasks: dict[str, TaskStep] = {}
        self._attempts: dict[Key, AttemptStep] = {}

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
        """The model calls that were started and neither finished nor lost."""
        return [(*key, call) for key, a in self._attempts.items() for call in sorted(a.calls)]

    def admit(self, batch: Iterable[tuple[ev.AnyEvent, bool]]) -> Pending:
        """Check (event, copied) pairs in order; raise LedgerStateError and change nothing.

        The error names the first event that is not legal and the state it met.
        """
        step = Step(self, Pending(self._run))
        for event, copied in batch:
            step.take(event, copied)
        return step.pending

    def commit(self, pending: Pending) -> None:
        """Take over what `admit` found legal; the batch is stored."""
        self._run = pending.run
        self._tasks.update(pending.tasks)
        for key, attempt in pending.attempts.items():
            # Of attempts that are over only lost calls can still be told of; forget the rest.
            if attempt.over and not attempt.lost:
                self._attempts[key] = _OVER
            else:
                self._attempts[key] = attempt

    def task(self, task_id: str) -> TaskStep | None:
        """The committed state of a task, or None if it was never selected."""
        return self._tasks.get(task_id)

    def attempt(self, key: Key) -> AttemptStep | None:
        """The committed state of an attempt, or None if it was never started."""
        return self._attempts.get(key)
