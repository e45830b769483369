"""`acl ls`: the runs under a results directory. A damaged ledger is listed as such."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, document, message, number, table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def ls(
    results_dir: Annotated[Path, typer.Argument(metavar="[RESULTS_DIR]")] = Path("results"),
    json: Json = False,
) -> int:
    """List the runs under RESULTS_DIR (default `results`), oldest first."""
    from ledger.errors import RunNotFound

    if not results_dir.is_dir():
        raise RunNotFound(f"no results directory {results_dir}", hint="name one: acl ls DIR")
    rows = sorted(_rows(results_dir), key=lambda row: (row["started_at"] or "", row["path"]))
    if json:
        for row in rows:
            document(row)
    elif rows:
        table(
            ("RUN", "STATUS", "BENCHMARK", "MODEL", "TASKS", "ERRORS", "HEADLINE", "PATH"),
            [_cells(row) for row in rows],
        )
    damaged = [row for row in rows if row["error"]]
    for row in damaged:
        message(f"acl: {row['path']}: {row['error']}")
    if not rows:
        message(f"no runs under {results_dir}")
    return 4 if any(row["status"] == "damaged" for row in damaged) else 0


def _rows(results_dir: Path) -> Iterator[dict[str, Any]]:
    from ledger.errors import AclError, IntegrityError
    from ledger.opening import LEDGER_NAME

    for path in sorted(results_dir.rglob(LEDGER_NAME)):
        if any(part.startswith(".") for part in path.relative_to(results_dir).parts):
            continue  # an import or export that is being staged
        try:
            yield _row(path)
        except (AclError, OSError) as error:
            status = "damaged" if isinstance(error, IntegrityError) else "unreadable"
            yield {**_EMPTY, "path": str(path.parent), "status": status, "error": str(error)}


_EMPTY = dict.fromkeys(
    (
        "run_id",
        "path",
        "status",
        "benchmark",
        "harness",
        "model",
        "counts",
        "finished",
        "metrics",
        "headline",
        "started_at",
        "finished_at",
        "size",
        "root",
        "error",
    )
)


def _row(path: Path) -> dict[str, Any]:
    from ledger import LedgerView, fold

    with LedgerView.open(path) as view:
        writer = view.writer()
        state = fold(view.events())
    metrics = state.metrics[-1][2].metrics if state.metrics else None
    running = writer is not None and state.finished is None
    return {
        **_EMPTY,
        "run_id": state.run_id,
        "path": str(path.parent),
        "status": "running" if running else state.status,
        "benchmark": state.benchmark or state.request["benchmark"]["id"],
        "harness": state.request["harness"]["id"],
        "model": state.request["model"]["id"],
        "counts": asdict(state.counts()),
        "finished": sum(task.has_detail for task in state.tasks.values()),
        "metrics": metrics,
        "headline": _headline(state),
        "started_at": state.started_at or state.created_at,
        "finished_at": state.ended_at,
        "size": state.size,
        "root": state.root.hex(),
    }


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    if row["error"]:
        return ("?", row["status"], "", "", "", "", "", row["path"])
    counts = row["counts"]
    return (
        row["run_id"],
        row["status"],
        row["benchmark"],
        row["model"],
        f"{row['finished']}/{counts['total']}",
        counts["error"],
        row["headline"],
        row["path"],
    )


def _headline(state: Any) -> str | None:
    """The metric a reader looks for first, with what it is of: accuracy, correct, score, or any."""
    if not state.metrics:
        return None
    event = state.metrics[-1][2]
    for mark in ("accuracy", "correct.", "score.", "@"):
        for name, value in event.metrics.items():
            if mark in name:
                # A source does not tell what each of its numbers is of.
                of = (event.details.get(name) or {}).get("denominator")
                share = "" if of is None else f" of {of}"
                return f"{name}={number(value)}{share}"
    return None
