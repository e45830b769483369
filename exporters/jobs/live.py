"""A job that grows with its run: `result.json` and the trials, brought up to date as attempts end.

Until the run ends the job has no manifest, and its status is `running`. With the end the whole job
is written once more, for the prefix that holds the end, and takes the place of the growing one.
"""

from collections.abc import Iterator
from pathlib import Path

from exporters.folder import Folder
from exporters.identity import Identity
from exporters.jobs.config import config_files
from exporters.jobs.job import AS_USUAL, JobOptions, TrialFiles, job_trials
from exporters.jobs.job_result import job_result
from exporters.jobs.names import job_name, task_names
from exporters.jobs.place import directory_of, look, settled, write_job
from exporters.jobs.resolution import is_ended
from exporters.jobs.trial import Trial
from exporters.jobs.trial_result import Facts
from exporters.manifest import MANIFEST
from exporters.write import inside
from ledger.errors import ExportRefused
from ledger.state import RunState
from ledger.view import Blobs

_Key = tuple[str, int]


class LiveJob:
    """Keeps the job of one run up to date; call it with the state whenever it moved.

    The job has the name that `settled` says. One call writes the trials that ended since the last
    one, and the job's result, which names all of them. A call while another exporter is at work
    does nothing, and the next one makes up for it. Raises ExportRefused as `write_job` does; the
    run need not end for that.
    """

    def __init__(self, artifacts: Path, options: JobOptions = AS_USUAL) -> None:
        self._artifacts = artifacts
        self._options = options
        self._progress: tuple[int, int, int] | None = None
        self._known: dict[_Key, Facts] = {}
        self._configured: int | None = None
        self._names: dict[str, str] = {}

    def __call__(self, state: RunState, blobs: Blobs) -> None:
        """Bring the job up to this state; write the whole of it once the run has finished."""
        if state.created is None:
            return
        if not self._known and self._progress is None:
            self._options = settled(self._artifacts, state, self._options)
        if state.finished is not None:
            self._end(state, blobs)
            return
        attempts = [attempt for _, attempt in state.attempts()]
        progress = len(state.tasks), len(attempts), sum(map(is_ended, attempts))
        if progress == self._progress:
            return
        target = directory_of(self._artifacts, state, self._options)
        try:
            target.mkdir(exist_ok=True)
        except OSError as error:
            raise ExportRefused(f"{target} cannot be made: {error.strerror}") from error
        with Folder.open(target) as folder:
            if not folder.try_lock() or not folder.is_current():
                return
            # Under the lock: a run that began at the same time may have made it meanwhile.
            found = look(target, Identity.of(state))
            if found is not None and found.ledger_id != state.ledger_id:
                if found.ledger_id is None or self._progress or self._options.name:
                    raise found.refused(target, Identity.of(state))
                return
            self._write(folder, state, blobs)
        self._progress = progress

    def _end(self, state: RunState, blobs: Blobs) -> None:
        """Write the whole; an earlier state of this run, whoever exported it, makes way."""
        target = directory_of(self._artifacts, state, self._options)
        found = look(target, Identity.of(state))
        is_ours = found is not None and found.ledger_id == state.ledger_id
        write_job(self._artifacts, state, blobs, self._options, force=is_ours)

    def _write(self, folder: Folder, state: RunState, blobs: Blobs) -> None:
        if self._progress is None:
            folder.clear_temporaries()
        # An export of an earlier state may have come between: it is not the whole any more.
        folder.remove(MANIFEST)
        if self._configured != len(state.tasks):
            for file in config_files(state, job_name(state, self._options.name)):
                folder.replace(file)
            self._configured = len(state.tasks)
            self._names = task_names(state)
        for trial in list(self._new(state, folder)):
            self._put(trial, folder, blobs)
        folder.replace(job_result(state, list(self._known.values()), live=True))
        folder.sync()

    def _new(self, state: RunState, folder: Folder) -> Iterator[Trial]:
        """The trials that do not stand there under their names yet."""
        standing = folder.names()
        for trial in job_trials(state, self._names):
            key = trial.task.id, trial.attempt.number
            known = self._known.get(key)
            if known is not None and known.name == trial.name and trial.name in standing:
                continue
            if known is not None and known.name != trial.name:
                folder.remove_tree(known.name)  # tasks that came later changed its name
            yield trial

    def _put(self, trial: Trial, folder: Folder, blobs: Blobs) -> None:
        """Write a trial aside and rename it: nobody sees half of it."""
        files = TrialFiles.of(trial, blobs)
        with inside(folder.path) as stage:
            for file in files.make(self._options.trajectory):
                stage.create(file)
            stage.sync()
            folder.remove_tree(trial.name)
            folder.take(stage, trial.name)
        self._known[trial.task.id, trial.attempt.number] = files.facts()
