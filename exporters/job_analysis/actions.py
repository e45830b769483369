"""What the agent of an attempt did: its model calls and tools, read one event at a time."""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from exporters.job_analysis.steps import Step, read_steps
from exporters.jobs.calls import Call as Recorded
from exporters.jobs.calls import calls_of, response
from exporters.jobs.replies import dicts, is_turn, message_of, tool_calls_of
from exporters.reading import Reading
from ledger import canonical
from ledger import events as ev
from ledger.errors import ValueRefused
from ledger.state import AttemptState
from ledger.view import Blobs

CONTEXT_WINDOW: Final = frozenset(
    {"provider_context_window", "ContextWindowExceededError", "400_CONTEXT_WINDOW_EXCEEDED"}
)
_TRUNCATED_FLAGS: Final = frozenset({"context_truncated", "context_truncation"})


@dataclass(slots=True)
class Call:
    """A model call, and what its answer was like.

    `counted`: it was made in the counted try. `replies`: the answer says something, or asks for
    tools. `truncated`: the model's context or its answer was cut off.
    """

    call: Recorded
    counted: bool
    replies: bool = False
    truncated: bool = False
    tools: list[tuple[str, object]] = field(default_factory=list)

    @property
    def seq(self) -> int:
        """The event of its end, else of its start."""
        known = (self.call.end_seq, self.call.start_seq)
        return next((seq for seq in known if seq is not None), -1)

    @property
    def failed(self) -> bool:
        """Whether it ended, and not well."""
        return self.call.end is not None and not self.call.end.success


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was used: its arguments, and how it ended where that was told.

    `step` is the index of the model call, or of the agent's step, that it belongs to.
    """

    seq: int
    step: int
    name: str
    arguments: object
    digest: bytes
    is_error: bool | None = None
    exit_code: int | None = None


@dataclass(slots=True)
class Actions:
    """All of an attempt. `calls` are of all tries; `tools` and `steps` of the counted one.

    `tools` are those that the harness told of, else those that the model asked for, else those of
    the trajectory. `all_tools` and `all_tool_errors` count over all tries.
    """

    calls: list[Call] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    steps: list[Step] | None = None
    all_tools: int | None = None
    all_tool_errors: int | None = None
    harness_truncated: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything was recorded of what the agent did."""
        return bool(self.calls or self.tools or self.steps)

    @property
    def counted(self) -> list[Call]:
        """The calls of the counted try."""
        return [call for call in self.calls if call.counted]


def read_actions(attempt: AttemptState, reading: Reading, blobs: Blobs) -> Actions:
    """Read an attempt; memory is bounded by its largest response or trajectory."""
    begun = _begun(attempt, reading)
    found = Actions()
    for call in calls_of(attempt, reading, blobs):
        found.calls.append(_read_call(call, begun, reading, blobs))
    result = reading.event(attempt.result, ev.ResultRecorded)
    if result is not None and result.metrics.get("context_truncated") is True:
        found.harness_truncated = attempt.result
    told = list(_told_tools(attempt, reading, found.calls))
    found.tools = [tool for tool in told if tool.seq > begun]
    if told:
        found.all_tools, found.all_tool_errors = len(told), sum(t.is_error is True for t in told)
    elif found.calls:
        found.tools = list(_asked_tools(found.counted))
        found.all_tools = sum(len(call.tools) for call in found.calls)
        found.all_tool_errors = None if found.all_tools else 0
    if not found.calls and result is not None and attempt.result is not None:
        _from_trajectory(found, reading.value(attempt.result, result.trajectory), attempt.result)
    return found


def _begun(attempt: AttemptState, reading: Reading) -> int:
    """The event after which the counted try began."""
    for seq in reversed(attempt.retries):
        retried = reading.event(seq, ev.AttemptRetried)
        if retried is not None and retried.scope == "attempt":
            return seq
    return -1


def _read_call(call: Recorded, begun: int, reading: Reading, blobs: Blobs) -> Call:
    started = call.end_seq if call.start_seq is None else call.start_seq
    found = Call(call, counted=started is not None and started > begun)
    end = call.end
    if end is None:
        return found
    found.truncated = not _TRUNCATED_FLAGS.isdisjoint(end.flags)
    if end.error is not None and end.error.code in CONTEXT_WINDOW:
        found.truncated = True
    if end.success:
        _look_at(found, response(call, reading, blobs))
    return found


def _look_at(call: Call, answer: Mapping[str, object] | None) -> None:
    message = message_of(answer)
    call.replies = is_turn(message)
    choices = dicts(answer.get("choices")) if answer else []
    call.truncated |= any(choice.get("finish_reason") == "length" for choice in choices)
    for asked in tool_calls_of(message):
        function = asked.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(function, dict) and isinstance(name, str):
            call.tools.append((name, _arguments(function.get("arguments"))))


def _told_tools(attempt: AttemptState, reading: Reading, calls: list[Call]) -> Iterator[Tool]:
    started = sorted((one.call.start_seq or 0, one.call.index) for one in calls)
    for number, seq in enumerate(attempt.tools):
        event = reading.event(seq, ev.ToolFinished)
        if event is None:
            continue
        before = bisect_left(started, (seq, 0))
        arguments = _arguments(reading.value(seq, event.arguments))
        yield Tool(
            seq=seq,
            step=started[before - 1][1] if before else number,
            name=event.name,
            arguments=arguments,
            digest=_digest(arguments),
            is_error=event.is_error,
            exit_code=event.exit_code,
        )


def _asked_tools(calls: list[Call]) -> Iterator[Tool]:
    for call in calls:
        for name, arguments in call.tools:
            yield Tool(call.seq, call.call.index, name, arguments, _digest(arguments))


def _from_trajectory(found: Actions, trajectory: object, seq: int) -> None:
    """Where no model call was recorded, the harness's own steps tell what was done."""
    found.steps = read_steps(trajectory)
    if found.steps is None or found.tools:
        return
    for step in found.steps:
        for name, given in step.tools:
            arguments = _arguments(given)
            found.tools.append(Tool(seq, step.index, name, arguments, _digest(arguments)))
    if found.tools:
        found.all_tools = len(found.tools)


def _arguments(given: object) -> object:
    """Arguments as a value: models give them as JSON text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _drop(*_: bytes) -> None:
    """Only the digest is wanted."""


def _digest(arguments: object) -> bytes:
    try:
        data = canonical.encode(arguments, _drop)
    except ValueRefused:
        data = repr(arguments).encode("utf-8", "backslashreplace")
    return hashlib.sha256(data).digest()
