"""The event catalogue: one frozen model per kind of fact, and the table of their codes.

`AnyEvent` is the closed union that views exhaust with `assert_never`: a new event type that some
view forgets fails the type check. Codes and field names are part of the file format.
"""

from typing import Final

from ledger.events.attempt import (
    AnalysisFinished,
    Artifact,
    ArtifactsCollected,
    AttemptFinished,
    AttemptRetried,
    AttemptReused,
    AttemptStarted,
    AttemptStatus,
    CallFinished,
    CallLost,
    CallStarted,
    EvaluationFinished,
    Evaluator,
    Issue,
    Phase,
    PhaseEntered,
    PlanResolved,
    ResultRecorded,
    RetryScope,
    ToolFinished,
    Usage,
)
from ledger.events.base import (
    AttemptEvent,
    Claim,
    ErrorInfo,
    Event,
    Measure,
    Number,
    Part,
    TaskEvent,
    Value,
)
from ledger.events.book import (
    AnnotationAdded,
    ExtensionRecorded,
    LedgerSealed,
    PayloadErased,
    RegistryOpened,
    RegistrySealed,
)
from ledger.events.run import (
    Differing,
    InterruptRequested,
    MetricsComputed,
    OriginalRecorded,
    ReducerUse,
    Repo,
    ReuseFrozen,
    RunCreated,
    RunFinished,
    RunImported,
    RunStarted,
    RunStatus,
    SourceRecorded,
    SourceRole,
    SummaryStarted,
    TaskRef,
    TasksSelected,
    Unplaced,
)
from ledger.events.task import TaskCancelled, TaskFinished, TaskReused, TaskStarted

RunEvent = (
    RunCreated
    | RunImported
    | ReuseFrozen
    | RunStarted
    | TasksSelected
    | SummaryStarted
    | MetricsComputed
    | InterruptRequested
    | RunFinished
    | OriginalRecorded
    | SourceRecorded
)
OneTaskEvent = TaskReused | TaskStarted | TaskFinished | TaskCancelled
OneAttemptEvent = (
    AttemptStarted
    | PlanResolved
    | PhaseEntered
    | ResultRecorded
    | ArtifactsCollected
    | EvaluationFinished
    | AnalysisFinished
    | AttemptRetried
    | AttemptFinished
    | AttemptReused
    | CallStarted
    | CallFinished
    | CallLost
    | ToolFinished
)
BookEvent = (
    PayloadErased
    | AnnotationAdded
    | LedgerSealed
    | ExtensionRecorded
    | RegistryOpened
    | RegistrySealed
)
AnyEvent = RunEvent | OneTaskEvent | OneAttemptEvent | BookEvent

_ALL: Final[tuple[type[AnyEvent], ...]] = (
    RunCreated,
    RunImported,
    ReuseFrozen,
    RunStarted,
    TasksSelected,
    SummaryStarted,
    MetricsComputed,
    InterruptRequested,
    RunFinished,
    OriginalRecorded,
    SourceRecorded,
    TaskReused,
    TaskStarted,
    TaskFinished,
    TaskCancelled,
    AttemptStarted,
    PlanResolved,
    PhaseEntered,
    ResultRecorded,
    ArtifactsCollected,
    EvaluationFinished,
    AnalysisFinished,
    AttemptRetried,
    AttemptFinished,
    AttemptReused,
    CallStarted,
    CallFinished,
    CallLost,
    ToolFinished,
    PayloadErased,
    AnnotationAdded,
    LedgerSealed,
    ExtensionRecorded,
    RegistryOpened,
    RegistrySealed,
)

BY_CODE: Final[dict[int, type[AnyEvent]]] = {model.code: model for model in _ALL}
TYPE_NAMES: Final[dict[int, str]] = {
    model.code: str(model.model_fields["type"].default) for model in _ALL
}

__all__ = [
    "BY_CODE",
    "TYPE_NAMES",
    "AnalysisFinished",
    "AnnotationAdded",
    "AnyEvent",
    "Artifact",
    "ArtifactsCollected",
    "AttemptEvent",
    "AttemptFinished",
    "AttemptRetried",
    "AttemptReused",
    "AttemptStarted",
    "AttemptStatus",
    "BookEvent",
    "CallFinished",
    "CallLost",
    "CallStarted",
    "Claim",
    "Differing",
    "ErrorInfo",
    "EvaluationFinished",
    "Evaluator",
    "Event",
    "ExtensionRecorded",
    "InterruptRequested",
    "Issue",
    "LedgerSealed",
    "Measure",
    "MetricsComputed",
    "Number",
    "OneAttemptEvent",
    "OneTaskEvent",
    "OriginalRecorded",
    "Part",
    "PayloadErased",
    "Phase",
    "PhaseEntered",
    "PlanResolved",
    "ReducerUse",
    "RegistryOpened",
    "RegistrySealed",
    "Repo",
    "ResultRecorded",
    "RetryScope",
    "ReuseFrozen",
    "RunCreated",
    "RunEvent",
    "RunFinished",
    "RunImported",
    "RunStarted",
    "RunStatus",
    "SourceRecorded",
    "SourceRole",
    "SummaryStarted",
    "TaskCancelled",
    "TaskEvent",
    "TaskFinished",
    "TaskRef",
    "TaskReused",
    "TaskStarted",
    "TasksSelected",
    "ToolFinished",
    "Unplaced",
    "Usage",
    "Value",
]
