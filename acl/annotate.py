"""`acl annotate RUN TEXT`: a remark in the ledger, with a name, also once it is sealed."""

from typing import Annotated

import typer

from acl.keys import Signing
from acl.output import Json, Run, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def annotate(
    run: Run,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The remark.")],
    author: Annotated[str, typer.Option(metavar="NAME", help="Whose remark it is.")],
    signing_key: Signing = None,
    json: Json = False,
) -> None:
    """Add a remark to a ledger, open or sealed, and a checkpoint that covers it."""
    from acl.keys import signers_given
    from acl.redacting import redacted
    from acl.unsigned import recorded
    from ledger.errors import UsageError
    from ledger.events import AnnotationAdded
    from ledger.store import Ledger

    if not text.strip() or not author.strip():
        raise UsageError("a remark has a text and an author")
    signers = signers_given(signing_key)
    words, redactions = redacted(text)
    name, more = redacted(author)
    event = AnnotationAdded(text=words, author=name, redactions=redactions + more or None)
    with Ledger.open(run, amends=True) as ledger:
        receipt = ledger.append(event)
        with recorded(f"the remark stands, as event {receipt.first}", run):
            checkpoint = ledger.checkpoint(*signers)
    told = {
        "event": receipt.first,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "origin": checkpoint.origin,
    }
    if json:
        document(told)
    else:
        line(
            f"recorded as event {receipt.first}; checkpoint at {checkpoint.size} events,"
            f" root {checkpoint.root.hex()}, origin {checkpoint.origin}"
        )
