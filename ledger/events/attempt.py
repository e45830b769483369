"""Events of one attempt: its phases, calls, result, evaluation, retries and end."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ledger.events.base import (
    LISTED,
    AttemptEvent,
    Claim,
    Count,
    ErrorInfo,
    Measure,
    Number,
    Part,
    Positive,
    Text,
    Value,
)
from ledger.events.task import Takeover

AttemptStatus = Literal[
    "completed", "run_error", "eval_error", "run_error_or_eval_error", "skipped", "cancelled"
]
Phase = Literal[
    "open_environment",
    "prepare_task",
    "start_harness",
    "run_harness",
    "run_task",
    "collect_result",
    "collect_artifacts",
    "evaluate",
    "analyze",
]
RetryScope = Literal["attempt", "evaluate"]
Millis = Annotated[float, Field(ge=0)]


class AttemptStarted(AttemptEvent):
    """Durable before the harness is called, so that no attempt can vanish.

    `claim` is given by imports of runs that reused the attempt.
    """

    type: Literal["attempt.started"] = "attempt.started"
    code: ClassVar[int] = 32

    claim: Claim | None = None


class PlanResolved(AttemptEvent):
    """The plan of this try: an allowlisted view, its hash, and the recipes that made it."""

    type: Literal["plan.resolved"] = "plan.resolved"
    code: ClassVar[int] = 33

    plan: dict[str, Any]
    plan_hash: str
    applied_recipes: Annotated[tuple[Text, ...], LISTED] = ()
    timeouts: dict[str, Number] = Field(default_factory=dict)


class PhaseEntered(AttemptEvent):
    """The next phase begins; `duration_ms` is how long `previous` took."""

    type: Literal["phase.entered"] = "phase.entered"
    code: ClassVar[int] = 34

    phase: Phase
    previous: Phase | None = None
    duration_ms: Millis | None = None


class ResultRecorded(AttemptEvent):
    """What the harness gave back, before any verdict; its body's address is the attempt's identity.

    `metrics` are the harness's own measures (usage and the like), `extra` whatever it returned
    outside the known fields.
    """

    type: Literal["result.recorded"] = "result.recorded"
    code: ClassVar[int] = 35

    status: AttemptStatus
    final_answer: Value = None
    ground_truth: Value = None
    trajectory: Value = None
    artifacts: Value = None
    metrics: dict[Text, Measure] = Field(default_factory=dict)
    telemetry: Value = None
    error: ErrorInfo | None = None
    meta: Value = None
    extra: Value = None


class Artifact(Part):
    """A collected file. `sha256` is given for 1 KiB and more; `content` stands in the event."""

    path: Text
    bytes: Count
    sha256: str | None = None


class ArtifactsCollected(AttemptEvent):
    """Files taken from the environment before it was released, within the limits of the plan.

    `contents` maps each path to its text, or to Binary where it is not UTF-8. `source_seq` is given
    for a reused attempt: the event of its source that holds these files, which are told anew.
    """

    type: Literal["artifacts.collected"] = "artifacts.collected"
    code: ClassVar[int] = 36

    artifacts: Annotated[tuple[Artifact, ...], LISTED]
    contents: Value = None
    truncated: bool = False
    source_seq: Count | None = None


class Evaluator(Part):
    """Who judged: its name, version, and the SHA-256 of its code or data."""

    id: Text
    version: Text
    sha256: str | None = None


class EvaluationFinished(AttemptEvent):
    """The benchmark's verdict on a recorded result; `correct` and `score` None mean no verdict."""

    type: Literal["evaluation.finished"] = "evaluation.finished"
    code: ClassVar[int] = 37

    correct: bool | None = None
    score: Number | None = None
    metrics: dict[Text, Measure] = Field(default_factory=dict)
    reason: Text | None = None
    evaluation_error: ErrorInfo | None = None
    tests_status: Value = None
    evaluator: Evaluator
    stdout: Value = None
    stderr: Value = None
    ground_truth: Value = None
    extra: Value = None


class AnalysisFinished(AttemptEvent):
    """What one analyzer found in one attempt; its failure is data, not a failure of the attempt."""

    type: Literal["analysis.finished"] = "analysis.finished"
    code: ClassVar[int] = 38

    analyzer: Text
    family: Text
    is_badcase: bool | None = None
    score: Number | None = None
    details: Value = None
    error: ErrorInfo | None = None


class AttemptRetried(AttemptEvent):
    """A try was discarded and another begins within the same attempt; `retry` counts from 1."""

    type: Literal["attempt.retried"] = "attempt.retried"
    code: ClassVar[int] = 39

    retry: Positive
    max_retries: Count
    retry_delay_seconds: Annotated[float, Field(ge=0)]
    stage: Text
    scope: RetryScope
    matched_pattern: Text | None = None
    error: ErrorInfo
    discarded_result: Value = None


class Issue(Part):
    """Something worth telling about an attempt that is not its error."""

    severity: Text
    phase: Text | None = None
    code: Text
    message: Text


class AttemptFinished(AttemptEvent):
    """The attempt's terminal event: every started attempt has exactly one, or is open."""

    type: Literal["attempt.finished"] = "attempt.finished"
    code: ClassVar[int] = 40

    status: AttemptStatus
    correct: bool | None = None
    score: Number | None = None
    retries: Count = 0
    error: ErrorInfo | None = None
    issues: Annotated[tuple[Issue, ...], LISTED] = ()
    resolved_plan_hash: str | None = None


class AttemptReused(Takeover, AttemptEvent):
    """An attempt that ran elsewhere and has no verdict: its events up to the result follow."""

    type: Literal["attempt.reused"] = "attempt.reused"
    code: ClassVar[int] = 41


class CallStarted(AttemptEvent):
    """A model call is about to be sent; `call_index` counts from 0 within the attempt."""

    type: Literal["call.started"] = "call.started"
    code: ClassVar[int] = 48

    call_id: Text
    call_index: Count
    provider: Text | None = None
    model: Text | None = None
    params: Value = None
    messages: Value = None


class Usage(Part):
    """Tokens as the provider counted them; None where it did not say."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    total_tokens: Count | None = None
    cached_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    estimated: bool = False


class CallFinished(AttemptEvent):
    """A model call ended, well or not. Unknown usage and cost are None, never 0."""

    type: Literal["call.finished"] = "call.finished"
    code: ClassVar[int] = 49

    call_id: Text
    success: bool
    response: Value = None
    usage: Usage | None = None
    cost_usd: Number | None = None
    cost_source: Text | None = None
    started_at: str | None = None
    finished_at: str | None = None
    duration_ms: Millis | None = None
    ttft_ms: Millis | None = None
    provider_request_id: Text | None = None
    error: ErrorInfo | None = None
    flags: Annotated[tuple[str, ...], LISTED] = ()


class CallLost(AttemptEvent):
    """A call that was started and of which no end was seen by the attempt's end."""

    type: Literal["call.lost"] = "call.lost"
    code: ClassVar[int] = 50

    call_id: Text


class ToolFinished(AttemptEvent):
    """A tool that the agent used has returned."""

    type: Literal["tool.finished"] = "tool.finished"
    code: ClassVar[int] = 51

    call_id: Text | None = None
    name: Text
    arguments: Value = None
    exit_code: int | None = None
    is_error: bool = False
    duration_ms: Millis | None = None
    output: Value = None
