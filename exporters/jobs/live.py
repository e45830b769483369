"""A job that grows with its run: `result.json` and the trials, brought up to date as attempts end.

Until the run ends the job has no manifest, and its status is `running`. With the end the whole job
is written once more, for the prefix that holds the end, and takes the place of the growing one.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from exporters.folder import Folder
from exporters.identity import Identity
from exporters.jobs.config import config_files
from exporters.jobs.job import AS_USUAL, JobOptions, TrialFiles, trials_at
from exporters.jobs.job_result import job_result
from exporters.jobs.names import is_many, job_name, task_names
from exporters.jobs.place import directory_of, look, settled, write_job
from exporters.jobs.sums import Tasks, TrialSums
from exporters.jobs.trial import Trial
from exporters.jobs.trial_result import Facts
from exporters.manifest import MANIFEST
from exporters.write import inside
from ledger.errors import ExportRefused
from ledger.state import RunState, TaskState
from ledger.view import Blobs

_Key = tuple[str, int]
_AT_ONCE: Final = 64
"""How many trials are synced together, and appear then."""


class LiveJob:
    """Keeps the job of one run up to date; call it with the state whenever it moved.

    The job has the name that `settled` says. One call writes the trials that ended since the last
    one, and the job's result, which names all of them; it costs little more than what is new. A
    call while another exporter is at work does nothing, and the next one makes up for it. Raises
    ExportRefused as `write_job` does; the run need not end for that.
    """

    def __init__(self, artifacts: Path, options: JobOptions = AS_USUAL) -> None:
        self._artifacts = artifacts
        self._options = options
        self._tasks: Tasks | None = None
        self._due: set[str] = set()
        """The tasks that moved since the job was written."""
        self._progress: tuple[int, int, int] | None = None
        self._known: dict[_Key, Facts] = {}
        self._sums = TrialSums()
        self._named: tuple[int, bool] | None = None
        self._names: dict[str, str] = {}
        self._left: tuple[int, int, int] | None = None
        """The mark of the directory in which all that is known stands; None where it may not."""

    def __call__(self, state: RunState, blobs: Blobs) -> None:
        """Bring the job up to this state; write the whole of it once the run has finished."""
        if state.created is None:
            return
        if not self._known and self._progress is None:
            self._options = settled(self._artifacts, state, self._options)
        if state.finished is not None:
            self._end(state, blobs)
            return
        if self._tasks is None:
            self._tasks = Tasks(state)
        self._due.update(task.id for task in self._tasks.follow(state))
        sums = self._tasks.sums(state)
        progress = len(state.tasks), sums.begun, sums.ended
        if progress == self._progress:
            return
        if self._bring_up(state, blobs):
            self._progress = progress
            self._due.clear()

    def _bring_up(self, state: RunState, blobs: Blobs) -> bool:
        """Write what is due; False where somebody else is at work, or was there first."""
        target = directory_of(self._artifacts, state, self._options)
        try:
            target.mkdir(exist_ok=True)
        except OSError as error:
            raise ExportRefused(f"{target} cannot be made: {error.strerror}") from error
        with Folder.open(target) as folder:
            if not folder.try_lock() or not folder.is_current():
                return False
            is_as_left = folder.mark() == self._left
            self._left = None
            if not is_as_left:
                # Under the lock: a run that began at the same time may have made it meanwhile.
                found = look(target, Identity.of(state))
                if found is not None and found.ledger_id != state.ledger_id:
                    if found.ledger_id is None or self._progress or self._options.name:
                        raise found.refused(target, Identity.of(state))
                    return False
            self._write(folder, state, blobs, is_as_left=is_as_left)
            self._left = folder.mark()
        return True

    def _end(self, state: RunState, blobs: Blobs) -> None:
        """Write the whole; an earlier state of this run, whoever exported it, makes way."""
        target = directory_of(self._artifacts, state, self._options)
        found = look(target, Identity.of(state))
        is_ours = found is not None and found.ledger_id == state.ledger_id
        write_job(self._artifacts, state, blobs, self._options, force=is_ours)

    def _write(self, folder: Folder, state: RunState, blobs: Blobs, *, is_as_left: bool) -> None:
        if self._progress is None:
            folder.clear_temporaries()
        if not is_as_left:
            # An export of an earlier state may have come between: it is not the whole any more.
            folder.remove(MANIFEST)
        is_whole = self._name(state, folder) or not is_as_left
        due = state.tasks.values() if is_whole else self._moved(state)
        new = list(self._new(due, state, folder, is_as_left=is_as_left))
        for first in range(0, len(new), _AT_ONCE):
            for key, facts in self._put(new[first : first + _AT_ONCE], folder, blobs):
                self._known[key] = facts
                self._sums.add(facts)
        if is_whole:
            # Some may have been known before, under other names or in another directory.
            self._sums = TrialSums.of(self._known.values())
        assert self._tasks is not None
        folder.replace(job_result(state, self._tasks, self._sums, live=True))
        folder.sync()

    def _moved(self, state: RunState) -> list[TaskState]:
        """The tasks that are due, in task order."""
        return sorted((state.tasks[name] for name in self._due), key=lambda task: task.index)

    def _name(self, state: RunState, folder: Folder) -> bool:
        """Name tasks and trials anew if there may be other names; tell whether that was so."""
        was_many = self._named is not None and self._named[1]
        named = len(state.tasks), was_many or is_many(state, self._moved(state))
        if named == self._named:
            return False
        for file in config_files(state, job_name(state, self._options.name)):
            folder.replace(file)
        self._names = task_names(state)
        self._named = named
        return True

    def _new(
        self, tasks: Iterable[TaskState], state: RunState, folder: Folder, *, is_as_left: bool
    ) -> Iterator[Trial]:
        """The trials that do not stand there under their names yet."""
        many = self._named is not None and self._named[1]
        standing = None if is_as_left else folder.names()
        for task in tasks:
            for trial in trials_at(task, state, self._names[task.id], many=many):
                known = self._known.get((task.id, trial.attempt.number))
                is_there = standing is None or trial.name in standing
                if known is not None and known.name == trial.name and is_there:
                    continue
                if known is not None and known.name != trial.name:
                    folder.remove_tree(known.name)  # tasks that came later changed its name
                yield trial

    def _put(
        self, trials: Sequence[Trial], folder: Folder, blobs: Blobs
    ) -> Iterator[tuple[_Key, Facts]]:
        """Write trials aside and rename each: nobody sees half of one. Tell what is known of it."""
        with inside(folder.path) as stage:
            known = []
            for trial in trials:
                files = TrialFiles.of(trial, blobs)
                for file in files.make(self._options.trajectory):
                    stage.create(file)
                known.append(files.facts())
            stage.sync()
            for trial, facts in zip(trials, known, strict=True):
                folder.remove_tree(trial.name)
                folder.take(stage, trial.name)
                yield (trial.task.id, trial.attempt.number), facts
