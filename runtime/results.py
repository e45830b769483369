"""What comes back: results of attempts, verdicts, metrics, and the outcome of a request."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from ledger.events import AttemptStatus, ErrorInfo, Evaluator, Measure, Number, RunStatus
from runtime.models import Model


@dataclass(slots=True)
class RunResult:
    """What a harness gives back for one try; not yet a verdict of the benchmark.

    `metrics` holds finite numbers (usage and the like), `telemetry` anything else it measured.
    Values may be any JSON value; what JSON cannot hold is refused by name and the rest is kept.
    """

    task_id: str
    status: AttemptStatus = "completed"
    category: str | None = None
    final_answer: Any = None
    ground_truth: Any = None
    trajectory: Any = None
    artifacts: Any = None
    metrics: dict[str, Any] = field(default_factory=dict)
    telemetry: Any = None
    error: ErrorInfo | None = None
    correct: bool | None = None
    score: float | None = None
    evaluation_error: ErrorInfo | None = None
    analysis_result: Any = None
    meta: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Evaluation:
    """A benchmark's verdict on one result; both `correct` and `score` None is an error."""

    evaluator: Evaluator
    correct: bool | None = None
    score: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    error: ErrorInfo | None = None
    tests_status: Any = None
    stdout: Any = None
    stderr: Any = None
    ground_truth: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


class MetricCounts(Model):
    """Every selected task in exactly one of four bins."""

    total: int = Field(ge=0)
    evaluated: int = Field(ge=0)
    error: int = Field(ge=0)
    missing: int = Field(default=0, ge=0)
    skipped: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _sums(self) -> "MetricCounts":
        if self.total != self.evaluated + self.error + self.missing + self.skipped:
            raise ValueError("total must be evaluated + error + missing + skipped")
        return self


class MetricResult(Model):
    """Request metrics: at least one finite number, each explained in `details` by its name.

    `details[name]` holds value, numerator, denominator, excluded {reason: n}, estimator, policy,
    interval {name, low, high} or reason; `extra.unavailable` maps undefined metrics to reasons.
    """

    # Strict: a plug-in's "1" is a mistake and no number.
    model_config = ConfigDict(strict=True)

    schema_version: int = 1
    metrics: dict[str, Number] = Field(min_length=1)
    counts: MetricCounts
    details: dict[str, Any] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)


@dataclass(slots=True)
class RequestResult:
    """A finished request: what finalization computed, and where things are."""

    metadata: dict[str, Any]
    metrics: MetricResult | None
    summary: dict[str, Any]
    paths: dict[str, str]
    applied_recipes: list[str]


@dataclass(slots=True)
class RequestOutcome:
    """How one request of an orchestration ended; `paths` names whatever exists."""

    name: str
    status: RunStatus
    run_id: str | None = None
    path: Path | None = None
    result: RequestResult | None = None
    error: ErrorInfo | None = None
    exit_code: int = 0
    paths: dict[str, str] = field(default_factory=dict)


OrchestrationStatus = Literal["completed", "partial_failure", "failed", "timed_out", "cancelled"]


@dataclass(frozen=True, slots=True)
class OrchestrationResult:
    """How several requests ended, by their names in the order in which they stand in the suite.

    `partial_failure` if any request failed, also if all did; `failed` if the orchestration itself
    did. Times are ISO-8601, UTC.
    """

    orchestration_id: str
    name: str
    status: OrchestrationStatus
    requests: dict[str, RequestOutcome]
    started_at: str
    finished_at: str


__all__ = [
    "ErrorInfo",
    "Evaluation",
    "Evaluator",
    "Measure",
    "MetricCounts",
    "MetricResult",
    "OrchestrationResult",
    "OrchestrationStatus",
    "RequestOutcome",
    "RequestResult",
    "RunResult",
]
