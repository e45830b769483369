"""The tasks of a run: which file tells of which, and the events of one task."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from runtime.importers.details.attempt import AttemptReader, claim_of
from runtime.importers.details.fields import Attempt
from runtime.importers.details.layout import RUN_INFO, is_marked
from runtime.importers.details.plans import NUMBER
from runtime.importers.details.reading import Document, read_document
from runtime.importers.details.retries import RetryFile
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import Item, Original, Remark
from runtime.importers.source import Source, SourceFile

MAX_ID_BYTES: Final = 60_000

_FIELDS: Final = frozenset(
    {
        "attempts",
        "attempts_tried",
        "category",
        "correct",
        "k",
        "retry_count",
        "retry_counts",
        "score",
        "solved_at",
        "task_id",
    }
)
# Of records without attempts, from the time when there was but one.
_OF_ATTEMPT: Final = frozenset(
    {
        "analysis_result",
        "artifacts",
        "error",
        "evaluation_error",
        "extra",
        "final_answer",
        "ground_truth",
        "meta",
        "metrics",
        "status",
        "trajectory",
    }
)
_ERRORS: Final = ("error", "evaluation_error")


@dataclass(slots=True)
class RecordFile:
    """Where a record stands and what can be said of it at once; its content stays on disk."""

    file: SourceFile
    task_id: str
    category: str | None
    k: int | None
    failed: bool
    other: dict[str, Any]
    ledger_id: str | None


@dataclass(slots=True)
class ForeignTask:
    """One selected task. `untold` is what `run_info.json` says of attempts without a record.

    `superseded` are other saves of the same task; `plans` are of attempts by number.
    """

    task_id: str
    category: str | None = None
    checksum: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    record: RecordFile | None = None
    superseded: list[SourceFile] = field(default_factory=list)
    retries: dict[int, list[RetryFile]] = field(default_factory=dict)
    plans: dict[int, dict[str, Any]] = field(default_factory=dict)
    stage: str | None = None
    stopped_early: bool = False
    untold: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def files(self) -> list[SourceFile]:
        """Every file that tells of the task."""
        own = [self.record.file] if self.record is not None else []
        tries = [retry.file for retries in self.retries.values() for retry in retries]
        return [*own, *self.superseded, *tries]


def locate(file: SourceFile, document: Document) -> RecordFile:
    """Say whose record a file is; NotARecord if no task can be told from it."""
    value = document.value
    task_id, category, k = value.get("task_id"), value.get("category"), value.get("k")
    if not isinstance(task_id, str):
        raise NotARecord("it names no task")
    if len(task_id.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise NotARecord(f"its task id is longer than {MAX_ID_BYTES} bytes")
    attempts = attempts_of(document)
    if not attempts and "attempts" not in value:
        raise NotARecord("it holds no attempts")
    return RecordFile(
        file=file,
        task_id=task_id,
        category=category if isinstance(category, str) else None,
        k=k if type(k) is int and k >= 1 else None,
        failed=is_marked(file) or any(map(_has_error, attempts.values())),
        other={name: value[name] for name in sorted(_unknown(value))},
        ledger_id=document.words.get("ledger_id"),
    )


def _unknown(value: dict[str, Any]) -> set[str]:
    return value.keys() - _FIELDS - (set() if "attempts" in value else _OF_ATTEMPT)


def attempts_of(document: Document) -> dict[int, dict[str, Any]]:
    """The attempts of a record by number; a record without any may itself be the only one."""
    given = document.value.get("attempts")
    if given is None and "attempts" not in document.value:
        known = (_OF_ATTEMPT | {"correct", "score"}) & document.value.keys()
        return {1: {name: document.value[name] for name in known}} if known else {}
    entries = given.items() if isinstance(given, dict) else ()
    return {
        int(number): fields
        for number, fields in entries
        if NUMBER.fullmatch(number) and isinstance(fields, dict)
    }


def _has_error(fields: dict[str, Any]) -> bool:
    return any(fields.get(name) for name in _ERRORS) or "error" in str(fields.get("status"))


def with_extra(fields: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The fields of an attempt with what else its record holds in `extra`."""
    given = fields.get("extra")
    extra = dict(given) if isinstance(given, dict) else {} if given is None else {"extra": given}
    for name, value in more.items():
        free = name
        while free in extra:
            free = f"record.{free}"
        extra[free] = value
    return {**fields, "extra": extra}


@dataclass(slots=True)
class TaskReader:
    """Reads one task with all its attempts.

    `close` ends what the source left open; `size` is how many events `run_info.json` was made of.
    Afterwards `readers` say what became of the attempts, for counting.
    """

    source: Source
    task: ForeignTask
    version: str
    strategy: str
    k: int
    close: bool
    size: int | None
    remarks: list[Remark]
    claimed: bool = False
    readers: list[AttemptReader] = field(default_factory=list)

    def items(self) -> Iterator[Item]:
        """Every event and file of the task, in an order that the state machine accepts."""
        task = self.task
        document = None
        if task.record is not None:
            document = read_document(self.source.read(task.record.file))
            yield from self._begin(document)
            yield Original(task.record.file, task.task_id)
        attempts = self._attempts(document)
        if document is None and (attempts or task.stage not in (None, "pending")):
            yield from self._begin(None)
        for file in task.superseded:
            yield Original(file, task.task_id)
        for attempt in attempts:
            reader = self._reader(attempt)
            self.readers.append(reader)
            yield from reader.items()
        yield from self._end(document)

    def _begin(self, document: Document | None) -> Iterator[Item]:
        claim = None if document is None else claim_of(document.words)
        self.claimed = claim is not None
        yield ev.TaskStarted(task=self.task.task_id, claim=claim)

    # -- attempts -------------------------------------------------------------------------------

    def _attempts(self, document: Document | None) -> list[Attempt]:
        task = self.task
        found = {} if document is None else self._told(document)
        for number, fields in task.untold.items():
            words = fields.get("acl")
            found.setdefault(
                number, self._attempt(number, fields, words if isinstance(words, dict) else {})
            )
        named = set(task.retries) if document is not None else {*task.retries, *task.plans}
        for number in sorted(named - found.keys()):
            found[number] = self._attempt(number, {}, {"result": None})
        return [found[number] for number in sorted(found)]

    def _told(self, document: Document) -> dict[int, Attempt]:
        assert self.task.record is not None
        attempts = attempts_of(document)
        given = document.value.get("attempts")
        lost = (set(given) if isinstance(given, dict) else set()) - set(map(str, attempts))
        for name in sorted(lost):
            self._tell(f"{name!r} is no attempt", damage=True)
        if attempts and self.task.record.other:
            first = min(attempts)
            attempts[first] = with_extra(attempts[first], self.task.record.other)
        words = _entries(document.words.get("attempts"))
        erased = _erased(document.words.get("erased"))
        found = {
            number: Attempt(
                self.task.task_id,
                number,
                fields,
                words.get(number, {}),
                erased.get(number, _NONE),
                planned=number in self.task.plans if self._is_fresh(document) else None,
            )
            for number, fields in attempts.items()
        }
        if not document.ours and is_marked(self.task.record.file):
            self._heed_the_mark(found)
        return found

    def _is_fresh(self, document: Document) -> bool:
        """Whether `run_info.json` is of the same prefix as the record, and has all plans."""
        return self.size is not None and self.size == document.words.get("size")

    def _heed_the_mark(self, found: dict[int, Attempt]) -> None:
        """Its name says that it holds an error; it must not pass for a result."""
        if found and not any(_has_error(attempt.fields) for attempt in found.values()):
            last = found[max(found)]
            last.fields = {**last.fields, "status": "run_error"}
            last.fields["error"] = "unknown: its name says that it holds an error"
            self._tell("its name says that it holds an error, its content tells none")

    def _attempt(self, number: int, fields: dict[str, Any], words: dict[str, Any]) -> Attempt:
        erased = _erased(fields.get("erased")).get(number, _NONE)
        return Attempt(self.task.task_id, number, fields, words, erased, told=False)

    def _reader(self, attempt: Attempt) -> AttemptReader:
        return AttemptReader(
            source=self.source,
            attempt=attempt,
            place=self._place if attempt.told else RUN_INFO,
            plan=self.task.plans.get(attempt.number),
            retries=self.task.retries.get(attempt.number, []),
            version=self.version,
            close=self.close or self.task.record is not None,
            remarks=self.remarks,
        )

    # -- the end --------------------------------------------------------------------------------

    def _end(self, document: Document | None) -> Iterator[Item]:
        task, stage = self.task.task_id, self.task.stage
        is_open = any(reader.status is None for reader in self.readers)
        if document is not None or (stage in ("done", "error") and not is_open):
            yield ev.TaskFinished(
                task=task,
                reason="stopped_early" if self._stopped_early(document) else "all_attempts",
                error=any(reader.error for reader in self.readers),
            )
        elif (stage == "cancelled" or self.close) and not is_open:
            why = "it was cancelled" if stage == "cancelled" else "the source holds no result of it"
            yield ev.TaskCancelled(task=task, reason=why)

    def _stopped_early(self, document: Document | None) -> bool:
        if document is None:
            return self.task.stopped_early
        if document.ours:
            return document.words.get("stopped_early") is True
        return (
            self.strategy == "stop_on_correct"
            and any(reader.correct is True for reader in self.readers)
            and len(self.readers) < self.k
        )

    @property
    def _place(self) -> str:
        return RUN_INFO if self.task.record is None else self.task.record.file.path

    def _tell(self, reason: str, *, damage: bool = False) -> None:
        self.remarks.append(Remark(self._place, reason, placed=True, damage=damage))


_NONE: Final[frozenset[str]] = frozenset()


def _entries(value: Any) -> dict[int, dict[str, Any]]:
    entries = value.items() if isinstance(value, dict) else ()
    return {
        int(number): entry
        for number, entry in entries
        if NUMBER.fullmatch(number) and isinstance(entry, dict)
    }


def _erased(value: Any) -> dict[int, frozenset[str]]:
    """Which kinds of events were erased of which attempt."""
    found: dict[int, set[str]] = {}
    for gap in value if isinstance(value, list) else ():
        if isinstance(gap, dict) and type(gap.get("attempt")) is int:
            found.setdefault(gap["attempt"], set()).add(str(gap.get("type")))
    return {number: frozenset(kinds) for number, kinds in found.items()}
