"""What a run takes over from its source: finished tasks whole, and attempts that lack a verdict.

Everything goes into the new ledger in one transaction, in the order of the run's own tasks.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger.errors import AclError
from ledger.state import AttemptState, TaskState
from runtime.contracts import Benchmark, Task
from runtime.models import RunRequest
from runtime.recorder import Recorder
from runtime.reuse import FrozenReuse
from runtime.reuse_attempts import Sequences, Unjudged, find_sequences, unjudged
from runtime.reuse_copies import (
    AttemptCopies,
    AttemptEvents,
    Provenance,
    TaskCopies,
    can_be_stored,
)
from runtime.reuse_source import ReuseSource

Stream = TaskCopies | AttemptCopies

_SHOWN: Final = 10

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Takeover:
    """What is to be taken over: one stream of events per task, in order, and why not the rest.

    `changed` names tasks whose input is another one by now, `unknown` those of which nobody can
    tell, `damaged` those that cannot be copied, `passed_over` attempts that cannot be evaluated
    although they ran and have no verdict: (task, attempt, why). `reconfigured` counts attempts
    that could be, had they not been made with another configuration.
    """

    streams: list[Stream] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    passed_over: list[tuple[str, int, str]] = field(default_factory=list)
    reconfigured: int = 0


@dataclass(slots=True)
class Materialized:
    """What was taken over: tasks that are done, and attempts, by task, that wait for a verdict."""

    done: set[str] = field(default_factory=set)
    attempts: dict[str, tuple[AttemptEvents, ...]] = field(default_factory=dict)


async def materialize_reused(
    recorder: Recorder,
    reuse: FrozenReuse,
    tasks: Sequence[Task],
    request: RunRequest,
    benchmark: Benchmark,
) -> Materialized:
    """Copy what the source finished well, in one transaction; return what that was.

    Correct and wrong results are taken over; errors, what is missing, and what cannot be copied
    run again. The source is let go of.
    """
    source = reuse.source
    if source is None:
        return Materialized()
    plan = await asyncio.to_thread(plan_takeover, source, tasks, request, benchmark)
    outcomes = await recorder.record_streams(plan.streams)
    found = Materialized()
    for stream, outcome in zip(plan.streams, outcomes, strict=True):
        if isinstance(outcome, AclError):
            _log.warning("task %s runs again: %s", stream.task, outcome)
        elif isinstance(stream, TaskCopies):
            found.done.add(stream.task)
        else:
            found.attempts[stream.task] = tuple(taken for _, taken in stream.attempts)
    _report(reuse, source, plan, found, request)
    source.close()
    return found


def plan_takeover(
    source: ReuseSource, tasks: Sequence[Task], request: RunRequest, benchmark: Benchmark
) -> Takeover:
    """Choose tasks that ended without an error, and attempts without a verdict, of the same input.

    Tasks keep their own attempts, also where the source had another k or strategy.
    """
    chooser = unjudged(source.state, source.view, benchmark, request.execution)
    return _Planning(source, chooser, request.runtime.reuse_changed).plan(tasks)


@dataclass(slots=True)
class _Planning:
    source: ReuseSource
    unjudged: Unjudged
    take_changed: bool
    found: Takeover = field(default_factory=Takeover)

    def plan(self, tasks: Sequence[Task]) -> Takeover:
        """Choose, find where the events stand, and write what names them."""
        done = [task.task_id for task in tasks if self._is_done(task)]
        alone = {task.task_id: found for task in tasks if (found := self._attempts(task))}
        view = self.source.view
        sequences = find_sequences(self.source.index, view, done, alone)
        provenance = Provenance(self.source)
        for task in tasks:
            stream = self._stream(task, sequences, provenance)
            if stream is None:
                continue
            # Where what brings leaves fails, all that only refers to them does.
            if provenance.brings and not can_be_stored(stream, view):
                provenance.dropped()
                self.found.damaged.append(task.task_id)
                continue
            provenance.used(stream)
            self.found.streams.append(stream)
        self.found.passed_over = self.unjudged.passed_over
        return self.found

    def _before(self, task: Task) -> TaskState | None:
        return self.source.state.tasks.get(task.task_id)

    def _is_done(self, task: Task) -> bool:
        """Whether the source has a result for this task, and for this input as far as is known."""
        before = self._before(task)
        if before is None or before.stage != "done" or before.has_error:
            return False
        if before.checksum == task.checksum:
            return True
        if None in (before.checksum, task.checksum):
            self.found.unknown.append(task.task_id)
            return True
        self.found.changed.append(task.task_id)
        return self.take_changed

    def _attempts(self, task: Task) -> list[AttemptState]:
        before = self._before(task)
        if before is None or before.checksum != task.checksum:
            return []
        found = self.unjudged.of(before)
        if self.source.reconfigured:
            # A verdict of this run would be of what it never asked for.
            self.found.reconfigured += len(found)
            return []
        return found

    def _stream(self, task: Task, sequences: Sequences, provenance: Provenance) -> Stream | None:
        name, before, view = task.task_id, self._before(task), self.source.view
        if before is None:
            return None
        if name in sequences.tasks:
            event = provenance.of_task(before, sequences.tasks[name], task.checksum)
            return TaskCopies(view, event)
        if name not in sequences.attempts:
            return None
        attempts = [
            (provenance.of_attempt(name, before.attempts[one.number], one.sequence), one)
            for one in sequences.attempts[name]
        ]
        return AttemptCopies(view, name, attempts)


# -- what is told --------------------------------------------------------------------------------


def _report(
    reuse: FrozenReuse,
    source: ReuseSource,
    plan: Takeover,
    found: Materialized,
    request: RunRequest,
) -> None:
    """Say what is reused and what runs again, and what a reader of the numbers should know."""
    run_id = source.run_id
    _log.info("%d tasks are reused from run %s", len(found.done), run_id)
    attempts = sum(map(len, found.attempts.values()))
    if attempts:
        _log.info("%d attempts ran in run %s: they are evaluated, not run again", attempts, run_id)
    for name, number, why in plan.passed_over:
        _log.warning("task %s, attempt %d cannot be evaluated: %s", name, number, why)
    fate = "reused all the same" if request.runtime.reuse_changed else "run again"
    for task in plan.changed:
        _log.warning("task %s changed since run %s: %s", task, run_id, fate)
    if plan.changed:
        names = ", ".join(map(repr, plan.changed[:_SHOWN]))
        more = len(plan.changed) - _SHOWN
        reuse.say(
            f"{_tasks(len(plan.changed))} changed since run {run_id!r}, {fate}: {names}"
            + (f" and {more} more" if more > 0 else "")
        )
    if plan.unknown:
        reuse.say(
            f"of {_tasks(len(plan.unknown))} nobody can tell whether they changed since run"
            f" {run_id!r}: reused"
        )
    if plan.reconfigured:
        reuse.say(
            f"{plan.reconfigured} attempts without a verdict of run {run_id!r} run again: they were"
            " made with other settings"
        )
    _report_attempts(reuse, [source.state.tasks[task] for task in found.done], request)


def _report_attempts(reuse: FrozenReuse, theirs: list[TaskState], request: RunRequest) -> None:
    """Say of how many reused tasks the attempts are not those that are made now."""
    asked = request.execution
    others = [task for task in theirs if not task.has_attempts_of(asked.k, asked.strategy)]
    if others and reuse.source is not None:
        reuse.say(
            f"{len(others)} of {_tasks(len(theirs))} reused from run {reuse.source.run_id!r} keep"
            f" other attempts than are made now with k={asked.k}, strategy {asked.strategy}:"
            f" {_attempts_held(others)}"
        )


def _attempts_held(tasks: Iterable[TaskState]) -> str:
    """How many attempts the tasks hold: "2 tasks hold 1 attempt, 1 task holds 3 attempts"."""
    found = Counter(len(task.attempts) for task in tasks)
    return ", ".join(
        f"{_tasks(n)} hold{'s' * (n == 1)} {made} attempt{'s' * (made != 1)}"
        for made, n in sorted(found.items())
    )


def _tasks(count: int) -> str:
    return f"{count} task{'s' * (count != 1)}"
