"""`litellm-trajectory.jsonl`: a line for each model call, as other loggers and ours write it.

The keys differ: a request stands in `request_body`, or its messages and parameters alone; the
answer in `response_body` or `response`. Times are ISO-8601, or seconds or milliseconds since 1970.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from runtime.importers.atif.counting import count, number
from runtime.importers.foreign import ForeignCall
from runtime.importers.jobs.failures import code_of
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.lines import why_no_record
from runtime.importers.times import read_time

LOST: Final = "call_lost"
STARTED: Final = "llm_call_started"

_NOT_PARAMS: Final = frozenset({"messages", "messages_prefix", "model"})


@dataclass(slots=True)
class Calls:
    """The calls of a file, and what is wrong with its lines: (reason, whether it is damage)."""

    calls: list[ForeignCall] = field(default_factory=list)
    faults: list[tuple[str, bool]] = field(default_factory=list)


def read_calls(lines: Iterable[bytes]) -> Calls:
    """Read every line that is whole; the last one may be cut short where its writer was killed.

    `lines` have their ends. What a request repeats of the one before it is held once.
    """
    found = Calls()
    sent: dict[int, list[Any]] = {}
    before: list[Any] = []
    ids: set[str] = set()
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = read_record(line).value
        except NotARecord as fault:
            reason, damage = why_no_record(line, fault)
            found.faults.append((f"line {place}: {reason}", damage))
            continue
        try:
            call = _call(value, sent, ids, before)
        except NotARecord as fault:
            found.faults.append((f"line {place}: {fault}", True))
            continue
        if call is not None:
            found.calls.append(call)
            before = call.messages if isinstance(call.messages, list) else []
    return found


def usage_of(told: Any) -> ev.Usage | None:
    """Tokens in OpenAI's words, or flat; None where none are told."""
    if not isinstance(told, dict):
        return None
    cached, reasoning = told.get("prompt_tokens_details"), told.get("completion_tokens_details")
    usage = ev.Usage(
        input_tokens=count(told.get("prompt_tokens")),
        output_tokens=count(told.get("completion_tokens")),
        total_tokens=count(told.get("total_tokens")),
        cached_tokens=_either(told, "cached_tokens", cached),
        reasoning_tokens=_either(told, "reasoning_tokens", reasoning),
        estimated=told.get("source") == "estimated",
    )
    return None if usage == ev.Usage() else usage


def _either(told: Mapping[str, Any], name: str, details: Any) -> int | None:
    inside = details.get(name) if isinstance(details, dict) else None
    return count(told.get(name) if inside is None else inside)


def _call(
    line: Mapping[str, Any], sent: dict[int, list[Any]], ids: set[str], before: list[Any]
) -> ForeignCall | None:
    if line.get("type") == STARTED:
        return None
    ours = _object(line.get("acl"))
    body = line.get("request_body", line if "messages" in line else None)
    if not isinstance(body, dict) and not isinstance(line.get("success"), bool):
        raise NotARecord("it is no model call")
    request = body if isinstance(body, dict) else {}
    messages = _shared(_messages(request, sent), before)
    index = ours.get("call_index")
    if type(index) is int and isinstance(messages, list):
        sent[index] = messages
    error = _error(line)
    response = line.get("response_body", line.get("response"))
    usage = line.get("usage") or _object(response).get("usage")
    cost = number(line.get("cost_usd", _object(line.get("usage")).get("cost")))
    params = request.get("params") if body is line else _params(request)
    retry = ours.get("retry")
    return ForeignCall(
        messages=messages,
        params=params if isinstance(params, dict) else None,
        provider=_text(ours.get("provider", line.get("provider"))),
        model=_text(request.get("model")),
        response=response,
        usage=usage_of(usage),
        cost_usd=cost,
        cost_source=_text(ours.get("cost_source")) or "source",
        error=error,
        **_times(line, bool(ours)),
        ended=not (error is not None and error.code == LOST),
        flags=_flags(ours),
        call_id=_own_id(ours.get("call_id", line.get("call_id")), ids),
        ttft_ms=_millis(ours.get("ttft_ms", line.get("ttft_ms"))),
        provider_request_id=_text(ours.get("provider_request_id", line.get("provider_request_id"))),
        retry=retry if type(retry) is int and retry > 0 else 0,
    )


def _messages(request: Mapping[str, Any], sent: Mapping[int, list[Any]]) -> Any:
    """The whole conversation; of one of which only the new part stands here, put together."""
    messages, prefix = request.get("messages"), request.get("messages_prefix")
    if prefix is None:
        return messages
    told = _object(prefix)
    before, length = sent.get(told.get("call_index", -1)), count(told.get("count"))
    if before is None or length is None or length > len(before) or not isinstance(messages, list):
        raise NotARecord("it goes on from a call that is not there")
    return [*before[:length], *messages]


def _shared(messages: Any, before: list[Any]) -> Any:
    """The same messages; those that the request before it began with are the same objects."""
    if not isinstance(messages, list):
        return messages
    count = 0
    while count < min(len(messages), len(before)) and messages[count] == before[count]:
        count += 1
    return [*before[:count], *messages[count:]]


def _params(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in _NOT_PARAMS}


def _error(line: Mapping[str, Any]) -> ev.ErrorInfo | None:
    failure = line.get("failure", line.get("error"))
    if line.get("success") is True or (line.get("success") is None and failure is None):
        return None
    told = _object(failure)
    code = _text(told.get("normalized"))
    kind = _text(told.get("error_type")) or _text(told.get("error_class"))
    message = _text(told.get("message")) or _text(told.get("error_message")) or _text(failure)
    return ev.ErrorInfo(
        code=code or (code_of(kind) if kind else "unknown"),
        message=message or "the call failed, and nothing says why",
    )


def _times(line: Mapping[str, Any], ours: bool) -> dict[str, Any]:
    """Start, end and duration. Others than we stamp `request_time` when they write the line."""
    start, end = _utc(line.get("started_at")), _utc(line.get("finished_at"))
    at, written = _utc(line.get("request_time")), _utc(line.get("timestamp"))
    if ours:
        start, end = start or at, end or written
    else:
        end = end or written or at
    return {
        "started_at": start,
        "finished_at": end,
        "duration_ms": _millis(line.get("duration_ms")),
    }


def _utc(value: Any) -> str | None:
    return read_time(value)[0]


def _flags(ours: Mapping[str, Any]) -> tuple[str, ...]:
    flags = ours.get("flags")
    return tuple(flag for flag in flags if isinstance(flag, str)) if isinstance(flags, list) else ()


def _own_id(value: Any, ids: set[str]) -> str | None:
    """The id of a call, unless another one has it."""
    if not isinstance(value, str) or not value or value in ids:
        return None
    ids.add(value)
    return value


def _millis(value: Any) -> float | None:
    found = number(value)
    return None if found is None or found < 0 else float(found)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
