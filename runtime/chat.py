"""Answers of OpenAI-compatible chat endpoints: one JSON object, or a stream of events.

Both become one `Completion`. A streamed answer is put together into the object that the endpoint
would have given unstreamed. Nothing is made up: what the endpoint did not say is None.
"""

import json
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from ledger.events import Usage
from runtime.provider_error import INVALID_RESPONSE, ModelCallFailed, of_payload

_ONCE = ("id", "created", "model", "system_fingerprint", "service_tier")
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer. `response` is the endpoint's object, `cost_usd` what it says it charged."""

    response: dict[str, Any]
    message: dict[str, Any]
    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str | None
    usage: Usage | None
    cost_usd: float | None


def parse_completion(data: bytes) -> Completion:
    """Read an answer that came whole; raise ModelCallFailed if it is none, or an error."""
    return _completion(_parsed(data))


def _parsed(data: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        start = data[:80] if isinstance(data, str) else data[:80].decode("utf-8", "replace")
        raise _invalid(f"not JSON: {start!r}") from None
    if not isinstance(value, dict):
        raise _invalid(f"{type(value).__name__} instead of an object")
    if value.get("error"):
        raise of_payload(value["error"], 200)
    return value


def _completion(response: dict[str, Any]) -> Completion:
    choices = _dicts(response.get("choices"))
    if not choices:
        raise _invalid("an answer without choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise _invalid("an answer without a message")
    finish = choices[0].get("finish_reason")
    return Completion(
        response=response,
        message=message,
        text=_text(message.get("content")),
        tool_calls=_tool_calls(message.get("tool_calls")),
        finish_reason=finish if isinstance(finish, str) else None,
        usage=parse_usage(response.get("usage")),
        cost_usd=_cost(response.get("usage")),
    )


def parse_usage(usage: Any) -> Usage | None:
    """Token counts as the provider gave them; None without any."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = (
        usage.get(f"{side}_tokens_details") or {} for side in ("prompt", "completion")
    )
    cached = _part(prompt, "cached_tokens")
    parsed = Usage(
        input_tokens=_part(usage, "prompt_tokens"),
        output_tokens=_part(usage, "completion_tokens"),
        total_tokens=_part(usage, "total_tokens"),
        cached_tokens=_part(usage, "prompt_cache_hit_tokens") if cached is None else cached,
        reasoning_tokens=_part(completion, "reasoning_tokens"),
    )
    return None if parsed == Usage() else parsed


def _part(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _cost(usage: Any) -> float | None:
    value = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) and value >= 0 else None
    return None


def _text(content: Any) -> str:
    if isinstance(content, list):  # parts, of which some are text
        parts = [part.get("text") for part in _dicts(content)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _tool_calls(calls: Any) -> tuple[ToolCall, ...]:
    found = []
    for call in _dicts(calls):
        function = call.get("function")
        if isinstance(function, dict):
            name, arguments = str(function.get("name") or ""), function.get("arguments")
            found.append(ToolCall(str(call.get("id") or ""), name, _arguments(arguments)))
    return tuple(found)


def _arguments(arguments: Any) -> str:
    # Some servers send the object instead of its text.
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _dicts(values: Any) -> list[dict[str, Any]]:
    found = values if isinstance(values, list) else []
    return [value for value in found if isinstance(value, dict)]


@dataclass(slots=True)
class _Choice:
    """One choice of a stream; texts in pieces, joined once at the end."""

    role: str = "assistant"
    finish_reason: str | None = None
    texts: dict[str, list[str]] = field(default_factory=dict)
    tools: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, delta: dict[str, Any]) -> bool:
        """Take one piece; True if it holds anything that the model said."""
        said = False
        if isinstance(delta.get("role"), str):
            self.role = delta["role"]
        for name in _TEXTS:
            piece = delta.get(name)
            if isinstance(piece, str):
                self.texts.setdefault(name, []).append(piece)
                said = said or piece != ""
        for call in _dicts(delta.get("tool_calls")):
            self._add_tool(call)
            said = True
        return said

    def _add_tool(self, call: dict[str, Any]) -> None:
        index = call.get("index")
        if not isinstance(index, int):
            # Without an index, an id begins a new call and all else belongs to the last.
            index = len(self.tools) if call.get("id") or not self.tools else max(self.tools)
        tool = self.tools.setdefault(index, {"id": "", "name": "", "arguments": []})
        function = call.get("function")
        if not isinstance(function, dict):
            function = {}
        tool["id"] = tool["id"] or str(call.get("id") or "")
        tool["name"] += str(function.get("name") or "")
        tool["arguments"].append(_arguments(function.get("arguments") or ""))

    def whole(self, index: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": self.role, "content": None}
        for name, pieces in self.texts.items():
            message[name] = _merged("".join(pieces))
        if self.tools:
            message["tool_calls"] = [
                {
                    "id": tool["id"],
                    "type": "function",
                    "function": {
                        "name": tool["name"],
                        "arguments": _merged("".join(tool["arguments"])),
                    },
                }
                for _, tool in sorted(self.tools.items())
            ]
        return {"index": index, "finish_reason": self.finish_reason, "message": message}


class StreamAssembler:
    """Puts a stream's chunks together; `response()` is what came so far."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._usage: dict[str, Any] | None = None
        self._done = False

    def add(self, data: str) -> bool:
        """Take the data of one event; True if it holds anything that the model said."""
        if data.strip() == "[DONE]":
            self._done = True
            return False
        chunk = _parsed(data)
        for name in _ONCE:
            if chunk.get(name) is not None:
                self._head.setdefault(name, chunk[name])
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        said = False
        for choice in _dicts(chunk.get("choices")):
            said = self._add_choice(choice) or said
        return said

    def _add_choice(self, choice: dict[str, Any]) -> bool:
        index = choice.get("index")
        whole = self._choices.setdefault(index if isinstance(index, int) else 0, _Choice())
        if isinstance(choice.get("finish_reason"), str):
            whole.finish_reason = choice["finish_reason"]
        delta = choice.get("delta")
        return whole.add(delta) if isinstance(delta, dict) else False

    @property
    def ended(self) -> bool:
        """True if the stream said that it is over, in either of the two ways."""
        return self._done or any(one.finish_reason for one in self._choices.values())

    def response(self) -> dict[str, Any] | None:
        """The answer in the form of an unstreamed one; None if nothing came."""
        if not self._head and not self._choices:
            return None
        whole: dict[str, Any] = {"object": "chat.completion", **self._head}
        whole["choices"] = [one.whole(index) for index, one in sorted(self._choices.items())]
        if self._usage is not None:
            whole["usage"] = self._usage
        return whole

    def completion(self) -> Completion:
        """The whole answer; raise ModelCallFailed if the stream gave none."""
        response = self.response()
        if response is None:
            raise _invalid("a stream without an answer")
        return _completion(response)


async def stream_data(parts: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each server-sent event (WHATWG HTML, 9.2.6), comments and other fields left out.

    Lines end at CR and LF only: a JSON text may hold U+2028 as it is.
    """
    data: list[str] = []
    async for line in _lines(parts):
        if not line:
            if data:
                yield "\n".join(data)
                data = []
        elif line.startswith(b"data:"):
            try:
                text = line[5:].decode("utf-8")
            except UnicodeDecodeError:
                raise _invalid("an event that is not UTF-8") from None
            data.append(text.removeprefix(" "))
    if data:
        yield "\n".join(data)


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held = bytearray()
    async for part in parts:
        searched = len(held)
        held += part
        start = 0
        while (end := held.find(b"\n", max(start, searched))) >= 0:
            yield bytes(held[start:end]).removesuffix(b"\r")
            start = end + 1
        del held[:start]
    if held:
        yield bytes(held).removesuffix(b"\r")


def _merged(text: str) -> str:
    """Join the halves of characters that two pieces of a stream were escaped in."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _invalid(what: str) -> ModelCallFailed:
    return ModelCallFailed(INVALID_RESPONSE, f"the provider sent {what}", status=200)
