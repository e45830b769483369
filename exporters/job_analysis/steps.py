"""The agent's steps in a trajectory, as far as its shape is known.

Chat messages (`role`), ATIF (`source`, `metrics`), ACTF of AgentCompass (`assistant_content`,
`metric`), and steps with an `action`, as a list or as an object that holds the list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from exporters.jobs.numbers import rounded

_LISTS: Final = ("steps", "messages", "trajectory", "turns")
_AGENTS: Final = frozenset({"assistant", "agent", "ai", "model"})


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the agent said or did, and the tools that it asked for with it.

    `index` is its place in the trajectory, from 0. Tokens and cost are None where it tells none.
    """

    index: int
    tools: tuple[tuple[str, object], ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    truncated: bool = False


def read_steps(trajectory: object) -> list[Step] | None:
    """The agent's own steps in order; None where there is none that is known as one."""
    if isinstance(trajectory, Mapping):
        named = (trajectory[name] for name in _LISTS if isinstance(trajectory.get(name), list))
        trajectory = next(named, None)
    if not isinstance(trajectory, list):
        return None
    found = [_step(index, step) for index, step in enumerate(trajectory) if _is_agent(step)]
    return found or None


def _is_agent(step: object) -> bool:
    if not isinstance(step, Mapping):
        return False
    for name in ("role", "source"):
        who = step.get(name)
        if isinstance(who, str):
            return who.lower() in _AGENTS
    return "action" in step or "assistant_content" in step


def _step(index: int, step: Mapping[str, Any]) -> Step:
    told = _mapping(step.get("metrics")) or _mapping(step.get("metric"))
    said = _mapping(step.get("assistant_content")) or step
    return Step(
        index=index,
        tools=tuple(_tools(said)),
        prompt_tokens=_count(told, "prompt_tokens", "prompt_tokens_len"),
        completion_tokens=_count(told, "completion_tokens", "completion_tokens_len"),
        cached_tokens=_count(told, "cached_tokens"),
        cost_usd=_amount(told.get("cost_usd")),
        truncated="length" in (told.get("stop_reason"), told.get("finish_reason")),
    )


def _tools(said: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    calls = said.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        outer = _mapping(call)
        named = _mapping(outer.get("function")) or outer
        name = named.get("name", named.get("function_name"))
        if isinstance(name, str):
            yield name, named.get("arguments")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(told: Mapping[str, Any], *names: str) -> int | None:
    given = (told.get(name) for name in names)
    return next((n for n in given if type(n) is int and n >= 0), None)


def _amount(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return rounded(float(value), 10) if known and isinstance(value, int | float) else None
