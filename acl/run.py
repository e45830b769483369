"""`acl run`: run an evaluation; every step is a durable event in its ledger."""

from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, document, line, message, number, table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Many = list[str] | None


@app.command()
def run(
    file: Annotated[
        Path | None, typer.Option("-f", "--file", metavar="FILE", help="A YAML or JSON request.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(metavar="ID")] = None,
    benchmark_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N tasks.")] = None,
    harness: Annotated[str | None, typer.Option(metavar="ID")] = None,
    harness_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    model: Annotated[str | None, typer.Option(metavar="ID")] = None,
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
    """Run one request; its ledger and files are put below the results directory."""
    from acl.request import read_request, read_thresholds

    flags = dict(locals())
    thresholds = read_thresholds(fail_under or ())
    request = read_request(file, flags)
    outcome = _call(request, results_dir, no_export=no_export, second=live_export)
    metrics = outcome.result.metrics if outcome.result else None
    missed = thresholds.missed(metrics.metrics if metrics else {})
    status = outcome.exit_code or (1 if missed else 0)
    if json:
        document(_document(outcome, status))
    else:
        _print(outcome)
    for sentence in missed:
        message(f"acl: {sentence}")
    return status


def _call(request: Any, results_dir: Path, *, no_export: bool, second: Path | None) -> Any:
    import asyncio
    import sys

    from acl.progress import progress_line
    from exporters.live import LiveExport
    from runtime.interrupt import StopSignal, listening
    from runtime.runner import run as run_request

    projectors = []
    if not no_export:
        projectors.append(lambda home: LiveExport(home, home=home))
    if second is not None:
        projectors.append(lambda _: LiveExport(second))
    stop = StopSignal()

    async def main() -> Any:
        with listening(stop), progress_line() as show:
            return await run_request(
                request,
                results_dir=results_dir,
                projectors=projectors,
                on_progress=show,
                stop=stop,
                command=("acl", *sys.argv[1:]),
            )

    return asyncio.run(main())


def _document(outcome: Any, status: int) -> dict[str, Any]:
    result = outcome.result
    metrics = result.metrics if result else None
    return {
        "run_id": outcome.run_id,
        "path": str(outcome.path),
        "ledger": outcome.paths.get("ledger"),
        "status": outcome.status,
        "exit": status,
        "error": outcome.error.model_dump() if outcome.error else None,
        "metrics": metrics.metrics if metrics else None,
        "counts": result.summary["counts"] if result else None,
    }


def _print(outcome: Any) -> None:
    line(f"run {outcome.run_id}: {outcome.status}")
    if outcome.error:
        line(f"error: {outcome.error.code}: {outcome.error.message}")
    result = outcome.result
    if result:
        counts = result.summary["counts"].items()
        line("tasks: " + ", ".join(f"{name} {value}" for name, value in counts if value))
        if result.metrics:
            table(
                ("METRIC", "VALUE", "OF"),
                [
                    (name, number(value), _denominator(result.metrics, name))
                    for name, value in result.metrics.metrics.items()
                ],
            )
    line(f"ledger: {outcome.paths.get('ledger')}")


def _denominator(metrics: Any, name: str) -> object:
    return (metrics.details.get(name) or {}).get("denominator")
