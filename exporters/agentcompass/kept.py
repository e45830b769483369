"""Runs of AgentCompass itself: their files are in the ledger, and come back as they are.

An import and the live hook keep every file of the run beside the events (`original.recorded`), as
redaction left it; artifacts stand in `artifacts.collected`. Of a file that was kept again and again
the last one counts.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from exporters import OutFile
from exporters.paths import checked_path
from exporters.reading import Reading
from ledger.canonical import Binary
from ledger.errors import ExportRefused
from ledger.events import (
    Artifact,
    ArtifactsCollected,
    ExtensionRecorded,
    OriginalRecorded,
    PlanResolved,
)
from ledger.state import RunState
from ledger.view import Blobs

FORMAT: Final = "agentcompass"
HOOK: Final = "agentcompass.hook"
"""The extension event that the live hook records first."""

RUN_INFO: Final = "run_info.json"
PLANS: Final = "resolved_execution_plans"

_RUNNING: Final = "details/running/"
_PART: Final = re.compile(r"(.+)#bytes=([0-9]+)-[0-9]+", re.DOTALL)
_TASK: Final = r"details/(?:normal|error|fatal|running)/[^/]+"
_OF_LAYOUT: Final = re.compile(
    r"(?:params|run_info|metrics|analysis_summary)\.json|(?:summary|analysis_summary)\.md"
    rf"|{_TASK}/(?:task\.json|attempt-[1-9][0-9]{{0,8}}/"
    r"(?:result\.json|checkpoint\.json|artifacts/.+|retries/.+))",
    re.DOTALL,
)
_INDEX: Final = re.compile(rf"({_TASK})/task\.json")


@dataclass(slots=True)
class KeptFile:
    """The events that hold one file: itself, or its parts in order."""

    head: int
    parts: list[int] = field(default_factory=list)

    def data(self, reading: Reading) -> Iterator[bytes]:
        """The bytes, a part at a time; nothing for one whose content was erased."""
        for seq in self.parts or [self.head]:
            event = reading.event(seq, OriginalRecorded)
            if event is None:
                continue
            content = reading.value(seq, event.content)
            if isinstance(content, Binary):
                yield content.data
            elif isinstance(content, str):
                yield content.encode("utf-8", "surrogatepass")


def is_kept_run(state: RunState, blobs: Blobs) -> bool:
    """Whether the files of the run stand in its ledger."""
    return is_live(state, blobs) or (state.imported is not None and state.imported.format == FORMAT)


def is_live(state: RunState, blobs: Blobs) -> bool:
    """Whether the ledger was written beside the run by the live hook."""
    for seq in state.extensions:
        event = blobs.event(seq).event
        if isinstance(event, ExtensionRecorded) and event.name == HOOK:
            return True
    return False


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """The event that holds an artifact, and its place in the list there."""

    seq: int
    artifact: Artifact


Places = dict[str, KeptFile | CollectedFile]


def kept_files(state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """The files of the layout, sorted by path, each read when it is asked for.

    Logs, progress and files that are no part of the layout stay in the ledger. Of a live run that
    was killed run_info.json tells the plans that the ledger holds.
    """
    reading = Reading(state, blobs)
    places = kept_places(state, blobs)
    collected = _Collected(reading)
    is_unfinished = state.finished is None and is_live(state, blobs)
    for path in sorted(places):
        place = places[path]
        if isinstance(place, CollectedFile):
            yield OutFile(path, collected.content(place.seq, place.artifact.path))
            continue
        data = b"".join(place.data(reading))
        if path == RUN_INFO and is_unfinished:
            data = with_plans(data, state, reading)
        yield OutFile(path, data)


def kept_places(state: RunState, blobs: Blobs) -> Places:
    """Which event holds which file of the layout, by path."""
    reading = Reading(state, blobs)
    live = is_live(state, blobs)
    files, homes = _index(state, reading, live=live)
    if live:
        moved = {
            place.rpartition("/")[2] for place in homes.values() if not place.startswith(_RUNNING)
        }
        files = {path: kept for path, kept in files.items() if not _was_moved(path, moved)}
    found: Places = dict(files)
    for path, place in _artifacts(state, reading, homes):
        found.setdefault(path, place)
    return found


def with_plans(data: bytes, state: RunState, reading: Reading) -> bytes:
    """The run_info.json of a run that begins, with the plans that were recorded since."""
    info = json.loads(data)
    plans: dict[str, object] = {}
    for task, attempt in state.attempts():
        event = reading.event(attempt.plan, PlanResolved)
        if event is not None:
            of_task = plans.setdefault(task.id, {"attempts": {}})
            assert isinstance(of_task, dict)
            of_task["attempts"][str(attempt.number)] = event.plan
    if plans:
        info[PLANS] = plans
    text = json.dumps(info, indent=2, ensure_ascii=False, sort_keys=True)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _was_moved(path: str, moved: set[str]) -> bool:
    """Whether it is the place of a file while its task was at work, which is over."""
    return path.startswith(_RUNNING) and path.split("/")[2] in moved


def _index(
    state: RunState, reading: Reading, *, live: bool
) -> tuple[dict[str, KeptFile], dict[str, str]]:
    """The events of each file by its path, and the directory of each task."""
    files: dict[str, KeptFile] = {}
    homes: dict[str, str] = {}
    for seq in state.originals:
        event = reading.event(seq, OriginalRecorded)
        if event is None:
            continue
        part = _PART.fullmatch(event.path)
        if part is not None and part[1] in files:
            files[part[1]].parts.append(seq)
        elif is_of_layout(event.path):
            files[event.path] = KeptFile(seq)
            index = _INDEX.fullmatch(event.path)
            if index is not None and event.task is not None and (live or event.task not in homes):
                # Of two saves of one task that were found, the first told is the one that counts.
                homes[event.task] = index[1]
    return files, homes


def is_of_layout(path: str) -> bool:
    """Whether AgentCompass writes files of this name, and an export may."""
    if _OF_LAYOUT.fullmatch(path) is None:
        return False
    try:
        checked_path(path)
    except ExportRefused:
        return False
    return True


def _artifacts(
    state: RunState, reading: Reading, homes: dict[str, str]
) -> Iterator[tuple[str, CollectedFile]]:
    """Where each collected file stands."""
    for task, attempt in state.attempts():
        seq = attempt.artifacts
        event = reading.event(seq, ArtifactsCollected)
        if event is None or seq is None or task.id not in homes:
            continue
        for artifact in event.artifacts:
            path = f"{homes[task.id]}/attempt-{attempt.number}/artifacts/{artifact.path}"
            if is_of_layout(path):
                yield path, CollectedFile(seq, artifact)


class _Collected:
    """Reads collected files; those of one event follow one another, and it is read once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._seq = -1
        self._contents: dict[str, object] = {}

    def content(self, seq: int, name: str) -> bytes:
        if seq != self._seq:
            event = self._reading.event(seq, ArtifactsCollected)
            contents = None if event is None else self._reading.value(seq, event.contents)
            self._contents = contents if isinstance(contents, dict) else {}
            self._seq = seq
        content = self._contents.get(name)
        if isinstance(content, Binary):
            return content.data
        return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else b""
