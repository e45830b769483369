"""`acl analyze RUN --out DIR`: why attempts failed, by kinds of tasks, and what goes along."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, Run, alarm, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def analyze(
    run: Run,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="New, empty, or an earlier analysis of the same run."),
    ],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Options: the analysis_config.yaml of any analysis."),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(metavar="RESULTS_DIR", help="Grade tasks by what other runs made of them."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the analysis of another run.")
    ] = False,
    json: Json = False,
) -> None:
    """Analyse a run from its events alone: the same events and options give the same bytes.

    With the configuration of an earlier analysis of the same ledger, that analysis is made again,
    of the events that there were then.
    """
    from acl.verdict import broken, state_at
    from exporters.identity import Identity
    from exporters.job_analysis import analyze_job, empirical_source
    from exporters.job_analysis.place import place_analysis
    from ledger import LedgerView
    from ledger.errors import LedgerDamaged

    options = _options(config)
    faults = broken(run)
    if faults:
        where = "" if faults[0].seq is None else f" at event {faults[0].seq}"
        raise LedgerDamaged(f"{run} is damaged{where}: {faults[0].message}", seq=faults[0].seq)
    with LedgerView.open(run) as view:
        state = state_at(view, _size(view, options))
        if peers is not None:
            found = empirical_source(state, _states(peers))
            options = options.model_copy(update={"empirical_source": found})
        identity = Identity.of(state)
        files = place_analysis(out, analyze_job(state, view, options), identity, force=force)
    if json:
        document({"path": str(out), "files": files, **identity.trailer()})
    else:
        line(f"{files} files in {out}")
        line(f"from {state.size} events, root {state.root.hex()}")


def _options(file: Path | None) -> Any:
    from exporters.job_analysis import AnalysisConfig
    from ledger.errors import UsageError

    if file is None:
        return AnalysisConfig()
    try:
        return AnalysisConfig.parse(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _size(view: Any, options: Any) -> int:
    """How many events are analysed: those of the analysis that is made again, or all."""
    from ledger.errors import UsageError

    held: int = view.size
    source = options.acl
    if source is None or source.ledger_id != view.ledger_id.hex():
        return held
    if source.size > held or view.root(source.size).hex() != source.root:
        raise UsageError("the configuration is of events that this ledger does not hold")
    return int(source.size)


def _states(results_dir: Path) -> Iterator[Any]:
    """The runs below a results directory, one at a time; those that cannot be read are told."""
    from ledger import LedgerView, fold
    from ledger.errors import AclError, RunNotFound
    from ledger.opening import LEDGER_NAME

    if not results_dir.is_dir():
        raise RunNotFound(f"no results directory {results_dir}")
    for path in sorted(results_dir.rglob(LEDGER_NAME)):
        if any(part.startswith(".") for part in path.relative_to(results_dir).parts):
            continue  # an import or export that is being staged
        try:
            with LedgerView.open(path) as view:
                state = fold(view.events())
            if state.created is not None:
                yield state
        except (AclError, OSError) as error:
            alarm(f"{path.parent} is left out: {error}")
