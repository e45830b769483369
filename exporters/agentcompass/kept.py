"""Runs of AgentCompass itself: their files are in the ledger, and come back as they are.

An import and the live hook keep every file of the run beside the events (`original.recorded`), as
redaction left it; artifacts stand in `artifacts.collected`. Of a file that was kept again and again
the last one counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from exporters import OutFile
from exporters.paths import checked_path
from exporters.reading import Reading
from ledger.canonical import Binary
from ledger.errors import ExportRefused
from ledger.events import ArtifactsCollected, ExtensionRecorded, OriginalRecorded
from ledger.state import RunState
from ledger.view import Blobs

FORMAT: Final = "agentcompass"
HOOK: Final = "agentcompass.hook"
"""The extension event that the live hook records first."""

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


def kept_files(state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """The files of the layout, sorted by path, each read when it is asked for.

    Logs, progress and files that are no part of the layout stay in the ledger.
    """
    reading = Reading(state, blobs)
    files, homes = _index(state, reading)
    found: dict[str, KeptFile | tuple[int, str]] = dict(files)
    for path, seq, name in _artifacts(state, reading, homes):
        found.setdefault(path, (seq, name))
    collected = _Collected(reading)
    for path in sorted(found):
        place = found[path]
        if isinstance(place, KeptFile):
            yield OutFile(path, b"".join(place.data(reading)))
        else:
            yield OutFile(path, collected.content(*place))


def _index(state: RunState, reading: Reading) -> tuple[dict[str, KeptFile], dict[str, str]]:
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
        elif _is_of_layout(event.path):
            files[event.path] = KeptFile(seq)
            index = _INDEX.fullmatch(event.path)
            if index is not None and event.task is not None:
                # Of two saves of one task the first told is the one that counts.
                homes.setdefault(event.task, index[1])
    return files, homes


def _is_of_layout(path: str) -> bool:
    if _OF_LAYOUT.fullmatch(path) is None:
        return False
    try:
        checked_path(path)
    except ExportRefused:
        return False
    return True


def _artifacts(
    state: RunState, reading: Reading, homes: dict[str, str]
) -> Iterator[tuple[str, int, str]]:
    """Where each collected file stands, with the event that holds it and its name there."""
    for task, attempt in state.attempts():
        seq = attempt.artifacts
        event = reading.event(seq, ArtifactsCollected)
        if event is None or seq is None or task.id not in homes:
            continue
        for artifact in event.artifacts:
            path = f"{homes[task.id]}/attempt-{attempt.number}/artifacts/{artifact.path}"
            if _is_of_layout(path):
                yield path, seq, artifact.path


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
