"""`acl run -f SUITE`: several requests under one limit, told of together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acl.outcome import outcome_document, print_outcome
from acl.output import document, line, message
from acl.request import Thresholds
from runtime.interrupt import StopSignal
from runtime.results import OrchestrationResult, RequestOutcome
from runtime.suite import Suite
from runtime.surroundings import Surroundings


def run_suite(
    suite: Suite,
    results_dir: Path,
    projectors: Sequence[Any],
    thresholds: Thresholds,
    around: Surroundings,
    jobs: Any = None,
    *,
    json: bool,
) -> int:
    """Run all requests, print how they ended, and return the exit status of the command.

    `jobs` is the artifacts directory that they write to, if any.
    """
    stop = StopSignal()
    result = _call(suite, results_dir, projectors, around, stop)
    made = {
        name: None if jobs is None else jobs.conclude(outcome)
        for name, outcome in result.requests.items()
    }
    missed = {
        name: thresholds.missed(_metrics(outcome)) if outcome.result else []
        for name, outcome in result.requests.items()
    }
    statuses = {
        name: outcome.exit_code or (1 if missed[name] else 0)
        for name, outcome in result.requests.items()
    }
    if json:
        document(_document(result, statuses, made))
    else:
        _print(result, made)
    for name, sentences in missed.items():
        for sentence in sentences:
            message(f"acl: {name}: {sentence}")
    return _exit_status(result, statuses, stop)


def _call(
    suite: Suite,
    results_dir: Path,
    projectors: Sequence[Any],
    around: Surroundings,
    stop: StopSignal,
) -> OrchestrationResult:
    import asyncio
    import sys

    from acl.progress import progress_table
    from acl.streams import stdout_kept
    from runtime.interrupt import listening
    from runtime.orchestrator import Orchestrator

    orchestrator = Orchestrator(
        suite,
        results_dir,
        surroundings=around,
        stop=stop,
        command=("acl", *sys.argv[1:]),
    )

    async def main() -> OrchestrationResult:
        listen = listening(stop, grace_seconds=suite.cleanup_grace_seconds)
        with listen, progress_table([request.name for request in suite.requests]) as rows:
            if rows is None:
                return await orchestrator.run(projectors)
            return await orchestrator.run(projectors, rows.progress, rows.end)

    with stdout_kept():
        return asyncio.run(main())


def _exit_status(result: OrchestrationResult, statuses: dict[str, int], stop: StopSignal) -> int:
    if result.status == "cancelled":
        return stop.exit_code
    if result.status != "completed":
        return 1
    return next((status for status in statuses.values() if status), 0)


def _metrics(outcome: RequestOutcome) -> dict[str, float]:
    metrics = outcome.result.metrics if outcome.result else None
    return dict(metrics.metrics) if metrics else {}


def _document(
    result: OrchestrationResult, statuses: dict[str, int], made: dict[str, Any]
) -> dict[str, Any]:
    return {
        "orchestration_id": result.orchestration_id,
        "name": result.name,
        "status": result.status,
        "started_at": result.started_at,
        "finished_at": result.finished_at,
        "requests": [
            {"name": name, **outcome_document(outcome, statuses[name], made[name])}
            for name, outcome in result.requests.items()
        ],
    }


def _print(result: OrchestrationResult, made: dict[str, Any]) -> None:
    for name, outcome in result.requests.items():
        line(f"request {name}: {outcome.status}")
        print_outcome(outcome, made[name])
        line()
    completed = sum(outcome.status == "completed" for outcome in result.requests.values())
    suite = f"suite {result.name}" if result.name else "suite"
    line(f"{suite}: {result.status}, {completed} of {len(result.requests)} requests completed")
