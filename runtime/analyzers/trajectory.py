"""What an agent did, read from the shapes in which trajectories come.

Understood are chat messages (`role`, `content`, `tool_calls`), steps with an `action`, and ATIF
(`source`, `message`, `tool_calls`), as a list or as an object that holds the list. Anything else
counts as one step of which nothing more is known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Form = Literal["messages", "steps", "text", "other"]

_LISTS: Final = ("steps", "messages", "trajectory", "turns")
_AGENTS: Final = frozenset({"assistant", "agent", "ai", "model"})
# What changes from step to step although the agent does the same, and what came of the step.
_VOLATILE: Final = frozenset(
    {
        *("step", "step_id", "index", "id", "turn", "timestamp", "time", "created_at"),
        *("started_at", "finished_at", "duration", "duration_ms", "elapsed", "latency_ms"),
        *("observation", "output", "result", "response", "metrics", "usage", "tokens", "cost_usd"),
    }
)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that the agent did: a tool it called, a step it took, or else what it said.

    Equal `what` means that it did the same again. `tool` is the name of a tool or an action.
    """

    what: Any
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of one attempt, in order."""

    form: Form
    steps: Sequence[Any]

    @property
    def messages(self) -> int:
        """How many steps are messages of somebody."""
        return sum(speaker(step) is not None for step in self.steps)

    def actions(self) -> Iterator[Action]:
        """Everything that the agent did, in order."""
        for step in self.steps:
            if isinstance(step, Mapping):
                yield from _actions(step)


def read_trajectory(value: Any) -> Trajectory:
    """See the steps in a trajectory of any shape."""
    if isinstance(value, Mapping):
        named = (value[name] for name in _LISTS if isinstance(value.get(name), list))
        value = next(named, value)
    if isinstance(value, list):
        said = any(speaker(step) is not None for step in value)
        return Trajectory("messages" if said else "steps", value)
    return Trajectory("text" if isinstance(value, str) else "other", [value])


def speaker(step: Any) -> str | None:
    """Whose message a step is; None if it is none."""
    if not isinstance(step, Mapping):
        return None
    for name, said in (("role", "content"), ("source", "message")):
        who = step.get(name)
        if isinstance(who, str) and (said in step or "tool_calls" in step):
            return who
    return None


def characters(value: Any) -> int:
    """How many characters all texts in a value have together, those of keys left out."""
    total = 0
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                total += len(text)
            case Mapping() as items:
                stack.extend(items.values())
            case list() | tuple() as items:
                stack.extend(items)
    return total


def longest_repetition(actions: Iterator[Action]) -> tuple[int, Action | None]:
    """How often the same was done in a row at most, and what it was; (0, None) without actions."""
    longest, which = 0, None
    before: Action | None = None
    row = 0
    for action in actions:
        row = row + 1 if before is not None and action.what == before.what else 1
        before = action
        if row > longest:
            longest, which = row, action
    return longest, which


def _actions(step: Mapping[str, Any]) -> Iterator[Action]:
    calls = step.get("tool_calls")
    if isinstance(calls, list) and calls:
        yield from (_call(call) for call in calls if isinstance(call, Mapping))
        return
    if isinstance(step.get("function_call"), Mapping):
        yield _call(step["function_call"])
        return
    who = speaker(step)
    if who is not None:
        said = step.get("content", step.get("message"))
        if who.lower() in _AGENTS and said:
            yield Action({"says": said})
    elif "action" in step:
        action = step["action"]
        kept = {name: value for name, value in step.items() if name not in _VOLATILE}
        yield Action(kept, action if isinstance(action, str) else None)


def _call(call: Mapping[str, Any]) -> Action:
    inner = call.get("function")
    named = inner if isinstance(inner, Mapping) else call
    name = named.get("name", named.get("function_name"))
    tool = name if isinstance(name, str) else None
    return Action({"tool": tool, "arguments": named.get("arguments")}, tool)
