"""`acl run`: run an evaluation; every step is a durable event in its ledger."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from acl import options
from acl.keys import Signing
from acl.outcome import outcome_document, print_outcome
from acl.output import Json, alarm, document, message

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def run(
    file: options.File = None,
    benchmark: options.Benchmark = None,
    benchmark_param: options.BenchmarkParam = None,
    limit: options.Limit = None,
    harness: options.Harness = None,
    harness_param: options.HarnessParam = None,
    model: options.Model = None,
    model_param: options.ModelParam = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.ApiKeyEnv = None,
    k: options.K = None,
    strategy: options.Strategy = None,
    max_retries: options.MaxRetries = None,
    retry_min_delay: options.RetryMinDelay = None,
    concurrency: options.Concurrency = None,
    results_dir: options.ResultsDir = Path("results"),
    run_name: options.RunName = None,
    run_id: options.RunId = None,
    reuse: options.Reuse = None,
    reuse_run_id: options.ReuseRunId = None,
    reuse_changed: options.ReuseChanged = None,
    reuse_require_equal: options.ReuseRequireEqual = None,
    no_export: options.NoExport = False,
    live_export: options.LiveExport = None,
    artifacts: options.Artifacts = None,
    job_name: options.JobName = None,
    fail_under: options.FailUnder = None,
    signing_key: Signing = None,
    require_registry: options.RequireRegistry = False,
    json: Json = False,
) -> int:
    """Run a request, or a suite of several; ledgers and files are put below the results directory.

    Flags override the file, in a suite for every request; --concurrency is for all together.
    Nothing is begun where --live-export names a directory that holds anything.
    """
    from acl.keys import signers_given
    from acl.request import read_requested, read_thresholds
    from runtime.suite import Suite
    from runtime.surroundings import Surroundings

    flags = dict(locals())
    thresholds = read_thresholds(fail_under or ())
    requested = read_requested(file, flags)
    signers = signers_given(signing_key)
    around = Surroundings(alarm=alarm, signers=signers, require_registry=require_registry)
    many = isinstance(requested, Suite)
    places = _projectors(results_dir, no_export=no_export, second=live_export, many=many)
    jobs = _jobs(artifacts, job_name, results_dir, many=many)
    if jobs is not None:
        places.append(jobs.follow)
    if isinstance(requested, Suite):
        from acl.suite import run_suite

        return run_suite(requested, results_dir, places, thresholds, around, jobs, json=json)
    outcome = _call(requested, results_dir, places, around)
    made = None if jobs is None else jobs.conclude(outcome)
    return _tell(outcome, made, thresholds, json=json)


def _tell(outcome: Any, made: Any, thresholds: Any, *, json: bool) -> int:
    """Print how a run ended, and return the exit status that it means."""
    metrics = outcome.result.metrics if outcome.result else None
    missed: list[str] = thresholds.missed(metrics.metrics if metrics else {})
    status = int(outcome.exit_code or (1 if missed else 0))
    if json:
        document(outcome_document(outcome, status, made))
    else:
        print_outcome(outcome, made)
    for sentence in missed:
        message(f"acl: {sentence}")
    return status


def _jobs(artifacts: Path | None, name: str | None, results_dir: Path, *, many: bool) -> Any:
    """The artifacts directory, ready to be written to, if there is to be one."""
    from ledger.errors import UsageError

    if name is not None and (artifacts is None or many):
        why = "the requests of a suite" if many else "a run without --artifacts"
        raise UsageError(f"--job-name does not fit {why}")
    if artifacts is None:
        return None
    from acl.artifacts import RunArtifacts
    from exporters.jobs.job import JobOptions

    jobs = RunArtifacts(artifacts, results_dir, JobOptions(name), alarm)
    jobs.prepare()
    return jobs


def _projectors(
    results_dir: Path, *, no_export: bool, second: Path | None, many: bool
) -> list[Callable[[Path], Any]]:
    """What follows each run: the files beside its ledger, and those in a second place.

    Several runs have their second places as they lie below the results directory. Raises
    ExportRefused where that of a single run holds anything.
    """
    from exporters.live import LiveExport, refuse_occupied

    if second is not None and not many:
        refuse_occupied(second)
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


def _call(
    request: Any, results_dir: Path, projectors: list[Callable[[Path], Any]], around: Any
) -> Any:
    import asyncio
    import sys

    from acl.progress import progress_line
    from acl.streams import stdout_kept
    from runtime.interrupt import StopSignal, listening
    from runtime.runner import run as run_request

    stop = StopSignal()

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
