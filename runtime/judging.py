"""The verdict on a recorded result, and the analyzers' look at it."""

from dataclasses import replace
from functools import partial
from typing import Any

from ledger import events as ev
from runtime.containment import contained
from runtime.contracts import Analysis, BaseAnalyzer
from runtime.harvest import (
    Sieve,
    attempt_status,
    evaluation_event,
    failed_evaluation,
    refused_error,
)
from runtime.results import ErrorInfo, Evaluation, RunResult
from runtime.stages import StageTimeout, explain, stage
from runtime.trail import Trail
from runtime.tries import Tried


async def judge(trail: Trail, tried: Tried) -> ev.EvaluationFinished:
    """Ask the benchmark, within its time limit; a failure of its own becomes the event's error."""
    assert tried.context is not None
    setup = trail.work.setup
    task, attempt = trail.task, trail.attempt
    default = ev.Evaluator(id=setup.benchmark.id, version=setup.benchmark.version)
    await trail.enter("evaluate")
    evaluating = partial(setup.benchmark.evaluate, task, tried.result, tried.context)
    try:
        given = await stage(evaluating, timeout=tried.limits.evaluation, grace=trail.work.grace)
        return evaluation_event(task, attempt, given, default)
    except StageTimeout as timeout:
        error = ErrorInfo(code="evaluation_timeout", message=str(timeout), phase="evaluate")
    except Exception as problem:  # noqa: BLE001 - plug-ins may raise anything
        error = explain(problem, "evaluate")
    return failed_evaluation(task.task_id, attempt, error, default)


async def analyze(trail: Trail, tried: Tried, verdict: ev.EvaluationFinished) -> None:
    """Let each analyzer look; what goes wrong there is recorded and fails nothing."""
    analyzers = trail.work.setup.analyzers
    if not analyzers:
        return
    # A copy: what analyzers see of errors is no concern of whoever ends the attempt.
    result = replace(
        tried.result,
        status=attempt_status(tried.error, verdict.evaluation_error),
        error=tried.error,
        correct=verdict.correct,
        score=verdict.score,
        evaluation_error=verdict.evaluation_error,
    )
    evaluation = Evaluation(
        evaluator=verdict.evaluator,
        correct=verdict.correct,
        score=verdict.score,
        metrics=dict(verdict.metrics),
        reason=verdict.reason,
        error=verdict.evaluation_error,
        tests_status=verdict.tests_status,
        stdout=verdict.stdout,
        stderr=verdict.stderr,
        ground_truth=verdict.ground_truth,
    )
    await trail.enter("analyze")
    for analyzer in analyzers:
        event = await _analysis(trail, analyzer, result, evaluation)
        if event is not None:
            await trail.record(event)


async def _analysis(
    trail: Trail, analyzer: BaseAnalyzer, result: RunResult, evaluation: Evaluation
) -> ev.AnalysisFinished | None:
    error: ErrorInfo | None = None
    given: Any = None
    try:
        with contained():
            if analyzer.should_skip(result):
                return None
        looking = partial(analyzer.analysis, trail.task, result, evaluation)
        given = await stage(looking, timeout=None, grace=trail.work.grace)
        if not isinstance(given, Analysis):
            message = f"the analyzer gave {type(given).__name__} instead of an Analysis"
            error, given = ErrorInfo(code="bad_analysis", message=message), None
    except Exception as problem:  # noqa: BLE001 - plug-ins may raise anything
        error = explain(problem, "analyze")
    found = given or Analysis()
    sieve = Sieve()
    details = sieve.value("details", found.details)
    if found.extra is not None:
        details = {"details": details, "extra": sieve.value("extra", found.extra)}
    score = sieve.number("score", found.score)
    return ev.AnalysisFinished(
        task=trail.task.task_id,
        attempt=trail.attempt,
        analyzer=analyzer.id,
        family=analyzer.base_analyzer,
        is_badcase=found.is_badcase if type(found.is_badcase) is bool else None,
        score=score,
        details=details,
        error=error or found.error or refused_error(sieve.refusals, "analyze"),
    )
