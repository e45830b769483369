"""Trajectory files as a run: each chain of them is one attempt at a task of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError
from runtime.importers.atif.document import Document, looks_like_atif, read_document
from runtime.importers.atif.files import Arranged, Chain, arrange
from runtime.importers.atif.telling import Told, tell, trajectory_of
from runtime.importers.foreign import UNKNOWN, ForeignAttempt, foreign_request, task_items
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import ImportPlan, Item, Original, Remark, SourceEnd
from runtime.importers.source import Source, SourceFile

FORMAT: Final = "atif"
BENCHMARK: Final = "trajectories"
SEVERAL: Final = "several"
"""Stands for agents and models of a source that has more than one."""

_SUFFIXES: Final = (".trajectory.json", ".json")
_PLAIN: Final = "trajectory"


@dataclass(slots=True)
class Outline:
    """What is known of all files: which belong together, and what is wrong with them.

    Steps are read again, chain by chain, when they are told.
    """

    source: Source
    files: dict[str, SourceFile]
    known: frozenset[str]
    arranged: Arranged
    names: list[str]
    versions: set[str]
    agents: set[str]
    models: set[str]
    remarks: list[Remark] = field(default_factory=list)


def read_outline(source: Source) -> Outline:
    """Read every file once; UsageError if none is a trajectory, VersionUnsupported for newer."""
    remarks: list[Remark] = [Remark(path, f"left alone: {why}") for path, why in source.skipped]
    documents: dict[str, Document] = {}
    digests: dict[bytes, str] = {}
    for file in source.files:
        if file.sha256 in digests:
            reason = f"the same as {digests[file.sha256]}, which stands for both"
            remarks.append(Remark(file.path, reason, placed=True))
            continue
        digests[file.sha256] = file.path
        data = source.read(file)
        try:
            documents[file.path] = read_document(file.path, data).outline()
        except NotARecord as fault:
            remarks.append(_unread(file, fault, data))
    if not documents:
        raise UsageError(f"{source.root} holds no {FORMAT} trajectory that can be read")
    arranged = arrange(documents)
    for path in arranged.orphans:
        reason = "it goes on from a file that is not there"
        remarks.append(Remark(path, reason, placed=True))
    agents = {_words(one.agent.get("name")) for one in documents.values()}
    models = {one.model or UNKNOWN for one in documents.values()}
    return Outline(
        source=source,
        files={file.path: file for file in source.files},
        known=frozenset(documents),
        arranged=arranged,
        names=_task_names(arranged.chains),
        versions={one.version for one in documents.values()},
        agents=agents,
        models=models if models == {UNKNOWN} else models - {UNKNOWN},
        remarks=remarks,
    )


def plan_of(outline: Outline) -> ImportPlan:
    """The plan of the import; walks through all of it once for what must be told."""
    remarks = list(outline.remarks)
    for _ in run_items(outline, remarks):
        pass
    harness, model = _only(outline.agents), _only(outline.models)
    ids = {chain.parts[0].session_id for chain in outline.arranged.chains}
    session = ids.pop() if len(ids) == 1 else None
    request = foreign_request(
        benchmark=BENCHMARK,
        harness=harness,
        model=model,
        run_id=session or "",
        source={
            "format": FORMAT,
            "agents": sorted(outline.agents),
            "models": sorted(outline.models),
            "schema_versions": sorted(outline.versions),
        },
    )
    lost = {remark.source for remark in remarks if not remark.placed}
    return ImportPlan(
        format=FORMAT,
        format_version=max(outline.versions, key=_by_number),
        run_name="",
        benchmark=BENCHMARK,
        model=model,
        run_id=session or outline.names[0].replace("/", "_"),
        request=request,
        persistence_params={
            name: request[name] for name in ("benchmark", "model", "output", "metadata")
        }
        | {"reuse": request["runtime"]},
        selected=ev.TasksSelected(
            benchmark=BENCHMARK,
            tasks=tuple(ev.TaskRef(task_id=name) for name in outline.names),
        ),
        items=lambda: run_items(outline, []),
        records_in=len(outline.source.files),
        records_out=len(set(outline.files) - lost),
        remarks=tuple(remarks),
    )


def run_items(outline: Outline, remarks: list[Remark]) -> Iterator[Item]:
    """Everything after `tasks.selected`, one chain at a time."""
    told_files: set[str] = set()
    for name, chain in zip(outline.names, outline.arranged.chains, strict=True):
        documents = _Documents(outline)
        whole = Chain([documents[part.path] for part in chain.parts], chain.lacking)
        told = tell(whole, documents)
        told_files |= told.used
        remarks += [Remark(path, reason, placed=True) for path, reason in told.remarks]
        yield from task_items(name, [_attempt(outline, whole, told)])
    for file in outline.source.files:
        if file.path not in told_files:
            yield Original(file)
    yield ev.SummaryStarted()
    yield SourceEnd("completed", None, 0)


def _attempt(outline: Outline, chain: Chain, told: Told) -> ForeignAttempt:
    first = chain.parts[0]
    return ForeignAttempt(
        number=1,
        final_answer=told.final_answer,
        trajectory=trajectory_of(chain, told),
        metrics=told.measures(),
        meta={"agent": first.agent, "session_id": first.session_id},
        extra=_extra(chain),
        calls=tuple(told.calls),
        originals=tuple(outline.files[path] for path in sorted(told.used)),
    )


def _extra(chain: Chain) -> dict[str, Any] | None:
    """What the files say that they sum up to, by file."""
    told = {part.path: part.final_metrics for part in chain.parts if part.final_metrics}
    return {"final_metrics": told} if told else None


@dataclass(frozen=True, slots=True)
class _Documents(Mapping[str, Document]):
    """The trajectories of a source, each read when it is asked for."""

    outline: Outline

    def __getitem__(self, path: str) -> Document:
        return read_document(path, self.outline.source.read(self.outline.files[path]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.outline.known)

    def __contains__(self, path: object) -> bool:
        return path in self.outline.known

    def __len__(self) -> int:
        return len(self.outline.known)


def _task_names(chains: Sequence[Chain]) -> list[str]:
    """A name for each chain: that of its first file, without what all such files are called."""
    names = []
    for chain in chains:
        path = chain.parts[0].path
        name = next((path[: -len(end)] for end in _SUFFIXES if path.endswith(end)), path)
        folder = PurePosixPath(path).parent.as_posix()
        plain = PurePosixPath(name).name == _PLAIN
        names.append(folder if plain and folder != "." else name)
    double = {name for name in names if names.count(name) > 1}
    paths = [chain.parts[0].path for chain in chains]
    return [path if name in double else name for name, path in zip(names, paths, strict=True)]


def _unread(file: SourceFile, fault: NotARecord, data: bytes) -> Remark:
    if not looks_like_atif(data):
        return Remark(file.path, f"no trajectory: {fault}", torn=fault.cut)
    return Remark(file.path, str(fault), damage=not fault.cut, torn=fault.cut)


def _only(words: set[str]) -> str:
    return next(iter(words)) if len(words) == 1 else SEVERAL


def _words(value: Any) -> str:
    return value if isinstance(value, str) and value else UNKNOWN


def _by_number(version: str) -> list[int]:
    return [int(part) for part in version.removeprefix("ATIF-v").split(".")]
