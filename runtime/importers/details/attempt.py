"""The events of one attempt, in an order that the state machine accepts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES
from runtime.importers.details import retries
from runtime.importers.details.calls import calls_of
from runtime.importers.details.fields import Attempt, Parts, take_apart
from runtime.importers.details.plans import resolved
from runtime.importers.details.reading import Document, read_document
from runtime.importers.details.retries import RetryFile
from runtime.importers.plan import Item, Original, Remark
from runtime.importers.source import Source


@dataclass(slots=True)
class AttemptReader:
    """Reads one attempt; what it has to tell goes to `remarks`, of the file `place`.

    `plan` is that of `run_info.json`, used where the record has none. `close` ends an attempt
    that the source left open, since its run is over.
    """

    source: Source
    attempt: Attempt
    place: str
    plan: dict[str, Any] | None
    retries: list[RetryFile]
    version: str
    close: bool
    remarks: list[Remark]
    made: int = 0
    recorded: bool = False
    plan_hash: str | None = None
    status: ev.AttemptStatus | None = None
    correct: bool | None = None
    judged: bool = False
    error: bool = False
    redactions: int = 0

    def items(self) -> Iterator[Item]:
        """Every event of the attempt, and the files of its discarded tries."""
        task, number = self.attempt.task, self.attempt.number
        parts = take_apart(self.attempt, self.version)
        for oddity in parts.oddities:
            self._tell(f"attempt {number}: {oddity}")
        calls, faults = calls_of(
            self.attempt.words.get("calls"), task, number, len(self.retries) + 1
        )
        for fault in faults:
            self._tell(f"attempt {number}: {fault}", damage=True)
        yield ev.AttemptStarted(task=task, attempt=number, claim=claim_of(self.attempt.words))
        yield from self._retries(parts, calls)
        if not self.recorded:
            yield from self._run_part(parts)
        yield from calls[self.made]
        yield from self._outcome(parts)

    def _retries(self, parts: Parts, calls: list[list[ev.AnyEvent]]) -> Iterator[Item]:
        found = sorted(self.retries, key=lambda retry: (retry.retry, retry.file.path))
        documents = [(retry, read_document(self.source.read(retry.file))) for retry in found]
        full = [at for at, (_, told) in enumerate(documents) if _is_full(told)]
        last_full = max(full, default=-1)
        for at, (retry, document) in enumerate(documents):
            yield Original(retry.file, self.attempt.task, self.attempt.number)
            yield from calls[at]
            if not _is_full(document) and not self.recorded:
                yield from self._earlier_result(document, parts, final=at > last_full)
            self._tell_oddities(retry, document)
            self.made += 1
            self.recorded = self.recorded and not _is_full(document)
            yield retries.retried(document, self.attempt.task, self.attempt.number, self.made)

    def _earlier_result(self, document: Document, parts: Parts, *, final: bool) -> Iterator[Item]:
        task, number = self.attempt.task, self.attempt.number
        if final and parts.result is not None:
            yield from self._run_part(parts)
            return
        yield retries.result_of_try(document, task, number)
        self.recorded = True

    def _tell_oddities(self, retry: RetryFile, document: Document) -> None:
        if retry.retry != self.made + 1:
            reason = f"retry {retry.retry} is told as retry {self.made + 1}: they do not follow"
            self.remarks.append(Remark(retry.file.path, reason, placed=True))
        if unknown := retries.unknown_fields(document):
            reason = f"kept in the original only: {', '.join(unknown)}"
            self.remarks.append(Remark(retry.file.path, reason, placed=True))

    def _run_part(self, parts: Parts) -> Iterator[Item]:
        """The plan and the result of the try that counts."""
        task, number = self.attempt.task, self.attempt.number
        plan = parts.plan if parts.plan is not None else self.plan
        if plan is not None:
            event = resolved(plan, task, number)
            self.plan_hash = event.plan_hash
            yield event
        if parts.result is not None:
            told = self.attempt.words.get("redactions")
            self.redactions = told if type(told) is int and told > 0 else 0
            yield ev.ResultRecorded(
                task=task, attempt=number, redactions=self.redactions or None, **parts.result
            )
            self.recorded = True

    def _outcome(self, parts: Parts) -> Iterator[Item]:
        task, number = self.attempt.task, self.attempt.number
        if parts.artifacts is not None:
            yield parts.artifacts
        if parts.verdict is not None:
            yield ev.EvaluationFinished(task=task, attempt=number, **parts.verdict)
        yield from parts.analyses
        judged = parts.verdict or {}
        self.correct = judged.get("correct")
        self.judged = self.correct is not None or judged.get("score") is not None
        self.status = parts.status
        if self.status is None and self.close:
            self._tell(f"attempt {number} never ended, and the run did")
            self.status = "cancelled"
        if self.status is None:
            return
        self.error = self.status in ERROR_STATUSES
        yield ev.AttemptFinished(
            task=task,
            attempt=number,
            status=self.status,
            correct=self.correct,
            score=judged.get("score"),
            retries=self.made,
            error=parts.error,
            issues=parts.issues,
            resolved_plan_hash=self.plan_hash,
        )

    def _tell(self, reason: str, *, damage: bool = False) -> None:
        self.remarks.append(Remark(self.place, reason, placed=True, damage=damage))


def claim_of(words: dict[str, Any]) -> ev.Claim | None:
    """Where `acl` says that a task or attempt was reused from."""
    try:
        return ev.Claim.model_validate(words.get("reused_from"))
    except ValidationError:
        return None


def _is_full(document: Document) -> bool:
    """True if all of the try was made again, not its evaluation alone."""
    return document.value.get("scope") != "evaluate"
