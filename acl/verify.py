"""`acl verify RUN`: every finding, then in words what is proven and what is not."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.keys import Key, PolicyFile
from acl.output import Json, Run, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BROKEN_STATUS = 4
_TITLES = {"proven": "Proven", "unproven": "Not proven"}


@app.command()
def verify(
    run: Run,
    key: Key = None,
    policy: PolicyFile = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A checkpoint kept elsewhere; it must be reached."),
    ] = None,
    old: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An older checkpoint or copy; it must be extended."),
    ] = None,
    min_size: Annotated[
        int, typer.Option(min=0, metavar="N", help="The ledger must hold at least N events.")
    ] = 0,
    tree: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Compare an exported directory too.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="A ledger that tasks were reused from."),
    ] = None,
    json: Json = False,
) -> int:
    """Re-derive everything from the stored bytes; exit 4 if anything is broken.

    Exit 1 if only the policy is not met. What merely cannot be proven (no signature, no outside
    checkpoint) is said and exits 0.
    """
    from acl.keys import policy_of, verifiers_of
    from acl.verdict import Against, examine
    from ledger.errors import UsageError

    if tree is not None and not tree.is_dir():
        raise UsageError(f"there is no directory {tree}", hint="name one that was exported")
    against = Against(
        verifiers=verifiers_of(key),
        policy=policy_of(policy),
        checkpoints=(*(checkpoint or ()), *(old or ())),
        min_size=min_size,
        tree=tree,
        sources=source or (),
    )
    verdict = examine(run, against)
    if json:
        document(verdict)
    else:
        _print(verdict)
    if not verdict["ok"]:
        return BROKEN_STATUS if _broken(verdict) else 1
    return 0


def _broken(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in verdict["findings"] if f["severity"] == "broken"]


def _print(verdict: dict[str, Any]) -> None:
    broken = _broken(verdict)
    if not verdict["intact"]:
        line(f"BROKEN: {_count(broken, 'finding')}; do not trust this ledger")
    elif broken:
        line(f"the ledger is intact, but not what was claimed: {_count(broken, 'finding')}")
    elif not verdict["ok"]:
        line(f"the ledger is intact, but the policy is not met: {_extent(verdict)}")
    else:
        line(f"OK: {_extent(verdict)}")
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
    for fork in verdict["forks"]:
        _print_fork(fork)


def _print_fork(fork: str) -> None:
    line("Two histories were shown. This proves it to anybody (acl verify-proof):")
    for text in fork.rstrip("\n").split("\n"):
        line(text)


def _extent(verdict: dict[str, Any]) -> str:
    return f"{verdict['size']} events, root {verdict['root']}"


def _count(things: list[Any], word: str) -> str:
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"
