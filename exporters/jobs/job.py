"""The layout `jobs`: a run as a Harbor job. Content and names of the files: `docs/jobs.md`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from exporters import OutFile
from exporters.jobs.atif import trajectory_file
from exporters.jobs.calls import Call, calls_of
from exporters.jobs.config import config_files
from exporters.jobs.job_result import job_result
from exporters.jobs.litellm import Mode, litellm_file
from exporters.jobs.names import is_many, job_name, task_names, trial_name
from exporters.jobs.resolution import trials_of
from exporters.jobs.sums import Tasks, TrialSums
from exporters.jobs.trial import Trial
from exporters.jobs.trial_result import Facts, facts_of, trial_result
from exporters.jobs.verifier import verifier_files
from exporters.reading import Reading, Recent
from ledger.errors import ExportRefused
from ledger.state import RunState, TaskState
from ledger.view import Blobs

LAYOUT: Final = "jobs"


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How a run is projected into a job.

    `name` is the job's if it is not to be named for the run; `trajectory` says whether the line of
    each call holds its whole request (`full`), or what is new in it (`delta`).
    """

    name: str | None = None
    trajectory: Mode = "full"

    def told(self) -> dict[str, str]:
        """Those that differ from the usual ones, as a manifest tells them."""
        told = {"name": self.name, "trajectory": self.trajectory}
        usual = {"name": None, "trajectory": "full"}
        return {
            key: value for key, value in told.items() if value is not None and value != usual[key]
        }

    @classmethod
    def of(cls, told: Mapping[str, str]) -> "JobOptions":
        """The options that a manifest tells; ExportRefused for what no job was made with."""
        mode = told.get("trajectory", "full")
        if mode not in ("full", "delta") or told.keys() - {"name", "trajectory"}:
            raise ExportRefused("the manifest of the job tells of options that there are not")
        return cls(told.get("name"), "delta" if mode == "delta" else "full")


AS_USUAL: Final = JobOptions()


def export_jobs(state: RunState, blobs: Blobs, options: JobOptions = AS_USUAL) -> Iterator[OutFile]:
    """Project a run into `jobs/<job>/`, one file after another, each made when asked for.

    The analysis is not part of it. Memory is bounded by the largest call. Raises RunNotFound where
    the ledger holds no run, and LedgerDamaged where a stored byte that a file needs is not what
    was stored.
    """
    job = job_name(state, options.name)
    for file in job_files(state, blobs, options):
        yield OutFile(f"{LAYOUT}/{job}/{file.path}", file.data)


def job_files(state: RunState, blobs: Blobs, options: JobOptions = AS_USUAL) -> Iterator[OutFile]:
    """The files of the job below its own directory; `result.json` comes last."""
    yield from config_files(state, job_name(state, options.name))
    known = TrialSums()
    for trial in job_trials(state):
        files = TrialFiles.of(trial, blobs)
        yield from files.make(options.trajectory)
        known.add(files.facts())
    yield job_result(state, Tasks.of(state), known)


def job_trials(state: RunState) -> Iterator[Trial]:
    """The trials of a job, in task order, then by attempt."""
    tasks = state.tasks.values()
    names, many = task_names(state), is_many(state, tasks)
    for task in tasks:
        yield from trials_at(task, state, names[task.id], many=many)


def trials_at(task: TaskState, state: RunState, name: str, *, many: bool) -> Iterator[Trial]:
    """The trials of one task, by attempt; `name` is the task's, `many` is as in `trial_name`."""
    for attempt in trials_of(task, state.k):
        directory = trial_name(name, attempt.number, many=many)
        yield Trial(state, task, attempt, directory, name)


@dataclass(frozen=True, slots=True)
class TrialFiles:
    """What one trial is projected into."""

    trial: Trial
    blobs: Blobs
    calls: list[Call]

    @classmethod
    def of(cls, trial: Trial, blobs: Blobs) -> "TrialFiles":
        """Read what is small of the trial's calls."""
        # Each file of a trial reads its events again.
        recent = Recent(blobs)
        return cls(trial, recent, calls_of(trial.attempt, Reading(trial.state, recent), recent))

    def make(self, trajectory: Mode) -> Iterator[OutFile]:
        """The files; `result.json` comes last."""
        yield litellm_file(self.trial, self.calls, self.blobs, trajectory)
        yield trajectory_file(self.trial, self.calls, self.blobs)
        yield from verifier_files(self.trial, self.blobs)
        yield trial_result(self.trial, self.calls, self.blobs)

    def facts(self) -> Facts:
        """What the job tells of the trial."""
        return facts_of(self.trial, self.calls, self.blobs)
