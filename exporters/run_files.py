"""`run_info.json` and `params.json`: what was asked for, when it ran and how it ended."""

from collections.abc import Iterator

from exporters import OutFile
from exporters.attempt_record import attempt_record, plan_view
from exporters.attempt_trailer import attempt_trailer
from exporters.identity import Identity
from exporters.jsontext import JsonText, Members, json_bytes
from exporters.reading import Reading, error_fields, error_text
from exporters.record import has_record, told_attempts
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs

RUN_INFO = "run_info.json"
PARAMS = "params.json"
SCHEMA = "agentcompass.run_info.v1"
_PARAMS = {
    "benchmark": ("id", "params"),
    "model": ("id", "params", "base_url", "api_protocol", "api_key"),
    "output": ("run_name", "run_id"),
}


def run_info(state: RunState, blobs: Blobs, *, live: bool = False) -> OutFile:
    """The run as a whole. `live` says that its writer is at work and has not ended it yet."""
    document: dict[str, object] = {
        "schema_version": SCHEMA,
        "run_id": state.run_id,
        "status": "running" if live and state.finished is None else state.status,
        "started_at": state.started_at,
        "finished_at": state.ended_at,
    }
    more: dict[str, object] = {}
    error = state.finished.error if state.finished else None
    if error is not None:
        document["error"] = error_text(error)
        more["error_info"] = error_fields(error)
    document["request"] = state.request
    document["resolved_execution_plans"] = Members(lambda: _plans(state, blobs))
    frozen = state.frozen
    if frozen is not None and frozen.run_id is not None:
        document["reused_from"] = source = {
            "run_id": frozen.run_id,
            "path": frozen.path,
            "ledger_id": frozen.ledger_id,
            "root": frozen.root,
        }
        if frozen.differences:
            told = [one.model_dump(exclude_none=True) for one in frozen.differences]
            document["reused_from"] = {**source, "differences": told}
    document["metric_artifacts"] = _metric_artifacts(state)
    if state.benchmark is not None:
        more["selected"] = _selected(state)
    if state.redactions:
        more["redactions"] = state.redactions
    # While the run goes on, records are still to come.
    tasks = () if live else (state.tasks[task] for task in sorted(state.tasks))
    untold = [task for task in tasks if _has_untold(task)]
    if untold:
        more["untold"] = Members(lambda: _untold(untold, state, blobs))
    erased = _erased(state, blobs)
    if erased:
        more["erased"] = erased
    document["acl"] = Identity.of(state).trailer(**more)
    return OutFile(RUN_INFO, JsonText(document))


def _erased(state: RunState, blobs: Blobs) -> list[dict[str, object]]:
    """The events of the run as a whole whose body was erased."""
    reading = Reading(state, blobs)
    for seq in state.gaps:
        if blobs.event(seq).task is None:
            reading.note(seq)
    return reading.told()


def _plans(state: RunState, blobs: Blobs) -> Iterator[tuple[str, object]]:
    """One task at a time: the plans of a large run are never all in memory."""
    reading = Reading(state, blobs)
    for task_id in sorted(state.tasks):
        attempts = state.tasks[task_id].attempts
        plans = {str(number): plan_view(attempts[number], reading) for number in sorted(attempts)}
        present = {number: plan for number, plan in plans.items() if plan is not None}
        if present:
            yield task_id, {"attempts": present}


def _selected(state: RunState) -> dict[str, object]:
    """The task list in its order, with what records do not tell of the tasks."""
    rows = (
        {
            "task_id": task.id,
            "category": task.category,
            "checksum": task.checksum,
            "metadata": task.metadata or None,
        }
        for task in state.tasks.values()
    )
    return {
        "benchmark": state.benchmark,
        "version": state.benchmark_version,
        "tasks": [
            {name: value for name, value in row.items() if value is not None} for row in rows
        ],
    }


def _untold(tasks: list[TaskState], state: RunState, blobs: Blobs) -> Iterator[tuple[str, object]]:
    """What counts and metrics hold of attempts that no record tells, one task at a time."""
    reading = Reading(state, blobs)
    for task in tasks:
        attempts = {
            str(attempt.number): {
                **attempt_record(attempt, reading, brief=True),
                "acl": attempt_trailer(attempt, reading),
            }
            for attempt in _untold_attempts(task)
        }
        stage: dict[str, object] = {"stage": task.stage}
        if task.stopped_early:
            stage["stopped_early"] = True
        yield task.id, {**stage, "attempts": attempts}


def _has_untold(task: TaskState) -> bool:
    began = task.stage != "pending" and not has_record(task)
    return began or bool(_untold_attempts(task))


def _untold_attempts(task: TaskState) -> list[AttemptState]:
    told = {attempt.number for attempt in told_attempts(task)} if has_record(task) else set()
    return [task.attempts[number] for number in sorted(task.attempts) if number not in told]


def _metric_artifacts(state: RunState) -> dict[str, object]:
    if not state.metrics:
        return {"generated_at": None, "source": None, "reason": "no metrics were computed"}
    _, at, event = state.metrics[-1]
    return {"generated_at": at, "source": event.source}


def params(state: RunState) -> OutFile:
    """The compact identity of benchmark, model and output: sorted, empty values left out."""
    document: dict[str, object] = {}
    for section, names in sorted(_PARAMS.items()):
        given = state.creation.persistence_params.get(section)
        known = given if isinstance(given, dict) else {}
        fields = {name: known.get(name) for name in names}
        if section == "output":
            fields["run_id"] = state.run_id
        document[section] = _compact(fields)
    document["acl"] = Identity.of(state).trailer()
    return OutFile(PARAMS, json_bytes(document))


def _compact(value: object) -> object:
    """The value without empty parts at any depth, and without keys that begin with `_`."""
    if isinstance(value, dict):
        fields = ((k, _compact(v)) for k, v in sorted(value.items()) if not k.startswith("_"))
        return {key: item for key, item in fields if not _is_empty(item)}
    if isinstance(value, list | tuple):
        return [item for item in map(_compact, value) if not _is_empty(item)]
    return value


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)
