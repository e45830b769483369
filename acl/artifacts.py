"""The artifacts directory of a run: its job, the job's analysis, and its archive.

`acl run --artifacts` and `acl export -f jobs` end here, and so does a run that was killed, when the
next of these commands finds it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exporters.archives import Archived, archive, forget, open_runs, register, snapshot
from exporters.archives.open_runs import OpenRun, portable
from exporters.archives.shelf import ARCHIVES
from exporters.identity import Identity, Salvaged
from exporters.job_analysis import analyze_job
from exporters.job_analysis.place import place_analysis, standing_analysis
from exporters.jobs.config import config_yaml
from exporters.jobs.job import AS_USUAL, JobOptions
from exporters.jobs.live import LiveJob
from exporters.jobs.names import ANALYSIS, job_name
from exporters.jobs.place import JOBS, Placed, directory_of, look, settled, write_job
from ledger import LedgerView, RunState, fold, lock
from ledger.errors import AclError, ExportRefused, RunNotFound
from ledger.view import Blobs
from runtime.results import RequestOutcome

Tell = Callable[[str], object]
"""Is told, in one line, of what went wrong and does not matter to the command's exit status."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of a run's artifacts in the directory of that name.

    `archived` is None while the run goes on, and where archiving failed.
    """

    artifacts: Path
    placed: Placed
    archived: Archived | None

    @property
    def job(self) -> Path:
        """Where the job is."""
        return self.artifacts / JOBS / self.placed.directory.name

    @property
    def archive(self) -> Path | None:
        """Where the archive is, if there is one."""
        found = self.archived
        return None if found is None else self.artifacts / ARCHIVES / found.id

    def document(self) -> dict[str, Any]:
        """What `--json` tells of it."""
        return {
            "job": str(self.job),
            "analysis": (self.placed.directory / ANALYSIS).is_dir(),
            "archive": None if self.archive is None else str(self.archive),
        }


def finish_artifacts(
    state: RunState,
    view: LedgerView,
    artifacts: Path,
    options: JobOptions = AS_USUAL,
    *,
    force: bool = False,
    tell: Tell,
) -> Finished:
    """Write the job of a run and its analysis, and archive the run if it is over.

    A run is over when it was sealed, or nobody writes its ledger any more; an earlier state, or
    what was salvaged, is never archived. An analysis that fails is told, and the job has none.
    Raises ExportRefused where something else stands in the place of the job, or the run was
    archived in another state.
    """
    placed = write_job(artifacts, state, view, options, force=force)
    _analyze(placed.directory, state, view, force=force, tell=tell)
    archived = _archive(artifacts, state, view, options)
    if archived is not None:
        forget(artifacts, view.path)
    return Finished(artifacts, placed, archived)


def _is_over(state: RunState, view: LedgerView) -> bool:
    # Asked in this order: whatever a writer wrote that is gone now is counted after.
    over = state.sealed_size is not None or view.writer() is None
    return over and state.size == view.size and not isinstance(state, Salvaged)


def _archive(
    artifacts: Path, state: RunState, view: LedgerView, options: JobOptions
) -> Archived | None:
    """Archive a run that is over; None for one that is not."""
    if not _is_over(state, view):
        return None
    config = config_yaml(state).data
    taken = snapshot(
        state,
        view,
        job=job_name(state, options.name),
        config=config if isinstance(config, bytes) else b"".join(config),
        ledger_path=portable(artifacts, view.path),
    )
    return archive(artifacts, taken)


def _analyze(job: Path, state: RunState, blobs: Blobs, *, force: bool, tell: Tell) -> None:
    """Put the analysis of a job into its place, unless that of these events stands there."""
    target, identity = job / ANALYSIS, Identity.of(state)
    try:
        if force or not standing_analysis(target).is_of(identity):
            place_analysis(target, analyze_job(state, blobs), identity)
    except Exception as error:  # noqa: BLE001 - whatever it is, the job stands without an analysis
        why = str(error) if isinstance(error, AclError) else f"{type(error).__name__}: {error}"
        tell(f"{job.name} has no analysis: {' '.join(why.split())}")


# -- runs that write here ---------------------------------------------------------------------


def notice(artifacts: Path, tell: Tell) -> list[Finished]:
    """Finish the runs that were begun here and whose programs were killed; never raises."""
    found = []
    for run in open_runs(artifacts):
        try:
            if not run.ledger.is_file():
                tell(
                    f"a run that wrote to {artifacts} is not archived: {run.ledger} is not there;"
                    f" if it is gone for good, remove {run.note}"
                )
            elif lock.holder(run.ledger) is None:
                found.append(_finish_killed(run, artifacts, tell))
        except RunNotFound:
            forget(artifacts, run.ledger)  # killed before its first event: there was no run
        except (AclError, OSError) as error:
            tell(f"the artifacts of run {run.ledger.parent.name} are not finished: {error}")
    return found


def _finish_killed(run: OpenRun, artifacts: Path, tell: Tell) -> Finished:
    with LedgerView.open(run.ledger) as view:
        state = fold(view.events())
        found = finish_own(state, view, artifacts, JobOptions.of(run.options), tell=tell)
    if found.archived is not None and found.archived.is_new:
        tell(f"run {state.run_id} ended before this: archived as {found.archived.id}")
    return found


def finish_own(
    state: RunState, view: LedgerView, artifacts: Path, options: JobOptions, *, tell: Tell
) -> Finished:
    """Finish a run that wrote here itself: what it left of its job on the way makes way.

    An archive that fails is told. A job that is refused does not keep the run from being archived;
    then the refusal is raised. Whatever failed is made up for by the next command that notices.
    """
    try:
        options = settled(artifacts, state, options)
        placed = _own_job(state, view, artifacts, options)
        _analyze(placed.directory, state, view, force=False, tell=tell)
    except (AclError, OSError):
        _try_to_archive(state, view, artifacts, options, tell)
        raise
    archived = _try_to_archive(state, view, artifacts, options, tell)
    if archived is not None:
        forget(artifacts, view.path)
    return Finished(artifacts, placed, archived)


def _own_job(state: RunState, view: LedgerView, artifacts: Path, options: JobOptions) -> Placed:
    identity, target = Identity.of(state), directory_of(artifacts, state, options)
    standing = look(target, identity)
    is_own = standing is not None and standing.ledger_id == identity.ledger_id
    try:
        return write_job(artifacts, state, view, options, force=is_own)
    except ExportRefused:
        standing = look(target, identity)
        if standing is None or not standing.is_same(identity, options):
            raise
        # Somebody else finished the run at the same time.
        return write_job(artifacts, state, view, options)


def _try_to_archive(
    state: RunState, view: LedgerView, artifacts: Path, options: JobOptions, tell: Tell
) -> Archived | None:
    try:
        return _archive(artifacts, state, view, options)
    except (AclError, OSError) as error:
        tell(f"run {state.run_id} is not archived: {error}")
        return None


class RunArtifacts:
    """An artifacts directory during `acl run`, for the one run or for all of a suite."""

    def __init__(self, directory: Path, results_dir: Path, options: JobOptions, tell: Tell) -> None:
        # A plug-in may change the working directory.
        self.directory = directory.absolute()
        self.options = options
        self._shown = directory
        self._results, self._given_results = results_dir.absolute(), results_dir
        self._tell = tell

    def prepare(self) -> None:
        """Finish what was killed here; raises ExportRefused where nothing can be written.

        The directory is made when the run begins: one that is refused leaves nothing.
        """
        nearest = next(p for p in (self.directory, *self.directory.parents) if os.path.lexists(p))
        if not nearest.is_dir():
            raise ExportRefused(f"{self._shown} cannot be made: {nearest} is not a directory")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise ExportRefused(f"{self._shown} cannot be written to")
        if self.options.name is not None:
            name = job_name(RunState(), self.options.name)
            if os.path.lexists(self.directory / JOBS / name):
                raise ExportRefused(
                    f"{self._shown / JOBS / name} is there already", hint="give another --job-name"
                )
        notice(self.directory, self._tell)

    def follow(self, home: Path) -> "Following":
        """What follows the run in the directory `home`."""
        return Following(self, home)

    def conclude(self, outcome: RequestOutcome) -> Finished | None:
        """Finish a run that is over, and say what became of it; None where there was no run.

        What is wrong with the directory does not touch the run: it is told, and becomes the exit
        status of an outcome that was good. An archive that fails is told only.
        """
        if outcome.path is None:
            return None
        home = self._results / outcome.path.relative_to(self._given_results)
        with _logging(home, self._tell) as tell:
            try:
                with LedgerView.open(home) as view:
                    state = fold(view.events())
                    found = finish_own(state, view, self.directory, self.options, tell=tell)
                return replace(found, artifacts=self._shown)
            except (AclError, OSError) as error:
                tell(f"not all artifacts of the run were written: {error}")
                status = error.exit_status if isinstance(error, AclError) else 1
                outcome.exit_code = outcome.exit_code or status
                return None


class Following:
    """Says that a run writes here, before its first event, and keeps its job up to date.

    The last state is left to `conclude`, which writes the job with its analysis.
    """

    def __init__(self, artifacts: RunArtifacts, home: Path) -> None:
        from ledger.opening import ledger_file

        self._artifacts = artifacts
        self._ledger = ledger_file(home)
        self._live = LiveJob(artifacts.directory, artifacts.options)
        self._is_told = False
        # Its failure is that of the first look, which is told like that of any other.
        with suppress(AclError, OSError):
            self._say()

    def _say(self) -> None:
        register(self._artifacts.directory, self._ledger, self._artifacts.options.told())
        self._is_told = True

    def __call__(self, state: RunState, blobs: Blobs) -> None:
        """Bring the job up to this state, unless it is the last."""
        if not self._is_told:
            self._say()
        if state.finished is None:
            self._live(state, blobs)


@contextmanager
def _logging(home: Path, tell: Tell) -> Iterator[Tell]:
    """Tell, and leave a line in the log of the run."""
    import logging

    from runtime.outcome import LOG_NAME
    from runtime.redact import Redactor
    from runtime.runlog import run_log

    def both(line: str) -> None:
        tell(line)
        logging.getLogger("runtime.artifacts").warning("%s", line)

    with run_log(home / LOG_NAME, Redactor(os.environ)):
        yield both
