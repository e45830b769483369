"""`acl show RUN [TASK]`: a run at a glance, or one task with its attempts, retries and verdicts."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from acl.book import erasures, remarks, spoken
from acl.differences import differences, spoken_differences
from acl.metric_rows import HEADERS, metric_rows
from acl.output import DASH, Json, Run, document, line, number, table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def show(
    run: Run,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="A task id.")] = None,
    tasks: Annotated[bool, typer.Option("--tasks", help="List the tasks and verdicts.")] = False,
    artifact: Annotated[
        str | None,
        typer.Option(metavar="[ATTEMPT/]PATH", help="Print an artifact of the task."),
    ] = None,
    lineage: Annotated[
        bool, typer.Option("--lineage", help="The runs that its reused tasks come from.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a run's ledger holds."""
    from ledger import LedgerView, fold

    if lineage:
        from acl.lineage import show_lineage

        show_lineage(run, task, json=json)
        return

    with LedgerView.open(run) as view:
        if task is not None and not tasks:
            from acl.one_task import state_with

            state = state_with(view, task)
        else:
            state = fold(view.events())
        if tasks:
            _show_tasks(state, json=json)
        elif artifact is not None:
            _show_artifact(view, state, task, artifact, json=json)
        elif task is None:
            live = view.writer() is not None and state.finished is None
            _show_run(view, state, "running" if live else state.status, json=json)
        else:
            _show_task(view, state, task, json=json)


def _show_run(view: Any, state: Any, status: str, *, json: bool) -> None:
    counted, discarded = state.spend()
    metrics = state.metrics[-1][2] if state.metrics else None
    summary: dict[str, Any] = {
        "run_id": state.run_id,
        "status": status,
        "benchmark": state.benchmark or state.request["benchmark"]["id"],
        "harness": state.request["harness"]["id"],
        "model": state.request["model"]["id"],
        "k": state.k,
        "strategy": state.strategy,
        "started_at": state.started_at,
        "finished_at": state.ended_at,
        "imported": state.imported.format if state.imported else None,
        "reused_from": state.frozen.run_id if state.frozen else None,
        "reuse_differences": differences(state),
        "reused_changed": [t.id for t in state.tasks.values() if t.source_checksum is not None],
        "counts": asdict(state.counts()),
        "metrics": metrics.metrics if metrics else None,
        "spend": asdict(counted),
        "spend_discarded": asdict(discarded),
        "redactions": state.redactions,
        "ledger_id": state.ledger_id,
        "size": state.size,
        "root": state.root.hex(),
        "sealed_size": state.sealed_size,
        "erasures": erasures(view, state),
        "remarks": remarks(view, state),
        "error": state.finished.error.message if state.finished and state.finished.error else None,
    }
    if json:
        document(summary)
        return
    for name in ("run_id", "status", "error", "benchmark", "harness", "model", "imported"):
        if summary[name] is not None:
            line(f"{name + ':':<13}{summary[name]}")
    line(f"{'attempts:':<13}k={state.k}, strategy {state.strategy}")
    line(f"{'time:':<13}{summary['started_at']} to {summary['finished_at'] or DASH}")
    if summary["reused_from"]:
        line(f"{'reused from:':<13}{summary['reused_from']}")
    for text in spoken_differences(state):
        line(f"{'':<13}{text}")
    if summary["reused_changed"]:
        line(f"{'':<13}input changed since: {', '.join(summary['reused_changed'])}")
    counts = ", ".join(f"{name} {value}" for name, value in summary["counts"].items() if value)
    line(f"{'tasks:':<13}{counts or 'none'}")
    if counted.calls or discarded.calls:
        line(f"{'calls:':<13}{_spend(counted)}; discarded tries: {_spend(discarded)}")
    line(f"{'ledger:':<13}{state.ledger_id}, {state.size} events, root {state.root.hex()}")
    line(f"{'sealed:':<13}{f'at {state.sealed_size} events' if state.sealed_size else 'no'}")
    for label, text in spoken(view, state):
        line(f"{label:<13}{text}")
    if metrics:
        line()
        table(HEADERS, metric_rows(metrics.metrics, metrics.details, metrics.extra))


def _spend(spend: Any) -> str:
    cost = f"{spend.cost_usd:.4f} USD" if spend.unknown_cost < spend.calls else "cost unknown"
    unknown = f" ({spend.unknown_cost} of unknown cost)" if spend.unknown_cost else ""
    return (
        f"{spend.calls} calls, {spend.input_tokens} + {spend.output_tokens} tokens, {cost}{unknown}"
    )


def _show_tasks(state: Any, *, json: bool) -> None:
    rows = [
        {
            "task_id": task.id,
            "category": task.category,
            "stage": task.stage,
            "correct": task.correct,
            "score": task.score,
            "attempts": len(task.attempts),
            "retries": task.retry_count,
            "reused_from": _source_of(task),
            "reused_attempts": len(task.reused_attempts),
        }
        for task in state.tasks.values()
    ]
    if json:
        from acl.plain import plain

        for row in rows:
            document(plain(row))
    elif rows:
        table([name.upper() for name in rows[0]], [list(row.values()) for row in rows])


def _source_of(task: Any) -> str | None:
    """The run that a task comes from, or those that its attempts come from that came alone."""
    if task.reused:
        source = task.origin or task.claim
        return str(source.run_id) if source else "(erased)"
    return ", ".join(sorted({one.source_run for one in task.reused_attempts})) or None


def _show_artifact(view: Any, state: Any, task_id: str | None, name: str, *, json: bool) -> None:
    """Print one artifact: of the attempt that its name begins with, else of the last with it."""
    from acl.output import raw
    from ledger.errors import RunNotFound, UsageError

    if task_id is None:
        raise UsageError("an artifact belongs to a task", hint="acl show RUN TASK --artifact PATH")
    held = _artifacts(view, _task(state, task_id))
    # First by its whole name: an artifact may itself be called `2/x`.
    found = next(((n, path) for n, path in held if name == f"{n}/{path}"), None)
    found = found or next(((n, path) for n, path in reversed(held) if name == path), None)
    if found is None:
        known = ", ".join(f"{n}/{path}" for n, path in held) or "none"
        raise RunNotFound(f"no artifact {name!r} of task {task_id!r}", hint=f"known: {known}")
    attempt, path = found
    content = held[found]
    is_text = isinstance(content, str)
    if json:
        from base64 import b64encode

        told = {"text": content} if is_text else {"base64": b64encode(content.data).decode()}
        document({"path": path, "attempt": attempt, **told})
    else:
        raw(content.encode("utf-8", "surrogatepass") if is_text else content.data)


def _artifacts(view: Any, task: Any) -> dict[tuple[int, str], Any]:
    """The kept artifacts of a task by attempt and path: texts, and `Binary` for all else."""
    held: dict[tuple[int, str], Any] = {}
    for number_, attempt in sorted(task.attempts.items()):
        event = view.event(attempt.artifacts).event if attempt.artifacts is not None else None
        contents = view.resolve(event.contents) if event is not None else None
        for path, content in sorted((contents or {}).items()):
            held[number_, path] = content
    return held


def _task(state: Any, task_id: str) -> Any:
    from ledger.errors import RunNotFound

    if task_id not in state.tasks:
        raise RunNotFound(
            f"no task {task_id!r} in run {state.run_id}",
            hint="`acl show RUN --tasks` lists the tasks",
        )
    return state.tasks[task_id]


def _show_task(view: Any, state: Any, task_id: str, *, json: bool) -> None:
    from exporters.details import build_detail_record

    task = _task(state, task_id)
    if json:
        from acl.plain import plain

        document(plain(build_detail_record(task, state, view)))
        return
    line(f"{'task:':<13}{task.id}")
    line(f"{'category:':<13}{task.category or DASH}")
    line(f"{'stage:':<13}{task.stage}")
    line(f"{'correct:':<13}{task.correct}, score {number(task.score)}, solved at {task.solved_at}")
    if task.origin:
        line(f"{'reused from:':<13}{task.origin.run_id}, ledger {task.origin.ledger_id}")
    if task.source_checksum is not None:
        line(f"{'input:':<13}{task.checksum} now, it was {task.source_checksum} where it ran")
    line()
    table(
        ("ATTEMPT", "STATUS", "CORRECT", "SCORE", "RETRIES", "CALLS", "RESULT", "FROM"),
        [
            (
                n,
                a.status or ("erased" if a.end_erased else f"open in {a.phase or 'planning'}"),
                a.correct,
                number(a.score),
                len(a.retries),
                a.spend.calls + a.discarded.calls,
                a.result_address.hex()[:16] if a.result_address else "",
                (_source_of(task) if task.reused else a.source_run) or "",
            )
            for n, a in sorted(task.attempts.items())
        ],
    )
    for n, attempt in sorted(task.attempts.items()):
        if attempt.origin:
            line(f"attempt {n}: ran in {attempt.origin.run_id}, judged by the run that took it")
        for seq in attempt.retries:
            event = view.event(seq).event
            if event is not None:
                line(f"attempt {n}, retry {event.retry}: {event.error.code}: {event.error.message}")
        _show_errors(view, n, attempt)


def _show_errors(view: Any, number_: int, attempt: Any) -> None:
    for seq in (attempt.finished, attempt.evaluation):
        event = view.event(seq).event if seq is not None else None
        error = getattr(event, "error", None) or getattr(event, "evaluation_error", None)
        reason = getattr(event, "reason", None)
        if error is not None:
            line(f"attempt {number_}: {error.code}: {error.message}")
        elif reason:
            line(f"attempt {number_}: {reason}")
