"""`acl verify RUN`: every finding, then in words what is proven and what is not."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, Run, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BROKEN_STATUS = 4
_TITLES = {"proven": "Proven", "unproven": "Not proven"}


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
    broken = [f for f in verdict["findings"] if f["severity"] == "broken"]
    if not verdict["intact"]:
        line(f"BROKEN: {_count(broken, 'finding')}; do not trust this ledger")
    elif broken:
        line(f"the ledger is intact, but not what was claimed: {_count(broken, 'finding')}")
    else:
        line(f"OK: {verdict['size']} events, root {verdict['root']}")
    for finding in verdict["findings"]:
        if finding["severity"] != "unproven":
            where = "" if finding["seq"] is None else f" event {finding['seq']}"
            who = "" if finding["task"] is None else f" task {finding['task']}"
            line(f"{finding['severity']}{where}{who}: {finding['message']} [{finding['code']}]")
    for title in ("proven", "unproven"):
        if verdict[title]:
            line(f"{_TITLES[title]}:")
            for sentence, times in Counter(verdict[title]).items():
                line(f"  - {sentence}" + (f" ({times} times)" if times > 1 else ""))


def _count(things: list[Any], word: str) -> str:
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"
