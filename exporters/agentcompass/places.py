"""Where what stands in a run directory of AgentCompass 1.0.1.

    details/<state>/<readable>--<sha256 of the task id>/task.json
        attempt-N/result.json  attempt-N/artifacts/**  attempt-N/retries/*.json

Read from `agentcompass/runtime/results/layout.py` of that release.
"""

import hashlib
import re
from typing import Final, Literal

State = Literal["normal", "error", "fatal", "running"]
"""Where the directory of a task stands: by its gravest issue, or as not ended."""

_READABLE: Final = 80
_STAGE: Final = 40
_UNREADABLE: Final = re.compile(r"[^A-Za-z0-9._=-]+")


def why_unnameable(task_id: str) -> str | None:
    """Why AgentCompass has no directory for a task of this id; None if it has."""
    if not task_id.strip():
        return "the id is empty"
    if task_id != task_id.strip():
        return "the id begins or ends with a space"
    try:
        task_id.encode()
    except UnicodeEncodeError:
        return "the id holds half a character"
    return None


def task_directory(task_id: str) -> str:
    """The name of the directory of a task; two ids never share one."""
    readable = _UNREADABLE.sub("_", task_id).strip("._-")[:_READABLE] or "task"
    return f"{readable}--{hashlib.sha256(task_id.encode()).hexdigest()}"


def retry_name(task_id: str, attempt: int, retry: int, stage: str) -> str:
    """The name of the file of a discarded try."""
    place = _UNREADABLE.sub("_", stage).replace(".", "_")[:_STAGE] or "unknown"
    return f"{task_directory(task_id)}.attempt{attempt}.retry{retry}.{place}.json"
