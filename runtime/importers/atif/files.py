"""Which trajectory files belong together: continuations, and those of sub-agents."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from runtime.importers.atif.document import Document, Ref, refs_of

_MARK: Final = "trajectory."

Documents = Mapping[str, Document]


@dataclass(slots=True)
class Chain:
    """A trajectory with its continuations, in order; `lacking` names one that is not there."""

    parts: list[Document]
    lacking: str | None = None


@dataclass(slots=True)
class Arranged:
    """All files of a source: one chain for each agent that ran, and who is whose sub-agent."""

    chains: list[Chain] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


def arrange(documents: Documents) -> Arranged:
    """Put the files in chains; `orphans` say that they go on from a file that is not there."""
    follows = {path: list(_follow(documents, one)) for path, one in documents.items()}
    inner = {path for paths in follows.values() for path in paths}
    found = Arranged()
    reached: set[str] = set()
    # Of files that only refer to each other, in a ring, the first one leads.
    for path in [*sorted(set(documents) - inner), *sorted(inner)]:
        if path in reached:
            continue
        found.chains.append(chain_from(documents, path))
        _reach(path, follows, reached)
        if _continues(documents[path]):
            found.orphans.append(path)
    return found


def _reach(path: str, follows: Mapping[str, list[str]], reached: set[str]) -> None:
    waiting = [path]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += follows[one]


def chain_from(documents: Documents, path: str) -> Chain:
    """The file at `path` and what continues it."""
    seen: set[str] = set()
    parts = []
    following: str | None = path
    while following is not None and following not in seen:
        seen.add(following)
        document = documents[following]
        parts.append(document)
        following = _named(documents, document)
    last = parts[-1]
    lost = last.continued if last.continued and following is None else None
    return Chain(parts, lost)


def subagent(documents: Documents, document: Document, ref: Ref) -> Document | None:
    """The trajectory that a step of `document` refers to; None if it is not there."""
    for inside in document.subagents:
        if ref.trajectory_id is not None and inside.trajectory_id == ref.trajectory_id:
            return inside
    path = None if ref.path is None else place_of(documents, document.path, ref.path)
    return None if path is None else documents[path]


def place_of(names: Container[str], path: str, ref: str) -> str | None:
    """The file that a file at `path` calls `ref`: beside it, or with the same words in front.

    `x.trajectory.json` calls `trajectory.cont-1.json` what is kept as `x.trajectory.cont-1.json`.
    """
    folder, name = PurePosixPath(path).parent, PurePosixPath(path).name
    last = PurePosixPath(ref).name
    front = name[: name.rfind(_MARK)] if _MARK in name else ""
    for wanted in (f"{front}{last}", last, ref.lstrip("/")):
        found = (folder / wanted).as_posix()
        if found in names and found != path:
            return found
    return None


def _named(documents: Documents, document: Document) -> str | None:
    if document.continued is None:
        return None
    return place_of(documents, document.path, document.continued)


def _follow(documents: Documents, document: Document) -> Iterator[str]:
    """The files that a file refers to: what continues it, and its sub-agents."""
    named = _named(documents, document)
    if named is not None:
        yield named
    for step in document.steps:
        for ref in refs_of(step):
            found = subagent(documents, document, ref)
            if found is not None and found.path != document.path:
                yield found.path


def _continues(document: Document) -> bool:
    """Whether a file says that it goes on from another one."""
    extra = document.agent.get("extra")
    index = extra.get("continuation_index") if isinstance(extra, dict) else None
    return type(index) is int and index > 0
