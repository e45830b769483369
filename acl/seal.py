"""`acl seal RUN`: close the ledger of a run that was interrupted."""

import typer

from acl.keys import Signing
from acl.output import Json, Run, alarm, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def seal(run: Run, signing_key: Signing = None, json: Json = False) -> None:
    """Seal a ledger: nothing but erasures and annotations can follow. Its run stays interrupted."""
    from acl.keys import signers_given
    from ledger import LedgerView
    from ledger.store import Ledger
    from runtime.registry import complete

    signers = signers_given(signing_key)
    with LedgerView.open(run) as view:
        if view.sealed:
            size, root = view.size, view.root().hex()
            if json:
                document({"size": size, "root": root, "already": True})
            else:
                line(f"sealed already: {size} events, root {root}")
            return
    with Ledger.open(run) as ledger:
        checkpoint = ledger.seal(*signers)
        directory = ledger.path.parent
    complete(directory, signers=signers, tell=alarm)
    if json:
        document(
            {"size": checkpoint.size, "root": checkpoint.root.hex(), "origin": checkpoint.origin}
        )
    else:
        line(f"sealed at {checkpoint.size} events, root {checkpoint.root.hex()}")
