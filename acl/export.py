"""`acl export -f FORMAT RUN DIR`: project a ledger into files."""

from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, Run, document, line, message

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def export(
    run: Run,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="New, empty, or an export of the same run.")
    ],
    layout: Annotated[
        str, typer.Option("-f", "--format", metavar="FORMAT", help="The layout of the files.")
    ] = "details",
    salvage: Annotated[
        bool, typer.Option("--salvage", help="From a damaged ledger, all before the damage.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the files that other tools read; the same events give the same bytes.

    Nothing is written from a damaged ledger, unless --salvage asks for what precedes the damage.
    """
    from acl.verdict import broken, state_at
    from exporters import find_exporter
    from exporters.identity import Identity
    from exporters.write import write_tree
    from ledger import LedgerView
    from ledger.errors import LedgerDamaged
    from ledger.opening import ledger_file

    exporter = find_exporter(layout)
    faults = broken(run)
    first = min((fault.seq for fault in faults if fault.seq is not None), default=None)
    if faults and not (salvage and first):
        raise LedgerDamaged(f"{run} is damaged: {faults[0].message}", seq=first)
    home = ledger_file(run).parent
    with LedgerView.open(run) as view:
        state = state_at(view, view.size if first is None else first)
        entries = write_tree(
            exporter(state, view),
            directory,
            identity=Identity.of(state),
            layout=layout,
            home=home if home.resolve() == directory.resolve() else None,
        )
    if faults:
        message(f"acl: damaged at event {first}; exported the {state.size} events before it")
    if json:
        document(
            {
                "path": str(directory),
                "format": layout,
                "files": len(entries),
                "run_id": state.run_id,
                "status": state.status,
                "size": state.size,
                "root": state.root.hex(),
                "salvaged": bool(faults),
            }
        )
    else:
        line(f"{len(entries)} files in {directory}, status {state.status}")
        line(f"from {state.size} events, root {state.root.hex()}")
