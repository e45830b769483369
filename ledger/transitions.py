"""The transition table behind `Machine`: what each event needs to be legal, and what it changes.

Of an event whose body was erased a rule sees `Unknown`: it refuses what no content could make
legal, and what comes later is not refused for what it said. `RunRules` has the rules of run, book
and tasks; here are those of attempts and their model calls.
"""

from collections.abc import Callable
from typing import Any, Final, get_args

from ledger import events as ev
from ledger.run_rules import RunRules
from ledger.stages import (
    UNKNOWN,
    AttemptStep,
    Key,
    Pending,
    RunStage,
    Stage,
    States,
    TaskStep,
    Unknown,
    attempt_but,
    task_but,
)

__all__ = [
    "ERROR_STATUSES",
    "PHASES",
    "AttemptStep",
    "Key",
    "Pending",
    "RunStage",
    "Stage",
    "States",
    "Step",
    "TaskStep",
    "Unknown",
]

PHASES: Final = tuple(name for name in get_args(ev.Phase) if name != "run_task")
ERROR_STATUSES: Final = frozenset({"run_error", "eval_error", "run_error_or_eval_error"})
_AFTER_A_SEAL: Final = frozenset({ev.PayloadErased, ev.AnnotationAdded})
_CAN_BE_COPIES: Final = frozenset((*get_args(ev.OneTaskEvent), *get_args(ev.OneAttemptEvent)))


def _rank(phase: ev.Phase) -> int:
    # `run_task` is the name of `run_harness` where there is no harness.
    return PHASES.index("run_harness" if phase == "run_task" else phase)


_EVALUATE: Final = _rank("evaluate")


class Step(RunRules):
    """One batch under examination, with the rules of all events."""

    def take(self, event: ev.AnyEvent | Unknown, copied: bool) -> None:
        kind = event.kind if isinstance(event, Unknown) else type(event)
        self.event, self.copied = event, copied
        if self.pending.run.sealed and kind not in _AFTER_A_SEAL:
            self.refuse("the ledger is sealed")
        if copied and kind not in _CAN_BE_COPIES:
            self.refuse("only events of a task can be copies")
        RULES[kind](self, event)

    # -- attempt --------------------------------------------------------------------------------

    def key(self) -> Key:
        assert self.event.task is not None
        assert self.event.attempt is not None
        return self.event.task, self.event.attempt

    def find(self) -> AttemptStep | None:
        key = self.key()
        return self.pending.attempts.get(key) or self.states.attempt(key)

    def put(self, attempt: AttemptStep) -> None:
        self.pending.attempts[self.key()] = attempt

    def attempt_reused(self, _: Any) -> None:
        self.task_in_work()
        if self.find() is not None:
            self.refuse("the attempt was already started")
        self.put(AttemptStep(announced=True, reused=True))

    def attempt_started(self, _: Any) -> None:
        before = self.find()
        if before is not None and not (before.announced and self.copied):
            self.refuse("the attempt was already started")
        task = self.task_in_work() if before is None else self.task()
        self.put_task(
            task_but(task, open_attempts=task.open_attempts + 1, attempts=task.attempts + 1)
        )
        # In a copy of the whole task, that the attempt came alone is history: all is copied.
        alone = before is not None and task.stage == "running"
        self.put(AttemptStep(reusing=alone, reused=before is not None))

    def attempt(self) -> AttemptStep:
        """The open attempt of the event, after the rules that hold for all its events."""
        attempt = self.find()
        if attempt is None or attempt.over or attempt.announced:
            self.refuse("the attempt is not open")
        if attempt.reusing and self.copied:
            if attempt.result:
                self.refuse("copies of a reused attempt end with its result")
            return attempt
        self.task_in_work()
        if attempt.reusing:
            if attempt.result is False:
                self.refuse("the reused attempt has no result")
            return attempt_but(
                attempt, reusing=False, planned=True, rank=_EVALUATE - 1, result=True
            )
        return attempt

    def plan(self, _: Any) -> None:
        attempt = self.attempt()
        if attempt.planned:
            self.refuse("the try has a plan")
        if attempt.planned is None:
            # Only a try that began anew is planned.
            attempt = attempt_but(attempt, result=False)
        self.put(attempt_but(attempt, planned=True))

    def phase(self, event: ev.PhaseEntered | Unknown) -> None:
        attempt = self.attempt()
        if attempt.planned is False:
            self.refuse("the try has no plan")
        if attempt.planned is None:
            # Only a try that goes on from its result needs no plan of its own.
            attempt = attempt_but(attempt, planned=True, result=True, rank=_EVALUATE - 1)
        rank = attempt.rank + 1 if isinstance(event, Unknown) else _rank(event.phase)
        if not attempt.rank < rank < len(PHASES):
            name = "whatever it was" if isinstance(event, Unknown) else event.phase
            self.refuse(f"phase {name} cannot follow")
        self.put(attempt_but(attempt, rank=rank))

    def result(self, _: Any) -> None:
        attempt = self.attempt()
        if attempt.result:
            self.refuse("the try has a result")
        # A reused attempt may have been planned where it ran alone.
        planned = bool(attempt.planned or attempt.reused)
        self.put(attempt_but(attempt, result=True, planned=planned))

    def evaluation(self, event: ev.EvaluationFinished | Unknown) -> None:
        attempt = self.attempt()
        if attempt.result is False or attempt.verdict is not None:
            self.refuse("there is a verdict" if attempt.result else "there is no result")
        if attempt.result is None:
            # Without a result of its own this try goes on from that of the one before.
            attempt = attempt_but(attempt, result=True, planned=True)
        if isinstance(event, Unknown):
            self.put(attempt_but(attempt, verdict=UNKNOWN))
        else:
            self.put(attempt_but(attempt, verdict=(event.correct, event.score)))

    def during(self, _: Any) -> None:
        self.put(self.attempt())

    def retried(self, event: ev.AttemptRetried | Unknown) -> None:
        attempt = self.attempt()
        retry = attempt.retry + 1
        if not isinstance(event, Unknown) and event.retry != retry:
            self.refuse(f"retry {event.retry} follows retry {attempt.retry}")
        self.no_open_calls(attempt)
        anew = AttemptStep(
            lost=attempt.lost,
            calls_known=attempt.calls_known,
            reusing=attempt.reusing,
            reused=attempt.reused,
        )
        if isinstance(event, Unknown):
            # With a result, it may have begun anew or not.
            unknown = attempt_but(attempt, planned=None, rank=-1, result=None, verdict=None)
            again = anew if attempt.result is False else unknown
        elif event.scope == "attempt":
            again = anew
        else:
            if attempt.result is False:
                self.refuse("there is no result to evaluate again")
            again = attempt_but(
                attempt, planned=True, rank=_EVALUATE - 1, result=True, verdict=None
            )
        self.put(attempt_but(again, retry=retry))

    def attempt_finished(self, event: ev.AttemptFinished | Unknown) -> None:
        attempt = self.attempt()
        self.no_open_calls(attempt)
        task = self.task()
        error: bool | None = None
        if not isinstance(event, Unknown):
            self.check_end(event, attempt)
            error = True if event.status in ERROR_STATUSES else task.error
        self.put_task(
            task_but(task, open_attempts=task.open_attempts - 1, error=task.error or error)
        )
        self.put(attempt_but(attempt, over=True))

    def check_end(self, event: ev.AttemptFinished, attempt: AttemptStep) -> None:
        if event.retries != attempt.retry:
            self.refuse(f"it counts {event.retries} retries, not {attempt.retry}")
        told = attempt.verdict or (None, None)
        if told not in (UNKNOWN, (event.correct, event.score)):
            self.refuse("its verdict is not the evaluation's")
        if event.status == "completed" and attempt.result is False:
            self.refuse("there is no result")

    # -- model calls ----------------------------------------------------------------------------

    def no_open_calls(self, attempt: AttemptStep) -> None:
        if attempt.calls and attempt.calls_known:
            self.refuse(f"{len(attempt.calls)} model calls are open")

    def call_started(self, event: ev.CallStarted | Unknown) -> None:
        attempt = self.attempt()
        if isinstance(event, Unknown):
            self.put(attempt._replace(calls_known=False))
            return
        if event.call_id in attempt.calls | attempt.lost and attempt.calls_known:
            self.refuse(f"call {event.call_id!r} was already started")
        self.put(attempt._replace(calls=attempt.calls | {event.call_id}))

    def call_finished(self, event: ev.CallFinished | Unknown) -> None:
        attempt = self.find()
        if attempt is not None and self.can_be_late(event, attempt):
            if isinstance(event, Unknown):
                self.put(attempt._replace(calls_known=False))
            else:
                gone = {event.call_id}
                self.put(attempt._replace(calls=attempt.calls - gone, lost=attempt.lost - gone))
            return
        attempt = self.attempt()
        self.put(self.without_call(attempt, event))

    def can_be_late(self, event: ev.CallFinished | Unknown, attempt: AttemptStep) -> bool:
        """Whether it can be the end of a call that was given up: that is told in any state."""
        if not attempt.calls_known:
            return True
        return bool(attempt.lost) if isinstance(event, Unknown) else event.call_id in attempt.lost

    def without_call(
        self, attempt: AttemptStep, event: ev.CallFinished | ev.CallLost | Unknown
    ) -> AttemptStep:
        """The attempt once the call of the event is open no more."""
        if isinstance(event, Unknown):
            if not attempt.calls and attempt.calls_known:
                self.refuse("no call is open")
            return attempt._replace(calls_known=False)
        if event.call_id not in attempt.calls and attempt.calls_known:
            self.refuse(f"call {event.call_id!r} is not open")
        return attempt._replace(calls=attempt.calls - {event.call_id})

    def call_lost(self, event: ev.CallLost | Unknown) -> None:
        attempt = self.without_call(self.attempt(), event)
        lost = frozenset() if isinstance(event, Unknown) else {event.call_id}
        self.put(attempt._replace(lost=attempt.lost | lost))


RULES: Final[dict[type[ev.Event], Callable[[Step, Any], None]]] = {
    ev.RunCreated: Step.created,
    ev.RunImported: Step.while_created,
    ev.ReuseFrozen: Step.while_created,
    ev.RunStarted: Step.started,
    ev.TasksSelected: Step.selected,
    ev.SummaryStarted: Step.summary,
    ev.MetricsComputed: Step.computed,
    ev.InterruptRequested: Step.while_open,
    ev.RunFinished: Step.finished,
    ev.OriginalRecorded: Step.while_open,
    ev.SourceRecorded: Step.while_open,
    ev.TaskReused: Step.task_reused,
    ev.TaskStarted: Step.task_started,
    ev.TaskFinished: Step.task_finished,
    ev.TaskCancelled: Step.task_cancelled,
    ev.AttemptStarted: Step.attempt_started,
    ev.PlanResolved: Step.plan,
    ev.PhaseEntered: Step.phase,
    ev.ResultRecorded: Step.result,
    ev.ArtifactsCollected: Step.during,
    ev.EvaluationFinished: Step.evaluation,
    ev.AnalysisFinished: Step.during,
    ev.AttemptRetried: Step.retried,
    ev.AttemptFinished: Step.attempt_finished,
    ev.AttemptReused: Step.attempt_reused,
    ev.CallStarted: Step.call_started,
    ev.CallFinished: Step.call_finished,
    ev.CallLost: Step.call_lost,
    ev.ToolFinished: Step.during,
    ev.PayloadErased: Step.always,
    ev.AnnotationAdded: Step.always,
    ev.LedgerSealed: Step.sealed,
    ev.ExtensionRecorded: Step.extension,
    ev.RegistryOpened: Step.registry,
    ev.RegistrySealed: Step.registry,
}
assert set(RULES) == set(ev.BY_CODE.values()), "every event type needs a rule"
