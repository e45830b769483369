"""Events of a run as a whole."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ledger.events.base import (
    LISTED,
    Count,
    ErrorInfo,
    Event,
    Number,
    Part,
    Positive,
    Text,
    Value,
)

RunStatus = Literal["completed", "failed", "timed_out", "cancelled"]
SourceRole = Literal["benchmark", "harness", "recipe", "analyzer"]


class Repo(Part):
    """The commit a source tree stood at; `dirty` is None where nobody could say."""

    sha: str
    dirty: bool | None = None


class RunCreated(Event):
    """A run exists: what was asked for, and with what program it runs. Always event 0 of a run."""

    type: Literal["run.created"] = "run.created"
    code: ClassVar[int] = 1

    run_id: Text
    request: dict[str, Any]
    persistence_params: dict[str, Any]
    acl_version: str
    python: str
    platform: str
    packages: dict[str, str] = Field(default_factory=dict)
    command: Annotated[tuple[Text, ...], LISTED] = ()
    repos: dict[str, Repo] = Field(default_factory=dict)
    price_table_sha256: str | None = None
    redaction_policy: str
    orchestration_id: str | None = None
    request_name: Text | None = None


class Unplaced(Part):
    """A record of an import that has no place in the ledger, and why."""

    source: Text
    reason: Text


class RunImported(Event):
    """The run happened elsewhere; these files told of it.

    `identity` is the SHA-256 over the sorted (relative path, SHA-256 of original bytes) pairs.
    Times are those of the source, ISO-8601 UTC, or None where it has none.
    """

    type: Literal["run.imported"] = "run.imported"
    code: ClassVar[int] = 2

    format: str
    format_version: str | None = None
    identity: str
    source_run_id: Text | None = None
    source_status: Text | None = None
    started_at: str | None = None
    finished_at: str | None = None
    records_in: Count
    records_out: Count
    unplaced: Annotated[tuple[Unplaced, ...], LISTED] = ()
    keeps_originals: bool = False


class Differing(Part):
    """Something that the source of a reuse was run with otherwise; absent stands for nothing.

    `run_id` is given where the source had the tasks from that run, which ran them so.
    """

    path: Text
    before: Any = None
    now: Any = None
    run_id: Text | None = None


class ReuseFrozen(Event):
    """Which source this run reuses, decided before any output was reserved.

    `differences` name, by its path, whatever the source was asked for otherwise: version of the
    benchmark, parameters, k and the like. `running` is true where it was still being written.
    """

    type: Literal["reuse.frozen"] = "reuse.frozen"
    code: ClassVar[int] = 3

    mode: Literal["explicit", "implicit", "none"]
    run_id: Text | None = None
    path: Text | None = None
    ledger_id: str | None = None
    size: Count | None = None
    root: str | None = None
    run_info_sha256: str | None = None
    running: bool | None = None
    differences: Annotated[tuple[Differing, ...] | None, LISTED] = None


class RunStarted(Event):
    """Preparation begins."""

    type: Literal["run.started"] = "run.started"
    code: ClassVar[int] = 4


class TaskRef(Part):
    """One selected task: its identity, the checksum of its input, and what is known of it."""

    task_id: Text
    category: Text | None = None
    checksum: str | None = None
    metadata: dict[Text, Any] = Field(default_factory=dict)


class TasksSelected(Event):
    """The plan, in order, before the first attempt.

    Where tasks only become known as they come, further ones are added while the run goes on.
    """

    type: Literal["tasks.selected"] = "tasks.selected"
    code: ClassVar[int] = 5

    benchmark: Text
    benchmark_version: Text | None = None
    selection: dict[str, Any] | None = None
    tasks: Annotated[tuple[TaskRef, ...], LISTED]


class SummaryStarted(Event):
    """All tasks are terminal; metrics are computed next."""

    type: Literal["summary.started"] = "summary.started"
    code: ClassVar[int] = 6


class ReducerUse(Part):
    """A reducer that was applied: name, version of its formula, and the policy for errors."""

    metric: Text
    name: str
    version: Positive
    k: Positive | None = None
    policy: str


class MetricsComputed(Event):
    """A MetricResult, and exactly which prefix and which formulas gave it."""

    type: Literal["metrics.computed"] = "metrics.computed"
    code: ClassVar[int] = 7

    schema_version: int = 1
    metrics: dict[Text, Number]
    counts: dict[str, Count]
    details: dict[Text, Any] = Field(default_factory=dict)
    extra: dict[Text, Any] = Field(default_factory=dict)
    reducers: Annotated[tuple[ReducerUse, ...], LISTED] = ()
    size: Count
    root: str
    source: Literal["evaluation", "replay", "import"]


class InterruptRequested(Event):
    """Somebody asked the run to stop."""

    type: Literal["run.interrupt_requested"] = "run.interrupt_requested"
    code: ClassVar[int] = 8

    signal: str
    count: Positive


class RunFinished(Event):
    """The run ended by itself; a run without this event was interrupted."""

    type: Literal["run.finished"] = "run.finished"
    code: ClassVar[int] = 9

    status: RunStatus
    error: ErrorInfo | None = None
    exit_code: int
    counts: dict[str, Count] = Field(default_factory=dict)


class OriginalRecorded(Event):
    """A file of an import, as it was, or as redaction left it.

    `sha256` is of the original bytes, given only where they are 1 KiB or more: a digest of
    something short could be guessed. `content` is Binary, or None where nothing is kept.
    """

    type: Literal["original.recorded"] = "original.recorded"
    code: ClassVar[int] = 64

    path: Text
    bytes: Count
    sha256: str | None = None
    content: Value = None


class SourceRecorded(Event):
    """A source file of a plug-in that the run works with, as redaction left it.

    `name` is the id of the plug-in, `path` the file's place below its package. `sha256` is of the
    original bytes, given only for 1 KiB and more; `content` is text or Binary, or None where the
    file was too large to keep.
    """

    type: Literal["source.recorded"] = "source.recorded"
    code: ClassVar[int] = 65

    role: SourceRole
    name: Text
    path: Text
    bytes: Count
    sha256: str | None = None
    content: Value = None
