"""What is told of a model call: its start, its end, the attempt it belongs to, and to whom."""

from dataclasses import dataclass
from typing import Any, Protocol

from ledger.events import ErrorInfo, Usage


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The attempt that a call belongs to. A call that names none is never given to one."""

    run_id: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call about to be sent; `params` is the request's body without model and messages."""

    call_id: str
    call_index: int
    provider: str
    model: str
    params: dict[str, Any]
    messages: list[Any]


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended. Times are ISO-8601 UTC, durations milliseconds.

    `response` is the answer in the form of an unstreamed one; of a stream that broke, what came.
    `flags` are words for what limits the record.
    """

    call_id: str
    success: bool
    response: dict[str, Any] | None
    usage: Usage | None
    cost_usd: float | None
    cost_source: str
    started_at: str | None
    finished_at: str | None
    duration_ms: float | None
    ttft_ms: float | None
    provider_request_id: str | None
    error: ErrorInfo | None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unattributed:
    """A call of which nobody said to which attempt it belongs; `reason` says why not."""

    call_id: str
    provider: str
    model: str
    reason: str


class CallSink(Protocol):
    """Where the calls of one attempt are recorded; its methods may be called in any thread.

    Each returns once what it was told is durable, and raises AclError if it is not.
    """

    @property
    def coordinates(self) -> Coordinates:
        """The attempt whose calls these are."""

    def started_sync(self, call: CallStart) -> None:
        """Record a start; the request is sent only then."""

    def finished_sync(self, call: CallEnd) -> None:
        """Record an end."""

    def unattributed_sync(self, call: Unattributed) -> None:
        """Record in the run that a call was made which belongs to no attempt that is known."""
