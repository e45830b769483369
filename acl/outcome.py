"""How `acl run` tells of a run that is over: as a document, or in lines for people."""

from typing import Any

from acl.metric_rows import HEADERS, metric_rows
from acl.output import line, table


def outcome_document(outcome: Any, status: int, made: Any = None) -> dict[str, Any]:
    """The document of a run; `status` is what it means for the exit status of the command.

    `made` is what became of its artifacts, if it has any.
    """
    result = outcome.result
    metrics = result.metrics if result else None
    return {
        "run_id": outcome.run_id,
        "path": None if outcome.path is None else str(outcome.path),
        "ledger": outcome.paths.get("ledger"),
        "status": outcome.status,
        "exit": status,
        "error": outcome.error.model_dump() if outcome.error else None,
        "metrics": metrics.metrics if metrics else None,
        "counts": result.summary["counts"] if result else None,
        "artifacts": None if made is None else made.document(),
    }


def print_outcome(outcome: Any, made: Any = None) -> None:
    """Print how a run ended, its counts and metrics, and where it is."""
    if outcome.run_id is not None:
        line(f"run {outcome.run_id}: {outcome.status}")
    if outcome.error:
        line(f"error: {outcome.error.code}: {outcome.error.message}")
    result = outcome.result
    if result:
        counts = result.summary["counts"].items()
        told = ", ".join(f"{name} {value}" for name, value in counts if value)
        line(f"tasks: {told or 'none'}")
        if result.metrics:
            metrics = result.metrics
            table(HEADERS, metric_rows(metrics.metrics, metrics.details, metrics.extra))
    if outcome.run_id is not None:
        line(f"ledger: {outcome.paths.get('ledger')}")
    if made is not None:
        line(f"job: {made.job}")
        if made.archived is not None:
            line(f"archive: {made.archive}")
