"""The table `tasks`: one row a selected task."""

from collections.abc import Iterator
from typing import Final

from exporters.tables.columns import Cells, Column, Table, always
from ledger.state import RunState, TaskState
from ledger.view import Blobs

_COLUMNS: Final = (
    always("task_id", "string", "the task"),
    always("task_index", "int64", "its place in the selection, from 0"),
    Column("category", "string", "its category"),
    Column("checksum", "string", "checksum of its input, as the benchmark makes it"),
    always("metadata", "json", "what the benchmark tells of it"),
    always("stage", "string", "pending, running, done, error, cancelled"),
    always("bin", "string", "evaluated, error, skipped, missing: what it counts as"),
    Column("correct", "bool", "any attempt correct; null without a truth value"),
    Column("score", "float64", "of the first correct attempt, else the best"),
    Column("solved_at", "int64", "number of the first correct attempt"),
    always("attempts", "int64", "attempts that were begun"),
    always("retries", "int64", "tries that were discarded"),
    always("stopped_early", "bool", "no more attempts, since one was correct"),
    always("has_error", "bool", "any attempt ended in an error"),
    always("reused", "bool", "it ran in another run"),
    Column("reused_run_id", "string", "the run that it ran in"),
    Column("reused_ledger_id", "string", "the ledger of that run"),
    Column("source_checksum", "string", "checksum of its input there, if another"),
    always("reused_attempts", "int64", "attempts that came alone from another run"),
    Column("first_event", "int64", "number of its first event"),
    Column("last_event", "int64", "number of its last event"),
    Column("address", "string", "SHA-256 of the body of its end, hex"),
    always("erased", "list<string>", "types of its own events that were erased"),
)


def _rows(state: RunState, blobs: Blobs) -> Iterator[Cells]:
    for task in state.tasks.values():
        source = task.origin or task.claim
        yield {
            "task_id": task.id,
            "task_index": task.index,
            "category": task.category,
            "checksum": task.checksum,
            "metadata": task.metadata,
            "stage": task.stage,
            "bin": task.bin,
            "correct": task.correct,
            "score": task.score,
            "solved_at": task.solved_at,
            "attempts": len(task.attempts),
            "retries": task.retry_count,
            "stopped_early": task.stopped_early,
            "has_error": task.has_error,
            "reused": task.reused,
            "reused_run_id": source.run_id if source else None,
            "reused_ledger_id": source.ledger_id if source else None,
            "source_checksum": task.source_checksum,
            "reused_attempts": len(task.reused_attempts),
            "first_event": task.first,
            "last_event": task.last,
            "address": task.finished_address.hex() if task.finished_address else None,
            "erased": _erased(task, blobs),
        }


def _erased(task: TaskState, blobs: Blobs) -> list[str]:
    return sorted({blobs.event(seq).type for seq in task.erased})


TASKS: Final = Table("tasks", "one row a selected task", _COLUMNS, _rows)
