"""A directory compared with what a projection says its files must be."""

import hashlib
from collections.abc import Collection, Iterator
from typing import Final

from exporters import Exporter, OutFile
from exporters.folder import Entry, Folder
from exporters.paths import is_kept
from exporters.reading import Passing
from exporters.tables.parquet import is_of_another_release
from ledger.errors import ExportRefused, IntegrityError
from ledger.events import PayloadErased
from ledger.state import RunState
from ledger.verify.finding import Finding, broken, unproven
from ledger.view import Blobs, Recorded

_OF_TASKS: Final = ("details/", "retry_details/")
# Categories, errors and retries are told by names.
_NAMING: Final = frozenset(
    {
        "tasks.selected",
        "task.finished",
        "attempt.retried",
        "attempt.finished",
        "original.recorded",
        "artifacts.collected",
    }
)


class Watched(Passing):
    """Remembers which erased events were asked for."""

    def __init__(self, blobs: Blobs) -> None:
        super().__init__(blobs)
        self._erased: set[int] = set()
        self._last = 0
        self._lacks_piece = False

    def event(self, seq: int) -> Recorded:
        """Return one event."""
        recorded = super().event(seq)
        if not isinstance(recorded.event, PayloadErased):
            self._last = seq
            if recorded.erased or self._lacks_piece:
                self._erased.add(seq)
                self._lacks_piece = False
        return recorded

    def lacks_piece(self) -> None:
        """Count the event of it among the erased ones."""
        self._lacks_piece = True

    def take(self) -> set[int]:
        """The erased events that were asked for since the last call."""
        taken = self._erased | ({self._last} if self._lacks_piece else set())
        self._erased, self._lacks_piece = set(), False
        return taken


class Comparison:
    """One directory against one projection of `state`; `is_clean` until a file is not so.

    `prefix` is where the projection stands in the directory: files elsewhere are not looked at.
    """

    def __init__(self, folder: Folder, state: RunState, blobs: Blobs, *, prefix: str = "") -> None:
        self.entries: list[Entry] = []
        self.is_clean = True
        self._folder = folder
        self._state = state
        self._prefix = prefix
        self._watched = Watched(blobs)
        self._erasers = _erasers(state, blobs)

    def run(self, exporter: Exporter, beside: Collection[str] = ()) -> Iterator[Finding]:
        """Yield a finding for each file that differs, is missing, or is extra.

        `beside` are paths, or directories that end in `/`, which are no part of the projection.
        """
        try:
            for file in exporter(self._state, self._watched):
                yield from self._file(OutFile(f"{self._prefix}{file.path}", file.data))
        except IntegrityError as error:
            self.is_clean = False
            yield unproven("tree_unreadable", f"not checkable: {error.message}", error.seq)
            return
        yield from self._extra(frozenset(beside))

    def _file(self, file: OutFile) -> Iterator[Finding]:
        entry = digest_of(file)
        self.entries.append(entry)
        gaps = self._watched.take()
        if not gaps and not file.path.startswith(_OF_TASKS):
            # Counts and summaries are made from the state, which lacks what was erased.
            gaps = set(self._state.gaps)
        try:
            found = self._folder.digest(file.path)
        except FileNotFoundError:
            yield self._named("tree_missing", f"{file.path} is missing")
            return
        except ExportRefused as error:
            yield self._told("tree_differs", error.message)
            return
        if found == entry:
            return
        if gaps:
            self.is_clean = False
            first = min(gaps)
            by = self._erasers.get(first)
            eraser = "a later event" if by is None else f"event {by}"
            why = f"event {first} was erased by {eraser}"
            yield unproven("tree_erased", f"{file.path} is not checkable: {why}", first)
        elif is_of_another_release(self._folder, file.path):
            self.is_clean = False
            why = "another release of pyarrow wrote it, which spells the same otherwise"
            yield unproven("tree_release", f"{file.path} is not checkable: {why}")
        else:
            yield self._told("tree_differs", f"{file.path} is not what the ledger says")

    def _extra(self, beside: frozenset[str]) -> Iterator[Finding]:
        expected = {entry.path for entry in self.entries} | beside
        places = tuple(path for path in beside if path.endswith("/"))
        for path in self._folder.files():
            is_ours = path.startswith(self._prefix) and not path.startswith(places)
            if is_ours and path not in expected and not is_kept(path):
                yield self._named("tree_extra", f"{path} is not part of the export")

    def _named(self, code: str, message: str) -> Finding:
        """A file is there or not, against what the ledger says: if that still tells names."""
        if _NAMING.isdisjoint(self._state.lost_types):
            return self._told(code, message)
        self.is_clean = False
        why = "what decides on the names of files was erased"
        return unproven("tree_erased", f"{message}, which is not checkable: {why}")

    def _told(self, code: str, message: str) -> Finding:
        self.is_clean = False
        return broken(code, message)


def digest_of(file: OutFile) -> Entry:
    """The path, digest and size of a file, which is read once."""
    digest, size = hashlib.sha256(), 0
    for chunk in (file.data,) if isinstance(file.data, bytes) else file.data:
        digest.update(chunk)
        size += len(chunk)
    return Entry(file.path, digest.hexdigest(), size)


def _erasers(state: RunState, blobs: Blobs) -> dict[int, int]:
    """Which event erased which, the first that did."""
    found: dict[int, int] = {}
    for seq in state.erasures:
        event = blobs.event(seq).event
        if isinstance(event, PayloadErased):
            for erased in event.sequence:
                found.setdefault(erased, seq)
    return found
