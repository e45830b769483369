"""The tasks of a run: which directory stands for which, and the events of one task."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES
from runtime.importers.agentcompass.attempt import AttemptReader
from runtime.importers.agentcompass.layout import RUNNING, STATES, AttemptFiles, TaskFiles
from runtime.importers.agentcompass.plans import Plans
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import Item, Original, Remark
from runtime.importers.source import Source, SourceFile

SCHEMA: Final = "agentcompass.task.v3"
MAX_ID_BYTES: Final = 60_000
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_FIELDS: Final = frozenset(
    ("schema_version", "task_id", "attempts", "category", "ground_truth", "attempt_plan")
)


@dataclass(slots=True)
class TaskIndex:
    """A `task.json` without its ground truth, which is read again when it is needed."""

    task_id: str
    category: str | None
    attempts: frozenset[int]
    k: int | None
    strategy: str | None
    other: dict[str, Any]


@dataclass(slots=True)
class ForeignTask:
    """One selected task of the source.

    `files` is None if the source names the task and holds nothing of it. `superseded` are other
    saves of the same task. `started` says that work on it began.
    """

    task_id: str
    category: str | None = None
    files: TaskFiles | None = None
    index: TaskIndex | None = None
    superseded: list[TaskFiles] = field(default_factory=list)
    started: bool = False
    attempts: set[int] = field(default_factory=set)

    @property
    def published(self) -> bool:
        """True if the source was done with the task."""
        return self.files is not None and self.files.state != RUNNING


def parse_index(data: bytes) -> TaskIndex:
    """Read a `task.json`; NotARecord if no task can be told from it."""
    value = read_record(data).value
    schema = value.get("schema_version")
    if schema != SCHEMA:
        raise NotARecord(f"its schema is {schema!r}, not {SCHEMA}")
    task_id, category = value.get("task_id"), value.get("category")
    if not isinstance(task_id, str) or not task_id:
        raise NotARecord("it names no task")
    if len(task_id.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise NotARecord(f"its task id is longer than {MAX_ID_BYTES} bytes")
    attempts = value.get("attempts")
    plan = value.get("attempt_plan")
    plan = plan if isinstance(plan, dict) else {}
    k, strategy = plan.get("k"), plan.get("strategy")
    return TaskIndex(
        task_id=task_id,
        category=category if isinstance(category, str) and category else None,
        attempts=frozenset(_numbers(attempts if isinstance(attempts, dict) else {})),
        k=k if type(k) is int and k >= 1 else None,
        strategy=strategy if isinstance(strategy, str) else None,
        other={key: value[key] for key in sorted(value.keys() - _FIELDS)},
    )


def _numbers(keys: Iterable[Any]) -> Iterator[int]:
    for key in keys:
        if isinstance(key, str) and _NUMBER.fullmatch(key):
            yield int(key)


def read_tasks(
    source: Source, directories: Iterable[TaskFiles], remarks: list[Remark]
) -> dict[str, ForeignTask]:
    """The tasks that have a directory, by id.

    Of two saves of one task the best state wins and the other is named. Of a directory whose
    `task.json` says nothing, nothing can be placed: the name of a directory names no task.
    """
    tasks: dict[str, ForeignTask] = {}
    for files in sorted(directories, key=lambda task: (STATES.index(task.state), task.path)):
        index = _read_index(source, files, remarks)
        if index is None:
            continue
        known = tasks.get(index.task_id)
        if known is not None:
            assert known.files is not None
            known.superseded.append(files)
            reason = f"another save of task {index.task_id!r}; {known.files.path} stands"
            remarks.extend(Remark(file.path, reason) for file in files.all())
            continue
        tasks[index.task_id] = ForeignTask(
            index.task_id, index.category, files, index, started=True
        )
    return tasks


def _read_index(source: Source, files: TaskFiles, remarks: list[Remark]) -> TaskIndex | None:
    try:
        if files.index is None:
            raise NotARecord("there is no task.json")
        return parse_index(source.read(files.index))
    except NotARecord as fault:
        if files.index is not None:
            remarks.append(Remark(files.index.path, str(fault), damage=True))
        reason = f"its task cannot be told: task.json: {fault}"
        remarks.extend(
            Remark(file.path, reason, damage=files.index is None)
            for file in files.all()
            if file is not files.index
        )
        return None


@dataclass(slots=True)
class TaskReader:
    """Reads one task with all its attempts. `ended` says that the run of the source did end."""

    source: Source
    task: ForeignTask
    plans: Plans
    version: str
    ended: bool
    remarks: list[Remark]
    placed: int = 0
    error: bool = False
    correct: bool = False

    def items(self) -> Iterator[Item]:
        """Every event and file of the task, in an order that the state machine accepts."""
        task = self.task
        numbers = self._attempt_numbers()
        if task.started or numbers:
            yield ev.TaskStarted(task=task.task_id)
        yield from self._own_files()
        ground_truth = self._ground_truth()
        for number in numbers:
            reader = AttemptReader(
                source=self.source,
                task=task.task_id,
                number=number,
                files=self._files_of(number),
                ground_truth=ground_truth,
                plan=self.plans.of(task.task_id, number),
                version=self.version,
                close=self.ended or task.published,
                remarks=self.remarks,
            )
            for item in reader.items():
                self._look(item)
                yield item
        yield from self._end(numbers)

    def _own_files(self) -> Iterator[Item]:
        files = self.task.files
        own = [files.index, *files.foreign] if files is not None else []
        others = [file for other in self.task.superseded for file in other.all()]
        for file in (*own, *others):
            if file is not None:
                yield Original(file, self.task.task_id)

    def _attempt_numbers(self) -> list[int]:
        """Attempts with files or in the index; of an unfinished task also those only started."""
        found = set(self.task.files.attempts) if self.task.files is not None else set()
        indexed = self.task.index.attempts if self.task.index is not None else frozenset()
        if not self.task.published:
            return sorted(found | indexed | self.task.attempts)
        for number in sorted(indexed - found):
            self._tell(f"attempt {number} is named and has no files", damage=True)
        for number in sorted(found):
            if self._files_of(number).result is None:
                self._tell(f"attempt {number} has no result.json", damage=True)
        for number in sorted(found - indexed):
            self._tell(f"attempt {number} has files and is not named")
        return sorted(found | indexed)

    def _files_of(self, number: int) -> AttemptFiles:
        files = self.task.files
        return (files.attempts.get(number) if files is not None else None) or AttemptFiles()

    def _ground_truth(self) -> Any:
        index = self._index_file()
        if index is None:
            return None
        return read_record(self.source.read(index)).value.get("ground_truth")

    def _look(self, item: Item) -> None:
        if isinstance(item, ev.AttemptFinished):
            self.placed += item.status != "cancelled"
            self.error |= item.status in ERROR_STATUSES
            self.correct |= item.correct is True

    def _end(self, numbers: list[int]) -> Iterator[Item]:
        task = self.task
        if task.published and self.placed:
            index = task.index
            stopped = (
                index is not None
                and index.strategy == "pass"
                and self.correct
                and len(numbers) < (index.k or 0)
            )
            yield ev.TaskFinished(
                task=task.task_id,
                reason="stopped_early" if stopped else "all_attempts",
                error=self.error,
            )
        elif task.published:
            yield ev.TaskCancelled(task=task.task_id, reason="no attempt of it can be read")
        elif self.ended:
            yield ev.TaskCancelled(task=task.task_id, reason="the source holds no result of it")

    def _index_file(self) -> SourceFile | None:
        return self.task.files.index if self.task.files is not None else None

    def _tell(self, reason: str, *, damage: bool = False) -> None:
        index = self._index_file()
        assert index is not None
        self.remarks.append(Remark(index.path, reason, placed=True, damage=damage))
