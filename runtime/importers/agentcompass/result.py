"""One `result.json`: what it says of the run of an attempt, and of its verdict.

The verdict is what AgentCompass calls the primary metric: a truth value named `correct`, or a
number named `score`; no other metric may have these names there.
"""

from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard, get_args

from ledger import events as ev
from runtime.importers.agentcompass.issues import (
    decisive_error,
    evaluation_error,
    parse_issues,
    run_error,
)
from runtime.importers.jsontext import NotARecord
from runtime.importers.numbers import is_measure, is_number

EVALUATOR: Final = "import:agentcompass"

_STATUSES: Final = frozenset(get_args(ev.AttemptStatus))
_RUN_STATUS: Final = {"eval_error": "completed", "run_error_or_eval_error": "run_error"}
# In the order of `ResultRecorded`; the others have places of their own.
_KEPT: Final = ("final_answer", "trajectory", "artifacts")
_KNOWN: Final = frozenset(
    (
        *_KEPT,
        "status",
        "metrics",
        "issues",
        "analysis_result",
        "meta",
        "telemetry",
        "extra",
        "retry_count",
        "task_id",
        "category",
        "ground_truth",
    )
)
_ANALYSIS: Final = frozenset({"is_badcase", "details", "score", "error"})


@dataclass(slots=True)
class Verdict:
    """What the benchmark measured; `oddities` says of what could not be taken for a measure."""

    correct: bool | None = None
    score: int | float | None = None
    metrics: dict[str, bool | int | float] = field(default_factory=dict)
    left: dict[str, Any] = field(default_factory=dict)
    oddities: list[str] = field(default_factory=list)

    @property
    def given(self) -> bool:
        """True if anything was measured."""
        return self.correct is not None or self.score is not None or bool(self.metrics)


@dataclass(slots=True)
class AttemptResult:
    """A result, taken apart. `retries` is the source's own count, None if it has none."""

    status: ev.AttemptStatus
    verdict: Verdict
    issues: tuple[ev.Issue, ...]
    analyses: dict[str, dict[str, Any]]
    retries: int | None
    fields: dict[str, Any]
    telemetry: Any
    meta: Any
    extra: dict[str, Any]

    @property
    def oddities(self) -> list[str]:
        """What is told of the record, although it was placed."""
        return self.verdict.oddities

    def recorded(self, task: str, attempt: int, ground_truth: Any) -> ev.ResultRecorded:
        """What the harness gave back."""
        run_status: Any = _RUN_STATUS.get(self.status, self.status)
        return ev.ResultRecorded(
            task=task,
            attempt=attempt,
            status=run_status,
            **self.fields,
            ground_truth=ground_truth,
            telemetry=self.telemetry,
            error=run_error(self.issues),
            meta=self.meta,
            extra=self.extra or None,
        )

    def judged(self, task: str, attempt: int, version: str) -> ev.EvaluationFinished | None:
        """The verdict, or the error of whoever should have given it; None if nobody judged."""
        error = evaluation_error(self.issues)
        verdict = self.verdict
        if error is None and not verdict.given:
            return None
        return ev.EvaluationFinished(
            task=task,
            attempt=attempt,
            correct=verdict.correct,
            score=verdict.score,
            metrics=verdict.metrics,
            evaluation_error=error,
            evaluator=ev.Evaluator(id=EVALUATOR, version=version),
        )

    def finished(
        self,
        task: str,
        attempt: int,
        judged: ev.EvaluationFinished | None,
        *,
        retries: int,
        plan_hash: str | None,
    ) -> ev.AttemptFinished:
        """The end of the attempt, with the verdict of `judged`; `retries` are those recorded."""
        return ev.AttemptFinished(
            task=task,
            attempt=attempt,
            status=self.status,
            correct=judged.correct if judged else None,
            score=judged.score if judged else None,
            retries=retries,
            error=self.error,
            issues=self.issues,
            resolved_plan_hash=plan_hash,
        )

    def analysed(self, task: str, attempt: int) -> list[ev.AnalysisFinished]:
        """What analyzers found; the source tells of their families only."""
        return [
            ev.AnalysisFinished(
                task=task,
                attempt=attempt,
                analyzer=family,
                family=family,
                is_badcase=found.get("is_badcase"),
                score=found.get("score"),
                details=found.get("details"),
                error=_analysis_error(found.get("error")),
            )
            for family, found in self.analyses.items()
        ]

    @property
    def error(self) -> ev.ErrorInfo | None:
        """The error of the attempt as a whole."""
        return decisive_error(self.issues)


def take_apart(record: dict[str, Any]) -> AttemptResult:
    """Read a `result.json`, or the run result of a checkpoint; NotARecord if it is neither."""
    status: Any = record.get("status")
    extra = {key: value for key, value in record.items() if key not in _KNOWN}
    if status == "interrupted":
        extra["source_status"], status = status, "cancelled"
    if not _is_status(status):
        raise NotARecord(f"its status is {status!r}")
    own = record.get("extra")
    if isinstance(own, dict):
        extra |= own
    elif own is not None:
        extra["extra"] = own
    issues = parse_issues(record.get("issues"))
    verdict = _verdict(record.get("metrics"))
    if issues is None:
        verdict.oddities.append("its issues are none that the program writes; kept in extra")
        extra["issues"] = record["issues"]
    if verdict.left:
        extra["metrics"] = verdict.left
    analyses, other = _analyses(record.get("analysis_result"))
    if other:
        extra["analysis_result"] = other
    meta, telemetry = _meta(record)
    return AttemptResult(
        status=status,
        verdict=verdict,
        issues=issues or (),
        analyses=analyses,
        retries=_retries(record.get("retry_count")),
        fields={name: record.get(name) for name in _KEPT},
        telemetry=telemetry,
        meta=meta,
        extra=extra,
    )


def _is_status(value: Any) -> TypeGuard[ev.AttemptStatus]:
    return isinstance(value, str) and value in _STATUSES


def _verdict(metrics: Any) -> Verdict:
    verdict = Verdict()
    if not isinstance(metrics, dict):
        if metrics is not None:
            verdict.left = {"metrics": metrics}
            verdict.oddities.append("its metrics are no object; kept in extra")
        return verdict
    for name, value in metrics.items():
        if not is_measure(value):
            verdict.left[name] = value
            verdict.oddities.append(f"metric {name!r} is {value!r}, no measure; kept in extra")
        elif name == "correct" and type(value) is bool:
            verdict.correct = value
        elif name == "score" and type(value) is not bool:
            verdict.score = value
        else:
            verdict.metrics[name] = value
    return verdict


def _analyses(found: Any) -> tuple[dict[str, dict[str, Any]], Any]:
    """The analyses that fit our event by family, and what does not fit."""
    if not isinstance(found, dict):
        return {}, found
    fitting = {family: one for family, one in found.items() if _is_analysis(one)}
    return fitting, {family: one for family, one in found.items() if family not in fitting}


def _is_analysis(found: Any) -> bool:
    if not isinstance(found, dict) or not found.keys() <= _ANALYSIS:
        return False
    score = found.get("score")
    return (
        type(found.get("is_badcase")) in (bool, type(None))
        and (score is None or is_number(score))
        and isinstance(found.get("error"), str | None)
    )


def _analysis_error(message: str | None) -> ev.ErrorInfo | None:
    return (
        ev.ErrorInfo(code="analysis_failed", message=message, phase="analyze") if message else None
    )


def _meta(record: dict[str, Any]) -> tuple[Any, Any]:
    """The metadata, and the telemetry of the harness, which result.json keeps inside it."""
    meta: Any = record.get("meta")
    harness = meta.get("harness") if isinstance(meta, dict) else None
    if not isinstance(harness, dict) or "telemetry" not in harness:
        return meta, record.get("telemetry")
    rest = {key: value for key, value in harness.items() if key != "telemetry"}
    return {**meta, "harness": rest}, harness["telemetry"]


def _retries(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
