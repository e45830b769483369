"""Which file tells of which task."""

from typing import Any

from runtime.importers.details import retries, tasks
from runtime.importers.details.files import Files
from runtime.importers.details.layout import RUN_INFO
from runtime.importers.details.plans import NUMBER, read_plans
from runtime.importers.details.reading import Document
from runtime.importers.details.request import section_of, text_or_none
from runtime.importers.details.tasks import ForeignTask, RecordFile
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import Remark
from runtime.importers.source import SourceFile


def place_tasks(files: Files, info: Document) -> list[ForeignTask]:
    """All tasks that any file names: those that were selected in their order, then the others."""
    found = _selected_tasks(files, info)
    selected = set(found)
    _place_records(files, info, found)
    _place_retries(files, found)
    for task_id, plans in read_plans(info.value.get("resolved_execution_plans")).items():
        found.setdefault(task_id, ForeignTask(task_id)).plans = plans
    untold = info.words.get("untold")
    for task_id, entry in untold.items() if isinstance(untold, dict) else ():
        _place_untold(found.setdefault(task_id, ForeignTask(task_id)), entry)
    others = sorted(found.keys() - selected)
    if selected and others:
        names = ", ".join(map(repr, others[:3]))
        files.tell(RUN_INFO, f"it does not select {names}")
    chosen = [task_id for task_id in found if task_id in selected]
    return [found[task_id] for task_id in (*chosen, *others)]


def _selected_tasks(files: Files, info: Document) -> dict[str, ForeignTask]:
    chosen = info.words.get("selected")
    rows = chosen.get("tasks") if isinstance(chosen, dict) else None
    found: dict[str, ForeignTask] = {}
    for row in rows if isinstance(rows, list) else ():
        fields = row if isinstance(row, dict) else {}
        task_id, metadata = fields.get("task_id"), fields.get("metadata")
        if not isinstance(task_id, str) or task_id in found:
            files.tell(RUN_INFO, f"it selects {row!r}", damage=True)
            continue
        found[task_id] = ForeignTask(
            task_id,
            category=text_or_none(fields.get("category")),
            checksum=text_or_none(fields.get("checksum")),
            metadata=metadata if isinstance(metadata, dict) else {},
        )
    return found


def _place_records(files: Files, info: Document, found: dict[str, ForeignTask]) -> None:
    """Give each task its record: a normal one rather than one with errors, the others are named."""
    records = [record for file in files.layout.records if (record := _record(files, file))]
    for record in sorted(records, key=lambda record: (record.failed, record.file.path)):
        task = found.setdefault(record.task_id, ForeignTask(record.task_id))
        if task.record is not None:
            task.superseded.append(record.file)
            reason = f"another save of task {record.task_id!r}; {task.record.file.path} stands"
            files.remarks.append(Remark(record.file.path, reason))
            continue
        task.record = record
        if task.category is None:
            task.category = record.category
        expected = info.words.get("ledger_id")
        if record.ledger_id is not None and expected not in (None, record.ledger_id):
            reason = f"it is of ledger {record.ledger_id}, not of that of {RUN_INFO}"
            files.tell(record.file.path, reason, damage=True)


def _record(files: Files, file: SourceFile) -> RecordFile | None:
    document = files.document(file)
    if document is None:
        return None
    try:
        return tasks.locate(file, document)
    except NotARecord as fault:
        files.lose(file, fault)
        return None


def _place_retries(files: Files, found: dict[str, ForeignTask]) -> None:
    for file in files.layout.retries:
        document = files.document(file)
        if document is None:
            continue
        try:
            retry = retries.locate(file, document)
        except NotARecord as fault:
            files.lose(file, fault)
            continue
        task = found.setdefault(retry.task, ForeignTask(retry.task))
        task.retries.setdefault(retry.attempt, []).append(retry)


def _place_untold(task: ForeignTask, entry: Any) -> None:
    fields = entry if isinstance(entry, dict) else {}
    task.stage = text_or_none(fields.get("stage"))
    task.stopped_early = fields.get("stopped_early") is True
    attempts = section_of(fields, "attempts")
    task.untold = {
        int(number): attempt
        for number, attempt in attempts.items()
        if NUMBER.fullmatch(number) and isinstance(attempt, dict)
    }
