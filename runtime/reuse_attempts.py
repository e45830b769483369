"""Attempts that ran and have no verdict: which of them need only be evaluated.

An attempt whose evaluation never came, or failed by a fault of the house, has a result that is as
good as any; and so has one that was stopped behind its verdict, which counts nowhere. It is judged
by what was recorded, so everything that the verifier may look at must have been: the files of an
environment that is gone cannot be fetched any more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger import events as ev
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import LedgerView, Recorded
from runtime.contracts import Benchmark
from runtime.models import ExecutionSpec
from runtime.retry import HOUSE_FAULTS
from runtime.reuse_copies import AttemptEvents
from runtime.reuse_index import SourceIndex

_JUDGING: Final = frozenset({"evaluate", "analyze"})


def unjudged(
    source: RunState, view: LedgerView, benchmark: Benchmark, execution: ExecutionSpec
) -> "Unjudged":
    """The rule by which attempts of `source` are chosen for a run of `benchmark`."""
    collects = type(benchmark).collect_artifacts is not Benchmark.collect_artifacts
    return Unjudged(source, view, execution, collects)


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Chooses attempts that can be evaluated as they are recorded; `collects`: files are kept.

    `passed_over` tells of those that ran and lack a verdict, and cannot be: (task, attempt, why).
    """

    source: RunState
    view: LedgerView
    execution: ExecutionSpec
    collects: bool
    passed_over: list[tuple[str, int, str]] = field(default_factory=list)

    def of(self, task: TaskState) -> list[AttemptState]:
        """The attempts of a task that need only be evaluated, by number."""
        if task.stage == "done":
            return []
        most = self.execution.k
        if self.execution.strategy == "stop_on_correct":
            # Whether a later one is made is decided by those before it.
            most = 1
        numbers = sorted(number for number in task.attempts if number <= most)
        left = [task.attempts[number] for number in numbers]
        return [one for one in left if self._was_left(one) and self._can_be_judged(task, one)]

    def _was_left(self, attempt: AttemptState) -> bool:
        """Whether it ran well and has no verdict that counts, by no fault of agent or verifier."""
        if attempt.result is None or not self._lacks_verdict(attempt):
            return False
        result = self.view.event(attempt.result).event
        if not isinstance(result, ev.ResultRecorded):
            return True
        return result.error is None and result.status == "completed"

    def _lacks_verdict(self, attempt: AttemptState) -> bool:
        ended = attempt.status not in (None, "cancelled")
        if attempt.evaluation is None:
            return not ended
        event = self.view.event(attempt.evaluation).event
        error = event.evaluation_error if isinstance(event, ev.EvaluationFinished) else None
        if error is None:
            return not ended
        return error.fatal or error.code in HOUSE_FAULTS

    def _can_be_judged(self, task: TaskState, attempt: AttemptState) -> bool:
        why = self._why_not(attempt)
        if why is not None:
            self.passed_over.append((task.id, attempt.number, why))
        return why is None

    def _why_not(self, attempt: AttemptState) -> str | None:
        """Why what is recorded of it is less than its verifier was to see; None if it is all."""
        if attempt.erased:
            return "a part of it was erased"
        if self.source.imported is not None:
            return "an import holds no more than an excerpt of it"
        if attempt.artifacts is None and self.collects and attempt.phase not in _JUDGING:
            return "its files were not kept yet"
        for seq in (attempt.result, attempt.artifacts):
            event = None if seq is None else self.view.event(seq).event
            if event is not None and event.redactions:
                return "a secret was taken out of it"
        return None


# -- their events --------------------------------------------------------------------------------


@dataclass(slots=True)
class Sequences:
    """Where the events stand that are taken over of whole tasks and of attempts."""

    tasks: dict[str, list[int]]
    attempts: dict[str, list[AttemptEvents]] = field(default_factory=dict)


def find_sequences(
    index: SourceIndex,
    view: LedgerView,
    tasks: Sequence[str],
    attempts: dict[str, list[AttemptState]],
) -> Sequences:
    """Find all events of `tasks`, and of `attempts` those up to the result.

    An attempt that has other results before that is left out: copies end with the first.
    """
    found = Sequences({task: index.to_its_end(task) for task in tasks})
    for task, those in attempts.items():
        begun: dict[int | None, _Begun] = {attempt.number: _Begun(attempt) for attempt in those}
        for seq in index.of(task):
            recorded = view.event(seq)
            one = begun.get(recorded.attempt)
            if one is not None:
                one.take(recorded)
        events = [taken for one in begun.values() for taken in one.events()]
        if events:
            found.attempts[task] = events
    return found


class _Begun:
    """Follows one attempt as far as its result."""

    def __init__(self, attempt: AttemptState) -> None:
        assert attempt.result is not None
        self._attempt = attempt
        self._result = attempt.result
        self._sequence: list[int] = []
        self._open: dict[str, None] = {}
        self._results = self._retries = self._calls = 0
        self._plan: ev.PlanResolved | None = None

    def take(self, recorded: Recorded) -> None:
        """Look at the next event of the attempt."""
        if recorded.seq > self._result or recorded.type == "attempt.reused":
            return
        self._sequence.append(recorded.seq)
        match recorded.event:
            case ev.CallStarted(call_id=call_id):
                self._open[call_id] = None
                self._calls += 1
            case ev.CallFinished(call_id=call_id) | ev.CallLost(call_id=call_id):
                self._open.pop(call_id, None)
            case ev.PlanResolved() as plan:
                self._plan = plan
            case ev.AttemptRetried():
                self._retries += 1
            case ev.ResultRecorded():
                self._results += 1
            case _:
                pass

    def events(self) -> Iterator[AttemptEvents]:
        """What is taken over, if anything can be."""
        if self._results == 1:
            yield AttemptEvents(
                number=self._attempt.number,
                sequence=tuple(self._sequence),
                lost=tuple(self._open),
                files=self._attempt.artifacts,
                retries=self._retries,
                calls=self._calls,
                plan_hash=self._plan.plan_hash if self._plan else None,
                applied_recipes=self._plan.applied_recipes if self._plan else (),
            )
