"""What is known of one attempt while AgentCompass makes it, and its events in a legal order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES
from runtime.importers.agentcompass import retry as retries
from runtime.importers.agentcompass.plans import Plan
from runtime.importers.agentcompass.result import AttemptResult, take_apart
from runtime.importers.jsontext import NotARecord


@dataclass(slots=True)
class AttemptBook:
    """One attempt: what was told of it. `version` names the format, as that of the verdicts."""

    task: str
    number: int
    ground_truth: Any
    version: str
    plan: Plan | None = None
    started: bool = False
    planned: bool = False
    recorded: bool = False
    made: int = 0
    over: bool = False
    error: bool = False
    correct: bool = False

    def start(self) -> Iterator[ev.AnyEvent]:
        """The attempt begins, if it did not yet."""
        if not self.started:
            self.started = True
            yield ev.AttemptStarted(task=self.task, attempt=self.number)

    def resolve(self, plan: Plan) -> Iterator[ev.AnyEvent]:
        """Its plan is known. A try that follows another one has the same."""
        yield from self.start()
        self.plan = plan
        yield from self._plan()

    def record(self, result: AttemptResult) -> Iterator[ev.AnyEvent]:
        """The harness gave back a result."""
        if not self.recorded:
            yield from self.start()
            yield from self._plan()
            yield result.recorded(self.task, self.number, self.ground_truth)
            self.recorded = True

    def retry(self, record: dict[str, Any]) -> Iterator[ev.AnyEvent]:
        """A try was discarded; raises NotARecord for what AgentCompass does not write."""
        yield from self.start()
        event = retries.retried(record, self.task, self.number, self.made + 1)
        if event.scope == "evaluate" and not self.recorded:
            discarded = record.get("discarded_result")
            if not isinstance(discarded, dict):
                raise NotARecord("it discards no result")
            yield from self.record(take_apart(discarded))
        self.made += 1
        yield event
        if event.scope != "evaluate":
            self.recorded = self.planned = False
            yield from self._plan()

    def end(
        self, result: AttemptResult, collected: Iterable[ev.AnyEvent], analysed: bool = True
    ) -> Iterator[ev.AnyEvent]:
        """The attempt was evaluated; `collected` tells of its files."""
        yield from self.record(result)
        yield from collected
        judged = result.judged(self.task, self.number, self.version)
        if judged is not None:
            yield judged
        if analysed:
            yield from result.analysed(self.task, self.number)
        self.over = True
        self.error = result.status in ERROR_STATUSES
        self.correct = judged is not None and judged.correct is True
        digest = self.plan.digest if self.plan else None
        yield result.finished(self.task, self.number, judged, retries=self.made, plan_hash=digest)

    def give_up(self, error: ev.ErrorInfo) -> Iterator[ev.AnyEvent]:
        """It ended without a result."""
        yield from self.start()
        self.over = True
        yield ev.AttemptFinished(
            task=self.task,
            attempt=self.number,
            status="cancelled",
            retries=self.made,
            error=error,
        )

    def note(self, event: ev.AnyEvent) -> None:
        """Learn from an event that somebody else made of this attempt."""
        if isinstance(event, ev.AttemptFinished):
            self.started = self.over = True
            self.error = event.status in ERROR_STATUSES
            self.correct = event.correct is True

    def _plan(self) -> Iterator[ev.AnyEvent]:
        if self.plan is not None and not self.planned:
            self.planned = True
            yield self.plan.resolved(self.task, self.number)


def still_open(attempts: Iterable[AttemptBook]) -> Sequence[AttemptBook]:
    """Those that began and did not end."""
    return [attempt for attempt in attempts if attempt.started and not attempt.over]
