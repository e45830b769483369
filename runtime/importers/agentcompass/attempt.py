"""The events of one attempt, from its files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ledger import events as ev
from runtime.importers.agentcompass import retry as retries
from runtime.importers.agentcompass.artifacts import collected
from runtime.importers.agentcompass.layout import AttemptFiles
from runtime.importers.agentcompass.plans import Plan
from runtime.importers.agentcompass.result import AttemptResult, take_apart
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import Item, Original, Remark
from runtime.importers.source import Source, SourceFile

UNREADABLE: Final = "record_unreadable"
NO_RESULT: Final = "no_result"


@dataclass(slots=True)
class AttemptReader:
    """Reads one attempt of one task; what it has to tell goes to `remarks`.

    `close` says that the attempt is over even if no result of it can be read: its task was
    published, or the run ended. `version` names the format, as the version of the verdicts.
    """

    source: Source
    task: str
    number: int
    files: AttemptFiles
    ground_truth: Any
    plan: Plan | None
    version: str
    close: bool
    remarks: list[Remark]
    made: int = 0
    recorded: bool = False

    def items(self) -> Iterator[Item]:
        """Every event and file of the attempt, in an order that the state machine accepts."""
        yield ev.AttemptStarted(task=self.task, attempt=self.number)
        yield from self._keep(self.files.checkpoint)
        result, why = self._result()
        yield from self._retries(result)
        if self.plan is not None and not self.recorded:
            yield self.plan.resolved(self.task, self.number)
        yield from self._keep(self.files.result)
        if result is not None:
            yield from self._outcome(result)
        else:
            yield from self._without_result(why)
        for file in (*self.files.archived, *self.files.foreign):
            yield from self._keep(file)

    # -- tries that were discarded --------------------------------------------------------------

    def _retries(self, result: AttemptResult | None) -> Iterator[Item]:
        found = sorted(self._retry_records(), key=lambda entry: entry[0])
        readable = [file for _, file, _ in found]
        for file in self.files.retries:
            if file not in readable:
                yield from self._keep(file)
        full = [number for number, _, record in found if record.get("scope") != "evaluate"]
        last_full = max(full, default=0)
        for number, file, record in found:
            yield from self._keep(file)
            try:
                event = retries.retried(record, self.task, self.number, self.made + 1)
                if event.scope == "evaluate" and not self.recorded:
                    final = result if number > last_full else None
                    yield from self._run_part(final or take_apart(record["discarded_result"]))
            except (NotARecord, KeyError, AttributeError) as fault:
                self._unplaced(file, f"no discarded try: {fault}")
                continue
            self._tell_oddities(file, number, record)
            self.made += 1
            self.recorded = self.recorded and event.scope == "evaluate"
            yield event

    def _retry_records(self) -> Iterator[tuple[int, SourceFile, dict[str, Any]]]:
        for file in self.files.retries:
            record = self._read(file)
            if record is None:
                continue
            try:
                yield retries.retry_number(record), file, record
            except NotARecord as fault:
                self._unplaced(file, str(fault))

    def _tell_oddities(self, file: SourceFile, number: int, record: dict[str, Any]) -> None:
        if number != self.made + 1:
            reason = f"retry {number} is told as retry {self.made + 1}: one before it is missing"
            self._tell(file, reason)
        if unknown := retries.unknown_fields(record):
            self._tell(file, f"kept in the original only: {', '.join(unknown)}")

    # -- the result -----------------------------------------------------------------------------

    def _result(self) -> tuple[AttemptResult | None, str]:
        """The result, or None and the reason why there is none."""
        file = self.files.result
        if file is None:
            return None, ""
        record = self._read(file)
        if record is None:
            return None, self.remarks[-1].reason
        try:
            return take_apart(record), ""
        except NotARecord as fault:
            self._unplaced(file, str(fault))
            return None, str(fault)

    def _run_part(self, result: AttemptResult) -> Iterator[Item]:
        if self.plan is not None:
            yield self.plan.resolved(self.task, self.number)
        yield result.recorded(self.task, self.number, self.ground_truth)
        self.recorded = True

    def _outcome(self, result: AttemptResult) -> Iterator[Item]:
        for oddity in result.oddities:
            self._tell(self.files.result, oddity)
        if result.retries is not None and result.retries != self.made:
            self._tell(
                self.files.result, f"counts {result.retries} retries; {self.made} are recorded"
            )
        if not self.recorded:
            yield result.recorded(self.task, self.number, self.ground_truth)
        yield from self._artifacts()
        judged = result.judged(self.task, self.number, self.version)
        if judged is not None:
            yield judged
        yield from result.analysed(self.task, self.number)
        digest = self.plan.digest if self.plan else None
        yield result.finished(self.task, self.number, judged, retries=self.made, plan_hash=digest)

    def _without_result(self, why: str) -> Iterator[Item]:
        """An attempt that ran, as far as its checkpoint tells, and was never judged."""
        run = self._checkpointed()
        if run is not None and not self.recorded:
            yield run.recorded(self.task, self.number, self.ground_truth)
        yield from self._artifacts()
        if self.close:
            yield ev.AttemptFinished(
                task=self.task,
                attempt=self.number,
                status="cancelled",
                retries=self.made,
                error=ev.ErrorInfo(
                    code=UNREADABLE if why else NO_RESULT,
                    message=why or "the source holds no result of this attempt",
                    phase="import",
                ),
            )

    def _checkpointed(self) -> AttemptResult | None:
        file = self.files.checkpoint
        record = self._read(file, remark=False) if file is not None else None
        evaluation = record.get("evaluation") if record is not None else None
        if not isinstance(evaluation, dict) or evaluation.get("run_completed") is not True:
            return None
        run = evaluation.get("run_result")
        if file is None or not isinstance(run, dict):
            return None
        try:
            return take_apart(run)
        except NotARecord as fault:
            self._tell(file, f"its run result is none: {fault}")
            return None

    def _artifacts(self) -> Iterator[Item]:
        if self.files.artifacts:
            yield from collected(self.source, self.task, self.number, self.files.artifacts)

    # -- reading and telling --------------------------------------------------------------------

    def _keep(self, file: SourceFile | None) -> Iterator[Original]:
        if file is not None:
            yield Original(file, self.task, self.number)

    def _read(self, file: SourceFile, *, remark: bool = True) -> dict[str, Any] | None:
        try:
            record = read_record(self.source.read(file))
        except NotARecord as fault:
            if remark:
                self._unplaced(file, str(fault))
            return None
        if record.oddities and remark:
            self._tell(file, f"holds {', '.join(record.oddities)}, which JSON has no word for")
        return record.value

    def _unplaced(self, file: SourceFile, reason: str) -> None:
        self.remarks.append(Remark(file.path, reason, damage=True))

    def _tell(self, file: SourceFile | None, reason: str) -> None:
        assert file is not None
        self.remarks.append(Remark(file.path, reason, placed=True))
