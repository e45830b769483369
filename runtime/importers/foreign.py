"""Tasks and attempts as a foreign log tells them, and the events that stand for them.

For formats that tell of whole attempts one after another: an importer says what it read in these
words, and the order that the state machines want is kept here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES
from runtime.importers.plan import Item, Original, Remark
from runtime.importers.source import SourceFile
from runtime.models import (
    BenchmarkSpec,
    EnvironmentSpec,
    ExecutionSpec,
    HarnessSpec,
    ModelSpec,
    OutputSpec,
    RunRequest,
    Strategy,
)

UNKNOWN: Final = "unknown"

# What holds results: a file of such a name is no mere text beside them.
_OF_RECORDS: Final = frozenset({".json", ".jsonl", ".ndjson", ".eval"})


def stranger(file: SourceFile, whole: str) -> Remark:
    """The remark that a file is no part of `whole`; one that may hold results is not placed."""
    placed = PurePosixPath(file.path).suffix.lower() not in _OF_RECORDS
    return Remark(file.path, f"it is no part of {whole}, and only kept", placed=placed)


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """A tool that the agent used, and what it gave back."""

    name: str
    call_id: str | None = None
    arguments: Any = None
    output: Any = None
    exit_code: int | None = None
    is_error: bool = False
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """One model call. What the log does not tell is None; `ended` is False for one that it lost.

    `tools` are those that returned before the next call. `retry` is the number of tries of the
    attempt that were discarded before. A `call_id` must be the only one in its attempt.
    """

    messages: Any = None
    params: Mapping[str, Any] | None = None
    provider: str | None = None
    model: str | None = None
    response: Any = None
    usage: ev.Usage | None = None
    cost_usd: float | None = None
    error: ev.ErrorInfo | None = None
    started_at: str | None = None
    finished_at: str | None = None
    duration_ms: float | None = None
    ended: bool = True
    flags: tuple[str, ...] = ()
    call_id: str | None = None
    cost_source: str = "source"
    ttft_ms: float | None = None
    provider_request_id: str | None = None
    tools: tuple[ForeignTool, ...] = ()
    retry: int = 0


@dataclass(frozen=True, slots=True)
class ForeignRetry:
    """A try that was discarded, and why; another followed after `delay_seconds`."""

    error: ev.ErrorInfo
    max_retries: int
    delay_seconds: float = 0.0
    stage: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class ForeignVerdict:
    """What the log says of an attempt's worth, and who said so.

    With an `error` the judge failed, and there is no verdict. A score that is not finite belongs
    into `extra`.
    """

    evaluator: ev.Evaluator
    correct: bool | None = None
    score: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    error: ev.ErrorInfo | None = None
    tests_status: Any = None
    stdout: str | None = None
    stderr: str | None = None
    extra: Any = None


@dataclass(frozen=True, slots=True)
class ForeignAttempt:
    """One attempt, numbered from 1. Without a `verdict` nobody judged it.

    `status` is derived where it is not given. `ended` is False if the log stops before its end.
    """

    number: int
    final_answer: Any = None
    ground_truth: Any = None
    trajectory: Any = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Any = None
    error: ev.ErrorInfo | None = None
    meta: Any = None
    extra: Any = None
    calls: tuple[ForeignCall, ...] = ()
    verdict: ForeignVerdict | None = None
    issues: tuple[ev.Issue, ...] = ()
    originals: tuple[SourceFile, ...] = ()
    status: ev.AttemptStatus | None = None
    ended: bool = True
    retries: tuple[ForeignRetry, ...] = ()

    @property
    def outcome(self) -> ev.AttemptStatus:
        """The status that is recorded."""
        if self.status is not None:
            return self.status
        if self.error is not None:
            return "run_error"
        if self.verdict is not None and self.verdict.error is not None:
            return "eval_error"
        return "completed"


def task_items(task_id: str, attempts: Iterable[ForeignAttempt]) -> Iterator[Item]:
    """The events of one task that was tried; it is over if each of its attempts is."""
    yield ev.TaskStarted(task=task_id)
    over, error = True, False
    for attempt in attempts:
        yield from attempt_items(task_id, attempt)
        over = over and attempt.ended
        error = error or attempt.outcome in ERROR_STATUSES
    if over:
        yield ev.TaskFinished(task=task_id, reason="all_attempts", error=error)


def attempt_items(task_id: str, told: ForeignAttempt) -> Iterator[Item]:
    """The events of one attempt, with its files."""
    at: dict[str, Any] = {"task": task_id, "attempt": told.number}
    yield ev.AttemptStarted(**at)
    yield from _tries(at, told)
    for file in told.originals:
        yield Original(file, task_id, told.number)
    if not told.ended:
        return
    outcome, verdict = told.outcome, told.verdict
    ran = "completed" if outcome == "eval_error" else outcome
    yield ev.ResultRecorded(
        **at,
        status=ran,
        final_answer=told.final_answer,
        ground_truth=told.ground_truth,
        trajectory=told.trajectory,
        metrics=dict(told.metrics),
        telemetry=told.telemetry,
        error=told.error,
        meta=told.meta,
        extra=told.extra,
    )
    if verdict is not None:
        yield _verdict(at, verdict)
    judged = verdict if verdict is not None and verdict.error is None else None
    yield ev.AttemptFinished(
        **at,
        status=outcome,
        correct=judged.correct if judged else None,
        score=judged.score if judged else None,
        retries=len(told.retries),
        error=told.error or (verdict.error if verdict else None),
        issues=told.issues,
    )


def _tries(at: dict[str, Any], told: ForeignAttempt) -> Iterator[Item]:
    """The calls of all tries, and between them the ends of those that were discarded."""
    numbered = list(enumerate(told.calls))
    last = len(told.retries)
    for number in range(last + 1):
        for index, call in numbered:
            if min(call.retry, last) == number:
                yield from _call(at, index, call)
        if number < last:
            yield _retried(at, number + 1, told.retries[number])


def _retried(at: dict[str, Any], number: int, retry: ForeignRetry) -> ev.AttemptRetried:
    return ev.AttemptRetried(
        **at,
        retry=number,
        max_retries=retry.max_retries,
        retry_delay_seconds=retry.delay_seconds,
        stage=retry.stage,
        scope="attempt",
        error=retry.error,
    )


def _call(at: dict[str, Any], index: int, call: ForeignCall) -> Iterator[Item]:
    call_id = call.call_id or f"call-{index}"
    yield ev.CallStarted(
        **at,
        call_id=call_id,
        call_index=index,
        provider=call.provider,
        model=call.model,
        params=None if call.params is None else dict(call.params),
        messages=call.messages,
    )
    yield _call_end(at, call_id, call)
    for tool in call.tools:
        yield ev.ToolFinished(
            **at,
            call_id=tool.call_id,
            name=tool.name,
            arguments=tool.arguments,
            exit_code=tool.exit_code,
            is_error=tool.is_error,
            duration_ms=tool.duration_ms,
            output=tool.output,
        )


def _call_end(at: dict[str, Any], call_id: str, call: ForeignCall) -> Item:
    if not call.ended:
        return ev.CallLost(**at, call_id=call_id)
    return ev.CallFinished(
        **at,
        call_id=call_id,
        success=call.error is None,
        response=call.response,
        usage=call.usage,
        cost_usd=call.cost_usd,
        cost_source=None if call.cost_usd is None else call.cost_source,
        started_at=call.started_at,
        finished_at=call.finished_at,
        duration_ms=call.duration_ms,
        ttft_ms=call.ttft_ms,
        provider_request_id=call.provider_request_id,
        error=call.error,
        flags=call.flags,
    )


def _verdict(at: dict[str, Any], verdict: ForeignVerdict) -> ev.EvaluationFinished:
    judged = verdict.error is None
    return ev.EvaluationFinished(
        **at,
        correct=verdict.correct if judged else None,
        score=verdict.score if judged else None,
        metrics=dict(verdict.metrics),
        reason=verdict.reason,
        evaluation_error=verdict.error,
        tests_status=verdict.tests_status,
        evaluator=verdict.evaluator,
        stdout=verdict.stdout,
        stderr=verdict.stderr,
        extra=verdict.extra,
    )


def foreign_request(
    *,
    benchmark: str,
    model: str,
    run_id: str = "",
    harness: str = UNKNOWN,
    k: int = 1,
    strategy: Strategy = "all",
    model_params: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A complete request in our words; the source's own words stand below `source`."""
    request = RunRequest(
        benchmark=BenchmarkSpec(id=benchmark or UNKNOWN),
        harness=HarnessSpec(id=harness or UNKNOWN),
        environment=EnvironmentSpec(id=UNKNOWN),
        model=ModelSpec(id=model or UNKNOWN, params=dict(model_params or {})),
        execution=ExecutionSpec(k=k, strategy=strategy),
        output=OutputSpec(run_id=run_id),
    )
    # JSON mode would turn NaN into null.
    values: dict[str, Any] = request.model_dump(mode="python")
    return {**values, "source": dict(source)} if source else values


def persistence_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """What `run.created` tells besides of a foreign request."""
    told = {name: request[name] for name in ("benchmark", "model", "output", "metadata")}
    return told | {"reuse": request["runtime"]}
