"""`acl replay RUN`: metrics again, from the events alone, compared with what was recorded."""

from typing import Annotated

import typer

from acl.output import Json, Run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


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
    from runtime.replay import replay as replay_metrics

    from ledger import LedgerView

    with LedgerView.open(run) as view:
        result = replay_metrics(
            view, at=at, reducers=tuple(reducer or ()), policies=tuple(policy or ())
        )
    raise NotImplementedError(result)
