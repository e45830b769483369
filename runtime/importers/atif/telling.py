"""A chain of trajectory files as model calls and one trajectory, each step of it once."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from runtime.importers.atif.counting import Totals, differences, number, usage_of
from runtime.importers.atif.document import Document, Step, dicts, refs_of, results_of, text
from runtime.importers.atif.files import Chain, Documents, chain_from, subagent
from runtime.importers.foreign import ForeignCall, ForeignTool
from runtime.importers.times import utc

FROM_TRAJECTORY: Final = "from_trajectory"
"""Flags a call of which only a step of a trajectory tells: its request is not known."""
OF_SUBAGENT: Final = "of_subagent"

_SAID: Final = ("source", "message", "reasoning_content", "tool_calls", "timestamp")


@dataclass(slots=True)
class Told:
    """What a chain tells. `remarks` are (path, reason) pairs; `totals` without copied steps."""

    steps: list[Step] = field(default_factory=list)
    calls: list[ForeignCall] = field(default_factory=list)
    subagents: list[dict[str, Any]] = field(default_factory=list)
    final_answer: Any = None
    totals: Totals = field(default_factory=Totals)
    copied: int = 0
    turns: int = 0
    tool_calls: int = 0
    remarks: list[tuple[str, str]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def measures(self) -> dict[str, int]:
        """Counts over the steps that were not copied, those of sub-agents too."""
        return {"turns": self.turns, "tool_calls": self.tool_calls, "copied_steps": self.copied}


def tell(chain: Chain, documents: Documents) -> Told:
    """Tell a chain, with the sub-agents among `documents`; copied context counts once."""
    told = Told()
    before: tuple[Step, ...] = ()
    for part in chain.parts:
        told.used.add(part.path)
        own = _own_steps(part, before, told)
        alone = Totals.of(own)
        through = told.totals + alone
        told.totals = through
        spent = _steps(part, own, documents, told)
        _tell_numbers(part, told, alone, through, told.totals, alone + spent)
        told.steps += own
        before = part.steps
    if chain.lacking is not None:
        last = chain.parts[-1].path
        told.remarks.append((last, f"it goes on in {chain.lacking}, which is not there"))
    told.final_answer = _answer(told.steps)
    return told


def trajectory_of(chain: Chain, told: Told) -> dict[str, Any]:
    """One trajectory of the whole chain: the words of its first file, the steps of all."""
    value = {**chain.parts[0].rest, "steps": told.steps}
    value.pop("continued_trajectory_ref", None)
    if told.subagents:
        value["subagent_trajectories"] = told.subagents
    return value


def _own_steps(part: Document, before: tuple[Step, ...], told: Told) -> list[Step]:
    """The steps of a file that no file before it tells."""
    repeated = 0
    for step, earlier in zip(part.steps, before, strict=False):
        if _said(step) != _said(earlier):
            break
        repeated += 1
    own, silent = [], 0
    for index, step in enumerate(part.steps):
        if step.get("is_copied_context") is True:
            told.copied += 1
        elif index < repeated:
            told.copied += 1
            silent += 1
        else:
            own.append(step)
    if silent:
        reason = f"{silent} steps repeat those of the file before it, unmarked; they count once"
        told.remarks.append((part.path, reason))
    return own


def _said(step: Step) -> list[Any]:
    return [step.get(name) for name in _SAID]


def _steps(
    part: Document, own: list[Step], documents: Documents, told: Told, *, inner: bool = False
) -> Totals:
    """Take the calls of these steps, and of the sub-agents they call; what the latter spent."""
    spent = Totals()
    met: set[int] = set()
    zoneless = 0
    for step in own:
        zoneless += isinstance(step.get("timestamp"), str) and utc(step["timestamp"]) is None
        if step.get("source") == "agent":
            _agent_step(part, step, told, flags=(OF_SUBAGENT,) if inner else ())
        for ref in refs_of(step):
            found = subagent(documents, part, ref)
            if found is None:
                told.remarks.append((part.path, f"a sub-agent's {ref} is not there"))
            elif found.path != part.path:
                spent += _other_file(found.path, documents, told)
            elif id(found) not in met:
                met.add(id(found))
                spent += _subagent(found, (), documents, told)
    for found in part.subagents:
        if id(found) not in met:
            spent += _subagent(found, (), documents, told)
    if zoneless:
        reason = f"{zoneless} timestamps have no zone, or are none; they stand in the trajectory"
        told.remarks.append((part.path, reason))
    return spent


def _other_file(path: str, documents: Documents, told: Told) -> Totals:
    """Take a sub-agent that has files of its own; once, whoever refers to it."""
    spent = Totals()
    before: tuple[Step, ...] = ()
    if path in told.used:
        return spent
    for part in chain_from(documents, path).parts:
        told.used.add(part.path)
        spent += _subagent(part, before, documents, told)
        before = part.steps
    return spent


def _subagent(
    found: Document, before: tuple[Step, ...], documents: Documents, told: Told
) -> Totals:
    own = _own_steps(found, before, told)
    alone = Totals.of(own)
    told.totals += alone
    told.subagents.append({**found.rest, "steps": own})
    deeper = _steps(found, own, documents, told, inner=True)
    _tell_numbers(found, told, alone, alone + deeper)
    return alone + deeper


def _tell_numbers(part: Document, told: Told, *ours: Totals) -> None:
    told.remarks += [(part.path, reason) for reason in differences(part, *ours)]
    if part.oddities:
        words = ", ".join(part.oddities)
        told.remarks.append((part.path, f"holds {words}, which JSON has no word for"))


def _agent_step(part: Document, step: Step, told: Told, flags: tuple[str, ...]) -> None:
    tools = tuple(_tools(step))
    told.turns += 1
    told.tool_calls += len(dicts(step.get("tool_calls")))
    inferences = step.get("llm_call_count")
    if inferences == 0:
        if tools and told.calls:
            last = told.calls[-1]
            told.calls[-1] = replace(last, tools=(*last.tools, *tools))
        return
    several = type(inferences) is int and inferences > 1
    metrics = step.get("metrics")
    cost = number(metrics.get("cost_usd")) if isinstance(metrics, dict) else None
    model = text(step.get("model_name")) or part.model
    told.calls.append(
        ForeignCall(
            model=model,
            response={"model": model, "choices": [{"index": 0, "message": _message(step)}]},
            usage=usage_of(metrics),
            cost_usd=cost,
            finished_at=utc(step.get("timestamp")),
            flags=(FROM_TRAJECTORY, *flags, *((f"sum_of_{inferences}_calls",) if several else ())),
            tools=tools,
        )
    )


def _message(step: Step) -> dict[str, Any]:
    """An agent's step as the answer of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": step.get("message")}
    if text(step.get("reasoning_content")):
        message["reasoning_content"] = step["reasoning_content"]
    calls = [_tool_call(call) for call in dicts(step.get("tool_calls"))]
    return {**message, "tool_calls": calls} if calls else message


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    extra = call.get("extra")
    written = extra.get("arguments_text") if isinstance(extra, dict) else None
    arguments = written if isinstance(written, str) else json.dumps(call.get("arguments"))
    function = {"name": call.get("function_name"), "arguments": arguments}
    return {"id": call.get("tool_call_id"), "type": "function", "function": function}


def _tools(step: Step) -> Iterator[ForeignTool]:
    """The tools of a step that gave something back."""
    results = results_of(step)
    for call in dicts(step.get("tool_calls")):
        identity = text(call.get("tool_call_id"))
        given = [one.get("content") for one in results if one.get("source_call_id") == identity]
        if identity is None or not given:
            continue
        yield ForeignTool(
            name=text(call.get("function_name")) or "",
            call_id=identity,
            arguments=call.get("arguments"),
            output=given[0] if len(given) == 1 else given,
        )


def _answer(steps: list[Step]) -> Any:
    """The last thing that the agent said."""
    said = (step.get("message") for step in reversed(steps) if step.get("source") == "agent")
    return next((message for message in said if message), None)
