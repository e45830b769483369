"""The steps of an ATIF trajectory that the agent told itself, as Harbor's models take them.

What those would refuse (another type, a reference to nothing) is left out of a step.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from exporters.jobs.numbers import dollars
from exporters.jobs.replies import dicts, text_of_content
from exporters.jobs.steps import tool_call

_Step = dict[str, object]

_SOURCES: Final = frozenset({"system", "user", "agent"})
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens")


def atif_steps(trajectory: object) -> list[dict[str, object]]:
    """The steps of an ATIF document as they were told; empty for anything else."""
    if not isinstance(trajectory, dict):
        return []
    version = trajectory.get("schema_version")
    is_atif = isinstance(version, str) and version.startswith("ATIF-")
    return dicts(trajectory.get("steps")) if is_atif else []


def told_step(step: Mapping[str, object]) -> _Step:
    """One of these steps, without its number."""
    source = step.get("source")
    known = source if isinstance(source, str) and source in _SOURCES else "user"
    moment = step.get("timestamp")
    found: _Step = {"timestamp": moment} if _is_moment(moment) else {}
    found |= {"source": known, "message": text_of_content(step.get("message"))}
    if known == "agent":
        found |= _of_agent(step)
    results = list(_results(step, found.get("tool_calls")))
    return found | ({"observation": {"results": results}} if results else {})


def _of_agent(step: Mapping[str, object]) -> _Step:
    """What only a step of the agent may have."""
    model, count, thought = (
        step.get(name) for name in ("model_name", "llm_call_count", "reasoning_content")
    )
    metrics, calls = _metrics(step.get("metrics")), list(_tool_calls(step))
    found: _Step = {"model_name": model} if isinstance(model, str) else {}
    if count == 0:  # no model was asked: it thought nothing, and nothing was spent
        thought, metrics = None, {}
    found |= {"reasoning_content": thought} if isinstance(thought, str) and thought else {}
    found |= {"tool_calls": calls} if calls else {}
    found |= {"metrics": metrics} if metrics else {}
    return found | ({"llm_call_count": count} if _is_count(count) else {})


def _tool_calls(step: Mapping[str, object]) -> Iterator[_Step]:
    for number, call in enumerate(dicts(step.get("tool_calls"))):
        function = {"name": call.get("function_name"), "arguments": call.get("arguments")}
        yield tool_call({"id": call.get("tool_call_id"), "function": function}, number)


def _results(step: Mapping[str, object], calls: object) -> Iterator[_Step]:
    asked = {call["tool_call_id"] for call in dicts(calls)}
    observation = step.get("observation")
    for result in dicts(observation.get("results") if isinstance(observation, dict) else None):
        source = result.get("source_call_id")
        named: _Step = {"source_call_id": source} if isinstance(source, str) else {}
        yield (named if source in asked else {}) | {
            "content": text_of_content(result.get("content"))
        }


def _metrics(told: object) -> _Step:
    given = told if isinstance(told, dict) else {}
    found: _Step = {name: given[name] for name in _COUNTS if _is_count(given.get(name))}
    cost = given.get("cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        found["cost_usd"] = dollars(cost)
    return found


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False
