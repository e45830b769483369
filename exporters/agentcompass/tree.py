"""A run directory of AgentCompass, compared with what its ledger holds of its files.

The files are AgentCompass's own, so they hold what redaction took from the ledger: where the digest
of a file was recorded, it decides; where it was not, the content does.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from exporters.agentcompass.kept import (
    PLANS,
    RUN_INFO,
    CollectedFile,
    KeptFile,
    is_live,
    is_of_layout,
    kept_places,
    with_plans,
)
from exporters.folder import Entry, Folder
from exporters.reading import Reading
from ledger.errors import ExportRefused
from ledger.events import ArtifactsCollected, OriginalRecorded
from ledger.state import RunState
from ledger.verify.finding import Finding, broken, unproven
from ledger.view import Blobs

_CHECKPOINT: Final = re.compile(r"details/.+/checkpoint\.json", re.DOTALL)
_HOLDING: Final = frozenset({"original.recorded", "artifacts.collected"})
_AT_WORK: Final = "details/running/"


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the ledger says of a file; `sha256` is None where it cannot tell."""

    size: int
    sha256: str | None


def check_run_directory(state: RunState, blobs: Blobs, folder: Folder) -> Iterator[Finding]:
    """Yield a finding for each file of the layout that differs, is missing, or is extra.

    Logs and progress are not looked at, nor what AgentCompass does not write; nor, of a live run,
    its checkpoints, which change after the attempt is over.
    """
    checking = _Checking(state, blobs, folder)
    places = kept_places(state, blobs)
    for path in sorted(places):
        yield from checking.file(path, places[path])
    for path in folder.files():
        if path not in places and is_of_layout(path):
            yield from checking.unexpected(path)


class _Checking:
    """One directory against one state."""

    def __init__(self, state: RunState, blobs: Blobs, folder: Folder) -> None:
        self._state = state
        self._folder = folder
        self._reading = Reading(state, blobs)
        self._is_live = is_live(state, blobs)
        self._was_killed = self._is_live and state.finished is None

    def file(self, path: str, place: KeptFile | CollectedFile) -> Iterator[Finding]:
        """Compare one file."""
        try:
            found = self._folder.digest(path)
        except FileNotFoundError:
            if self._was_killed and path.startswith(_AT_WORK):
                yield unproven("tree_unfinished", f"{path}: its task went on after the last event")
            else:
                yield broken("tree_missing", f"{path} is missing")
            return
        except ExportRefused as error:
            yield broken("tree_differs", error.message)
            return
        if path == RUN_INFO and self._was_killed and isinstance(place, KeptFile):
            fits: bool | None = self._has_plans(place)
        else:
            fits = _fits(self._expected(place), found)
        if fits is None:
            yield unproven(
                "tree_redacted",
                f"{path} is not checkable: what redaction or erasure took is not known",
            )
        elif not fits:
            yield broken("tree_differs", f"{path} is not what the ledger says")

    def unexpected(self, path: str) -> Iterator[Finding]:
        """Tell of a file that the ledger holds nothing of."""
        if self._is_live and _CHECKPOINT.fullmatch(path):
            return
        if self._was_killed:
            yield unproven("tree_unfinished", f"{path} was written after the last event")
        elif not _HOLDING.isdisjoint(self._state.lost_types):
            yield unproven("tree_erased", f"{path} is not checkable: what held files was erased")
        else:
            yield broken("tree_extra", f"{path} is not part of the run")

    def _expected(self, place: KeptFile | CollectedFile) -> _Expected | None:
        if isinstance(place, CollectedFile):
            return self._expected_artifact(place)
        event = self._reading.event(place.head, OriginalRecorded)
        if event is None:
            return None
        digest = event.sha256
        if digest is None and not event.redactions:
            data = b"".join(place.data(self._reading))
            digest = self._digest_of(data, place.head)
        return _Expected(event.bytes, digest)

    def _digest_of(self, data: bytes, seq: int) -> str | None:
        """The digest of what an event holds, None where that was erased."""
        return None if seq in self._reading.gaps else hashlib.sha256(data).hexdigest()

    def _expected_artifact(self, place: CollectedFile) -> _Expected | None:
        event = self._reading.event(place.seq, ArtifactsCollected)
        if event is None:
            return None
        digest = place.artifact.sha256
        if digest is None and not event.redactions:
            contents = self._reading.value(place.seq, event.contents)
            content = contents.get(place.artifact.path) if isinstance(contents, dict) else None
            text = str(content or "").encode("utf-8", "surrogatepass")
            data = getattr(content, "data", None) or text
            digest = self._digest_of(data, place.seq)
        return _Expected(place.artifact.bytes, digest)

    def _has_plans(self, place: KeptFile) -> bool:
        """Whether run_info.json holds what was recorded; it may have been written to since."""
        data = b"".join(place.data(self._reading))
        wanted = json.loads(with_plans(data, self._state, self._reading))
        try:
            with self._folder.reading(RUN_INFO) as file:
                found = json.load(file)
            plans = found.pop(PLANS, {})
            told = wanted.pop(PLANS, {})
            same = all(found[name] == value for name, value in wanted.items())
            return same and all(
                plans[task]["attempts"][number] == plan
                for task, of_task in told.items()
                for number, plan in of_task["attempts"].items()
            )
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            return False


def _fits(expected: _Expected | None, found: Entry) -> bool | None:
    """Whether a file is what the ledger says; None if that cannot be told."""
    if expected is None:
        return None
    if expected.size != found.size:
        return False
    return None if expected.sha256 is None else expected.sha256 == found.sha256
