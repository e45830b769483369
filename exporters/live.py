"""An export that follows a run: each task's record appears when the task ends.

Until the run ends there is no manifest; with its end the whole export is written once more, for the
prefix that holds the end.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from exporters import OutFile
from exporters.details import LAYOUT, export_details
from exporters.folder import Folder
from exporters.identity import Identity
from exporters.manifest import MANIFEST, read_manifest
from exporters.names import ERROR_MARK, detail_names
from exporters.occupant import examine
from exporters.record import has_record, record_file
from exporters.retry_record import retry_file, retry_files
from exporters.run_files import PARAMS, params, run_info
from exporters.write import write_tree
from ledger.errors import ExportRefused
from ledger.state import RunState, TaskState
from ledger.view import Blobs

# `run_info.json` holds all plans: it is written again only when the ledger has grown by a quarter,
# so that all its writings together cost about five times the last one.
_GROWTH: Final = 1.25


def refuse_occupied(target: Path) -> None:
    """Raise ExportRefused for a directory that holds anything: no run that is yet to begin may."""
    nobody = Identity(run_id="", ledger_id="", size=0, root="")
    try:
        with Folder.open(target.resolve()) as folder:
            examine(folder, nobody, LAYOUT, None)
    except FileNotFoundError:
        return


class LiveExport:
    """Keeps the `details` layout of one run up to date; call it with the state whenever it moved.

    `home` is the run's own directory. One call writes what changed since the last one and costs
    little more than that. A call while another exporter is at work does nothing, and the next one
    makes up for it; where another exporter has told a later state, nothing is taken back. Raises
    ExportRefused as `write_tree` does; the run need not end for that.
    """

    def __init__(self, target: Path, *, home: Path | None = None) -> None:
        self._target = target
        self._home = home
        self._size = 0
        self._run_info_size = 0
        self._names: dict[str, str] = {}
        self._named: set[str] = set()
        self._written: set[str] = set()
        self._retried: set[int] = set()
        self._manifest: tuple[int, int] | None = None
        self._exported = 0

    def __call__(self, state: RunState, blobs: Blobs) -> None:
        """Bring the files up to this state; write the whole export once the run has finished."""
        if state.created is None or state.size == self._size:
            return
        identity = Identity.of(state)
        if state.finished is not None:
            if not self._is_told_later(identity):
                files = export_details(state, blobs)
                write_tree(files, self._target, identity=identity, layout=LAYOUT, home=self._home)
            self._size = state.size
            return
        if not self._written:
            self._make_target()
        with Folder.open(self._target.resolve()) as folder:
            if not folder.try_lock():
                return
            if not self._written:
                occupant = examine(folder, identity, LAYOUT, self._home)
                occupant.obsolete(frozenset())
            if self._exported_by_others(folder, identity) >= state.size:
                self._size = state.size
                return
            for file in self._changes(state, blobs, folder):
                folder.replace(file)
                self._written.add(file.path)
            folder.sync()
        self._named.clear()
        self._size = state.size

    def _make_target(self) -> None:
        try:
            self._target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportRefused(f"{self._target} cannot be made: {error.strerror}") from error

    def _is_told_later(self, identity: Identity) -> bool:
        try:
            with Folder.open(self._target.resolve()) as folder:
                return self._exported_by_others(folder, identity) > identity.size
        except FileNotFoundError:
            return False

    def _exported_by_others(self, folder: Folder, identity: Identity) -> int:
        """The size of the last whole export of this run that stands there; 0 where none does."""
        try:
            there = (folder.path / MANIFEST).lstat()
        except OSError:
            return 0
        if self._manifest != (there.st_ino, there.st_mtime_ns):
            self._manifest = there.st_ino, there.st_mtime_ns
            manifest = read_manifest(folder)
            # A longer run's export is no later state of this one: it is refused, not kept.
            told = None if manifest is None else manifest.acl
            is_ours = told is not None and told.ledger_id == identity.ledger_id
            self._exported = told.size if told is not None and is_ours else 0
        return self._exported

    def _changes(self, state: RunState, blobs: Blobs, folder: Folder) -> Iterator[OutFile]:
        if PARAMS not in self._written:
            yield params(state)
        # By this file a run is found that is to be reused: it does not wait for many records.
        is_due = state.size >= self._run_info_size * _GROWTH
        if is_due and _is_past_reuse(state):
            yield run_info(state, blobs, live=True)
            self._run_info_size = state.size
        if len(state.tasks) > len(self._names):
            self._name(state, blobs, folder)
        for task in self._moved(state):
            yield from self._retries(task, state, blobs)
            if has_record(task):
                yield from self._record(task, state, blobs, folder)

    def _name(self, state: RunState, blobs: Blobs, folder: Folder) -> None:
        """Name the records of all tasks; tasks that came later may have changed earlier names."""
        names = detail_names(state.tasks.values())
        for task_id, name in names.items():
            old = self._names.get(task_id, name)
            if old != name:
                task = state.tasks[task_id]
                for path in (f"details/{old}.json", f"details/{ERROR_MARK}{old}.json"):
                    folder.remove(path)
                for file in retry_files(task, old, state, blobs):
                    folder.remove(file.path)
                self._retried.difference_update(*(a.retries for a in task.attempts.values()))
            if old != name or task_id not in self._names:
                self._named.add(task_id)
        self._names = names

    def _moved(self, state: RunState) -> list[TaskState]:
        """The tasks that moved, or were named anew, since what is written, in task order."""
        moved = {task.id: task for task in state.moved(self._size)}
        moved |= {task_id: state.tasks[task_id] for task_id in self._named}
        begun = (task for task in moved.values() if task.first is not None)
        return sorted(begun, key=lambda task: task.index)

    def _retries(self, task: TaskState, state: RunState, blobs: Blobs) -> Iterator[OutFile]:
        for attempt in task.attempts.values():
            for seq in attempt.retries:
                if seq not in self._retried:
                    yield retry_file(task, attempt, seq, self._names[task.id], state, blobs)
                    self._retried.add(seq)

    def _record(
        self, task: TaskState, state: RunState, blobs: Blobs, folder: Folder
    ) -> Iterator[OutFile]:
        """The record of a task that ended, unless errors would take the place of a result."""
        name = self._names[task.id]
        if task.has_error and folder.holds(f"details/{name}.json"):
            return
        yield record_file(task, name, state, blobs)
        if not task.has_error:
            folder.remove(f"details/{ERROR_MARK}{name}.json")


def _is_past_reuse(state: RunState) -> bool:
    """Whether nothing more is taken over: a `run_info.json` before that would hide the source."""
    if state.benchmark is None:
        return False
    if state.frozen is None or state.frozen.mode == "none":
        return True
    return any(task.first is not None for task in state.tasks.values())
