"""A trial: one attempt with its directory, and what identifies it to readers of the layout."""

import hashlib
import uuid
from dataclasses import dataclass
from typing import Final

from exporters.jobs.resolution import is_resolved
from ledger.state import AttemptState, RunState, TaskState

NO_MODEL: Final = "none"
"""The id of the model in requests that call none."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An attempt that has a directory: `name` is the directory's, `task_name` that of its task."""

    state: RunState
    task: TaskState
    attempt: AttemptState
    name: str
    task_name: str

    @property
    def key(self) -> str:
        """`<run id>/<task id>/<attempt>`: the session that its calls belong to."""
        return f"{self.state.run_id}/{self.task.id}/{self.attempt.number}"

    @property
    def resolved(self) -> bool:
        """Whether the attempt solved its task."""
        return is_resolved(self.task, self.attempt)

    def path(self, below: str) -> str:
        """The path of a file of the trial below the job's directory."""
        return f"{self.name}/{below}"


def uuid_of(name: str) -> str:
    """The UUID of version 5 of `acl:<name>` among URLs (RFC 9562, 5.5).

    `uuid.uuid5` would refuse the lone surrogates that a task's id may have.
    """
    data = uuid.NAMESPACE_URL.bytes + f"acl:{name}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which strict readers of JSON refuse."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def part_of_request(state: RunState, section: str) -> dict[str, object]:
    """A section of the request; empty where an import knows of none."""
    found = state.request.get(section)
    return found if isinstance(found, dict) else {}


def text_of(section: dict[str, object], name: str) -> str | None:
    """A text of a section; None for anything else, and where it is empty."""
    value = section.get(name)
    return value if isinstance(value, str) and value else None


def harness_id(state: RunState) -> str:
    """Which agent ran."""
    return text_of(part_of_request(state, "harness"), "id") or "unknown"


def harness_version(state: RunState) -> str:
    """The version of the agent: that of the program it came with, unless it ran elsewhere."""
    return "unknown" if state.imported is not None else state.creation.acl_version


def model_id(state: RunState) -> str | None:
    """Which model answered; None where none was asked."""
    found = text_of(part_of_request(state, "model"), "id")
    return None if found == NO_MODEL else found


def benchmark_id(state: RunState) -> str:
    """Which benchmark the tasks are of."""
    return state.benchmark or text_of(part_of_request(state, "benchmark"), "id") or "unknown"


def dataset(state: RunState) -> str:
    """`benchmark@version`, or the benchmark alone."""
    version = state.benchmark_version
    return benchmark_id(state) if version is None else f"{benchmark_id(state)}@{version}"
