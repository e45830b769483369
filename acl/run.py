"""`acl run`: run an evaluation."""

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from acl.output import Json, document, line, message, number, on_terminal, table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Text = Annotated[str | None, typer.Option()]
Many = list[str] | None


@app.command()
def run(
    file: Annotated[
        Path | None, typer.Option("-f", "--file", metavar="FILE", help="A YAML or JSON request.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(metavar="ID")] = None,
    harness: Annotated[str | None, typer.Option(metavar="ID")] = None,
    model: Annotated[str | None, typer.Option(metavar="ID")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL")] = None,
    k: Annotated[int | None, typer.Option("--k", metavar="N", help="Attempts per task.")] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME", help="all or stop_on_correct")
    ] = None,
    max_retries: Annotated[int | None, typer.Option(metavar="N")] = None,
    retry_min_delay: Annotated[float | None, typer.Option(metavar="SECONDS")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N tasks.")] = None,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="Tasks at once.")] = None,
    benchmark_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    harness_param: Annotated[Many, typer.Option(metavar="NAME=VALUE")] = None,
    results_dir: Annotated[Path, typer.Option(metavar="DIR")] = Path("results"),
    run_name: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    run_id: Annotated[str | None, typer.Option(metavar="ID")] = None,
    reuse_run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Reuse finished tasks of this run.")
    ] = None,
    no_export: Annotated[
        bool, typer.Option("--no-export", help="Write no files beside the ledger.")
    ] = False,
    live_export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A second place for the files.")
    ] = None,
    fail_under: Annotated[
        Many, typer.Option(metavar="METRIC=X", help="Exit 1 if the metric is lower; repeatable.")
    ] = None,
    json: Json = False,
) -> int:
    """Run one request; its ledger and files are put below the results directory."""
    raise NotImplementedError


def _unused() -> Any:
    return asyncio, sys, asdict, document, line, message, number, on_terminal, table
