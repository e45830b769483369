"""The table `runs`: one row."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from exporters.identity import Salvaged
from exporters.tables.columns import Cells, Column, Table, always
from exporters.tables.spend import spend_cells, spend_columns
from ledger.state import RunState
from ledger.view import Blobs

_COUNTS: Final = {
    "total": "tasks that were selected",
    "evaluated": "tasks with a verdict",
    "error": "tasks without a verdict, with an error",
    "skipped": "tasks whose attempts were all skipped",
    "missing": "tasks of which nothing of this came",
    "correct": "tasks with a correct attempt",
    "incorrect": "tasks with verdicts, and no correct attempt",
    "reused": "tasks that ran in another run",
}
_MORE_COUNTS: Final = {
    "reused_attempts": "attempts that ran in another run and came alone",
    "attempts": "attempts, open ones too",
    "retries": "tries that were discarded",
}

_COLUMNS: Final = (
    always("events", "int64", "events that the row was made of"),
    Column("damaged_at", "int64", "first damaged event, after which nothing was used"),
    always("status", "string", "completed, failed, timed_out, cancelled, interrupted"),
    always("sealed", "bool", "whether the ledger was sealed"),
    Column("benchmark", "string", "id of the benchmark"),
    Column("benchmark_version", "string", "its version"),
    Column("harness", "string", "id of the harness (the agent)"),
    Column("environment", "string", "id of the environment"),
    Column("model", "string", "id of the model"),
    always("k", "int64", "attempts planned per task"),
    always("strategy", "string", "all or stop_on_correct"),
    Column("run_name", "string", "what the run was named"),
    Column("request_name", "string", "its name in a suite"),
    Column("orchestration_id", "string", "the suite it was run in"),
    always("request", "json", "the whole request, without secrets"),
    Column("created_at", "timestamp", "when the ledger was made"),
    Column("started_at", "timestamp", "when the run began; of an import, at its source"),
    Column("finished_at", "timestamp", "when the run ended; of an import, at its source"),
    Column("last_event_at", "timestamp", "when the last event was recorded"),
    Column("duration_s", "float64", "from started_at to finished_at", "s"),
    Column("exit_code", "int64", "with which the run ended"),
    Column("error_code", "string", "what the run failed of"),
    Column("error_message", "string", "the same in words"),
    *(always(f"tasks_{name}", "int64", why) for name, why in _COUNTS.items()),
    *(always(name, "int64", why) for name, why in _MORE_COUNTS.items()),
    *spend_columns("counted tries"),
    *spend_columns("discarded tries", "discarded_"),
    Column("metrics", "json", "the metrics recorded last, by name"),
    Column("metrics_source", "string", "evaluation, replay or import"),
    Column("reused_run_id", "string", "the run that was reused"),
    Column("import_format", "string", "the format of the files that an import read"),
    Column("import_run_id", "string", "the run's id at its source"),
    Column("import_status", "string", "the run's status at its source"),
    Column("import_records_in", "int64", "records that were read"),
    Column("import_records_out", "int64", "records that were placed"),
    Column("import_unplaced", "int64", "records with a remark, or without a place"),
    always("redactions", "int64", "secrets that were replaced"),
    always("late_calls", "int64", "calls given up whose end came later"),
    always("interrupts", "int64", "times that somebody asked the run to stop"),
    always("annotations", "int64", "remarks that somebody added"),
    always("acl_version", "string", "the release that recorded"),
    always("erased", "list<string>", "types of erased events, of all tasks too"),
)


def _rows(state: RunState, _: Blobs) -> Iterator[Cells]:
    created = state.creation
    output = _part(state, "output")
    finished = state.finished
    error = finished.error if finished else None
    last = state.metrics[-1][2] if state.metrics else None
    counts = state.counts()
    counted, discarded = state.spend()
    yield {
        "events": state.size,
        "damaged_at": state.damaged_at if isinstance(state, Salvaged) else None,
        "status": state.status,
        "sealed": state.sealed_size is not None,
        "benchmark": state.benchmark or _id(state, "benchmark"),
        "benchmark_version": state.benchmark_version,
        "harness": _id(state, "harness"),
        "environment": _id(state, "environment"),
        "model": _id(state, "model"),
        "k": state.k,
        "strategy": state.strategy,
        "run_name": _text(output.get("run_name")),
        "request_name": created.request_name,
        "orchestration_id": created.orchestration_id,
        "request": state.request,
        **_times(state),
        "exit_code": finished.exit_code if finished else None,
        "error_code": error.code if error else None,
        "error_message": error.message if error else None,
        **{f"tasks_{name}": getattr(counts, name) for name in _COUNTS},
        **{name: getattr(counts, name) for name in _MORE_COUNTS},
        **spend_cells(counted),
        **spend_cells(discarded, "discarded_"),
        "metrics": last.metrics if last else None,
        "metrics_source": last.source if last else None,
        "reused_run_id": state.frozen.run_id if state.frozen else None,
        **_import(state),
        "redactions": state.redactions,
        "late_calls": state.late_calls,
        "interrupts": len(state.interrupts),
        "annotations": len(state.annotations),
        "acl_version": created.acl_version,
        "erased": sorted(state.lost_types),
    }


def _times(state: RunState) -> Cells:
    times = {
        "created_at": state.created_at,
        "started_at": state.started_at,
        "finished_at": state.ended_at,
        "last_event_at": state.last_at,
    }
    return {**times, "duration_s": seconds(state.started_at, state.ended_at)}


def seconds(start: str | None, end: str | None) -> float | None:
    """How long it is from one recorded time to another; None where either is unknown or odd."""
    try:
        if start is not None and end is not None:
            return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None
    return None


def _import(state: RunState) -> Cells:
    told = state.imported
    return {
        "import_format": told.format if told else None,
        "import_run_id": told.source_run_id if told else None,
        "import_status": told.source_status if told else None,
        "import_records_in": told.records_in if told else None,
        "import_records_out": told.records_out if told else None,
        "import_unplaced": len(told.unplaced) if told else None,
    }


def _part(state: RunState, name: str) -> dict[str, object]:
    part = state.request.get(name)
    return part if isinstance(part, dict) else {}


def _id(state: RunState, name: str) -> str | None:
    return _text(_part(state, name).get("id"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


RUNS: Final = Table("runs", "one row a run", _COLUMNS, _rows)
