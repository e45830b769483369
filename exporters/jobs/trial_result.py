"""A trial's `result.json`: Harbor's TrialResult (harbor 0.25.0), with what is ours under `acl`."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from exporters import OutFile
from exporters.attempt_trailer import source
from exporters.identity import Identity
from exporters.jobs import calls as of_calls
from exporters.jobs.calls import Call, Spent
from exporters.jobs.failures import CANCELLED, exception_type
from exporters.jobs.numbers import dollars, rounded
from exporters.jobs.replies import is_turn, message_of, tool_calls_of
from exporters.jobs.rewards import rewards_of
from exporters.jobs.timing import ended_at, parts, whole
from exporters.jobs.trial import (
    Trial,
    benchmark_id,
    dataset,
    harness_id,
    harness_version,
    is_unicode,
    model_id,
    part_of_request,
    uuid_of,
)
from exporters.jsontext import json_bytes
from exporters.reading import Reading
from ledger import canonical
from ledger import events as ev
from ledger.state import AttemptState, TaskState
from ledger.view import Blobs

PATH = "result.json"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the job tells of a trial: small, so that those of all trials are kept."""

    name: str
    task: str
    rewards: dict[str, float] | None
    exception: str | None
    spent: Spent


def facts_of(trial: Trial, calls: Sequence[Call], blobs: Blobs) -> Facts:
    """What the job needs to know of the trial."""
    error = _exception(trial.attempt, Reading(trial.state, blobs))
    return Facts(
        name=trial.name,
        task=trial.task.id,
        rewards=rewards_of(trial.attempt),
        exception=None if error is None else error[0],
        spent=Spent.of(calls),
    )


def trial_result(trial: Trial, calls: Sequence[Call], blobs: Blobs) -> OutFile:
    """The file."""
    state, task, attempt = trial.state, trial.task, trial.attempt
    reading = Reading(state, blobs)
    rewards = rewards_of(attempt)
    spans: dict[str, object] = dict(parts(attempt, reading, blobs))
    path = f"{benchmark_id(state)}/{trial.task_name}"
    document: dict[str, object] = {
        "id": uuid_of(trial.key),
        "task_name": task.id,
        "trial_name": trial.name,
        "trial_uri": f"acl:run/{state.run_id}/{trial.task_name}/{attempt.number}",
        "task_id": {"path": path},
        "source": dataset(state),
        "task_checksum": f"sha256:{task_checksum(task)}",
        "config": _config(trial, path),
        "agent_info": _agent(trial, calls),
        "agent_result": _agent_result(attempt, calls, reading, blobs),
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "exception_info": _exception_info(attempt, reading, blobs),
        **whole(state, attempt, blobs),
        **spans,
    }
    more: dict[str, object] = {
        "status": attempt.status,
        "attempt": attempt.number,
        "correct": attempt.correct,
        "score": rounded(attempt.score),
        "retries": len(attempt.retries),
        "reused_from": _source(task, attempt),
        "events": [attempt.started, attempt.finished],
        "result": None if attempt.result_address is None else attempt.result_address.hex(),
        "resolved": trial.resolved,
    }
    if not is_unicode(task.id):
        more["task_id_escaped"] = json.dumps(task.id)
    for seq in attempt.erased:
        reading.note(seq)
    if reading.gaps:
        more["erased"] = reading.told()
    document["acl"] = Identity.of(state).trailer(**more)
    return OutFile(trial.path(PATH), json_bytes(document, unicode=True))


def task_checksum(task: TaskState) -> str:
    """SHA-256, in hex, of the task as the plan tells it: id, category, checksum and metadata."""
    told: dict[str, object] = {
        "task_id": task.id,
        "category": task.category,
        "checksum": task.checksum,
        "metadata": task.metadata or None,
    }
    known = {name: value for name, value in told.items() if value is not None}
    return hashlib.sha256(canonical.encode(known)).hexdigest()


def _config(trial: Trial, path: str) -> dict[str, object]:
    state = trial.state
    factor = part_of_request(state, "execution").get("timeout_multiplier")
    return {
        "task": {"path": path},
        "trial_name": trial.name,
        "timeout_multiplier": float(factor) if isinstance(factor, int | float) else 1.0,
        "agent": {"name": harness_id(state), "model_name": model_id(state)},
    }


def _agent(trial: Trial, calls: Sequence[Call]) -> dict[str, object]:
    state, model = trial.state, model_id(trial.state)
    providers = (call.start.provider for call in calls if call.start is not None)
    told: dict[str, object] | None = None
    if model is not None:
        told = {"name": model, "provider": next((p for p in providers if p is not None), None)}
    return {"name": harness_id(state), "version": harness_version(state), "model_info": told}


def _agent_result(
    attempt: AttemptState, calls: Sequence[Call], reading: Reading, blobs: Blobs
) -> dict[str, object] | None:
    """What all calls of the attempt took, those of discarded tries too; None without a call."""
    if not calls:
        return None
    turns = wanted = 0
    for call in calls:
        if call.success:
            message = message_of(of_calls.response(call, reading, blobs))
            turns += is_turn(message)
            wanted += len(tool_calls_of(message))
    spent = Spent.of(calls)
    return {
        "n_input_tokens": spent.input_tokens,
        "n_cache_tokens": spent.cached_tokens,
        "n_output_tokens": spent.output_tokens,
        "cost_usd": dollars(spent.cost_usd),
        "metadata": {
            "n_llm_calls": len(calls),
            "n_turns": turns,
            "n_tool_calls": len(attempt.tools) or wanted,
        },
    }


def _exception(attempt: AttemptState, reading: Reading) -> tuple[str, ev.ErrorInfo | None] | None:
    """The type of what the attempt ended in, and its error, if it ended in one."""
    end = reading.event(attempt.finished, ev.AttemptFinished)
    if end is None:
        return None
    if end.status == "cancelled":
        return CANCELLED, end.error
    return None if end.error is None else (exception_type(end.error), end.error)


def _exception_info(
    attempt: AttemptState, reading: Reading, blobs: Blobs
) -> dict[str, object] | None:
    found = _exception(attempt, reading)
    if found is None:
        return None
    kind, error = found
    return {
        "exception_type": kind,
        "exception_message": "the attempt was cancelled" if error is None else error.message,
        "exception_traceback": "" if error is None else error.traceback or "",
        "occurred_at": ended_at(attempt, blobs),
    }


def _source(task: TaskState, attempt: AttemptState) -> dict[str, object] | None:
    """The run that the attempt was taken over from, with its task or alone."""
    alone = None if attempt.anew else attempt.origin or attempt.claim
    told = source(alone or task.origin or task.claim)
    return None if told is None else {name: told[name] for name in ("run_id", "ledger_id", "root")}
