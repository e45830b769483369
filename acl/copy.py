"""`acl copy RUN DEST`: one file of a ledger, live or not."""

from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, Run, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def copy(
    run: Run,
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="A new file or directory.")],
    json: Json = False,
) -> None:
    """Make one self-contained file of a ledger, whether it is being written or not."""
    from ledger import LedgerView
    from ledger.copying import copy_ledger

    copied = copy_ledger(run, dest)
    with LedgerView.open(copied) as view:
        result = {"path": str(copied), "size": view.size, "root": view.root().hex()}
    if json:
        document(result)
    else:
        line(f"copied {result['size']} events to {result['path']}, root {result['root']}")
