"""`acl log RUN`: the events, one a line; `--follow` a live run from another process."""

import time
from json import dumps
from typing import Annotated, Any

import typer

from acl.output import Json, Run, document, flush, line, unread

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

POLL_SECONDS = 0.2


@app.command()
def log(
    run: Run,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    since: Annotated[int, typer.Option(min=0, metavar="SEQ", help="Begin at this event.")] = 0,
    task: Annotated[str | None, typer.Option(metavar="ID", help="Only this task.")] = None,
    json: Json = False,
) -> None:
    """List a run's events in order: sequence number, time, type, task and attempt."""
    from ledger import LedgerView

    with LedgerView.open(run) as view:
        _require(view, since, task, follow=follow)
        position = since
        while True:
            for recorded in view.events(since=position):
                position = recorded.seq + 1
                if unread():
                    return
                if task is None or recorded.task == task:
                    _print(recorded, json=json)
            flush()
            if not follow or view.sealed or (view.writer() is None and view.size == position):
                return
            time.sleep(POLL_SECONDS)


def _require(view: Any, since: int, task: str | None, *, follow: bool) -> None:
    """Refuse to list nothing where the name or number was wrong."""
    from ledger.errors import RunNotFound

    if follow:
        return
    if since and since >= view.size:
        raise RunNotFound(f"there is no event {since}: the ledger has {view.size} events")
    if task is not None and all(recorded.task != task for recorded in view.events()):
        raise RunNotFound(
            f"no event is of a task {task!r}", hint="`acl show RUN --tasks` lists the tasks"
        )


def _print(recorded: Any, *, json: bool) -> None:
    if json:
        from acl.plain import plain_event

        document(plain_event(recorded))
        return
    who = "" if recorded.task is None else recorded.task
    if recorded.attempt is not None:
        who += f" #{recorded.attempt}"
    marks = " (copied)" * recorded.copied + " (erased)" * recorded.erased
    line(f"{recorded.seq:>6}  {recorded.at}  {recorded.type:<22} {who}{marks}{_gist(recorded)}")


def _gist(recorded: Any) -> str:
    """The few words about an event that a reader looks for."""
    event = recorded.event
    words = [
        f"{name}={getattr(event, name)}"
        for name in ("phase", "status", "correct", "score", "retry", "scope", "call_id")
        if getattr(event, name, None) is not None
    ]
    if recorded.type == "reuse.frozen" and event is not None:
        words += _of_reuse(event)
    error = getattr(event, "error", None) or getattr(event, "evaluation_error", None)
    if error is not None and not isinstance(error, bool):
        words.append(f"error={error.code}")
    return "  " + " ".join(words) if words else ""


def _of_reuse(event: Any) -> list[str]:
    """Which run is reused, and what it was run with otherwise."""
    if event.run_id is None:
        return []
    paths = [dumps(one.path)[1:-1] for one in event.differences or ()]
    return [f"run_id={event.run_id}", *([f"differs={','.join(paths)}"] if paths else [])]
