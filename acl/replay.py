"""`acl replay RUN`: metrics again, from the events alone, compared with what was recorded."""

from typing import Annotated, Any

import typer

from acl.output import Json, Run, document, line, number, table

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def replay(
    run: Run,
    at: Annotated[
        int | None, typer.Option(min=0, metavar="SEQ", help="The state as of this event.")
    ] = None,
    reducer: Annotated[
        list[str] | None,
        typer.Option("--reducer", metavar="NAME", help="Add one, e.g. majority@3; repeatable."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help="Add an error policy; repeatable."),
    ] = None,
    json: Json = False,
) -> int:
    """Recompute the metrics; exit 1 if they differ from the recorded ones, naming each."""
    from ledger import LedgerView
    from runtime.replay import replay as replay_metrics

    with LedgerView.open(run) as view:
        result = replay_metrics(
            view, at=at, reducers=tuple(reducer or ()), policies=tuple(policy or ())
        )
    raise NotImplementedError(result)
