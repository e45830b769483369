"""What an agent left of its work: the log of its model calls, and its trajectory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledger.errors import VersionUnsupported
from runtime.importers.atif.document import Document, looks_like_atif, read_document
from runtime.importers.atif.files import Chain, chain_from
from runtime.importers.atif.telling import Told, tell, trajectory_of
from runtime.importers.foreign import ForeignCall
from runtime.importers.jobs.calls import read_calls
from runtime.importers.jobs.layout import TrialFiles
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import Remark
from runtime.importers.source import Source, SourceFile

CALLS: Final = "litellm-trajectory.jsonl"
TRAJECTORY: Final = "trajectory.json"

_AGENT: Final = "agent/"
_STEPS: Final = "steps/"


@dataclass(slots=True)
class Work:
    """What the agent did. `logged` says that the calls come from a log of them."""

    calls: list[ForeignCall] = field(default_factory=list)
    trajectory: Any = None
    final_answer: Any = None
    measures: dict[str, int] = field(default_factory=dict)
    logged: bool = False
    remarks: list[Remark] = field(default_factory=list)


def work_of(source: Source, files: TrialFiles) -> Work:
    """Read the agent's files: those of the trial, or of each of its steps, in order."""
    work = Work()
    told: list[tuple[Chain, Told]] = []
    for folder in _folders(files):
        if (log := files.files.get(f"{folder}{CALLS}")) is not None:
            found = read_calls(source.lines(log))
            work.calls += found.calls
            work.logged = work.logged or bool(found.calls)
            work.remarks += [
                Remark(log.path, reason, bool(found.calls), damage=damage, torn=not damage)
                for reason, damage in found.faults
            ]
        if (main := files.files.get(f"{folder}{TRAJECTORY}")) is not None:
            chain = _trajectory(source, files, main, work)
            told += [] if chain is None else [chain]
    _take(told, work)
    return work


def _folders(files: TrialFiles) -> list[str]:
    """The places of agents' files: `agent/`, and those of the steps of a trial that has some."""
    of_steps = {
        "/".join(path.split("/")[:3]) + "/"
        for path in files.files
        if path.startswith(_STEPS) and path.split("/")[2:3] == ["agent"]
    }
    return [_AGENT, *sorted(of_steps)]


def _trajectory(
    source: Source, files: TrialFiles, main: SourceFile, work: Work
) -> tuple[Chain, Told] | None:
    documents = _Documents(source, {file.path: file for file in files.files.values()})
    try:
        data = source.read(main)
        if not looks_like_atif(data):
            return None  # some agents keep logs of their own under this name
        chain = chain_from(documents, main.path)
        told = tell(chain, documents)
    except NotARecord as fault:
        work.remarks.append(Remark(main.path, str(fault), damage=not fault.cut, torn=fault.cut))
        return None
    except VersionUnsupported as newer:
        work.remarks.append(Remark(main.path, f"kept, and not read: {newer.message}"))
        return None
    work.remarks += [Remark(path, reason, placed=True) for path, reason in told.remarks]
    return chain, told


def _take(found: list[tuple[Chain, Told]], work: Work) -> None:
    if not found:
        return
    if not work.logged:
        work.calls = [call for _, told in found for call in told.calls]
    whole = [trajectory_of(chain, told) for chain, told in found]
    work.trajectory = whole[0] if len(whole) == 1 else {"trajectories": whole, "steps": []}
    if len(whole) > 1:
        work.trajectory["steps"] = [step for one in whole for step in one.pop("steps")]
    answers = [told.final_answer for _, told in found if told.final_answer is not None]
    work.final_answer = answers[-1] if answers else None
    for _, told in found:
        for name, value in told.measures().items():
            work.measures[name] = work.measures.get(name, 0) + value


@dataclass(frozen=True, slots=True)
class _Documents(Mapping[str, Document]):
    """The trajectory files of a trial, each read when it is asked for."""

    source: Source
    files: Mapping[str, SourceFile]

    def __getitem__(self, path: str) -> Document:
        return read_document(path, self.source.read(self.files[path]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __contains__(self, path: object) -> bool:
        return path in self.files

    def __len__(self) -> int:
        return len(self.files)
