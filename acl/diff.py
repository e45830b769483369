"""`acl diff`: two runs by their verdicts, metrics and settings, or two exported trees by files."""

from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A run; with --trees, a directory.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is compared with.")],
    trees: Annotated[
        bool, typer.Option("--trees", help="Compare two exported trees file by file.")
    ] = False,
    json: Json = False,
) -> int:
    """Show what differs between two runs, or two exported trees; exit 1 if anything does.

    Of trees, what makes an import another run is set aside, and named: ids, times and ledgers.
    """
    if trees:
        return _diff_trees(Path(a), Path(b), json=json)
    from acl.diff_runs import diff_runs

    return diff_runs(a, b, json=json)


def _diff_trees(a: Path, b: Path, *, json: bool) -> int:
    from dataclasses import asdict

    from exporters.compare import compare_trees

    found = compare_trees(a, b)
    if json:
        document(
            {
                "equal": found.equal,
                "differences": [asdict(difference) for difference in found.differences],
                "set_aside": list(found.set_aside),
            }
        )
    else:
        _print(found)
    return 0 if found.equal else 1


def _print(found: Any) -> None:
    for one in found.differences:
        if one.kind == "missing":
            line(f"only in A: {one.path}")
        elif one.kind == "extra":
            line(f"only in B: {one.path}")
        else:
            line(f"differs: {one.path} at {one.at}: {_side(one.first)} in A, {_side(one.second)}")
    for words in found.set_aside:
        line(f"set aside: {words}")
    count = len(found.differences)
    line("equal" if found.equal else f"{count} file{'s' * (count != 1)} not the same")


def _side(shown: str | None) -> str:
    return "nothing" if shown is None else shown
