"""Comparing an exported directory with what the ledger says its files must be."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from exporters import Exporter, OutFile, find_exporter
from exporters.folder import Entry, Folder
from exporters.identity import Identity, Salvaged
from exporters.jobs.job import LAYOUT as JOBS
from exporters.jobs.job import JobOptions, job_files
from exporters.jobs.names import ANALYSIS
from exporters.manifest import MANIFEST, Manifest, manifest_file, read_manifest
from exporters.paths import is_kept
from ledger.errors import ExportRefused, IntegrityError, RunNotFound
from ledger.events import PayloadErased
from ledger.state import RunState
from ledger.verify.finding import Finding, broken, remark, unproven
from ledger.view import Blobs, Recorded

_OF_TASKS: Final = ("details/", "retry_details/")


def check_tree(
    state_at: Callable[[int], RunState],
    blobs: Blobs,
    directory: Path,
    *,
    ledger_id: str,
    size: int,
    find: Callable[[str], Exporter] = find_exporter,
) -> Iterator[Finding]:
    """Project the ledger as of the manifest's size; yield a finding for each file that is not so.

    `state_at(n)` folds the first n events, `size` is how many there are now, `ledger_id` is in
    hex. A file that needs something erased is told as not checkable. Raises ExportRefused where
    the directory cannot be read, UsageError for a layout that is not installed.
    """
    try:
        folder = Folder.open(directory.resolve())
    except FileNotFoundError:
        raise ExportRefused(f"{directory} does not exist") from None
    with folder:
        try:
            manifest = read_manifest(folder)
        except ExportRefused as error:
            yield broken("tree_manifest", error.message)
            return
        if manifest is None:
            yield broken("tree_manifest", f"{directory} has no {MANIFEST}: no export ended here")
            return
        why = _not_of_this_ledger(manifest, ledger_id, size)
        if why is not None:
            yield broken("tree_ledger", why)
            return
        state = state_at(manifest.acl.size)
        if state.root.hex() != manifest.acl.root:
            yield broken("tree_root", f"the first {state.size} events have another root")
            return
        now = state if state.size == size else state_at(size)
        if manifest.acl.salvaged is not None:
            # The files say so, and this ledger may be the copy that is not damaged.
            state = Salvaged.of(state, manifest.acl.salvaged.damaged_at)
        # What was erased after the export is told like what was erased before it.
        erased = replace(state, erasures=now.erasures)
        exporter = _exporter(manifest, find)
        yield from _Comparison(folder, manifest, erased, blobs).run(exporter)
        if size > state.size:
            yield remark("tree_older", f"the export is of the first {state.size} of {size} events")


def _exporter(manifest: Manifest, find: Callable[[str], Exporter]) -> Exporter:
    """What the files were made with; a job is looked at from its own directory."""
    if manifest.layout == JOBS:
        return partial(job_files, options=JobOptions.of(manifest.options))
    return find(manifest.layout)


def _not_of_this_ledger(manifest: Manifest, ledger_id: str, size: int) -> str | None:
    if manifest.acl.ledger_id != ledger_id:
        return f"the export is of ledger {manifest.acl.ledger_id}"
    if manifest.acl.size > size:
        return f"the export is of {manifest.acl.size} events, the ledger has {size}"
    return None


class _Watched:
    """Passes everything on, and remembers which erased events were asked for."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._erased: set[int] = set()
        self._last = 0
        self._lacks_piece = False

    def event(self, seq: int) -> Recorded:
        recorded = self._blobs.event(seq)
        if not isinstance(recorded.event, PayloadErased):
            self._last = seq
            # Whoever lacks a piece asks for its event next, to name it.
            if recorded.erased or self._lacks_piece:
                self._erased.add(seq)
                self._lacks_piece = False
        return recorded

    def blob(self, digest: bytes) -> bytes:
        return self._blobs.blob(digest)

    def resolve(self, value: object) -> object:
        try:
            return self._blobs.resolve(value)
        except RunNotFound:
            self._lacks_piece = True
            raise

    def take(self) -> set[int]:
        """The erased events that were asked for since the last call."""
        taken = self._erased | ({self._last} if self._lacks_piece else set())
        self._erased, self._lacks_piece = set(), False
        return taken


class _Comparison:
    """One directory against one projection."""

    def __init__(self, folder: Folder, manifest: Manifest, state: RunState, blobs: Blobs) -> None:
        self._folder = folder
        self._manifest = manifest
        self._state = state
        self._watched = _Watched(blobs)
        self._erasers = _erasers(state, blobs)
        self._entries: list[Entry] = []
        self._is_clean = True

    def run(self, exporter: Exporter) -> Iterator[Finding]:
        try:
            for file in exporter(self._state, self._watched):
                yield from self._file(file)
        except IntegrityError as error:
            yield unproven("tree_unreadable", f"not checkable: {error.message}", error.seq)
            return
        yield from self._extra()
        if self._is_clean:
            yield from self._listing()

    def _file(self, file: OutFile) -> Iterator[Finding]:
        entry = _digest(file)
        self._entries.append(entry)
        gaps = self._watched.take()
        if not gaps and not file.path.startswith(_OF_TASKS):
            # Counts and summaries are made from the state, which lacks what was erased.
            gaps = {seq for _, attempt in self._state.attempts() for seq in attempt.erased}
        try:
            found = self._folder.digest(file.path)
        except FileNotFoundError:
            yield self._told("tree_missing", f"{file.path} is missing")
            return
        except ExportRefused as error:
            yield self._told("tree_differs", error.message)
            return
        if found == entry:
            return
        if gaps:
            self._is_clean = False
            first = min(gaps)
            by = self._erasers.get(first)
            eraser = "a later event" if by is None else f"event {by}"
            why = f"event {first} was erased by {eraser}"
            yield unproven("tree_erased", f"{file.path} is not checkable: {why}", first)
        else:
            yield self._told("tree_differs", f"{file.path} is not what the ledger says")

    def _extra(self) -> Iterator[Finding]:
        expected = {entry.path for entry in self._entries} | {MANIFEST}
        for path in self._folder.files():
            if path not in expected and not is_kept(path) and not self._is_beside(path):
                yield self._told("tree_extra", f"{path} is not part of the export")

    def _is_beside(self, path: str) -> bool:
        """Whether a file belongs to the analysis of a job, which has a manifest of its own."""
        return self._manifest.layout == JOBS and path.startswith(f"{ANALYSIS}/")

    def _listing(self) -> Iterator[Finding]:
        identity, manifest = Identity.of(self._state), self._manifest
        listing = manifest_file(self._entries, identity, manifest.layout, manifest.options)
        right = _digest(listing)
        if self._folder.digest(MANIFEST) != right:
            yield self._told("tree_manifest", f"{MANIFEST} is not what the ledger says")

    def _told(self, code: str, message: str) -> Finding:
        self._is_clean = False
        return broken(code, message)


def _digest(file: OutFile) -> Entry:
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
