"""`acl run`: run an evaluation; every step is a durable event in its ledger."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.outcome import outcome_document, print_outcome
from acl.output import Json, alarm, document, message

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Many = list[str] | None


@app.command()
def run(
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", metavar="FILE", help="A YAML or JSON request, or a suite."),
    ] = None,
    benchmark: Annotated[str | None, typer.Option(metavar="ID")] = None,
    benchmark_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N tasks.")] = None,
    harness: Annotated[str | None, typer.Option(metavar="ID")] = None,
    harness_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    model: Annotated[str | None, typer.Option(metavar="ID")] = None,
    model_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="An OpenAI-compatible endpoint.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variable that holds its key.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", metavar="N", help="Attempts per task.")] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME", help="all or stop_on_correct.")
    ] = None,
    max_retries: Annotated[int | None, typer.Option(metavar="N")] = None,
    retry_min_delay: Annotated[float | None, typer.Option(metavar="SECONDS")] = None,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="Tasks at once.")] = None,
    results_dir: Annotated[Path, typer.Option(metavar="DIR")] = Path("results"),
    run_name: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    run_id: Annotated[str | None, typer.Option(metavar="ID")] = None,
    reuse: Annotated[
        bool | None, typer.Option("--reuse", help="Reuse the newest run of the same kind.")
    ] = None,
    reuse_run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Reuse the finished tasks of this run.")
    ] = None,
    reuse_changed: Annotated[
        bool | None,
        typer.Option("--reuse-changed", help="Reuse tasks also where their input changed."),
    ] = None,
    reuse_require_equal: Annotated[
        bool | None,
        typer.Option("--reuse-require-equal", help="Refuse a run that was run otherwise."),
    ] = None,
    no_export: Annotated[
        bool, typer.Option("--no-export", help="Write no files beside the ledger.")
    ] = False,
    live_export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A second place for the files.")
    ] = None,
    fail_under: Annotated[
        Many, typer.Option(metavar="METRIC=X", help="Exit 1 if a metric is lower; repeatable.")
    ] = None,
    json: Json = False,
) -> int:
    """Run a request, or a suite of several; ledgers and files are put below the results directory.

    Flags override the file, in a suite for every request; --concurrency is for all together.
    """
    from acl.request import read_requested, read_thresholds
    from runtime.suite import Suite

    flags = dict(locals())
    thresholds = read_thresholds(fail_under or ())
    requested = read_requested(file, flags)
    if isinstance(requested, Suite):
        from acl.suite import run_suite

        places = _projectors(results_dir, no_export=no_export, second=live_export, many=True)
        return run_suite(requested, results_dir, places, thresholds, json=json)
    places = _projectors(results_dir, no_export=no_export, second=live_export, many=False)
    outcome = _call(requested, results_dir, places)
    metrics = outcome.result.metrics if outcome.result else None
    missed = thresholds.missed(metrics.metrics if metrics else {})
    status = outcome.exit_code or (1 if missed else 0)
    if json:
        document(outcome_document(outcome, status))
    else:
        print_outcome(outcome)
    for sentence in missed:
        message(f"acl: {sentence}")
    return status


def _projectors(
    results_dir: Path, *, no_export: bool, second: Path | None, many: bool
) -> list[Callable[[Path], Any]]:
    """What follows each run: the files beside its ledger, and those in a second place.

    Several runs have their second places as they lie below the results directory.
    """
    from exporters.live import LiveExport

    # A plug-in may change the working directory.
    results, second = results_dir.absolute(), second.absolute() if second else None
    projectors: list[Callable[[Path], Any]] = []
    if not no_export:
        projectors.append(lambda home: LiveExport(home, home=home))
    if second is not None:

        def place(home: Path) -> Path:
            return second / home.relative_to(results) if many else second

        projectors.append(lambda home: LiveExport(place(home)))
    return projectors


def _call(request: Any, results_dir: Path, projectors: list[Callable[[Path], Any]]) -> Any:
    import asyncio
    import sys

    from acl.progress import progress_line
    from acl.streams import stdout_kept
    from runtime.interrupt import StopSignal, listening
    from runtime.runner import run as run_request
    from runtime.surroundings import Surroundings

    stop = StopSignal()
    around = Surroundings(alarm=alarm)

    async def main() -> Any:
        listen = listening(stop, grace_seconds=around.grace_seconds)
        with listen, progress_line() as show:
            return await run_request(
                request,
                results_dir=results_dir,
                projectors=projectors,
                on_progress=show,
                stop=stop,
                command=("acl", *sys.argv[1:]),
                surroundings=around,
            )

    with stdout_kept():
        return asyncio.run(main())
