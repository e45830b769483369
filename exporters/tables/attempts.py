"""The table `attempts`: one row an attempt, its events read one attempt at a time."""

from collections.abc import Iterator
from typing import Final

from exporters.reading import Reading
from exporters.tables.cells import moment
from exporters.tables.columns import Cells, Column, Table, always
from exporters.tables.spend import spend_cells, spend_columns
from ledger import events as ev
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs

_COLUMNS: Final = (
    always("task_id", "string", "the task"),
    Column("category", "string", "the category of the task"),
    always("attempt", "int64", "number of the attempt, from 1"),
    Column("status", "string", "how it ended: completed, run_error, …; null while open"),
    always("open", "bool", "it was begun and has not ended"),
    Column("phase", "string", "the last phase of the counted try"),
    Column("correct", "bool", "the verdict; null without a truth value"),
    Column("score", "float64", "the verdict as a number"),
    always("has_verdict", "bool", "there is a truth value or a score"),
    Column("evaluator", "string", "who judged"),
    Column("evaluator_version", "string", "its version"),
    Column("reason", "string", "why the verdict is so"),
    Column("final_answer", "json", "the answer, whole; a text stands in quotes"),
    always("measures", "json", "what the harness measured, by name"),
    always("metrics", "json", "what the evaluation measured, by name"),
    always("error", "bool", "it ended in a run or evaluation error"),
    Column("error_code", "string", "which"),
    Column("error_message", "string", "the same in words"),
    Column("error_phase", "string", "where it happened"),
    always("fatal", "bool", "the error was the house's, not the agent's"),
    always("retries", "int64", "tries that were discarded"),
    always("copied", "bool", "it ran in another run, with its task or alone"),
    Column("reused_run_id", "string", "the run that it ran in"),
    Column("started_at", "timestamp", "when it was begun; null in imports"),
    Column("finished_at", "timestamp", "when it ended; null in imports"),
    Column("duration_s", "float64", "from started_at to finished_at, retries included", "s"),
    *spend_columns("the counted try"),
    *spend_columns("discarded tries", "discarded_"),
    Column("started_event", "int64", "number of the event of its begin"),
    Column("finished_event", "int64", "number of the event of its end"),
    Column("identity", "string", "the same in every run that holds a copy; null while open"),
    Column("evaluation_address", "string", "SHA-256 of the body of its verdict, hex"),
    always("erased", "list<string>", "types of its events of which something was erased"),
)


def _rows(state: RunState, blobs: Blobs) -> Iterator[Cells]:
    for task, attempt in state.attempts():
        yield _row(task, attempt, state, blobs)


def _row(task: TaskState, attempt: AttemptState, state: RunState, blobs: Blobs) -> Cells:
    reading = Reading(state, blobs)
    source = None if attempt.anew else attempt.origin or attempt.claim or task.origin or task.claim
    cells: dict[str, object] = {
        "task_id": task.id,
        "category": task.category,
        "attempt": attempt.number,
        "status": attempt.status,
        "open": attempt.finished is None,
        "phase": attempt.phase,
        "correct": attempt.correct,
        "score": attempt.score,
        "has_verdict": attempt.verdict,
        **_told(attempt, reading),
        "measures": attempt.measures,
        "metrics": attempt.metrics,
        "error": attempt.error,
        "fatal": attempt.fatal,
        "retries": len(attempt.retries),
        "copied": attempt.copied,
        "reused_run_id": source.run_id if source else None,
        **_times(attempt, state),
        **spend_cells(attempt.spend),
        **spend_cells(attempt.discarded, "discarded_"),
        "started_event": attempt.started,
        "finished_event": attempt.finished,
        "identity": attempt.identity.hex() if attempt.identity else None,
        "evaluation_address": _hex(attempt.evaluation_address),
    }
    lost = {blobs.event(seq).type for seq in attempt.erased}
    cells["erased"] = sorted(lost | {gap.type for gap in reading.gaps.values()})
    return cells


def _told(attempt: AttemptState, reading: Reading) -> Cells:
    """What only the events say: the answer, the verdict's reason, and which error it was."""
    result = reading.event(attempt.result, ev.ResultRecorded)
    verdict = reading.event(attempt.evaluation, ev.EvaluationFinished)
    end = reading.event(attempt.finished, ev.AttemptFinished)
    error = (
        (end.error if end else None)
        or (result.error if result else None)
        or (verdict.evaluation_error if verdict else None)
    )
    answer = None
    if attempt.result is not None and result is not None:
        answer = reading.value(attempt.result, result.final_answer)
    evaluator = attempt.evaluator or (None, None)
    return {
        "evaluator": evaluator[0],
        "evaluator_version": evaluator[1],
        "reason": verdict.reason if verdict else None,
        "final_answer": answer,
        "error_code": error.code if error else None,
        "error_message": error.message if error else None,
        "error_phase": error.phase if error else None,
    }


def _times(attempt: AttemptState, state: RunState) -> Cells:
    """Times of an import are those of reading the files, which say nothing of the run."""
    started = state.imported is None and attempt.started is not None
    ended = state.imported is None and attempt.finished is not None
    nanoseconds = attempt.finished_ns - attempt.started_ns
    return {
        "started_at": moment(attempt.started_ns) if started else None,
        "finished_at": moment(attempt.finished_ns) if ended else None,
        "duration_s": nanoseconds / 1e9 if started and ended else None,
    }


def _hex(address: bytes | None) -> str | None:
    return None if address is None else address.hex()


ATTEMPTS: Final = Table("attempts", "one row an attempt that was begun", _COLUMNS, _rows)
