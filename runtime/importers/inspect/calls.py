"""Model and tool events of a transcript as model calls, and the tools between them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ledger import events as ev
from runtime.importers.foreign import ForeignCall, ForeignTool
from runtime.importers.inspect.fields import count, listed, number, section, text
from runtime.importers.inspect.resolving import Resolver
from runtime.importers.numbers import is_number
from runtime.importers.times import utc

CACHE_HIT: Final = "cache_hit"
_PARAMS: Final = ("config", "tools", "tool_choice", "role", "cache", "retries", "requested_model")


def flat_events(events: Any) -> Iterator[dict[str, Any]]:
    """The events in order; those that older logs put inside tool and subtask events behind them."""
    for event in listed(events):
        if isinstance(event, dict):
            yield event
            if event.get("event") in ("tool", "subtask"):
                yield from flat_events(event.get("events"))


def calls_of(events: list[dict[str, Any]], resolver: Resolver, retry: int = 0) -> list[ForeignCall]:
    """The model calls among the events; tools that returned before the first belong to none."""
    calls: list[ForeignCall] = []
    for event in events:
        match event.get("event"):
            case "model":
                calls.append(_call(event, resolver, retry))
            case "tool" if calls:
                tools = (*calls[-1].tools, _tool(event, resolver))
                calls[-1] = replace(calls[-1], tools=tools)
    return calls


def usage_of(value: Any) -> ev.Usage | None:
    """Tokens as Inspect counts them: since 2025 `input_tokens` are those outside the cache."""
    usage = section(value)
    if not usage:
        return None
    return ev.Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        total_tokens=count(usage.get("total_tokens")),
        cached_tokens=count(usage.get("input_tokens_cache_read")),
        reasoning_tokens=count(usage.get("reasoning_tokens")),
    )


def _call(event: Mapping[str, Any], resolver: Resolver, retry: int) -> ForeignCall:
    output = section(event.get("output"))
    usage = section(output.get("usage"))
    model = text(event.get("model")) or None
    seconds = event.get("working_time", output.get("time"))
    error = event.get("error") or output.get("error")
    cost = number(usage.get("total_cost"))
    return ForeignCall(
        messages=resolver.input(event),
        params=_params(event, resolver),
        provider=model.split("/", 1)[0] if model and "/" in model else None,
        model=model,
        response=resolver.resolve(output) or None,
        usage=usage_of(usage),
        cost_usd=cost,
        error=ev.ErrorInfo(code="model_error", message=_words(error)) if error else None,
        started_at=utc(event.get("timestamp")),
        finished_at=utc(event.get("completed")),
        duration_ms=_millis(seconds),
        ended=event.get("pending") is not True,
        flags=(CACHE_HIT,) if event.get("cache") == "read" else (),
        provider_request_id=_request_id(event),
        retry=retry,
    )


def _params(event: Mapping[str, Any], resolver: Resolver) -> dict[str, Any]:
    return {
        name: resolver.resolve(event[name])
        for name in _PARAMS
        if event.get(name) not in (None, [], {})
    }


def _tool(event: Mapping[str, Any], resolver: Resolver) -> ForeignTool:
    error = event.get("error")
    output = resolver.resolve(event.get("result"))
    told = {"result": output, "error": resolver.resolve(error)} if error else output
    name = text(event.get("function")) or "unknown"
    return ForeignTool(
        name=name,
        call_id=text(event.get("id")) or None,
        arguments=resolver.resolve(event.get("arguments")),
        output=told,
        is_error=bool(error) or event.get("failed") is True,
        duration_ms=_millis(event.get("working_time")),
    )


def _request_id(event: Mapping[str, Any]) -> str | None:
    told = listed(event.get("request_ids"))
    last = told[-1] if told else None
    if isinstance(last, dict):
        last = last.get("id", last.get("request_id"))
    return last if isinstance(last, str) else None


def _millis(seconds: Any) -> float | None:
    return seconds * 1000.0 if is_number(seconds) and seconds >= 0 else None


def _words(error: Any) -> str:
    return error if isinstance(error, str) else repr(error)
