"""Names in the jobs layout: the job's directory, and one directory for each trial."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from exporters.jobs.resolution import trials
from exporters.names import distinct_names
from ledger.errors import UsageError
from ledger.state import RunState, TaskState

ANALYSIS: Final = "analysis"
MAX_PART: Final = 80
"""Characters of each part of a job's name."""
MAX_IDS: Final = 200
"""Characters of all parts but the time, so that a staging directory can be named for the job."""

# What stands beside the trials in a job's directory, ours or Harbor's.
RESERVED: Final = frozenset(
    {ANALYSIS, "config.json", "config.yaml", "job.log", "lock.json", "manifest.json", "result.json"}
)
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9._-]+")


def job_name(state: RunState, wanted: str | None = None) -> str:
    """The name of the run's job: `wanted`, or `<benchmark>-<harness>-<model>-<YYYYMMDDHHMMSS>`.

    The time is that of the run's beginning, UTC. Characters outside `A-Za-z0-9._-` become `_`.
    Raises UsageError where nothing is left of `wanted`.
    """
    if wanted is not None:
        name = _part(wanted)
        if not name:
            raise UsageError(
                f"{wanted!r} cannot name a job", hint="use letters, digits, '.', '_' and '-'"
            )
        return name
    ids = (_id(state, "benchmark"), _id(state, "harness"), _id(state, "model"))
    parts = [part for part in map(_part, ids) if part]
    whole = "-".join(parts)[:MAX_IDS].rstrip("._-")
    return "-".join([*([whole] if whole else ["run"]), _digits(state)])


def second_name(state: RunState) -> str:
    """What the job is called where another run has the usual name: that, with 8 hex of its ledger.

    Two runs of a suite may begin within a second.
    """
    usual, digits = job_name(state).rsplit("-", 1)
    return f"{usual}-{state.ledger_id[:8]}-{digits}"


def task_names(state: RunState) -> dict[str, str]:
    """The name of each task by its id: that of its record, without the category."""
    return distinct_names({task_id: (task_id, None) for task_id in state.tasks}, RESERVED)


def trial_names(state: RunState) -> dict[tuple[str, int], str]:
    """The directory of each trial by task id and attempt, as `trial_name` says."""
    names = task_names(state)
    many = is_many(state, state.tasks.values())
    return {
        (task.id, attempt.number): trial_name(names[task.id], attempt.number, many=many)
        for task, attempt in trials(state)
    }


def trial_name(task_name: str, attempt: int, *, many: bool) -> str:
    """The directory of one trial: `<task>`, or `<task>__<attempt>` where `many` is true."""
    return f"{task_name}__{attempt}" if many else task_name


def is_many(state: RunState, tasks: Iterable[TaskState]) -> bool:
    """Whether the run makes more than one attempt at a task, or any of these tasks holds more."""
    return state.k > 1 or any(len(task.in_order()) > 1 for task in tasks)


def _part(text: str) -> str:
    return _FORBIDDEN.sub("_", text).strip("._-")[:MAX_PART].rstrip("._-")


def _id(state: RunState, section: str) -> str:
    given = state.request.get(section)
    found = given.get("id") if isinstance(given, dict) else None
    return found if isinstance(found, str) else ""


def _digits(state: RunState) -> str:
    """The 14 digits that readers take for the start of the job."""
    for at in (state.started_at, state.created_at):
        try:
            moment = datetime.fromisoformat(at or "")
        except ValueError:
            continue
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return zoned.astimezone(UTC).strftime("%Y%m%d%H%M%S")
    raise AssertionError("a run that was created has a time")
