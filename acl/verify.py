"""`acl verify RUN`: every finding, then in words what is proven and what is not."""

from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, Run, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BROKEN_STATUS = 4


@app.command()
def verify(
    run: Run,
    tree: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Compare an exported directory too.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A checkpoint kept elsewhere; it must be reached."),
    ] = None,
    min_size: Annotated[
        int, typer.Option(min=0, metavar="N", help="The ledger must hold at least N events.")
    ] = 0,
    json: Json = False,
) -> int:
    """Re-derive everything from the stored bytes; exit 4 if anything is broken.

    What merely cannot be proven (no signature, no outside checkpoint) is said and exits 0.
    """
    from acl.verdict import examine

    verdict = examine(run, tree=tree, checkpoint=checkpoint, min_size=min_size)
    if json:
        document(verdict)
    else:
        _print(verdict)
    return 0 if verdict["ok"] else BROKEN_STATUS


def _print(verdict: dict[str, Any]) -> None:
    for finding in verdict["findings"]:
        if finding["severity"] == "unproven":
            continue
        where = "" if finding["seq"] is None else f" event {finding['seq']}"
        who = "" if finding["task"] is None else f" task {finding['task']}"
        line(f"{finding['severity']}{where}{who}: {finding['message']} [{finding['code']}]")
    broken = sum(finding["severity"] == "broken" for finding in verdict["findings"])
    if broken:
        line(f"BROKEN: {broken} finding{'s' * (broken > 1)}; do not trust this ledger")
    else:
        line(f"OK: {verdict['size']} events, root {verdict['root']}")
    for title, sentences in (("Proven", "proven"), ("Not proven", "unproven")):
        if verdict[sentences]:
            line(f"{title}:")
            for sentence in verdict[sentences]:
                line(f"  - {sentence}")
