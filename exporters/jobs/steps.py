"""The steps of an ATIF trajectory, from messages and answers."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from exporters.jobs.calls import Call
from exporters.jobs.failures import exception_type
from exporters.jobs.numbers import dollars
from exporters.jobs.replies import text_of_content, tool_calls_of
from exporters.jsontext import json_bytes

_Step = dict[str, object]

_SOURCES: Final = {"system": "system", "developer": "system", "assistant": "agent"}
_OBSERVED: Final = frozenset({"tool", "function"})
_NOTHING: Final = "Neither a model call, nor a step, nor an answer of the agent was recorded."


@dataclass(slots=True)
class Steps:
    """Numbers steps from 1, and holds the last one back until what was observed after it is known.

    Every method yields the steps that are complete by then.
    """

    count: int = 0
    held: _Step | None = None

    def put(self, step: _Step) -> Iterator[_Step]:
        """Take the next step; it gets its number here."""
        if self.held is not None:
            yield self.held
        self.count += 1
        self.held = {"step_id": self.count, **step}

    def rest(self) -> Iterator[_Step]:
        """Yield what is held back; a step that says so if there was none at all."""
        if self.count == 0:
            yield from self.put({"source": "system", "message": _NOTHING})
        assert self.held is not None
        yield self.held
        self.held = None

    def add(self, message: Mapping[str, object]) -> Iterator[_Step]:
        """Take a message of a conversation: a step, or what was observed after one."""
        role = message.get("role")
        if role in _OBSERVED and self.held is not None and self.held["source"] == "agent":
            self._observe(message)
            return
        if role == "assistant":
            yield from self.put(_spoken(message))  # which call said it is not known
            return
        source = _SOURCES.get(role, "user") if isinstance(role, str) else "user"
        yield from self.put({"source": source, "message": text_of_content(message.get("content"))})

    def end(
        self, call: Call, reply: Mapping[str, object] | None, *, is_import: bool = False
    ) -> Iterator[_Step]:
        """Take the end of a call; the events of an import say nothing of when that was."""
        if call.success:
            recorded_at = None if is_import else call.end_at
            yield from self.put(_answer(call, reply or {}, recorded_at))
            return
        error = None if call.end is None else call.end.error
        what = "was lost: its end was never seen" if call.end is None else "failed"
        if error is not None:
            what = f"failed: {exception_type(error)}: {error.message}"
        extra = {"call_index": call.index}
        yield from self.put(
            {"source": "system", "message": f"The model call {what}", "extra": extra}
        )

    def _observe(self, message: Mapping[str, object]) -> None:
        assert self.held is not None
        result: _Step = {}
        asked = message.get("tool_call_id")
        wanted = self.held.get("tool_calls")
        calls = wanted if isinstance(wanted, list) else []
        if any(call["tool_call_id"] == asked for call in calls):
            result["source_call_id"] = asked
        result["content"] = text_of_content(message.get("content"))
        observation = self.held.get("observation")
        extra = self.held.pop("extra", None)
        if isinstance(observation, dict):
            observation["results"].append(result)
        else:
            metrics = self.held.pop("metrics", None)
            count = self.held.pop("llm_call_count", None)
            self.held["observation"] = {"results": [result]}
            self.held |= {} if metrics is None else {"metrics": metrics}
            self.held |= {} if count is None else {"llm_call_count": count}
        self.held |= {} if extra is None else {"extra": extra}


def answer_step(answer: object) -> _Step:
    """The answer of an agent that called no model."""
    text = answer if isinstance(answer, str) else json_bytes(answer).decode().strip()
    return {"source": "agent", "message": text, "llm_call_count": 0}


def said(message: Mapping[str, object]) -> tuple[str, list[tuple[object, object, object]]]:
    """What a message says, however it is spelled: its text, and the tools it wants called."""
    calls = []
    for call in tool_calls_of(message):
        function = call.get("function")
        given = function if isinstance(function, dict) else {}
        calls.append((call.get("id"), given.get("name"), given.get("arguments")))
    return text_of_content(message.get("content")), calls


def counts(calls: list[Call]) -> dict[str, object]:
    """How many calls there were, and how many of them gave no answer."""
    return {
        "llm_calls": len(calls),
        "llm_calls_failed": sum(call.end is not None and not call.success for call in calls),
        "llm_calls_lost": sum(call.lost for call in calls),
    }


def _answer(call: Call, reply: Mapping[str, object], recorded_at: str | None) -> _Step:
    told_at = None if call.end is None else call.end.finished_at
    step: _Step = {"timestamp": told_at or recorded_at, "source": "agent"}
    if call.start is not None and call.start.model is not None:
        step["model_name"] = call.start.model
    spoken = _spoken(reply)
    del spoken["source"]
    step |= spoken
    usage = call.usage
    metrics: _Step = {
        "prompt_tokens": None if usage is None else usage.input_tokens,
        "completion_tokens": None if usage is None else usage.output_tokens,
        "cached_tokens": None if usage is None else usage.cached_tokens,
        "cost_usd": None if call.end is None else dollars(call.end.cost_usd),
    }
    step["metrics"] = metrics
    step["llm_call_count"] = 1
    step["extra"] = {"call_index": call.index}
    return step


def _spoken(message: Mapping[str, object]) -> _Step:
    """What an agent said, thought and wanted called."""
    step: _Step = {"source": "agent", "message": text_of_content(message.get("content"))}
    thought = message.get("reasoning_content")
    if isinstance(thought, str) and thought:
        step["reasoning_content"] = thought
    calls = [tool_call(call, number) for number, call in enumerate(tool_calls_of(message))]
    if calls:
        step["tool_calls"] = calls
    return step


def tool_call(call: Mapping[str, object], number: int) -> _Step:
    """A tool that was asked for, from its form in a chat completion; `number` is its place."""
    function = call.get("function")
    given = function if isinstance(function, dict) else {}
    identity, name, told = call.get("id"), given.get("name"), given.get("arguments")
    arguments = _parsed(told)
    step: _Step = {
        "tool_call_id": identity if isinstance(identity, str) and identity else f"call-{number}",
        "function_name": name if isinstance(name, str) else "",
        "arguments": {} if arguments is None else arguments,
    }
    if arguments is None and told:
        step["extra"] = {"arguments_text": text_of_content(told)}
    return step


def _parsed(arguments: object) -> dict[str, object] | None:
    """The arguments as an object; None where the model wrote none."""
    if isinstance(arguments, dict):
        return arguments
    try:
        found = json.loads(arguments) if isinstance(arguments, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
