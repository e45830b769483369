"""`agent/litellm-trajectory.jsonl`: one line for each physical model call of a trial.

The keys that readers of LiteLLM's log look for come first. The ledger holds each message once;
here the whole request stands in each line, or only what is new in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal
from urllib.parse import urlsplit

from exporters import OutFile
from exporters.jobs import calls as of_calls
from exporters.jobs.calls import Call
from exporters.jobs.failures import exception_type, is_retryable, status_code
from exporters.jobs.numbers import dollars
from exporters.jobs.replies import common_prefix, dicts, plain_choice
from exporters.jobs.trial import Trial, part_of_request, text_of
from exporters.jsontext import json_line
from exporters.reading import Reading
from ledger import events as ev
from ledger.view import Blobs

PATH: Final = "agent/litellm-trajectory.jsonl"
Mode = Literal["full", "delta"]

# After messages, tools and model; whatever else was sent (headers, metadata) is not told.
_PARAMS: Final = (
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "n",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
)
_OF_RESPONSE: Final = ("id", "object", "created", "model")
_PRICED: Final = "price_table"
_PER_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class CallLines:
    """The lines of a trial's calls, made one at a time; may be read again."""

    trial: Trial
    calls: list[Call]
    blobs: Blobs
    mode: Mode

    def __iter__(self) -> Iterator[bytes]:
        """Yield the file in pieces; at most two conversations are in memory."""
        reading = Reading(self.trial.state, self.blobs)
        before: tuple[int, list[object]] | None = None
        for call in self.calls:
            sent = of_calls.messages(call, reading, self.blobs)
            prefix = 0
            if self.mode == "delta" and isinstance(sent, list):
                prefix = common_prefix(before[1], sent) if before else 0
            request = self._request(call, sent, reading)
            if prefix and before is not None and isinstance(sent, list):
                request["messages"] = sent[prefix:]
                request["messages_prefix"] = {"call_index": before[0], "count": prefix}
            yield from json_line(self._line(call, request, reading))
            before = (call.index, sent) if isinstance(sent, list) else None

    def _line(
        self, call: Call, request: dict[str, object] | None, reading: Reading
    ) -> dict[str, object]:
        line: dict[str, object] = {
            "session_id": self.trial.key,
            "success": call.success,
            **self._times(call),
            "request_body": request if call.start is not None else None,
            "response_body": self._response(call, reading),
            "usage": _usage(call),
        }
        if not call.success:
            line["failure"] = _failure(call)
        line["acl"] = self._about(call, request)
        return line

    def _times(self, call: Call) -> dict[str, object]:
        """Start in whole milliseconds since 1970, end, and whole milliseconds between them.

        Where the client told no times, they are those of recording, unless it was an import's.
        """
        end = call.end
        began = None if end is None else _moment(end.started_at)
        over = None if end is None else _moment(end.finished_at)
        start = None if began is None else round(began.timestamp() * 1000)
        at = None if end is None else end.finished_at
        took = None if end is None else end.duration_ms
        if took is None and began is not None and over is not None:
            took = (over - began).total_seconds() * 1000
        if self.trial.state.imported is None:
            if start is None and call.start_ns is not None:
                start = call.start_ns // _PER_MILLISECOND
            if took is None and call.start_ns is not None and call.end_ns is not None:
                took = (call.end_ns - call.start_ns) / _PER_MILLISECOND
            at = at or call.end_at
        return {"request_time": start, "timestamp": at, "duration_ms": _whole(took)}

    def _request(self, call: Call, sent: object, reading: Reading) -> dict[str, object]:
        given = of_calls.params(call, reading, self.blobs)
        body: dict[str, object] = {"messages": sent}
        if given.get("tools") is not None:
            body["tools"] = given["tools"]
        body["model"] = None if call.start is None else call.start.model
        body |= {name: given[name] for name in _PARAMS if name in given}
        return body

    def _response(self, call: Call, reading: Reading) -> dict[str, object] | None:
        if not call.success:
            return None
        given = of_calls.response(call, reading, self.blobs)
        if given is None:
            return None
        body: dict[str, object] = {name: given.get(name) for name in _OF_RESPONSE}
        if given.get("system_fingerprint") is not None:
            body["system_fingerprint"] = given["system_fingerprint"]
        body["choices"] = [plain_choice(choice) for choice in dicts(given.get("choices"))]
        body["usage"] = given.get("usage")
        return body

    def _about(self, call: Call, request: dict[str, object] | None) -> dict[str, object]:
        end = call.end
        source = "unknown" if end is None or end.cost_source is None else end.cost_source
        state = self.trial.state
        about: dict[str, object] = {
            "call_id": _call_id(call),
            "call_index": None if call.start is None else call.start.call_index,
            "provider": None if call.start is None else call.start.provider,
            "api_base_host": _host(text_of(part_of_request(state, "model"), "base_url")),
            "provider_request_id": None if end is None else end.provider_request_id,
            "stream": bool(request.get("stream")) if request else False,
            "ttft_ms": None if end is None else _whole(end.ttft_ms),
            "cost_source": source,
            "price_table_version": state.creation.price_table_sha256 if source == _PRICED else None,
            "started_seq": call.start_seq,
            "finished_seq": call.end_seq,
            "body": call.address,
        }
        more = {
            "lost": call.lost,
            "retry": call.retry,
            "flags": [] if end is None else list(end.flags),
        }
        return about | {name: value for name, value in more.items() if value}


def litellm_file(trial: Trial, calls: list[Call], blobs: Blobs, mode: Mode) -> OutFile:
    """The file; empty for a trial that called no model."""
    return OutFile(trial.path(PATH), CallLines(trial, calls, blobs, mode))


def _call_id(call: Call) -> str | None:
    if call.start is not None:
        return call.start.call_id
    return None if call.end is None else call.end.call_id


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _usage(call: Call) -> dict[str, object]:
    usage = call.usage or ev.Usage()
    both = usage.input_tokens, usage.output_tokens
    whole = None if both[0] is None or both[1] is None else both[0] + both[1]
    source = "estimated" if usage.estimated else "reported"
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": whole if usage.total_tokens is None else usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "cost": None if call.end is None else dollars(call.end.cost_usd),
        "source": None if call.usage is None else source,
    }


def _failure(call: Call) -> dict[str, object]:
    error = None if call.end is None else call.end.error
    if error is None:
        error = _unseen(call)
    return {
        "error_type": exception_type(error),
        "status_code": status_code(error),
        "message": error.message,
        "normalized": error.code,
        "retryable": is_retryable(error),
    }


def _unseen(call: Call) -> ev.ErrorInfo:
    if call.end is not None:
        return ev.ErrorInfo(code="unknown", message="the call failed, and nothing says why")
    if call.lost:
        return ev.ErrorInfo(code="call_lost", message="the call was started and never seen to end")
    return ev.ErrorInfo(
        code="call_end_unknown", message="the record of the call's end is not there"
    )


def _host(url: str | None) -> str | None:
    try:
        return None if url is None else urlsplit(url).hostname
    except ValueError:
        return None
