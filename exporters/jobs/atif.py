"""`agent/trajectory.json`: a trial as an ATIF trajectory, which Harbor's viewer shows.

ATIF-v1.8 (harbor 0.25.0, `models/trajectories`) allows no further keys: what is ours stands in
`extra`. The steps are what was said, in order: of each request what is new in it, and the answer.
A call that failed or was lost is a step of the system that says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from exporters import OutFile
from exporters.identity import Identity
from exporters.jobs import calls as of_calls
from exporters.jobs.calls import Call, Spent
from exporters.jobs.numbers import dollars
from exporters.jobs.replies import common_prefix, dicts, message_of
from exporters.jobs.steps import Steps, answer_step, counts, said
from exporters.jobs.told_steps import atif_steps, told_step
from exporters.jobs.trial import Trial, harness_id, harness_version, model_id
from exporters.jsontext import Items, JsonText
from exporters.reading import Reading
from ledger import events as ev
from ledger.view import Blobs

PATH: Final = "agent/trajectory.json"
SCHEMA: Final = "ATIF-v1.8"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of a trial, made one at a time; may be made again."""

    trial: Trial
    calls: list[Call]
    blobs: Blobs

    def steps(self) -> Iterator[dict[str, object]]:
        """Yield each step once all that was observed after it is known; there is at least one."""
        steps = Steps()
        reading = Reading(self.trial.state, self.blobs)
        if any(call.is_asked for call in self.calls):
            yield from self._of_calls(steps, reading)
        else:
            yield from self._told(steps, reading)
        yield from steps.rest()

    def _of_calls(self, steps: Steps, reading: Reading) -> Iterator[dict[str, object]]:
        is_import = self.trial.state.imported is not None
        before: list[object] = []
        reply: dict[str, object] | None = None
        for call in self.calls:
            sent = of_calls.messages(call, reading, self.blobs)
            now = list(sent) if isinstance(sent, list) else []
            known = common_prefix(before, now)
            if known == len(before) and reply is not None and _is_echo(now[known:], reply):
                known += 1
            for message in dicts(now[known:]):
                yield from steps.add(message)
            reply = message_of(of_calls.response(call, reading, self.blobs))
            yield from steps.end(call, reply, is_import=is_import)
            before = now

    def _told(self, steps: Steps, reading: Reading) -> Iterator[dict[str, object]]:
        """What the agent itself told, where no request was recorded.

        That is its ATIF trajectory, or else the answers of its calls; without calls its
        conversation, or else its answer.
        """
        result = reading.event(self.trial.attempt.result, ev.ResultRecorded)
        seq = self.trial.attempt.result
        trajectory = answer = None
        if result is not None and seq is not None:
            trajectory = reading.value(seq, result.trajectory)
            answer = reading.value(seq, result.final_answer)
        told = atif_steps(trajectory)
        for step in told:
            yield from steps.put(told_step(step))
        if told:
            return
        if self.calls:
            yield from self._of_calls(steps, reading)
            return
        messages = [entry for entry in dicts(trajectory) if isinstance(entry.get("role"), str)]
        for message in messages:
            yield from steps.add(message)
        if answer is not None and not messages:
            yield from steps.put(answer_step(answer))


def trajectory_file(trial: Trial, calls: list[Call], blobs: Blobs) -> OutFile:
    """The file; a trial of which nothing was recorded has one step that says so."""
    trajectory = Trajectory(trial, calls, blobs)
    state = trial.state
    agent: dict[str, object] = {"name": harness_id(state), "version": harness_version(state)}
    model = model_id(state)
    if model is not None:
        agent["model_name"] = model
    tools = _tools(trial, calls, blobs)
    if tools:
        agent["tool_definitions"] = tools
    document: dict[str, object] = {
        "schema_version": SCHEMA,
        "session_id": trial.key,
        "agent": agent,
        "steps": Items(trajectory.steps),
        "final_metrics": _metrics(calls),
        "extra": {"acl": Identity.of(state).trailer(task_id=trial.task.id)},
    }
    return OutFile(trial.path(PATH), JsonText(document, unicode=True))


def _tools(trial: Trial, calls: list[Call], blobs: Blobs) -> list[dict[str, object]]:
    """The tools that the first call offered."""
    if not calls:
        return []
    given = of_calls.params(calls[0], Reading(trial.state, blobs), blobs)
    return dicts(given.get("tools"))


def _metrics(calls: list[Call]) -> dict[str, object]:
    spent = Spent.of(calls)
    known: dict[str, object] = {
        "total_prompt_tokens": spent.input_tokens,
        "total_completion_tokens": spent.output_tokens,
        "total_cached_tokens": spent.cached_tokens,
        "total_cost_usd": dollars(spent.cost_usd),
    }
    return {**known, "extra": counts(calls)}


def _is_echo(messages: list[object], reply: dict[str, object]) -> bool:
    """Whether a request goes on with the answer to the one before it."""
    first = messages[0] if messages else None
    if not isinstance(first, dict) or first.get("role") != "assistant":
        return False
    return said(first) == said(reply)
