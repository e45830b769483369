"""The agent's steps in a trajectory, as far as its shape is known.

Chat messages (`role`), steps with an `action`, and ATIF (`source`), as a list or as an object that
holds the list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_LISTS: Final = ("steps", "messages", "trajectory", "turns")
_AGENTS: Final = frozenset({"assistant", "agent", "ai", "model"})


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the agent said or did, and the tools that it asked for with it."""

    index: int
    tools: tuple[tuple[str, object], ...] = ()


def read_steps(trajectory: object) -> list[Step] | None:
    """The agent's own steps in order; None where the shape is not known.

    `index` is the place in the list, from 0.
    """
    if isinstance(trajectory, Mapping):
        named = (trajectory[name] for name in _LISTS if isinstance(trajectory.get(name), list))
        trajectory = next(named, None)
    if not isinstance(trajectory, list):
        return None
    found = [
        Step(index, tuple(_tools(step))) for index, step in enumerate(trajectory) if _is_agent(step)
    ]
    is_known = any(isinstance(step, Mapping) for step in trajectory)
    return found if is_known or not trajectory else None


def _is_agent(step: object) -> bool:
    if not isinstance(step, Mapping):
        return False
    for name in ("role", "source"):
        who = step.get(name)
        if isinstance(who, str):
            return who.lower() in _AGENTS
    return "action" in step


def _tools(step: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        inner = call.get("function") if isinstance(call, Mapping) else None
        named = inner if isinstance(inner, Mapping) else call
        if isinstance(named, Mapping):
            name = named.get("name", named.get("function_name"))
            if isinstance(name, str):
                yield name, named.get("arguments")
