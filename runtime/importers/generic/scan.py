"""All lines of a source, read once: which task and attempt each is, and what is wrong with it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ledger.errors import UsageError
from runtime.importers.foreign import stranger
from runtime.importers.generic.files import line_files
from runtime.importers.generic.header import FORMAT, Header, is_header, read_header
from runtime.importers.generic.record import GenericRecord, read_line, task_of_damaged
from runtime.importers.generic.telling import Telling, times_of
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.lines import Line, few, lines_of, why_no_record
from runtime.importers.plan import Remark
from runtime.importers.source import Source


@dataclass(slots=True)
class Task:
    """A task and its attempts by number; those without a number wait in `later`."""

    id: str
    numeric: bool
    category: str | None = None
    checksum: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    attempts: dict[int, Line] = field(default_factory=dict)
    later: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Scan:
    """What was found: every line that is not blank or a header is counted in `lines`.

    `broken` is True if anything that the run must have had is not there as it was.
    `beside` are the remarks about files that are not read.
    """

    source: Source
    header: Header = field(default_factory=Header)
    tasks: dict[str, Task] = field(default_factory=dict)
    beside: list[Remark] = field(default_factory=list)
    lines: int = 0
    placed: int = 0
    broken: bool = False
    words: dict[str, set[str]] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    told: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def lose(self, place: str, reason: str, *, damage: bool = True, torn: bool = False) -> None:
        """Name a record that has no place."""
        self.remarks.append(Remark(place, reason, damage=damage, torn=torn))
        self.broken = True

    def tell(self, entry: Line, reason: str) -> None:
        """Name something odd about a record that has its place; told once for all such lines."""
        self.told.setdefault((entry.file.path, reason), []).append(entry.number)

    def all_remarks(self) -> tuple[Remark, ...]:
        """Everything there is to tell."""
        told = [
            Remark(path, f"{reason} ({few(lines)})", placed=True)
            for (path, reason), lines in self.told.items()
        ]
        return (*self.remarks, *told)

    def only(self, name: str) -> str:
        """The one word that records use for `benchmark`, `model` or `harness`, else nothing."""
        found = self.words.get(name, set())
        return next(iter(found)) if len(found) == 1 else ""


def scan(source: Source) -> Scan:
    """Read every line; UsageError if no line is a record, or headers contradict each other."""
    found = Scan(source)
    found.remarks += [Remark(path, f"left alone: {why}") for path, why in source.skipped]
    files = line_files(source)
    named = {file.path for file in files}
    others = (file for file in source.files if file.path not in named)
    found.beside = [stranger(file, "the records") for file in others]
    found.remarks += found.beside
    headers: dict[str, Header] = {}
    for file in files:
        for entry, data in lines_of(source, file):
            _read(found, headers, entry, data)
    if not found.tasks:
        raise UsageError(f"{source.root} holds no record of format {FORMAT}")
    found.header = _agreed(headers)
    for task in found.tasks.values():
        _number(task)
    _count_missing(found)
    return found


def _read(found: Scan, headers: dict[str, Header], entry: Line, data: bytes) -> None:
    path = entry.file.path
    try:
        record = read_record(data)
    except NotARecord as fault:
        found.lines += 1
        why, damage = why_no_record(data, fault)
        found.lose(entry.place, why, damage=damage, torn=not damage)
        return
    value = record.value
    if is_header(value):
        if path in headers or any(place.file.path == path for place in _all(found)):
            found.lines += 1
            found.lose(entry.place, "a header that is not the first line")
        else:
            headers[path] = read_header(value, entry.place)
        return
    found.lines += 1
    try:
        told = read_line(value)
    except NotARecord as fault:
        found.lose(entry.place, f"no record: {fault}")
        task = task_of_damaged(value)
        if task is not None:
            found.tasks.setdefault(task, Task(task, not isinstance(value["task_id"], str)))
        return
    for word in record.oddities:
        found.tell(entry, f"holds {word}, which is not JSON: kept")
    _place(found, entry, told)


def _place(found: Scan, entry: Line, record: GenericRecord) -> None:
    task = found.tasks.setdefault(record.task_id, Task(record.task_id, record.numeric))
    if task.numeric is not record.numeric:
        found.lose(entry.place, f"task {task.id!r} is a number here and a text elsewhere")
        return
    if not _put(found, task, entry, record):
        return
    found.placed += 1
    _describe(found, task, entry, record)
    telling = Telling(record)
    telling.attempt(1, "")
    for reason in dict.fromkeys(telling.told):
        found.tell(entry, reason)
    found.times += times_of(record)
    # Only the first and the last are needed.
    found.times = [min(found.times), max(found.times)] if found.times else []
    for name in ("benchmark", "model", "harness"):
        if isinstance(record.rest.get(name), str):
            found.words.setdefault(name, set()).add(record.rest[name])


def _put(found: Scan, task: Task, entry: Line, record: GenericRecord) -> bool:
    """Give a record its place among the attempts; False if another record has it."""
    if record.attempt is None:
        first = next((one for one in task.later if one.part.sha256 == entry.part.sha256), None)
        if first is None:
            task.later.append(entry)
            return True
        why = f"the same as line {first.number}, and neither has a number of attempt: counted once"
        found.lose(entry.place, why, damage=False)
        return False
    first = task.attempts.get(record.attempt)
    if first is None:
        task.attempts[record.attempt] = entry
        return True
    if first.part.sha256 == entry.part.sha256:
        found.placed += 1
        found.tell(entry, "says again what an earlier line says: counted once")
    else:
        found.lose(
            entry.place,
            f"task {task.id!r} has an attempt {record.attempt} already, at {first.place}",
        )
    return False


def _describe(found: Scan, task: Task, entry: Line, record: GenericRecord) -> None:
    """Take what a record says of its task; the first word stands."""
    for name, kind in (("category", str), ("checksum", str), ("metadata", dict)):
        value = record.rest.get(name)
        if value is None:
            continue
        if not isinstance(value, kind):
            found.tell(entry, f"{name} is not what it must be: kept in the original only")
        elif not getattr(task, name):
            setattr(task, name, value)
        elif getattr(task, name) != value:
            found.tell(entry, f"another {name} than an earlier line of the same task")


def _number(task: Task) -> None:
    """Give those without a number the lowest that are free, in the order of the lines."""
    number = 0
    for entry in task.later:
        number += 1
        while number in task.attempts:
            number += 1
        task.attempts[number] = entry
    task.later = []


def _agreed(headers: dict[str, Header]) -> Header:
    found = list(headers.values())
    if not found:
        return Header()
    tasks = tuple(dict.fromkeys(task for one in found for task in one.tasks))
    for path, header in headers.items():
        if replace(header, tasks=(), words={}) != replace(found[0], tasks=(), words={}):
            raise UsageError(
                f"{path} has another header than {next(iter(headers))}",
                hint="import each run by itself",
            )
    return replace(found[0], tasks=tasks)


def _count_missing(found: Scan) -> None:
    """Name what the header promises and the lines do not have."""
    header = found.header
    where = found.source.root.name
    if header.records is not None and header.records != found.lines:
        why = f"the header tells {header.records} records, {found.lines} are there"
        found.lose(where, why, damage=header.records < found.lines)
    for planned in header.tasks:
        if planned not in found.tasks:
            found.tasks[planned] = Task(planned, numeric=False)
            found.lose(
                f"task {planned!r}", "the header plans it, and no record tells of it", damage=False
            )
    wanted = header.k if header.strategy == "all" else None
    for task in found.tasks.values():
        if wanted is not None and 0 < len(task.attempts) < wanted:
            have = f"has {len(task.attempts)} of {wanted} attempts"
            found.lose(f"task {task.id!r}", have, damage=False)


def _all(found: Scan) -> Iterator[Line]:
    for task in found.tasks.values():
        yield from task.attempts.values()
        yield from task.later
