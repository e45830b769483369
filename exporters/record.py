"""The record of a task: what was tried, answered and judged, in one JSON object."""

from exporters import OutFile
from exporters.attempt_record import attempt_record
from exporters.attempt_trailer import attempt_trailer, source
from exporters.identity import Identity
from exporters.jsontext import JsonText
from exporters.names import ERROR_MARK
from exporters.reading import Reading
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs


def has_record(task: TaskState) -> bool:
    """True once the task has a record: it finished, and not by cancelled attempts alone."""
    attempts = task.attempts.values()
    return task.has_detail and (not attempts or any(a.status != "cancelled" for a in attempts))


def record_path(task: TaskState, name: str) -> str:
    """Where the record stands; an error in any attempt is told by the name."""
    return f"details/{ERROR_MARK if task.has_error else ''}{name}.json"


def record_file(task: TaskState, name: str, state: RunState, blobs: Blobs) -> OutFile:
    """The record as a file; `name` is the one that `detail_names` gave."""
    return OutFile(record_path(task, name), JsonText(build_detail_record(task, state, blobs)))


def told_attempts(task: TaskState) -> list[AttemptState]:
    """The attempts that a record of the task tells, by number."""
    attempts = (task.attempts[n] for n in sorted(task.attempts))
    return [attempt for attempt in attempts if attempt.status != "cancelled"]


def build_detail_record(task: TaskState, state: RunState, blobs: Blobs) -> dict[str, object]:
    """The record of one task as of this state, with all large values whole.

    Values are as they were recorded (NaN is a NaN); `jsontext` writes them. Cancelled attempts
    are left out. What was erased is None or absent, and named in `acl.erased`.
    """
    reading = Reading(state, blobs)
    for seq in task.erased:
        reading.note(seq)
    told = told_attempts(task)
    record: dict[str, object] = {
        "task_id": task.id,
        "category": task.category,
        "correct": task.correct,
        "score": task.score,
        "k": state.k,
        "attempts_tried": len(told),
        "solved_at": task.solved_at,
        "retry_count": sum(len(attempt.retries) for attempt in told),
        "retry_counts": {str(attempt.number): len(attempt.retries) for attempt in told},
        "attempts": {str(attempt.number): attempt_record(attempt, reading) for attempt in told},
    }
    more: dict[str, object] = {
        "events": [task.first, task.last],
        "attempts": {str(attempt.number): attempt_trailer(attempt, reading) for attempt in told},
        "reused_from": source(task.origin or task.claim),
    }
    if task.stopped_early:
        more["stopped_early"] = True
    if reading.gaps:
        more["erased"] = reading.told()
    record["acl"] = Identity.of(state).trailer(**more)
    return record
