"""One ATIF file (Agent Trajectory Interchange Format, ATIF-v1.0 to v1.8), read as it is.

Field names are those of the models of harbor 0.25.0, `harbor/models/trajectories`. Of a file that
does not keep to the format in everything what can be read is read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ledger.errors import VersionUnsupported
from runtime.importers.jsontext import NotARecord, read_record

NEWEST: Final = (1, 8)
_VERSION: Final = re.compile(r"ATIF-v([0-9]{1,4})\.([0-9]{1,4})")
_HEAD: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v[0-9]')
_HEAD_BYTES: Final = 4096
_SUBAGENT_DEPTH: Final = 16

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A trajectory: a whole file, or one that stands inside another.

    `path` is that of the file. `steps` are the objects of the file, untouched; `refs` of a step
    are read by `refs_of`.
    """

    path: str
    version: str
    session_id: str | None
    trajectory_id: str | None
    agent: dict[str, Any]
    steps: tuple[Step, ...]
    final_metrics: dict[str, Any]
    continued: str | None
    subagents: tuple["Document", ...]
    rest: dict[str, Any]
    oddities: tuple[str, ...] = ()

    def outline(self) -> "Document":
        """The same with none of its steps but those that refer to sub-agents."""
        steps = tuple(step for step in self.steps if any(refs_of(step)))
        inside = tuple(one.outline() for one in self.subagents)
        return replace(self, steps=steps, subagents=inside)

    @property
    def model(self) -> str | None:
        """The model of steps that name none."""
        return text(self.agent.get("model_name"))


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a step says that the trajectory of a sub-agent is: inside the file, or in another."""

    trajectory_id: str | None
    path: str | None

    def __str__(self) -> str:
        return self.path or self.trajectory_id or "nothing"


def looks_like_atif(data: bytes) -> bool:
    """True if a file begins as a trajectory does, be it cut short."""
    head = data[:_HEAD_BYTES]
    return head.lstrip().startswith(b"{") and (
        _HEAD.search(head) is not None or (len(data) > len(head) and _names_atif(data))
    )


def _names_atif(data: bytes) -> bool:
    """Whether a schema stands further down: some writers sort keys."""
    return b'"steps"' in data and _HEAD.search(data) is not None


def read_document(path: str, data: bytes) -> Document:
    """Read one file; NotARecord if it is no trajectory, VersionUnsupported if it is a newer one."""
    record = read_record(data)
    return _document(path, record.value, record.oddities)


def refs_of(step: Step) -> Iterator[Ref]:
    """The sub-agents that a step delegated to."""
    for result in results_of(step):
        refs = result.get("subagent_trajectory_ref")
        # Before v1.7 it was one object.
        for ref in dicts([refs] if isinstance(refs, dict) else refs):
            yield Ref(text(ref.get("trajectory_id")), text(ref.get("trajectory_path")))


def results_of(step: Step) -> list[dict[str, Any]]:
    """What was observed after a step."""
    observation = step.get("observation")
    return dicts(observation.get("results")) if isinstance(observation, dict) else []


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; nothing of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """A text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def _document(
    path: str, value: dict[str, Any], oddities: tuple[str, ...] = (), depth: int = 0
) -> Document:
    version = value.get("schema_version")
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise NotARecord(f"its schema_version is {version!r}, which is none of ATIF")
    if (int(match[1]), int(match[2])) > NEWEST:
        newest = ".".join(map(str, NEWEST))
        raise VersionUnsupported(f"{path} is {version}, newer than ATIF-v{newest}")
    steps = value.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise NotARecord("it has no list of steps")
    if depth > _SUBAGENT_DEPTH:
        raise NotARecord("sub-agents are nested too deep")
    agent, metrics = value.get("agent"), value.get("final_metrics")
    inside = dicts(value.get("subagent_trajectories"))
    known = ("steps", "final_metrics", "subagent_trajectories")
    return Document(
        path=path,
        version=match[0],
        session_id=text(value.get("session_id")),
        trajectory_id=text(value.get("trajectory_id")),
        agent=agent if isinstance(agent, dict) else {},
        steps=tuple(steps),
        final_metrics=metrics if isinstance(metrics, dict) else {},
        continued=text(value.get("continued_trajectory_ref")),
        subagents=tuple(_document(path, one, depth=depth + 1) for one in inside),
        rest={key: item for key, item in value.items() if key not in known},
        oddities=oddities,
    )
