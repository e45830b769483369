"""A whole job: what its own files say, and what it needs to know of its trials."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from ledger.errors import UsageError
from runtime.importers.jobs.facts import Facts, facts_of
from runtime.importers.jobs.layout import Layout, TrialFiles, arrange, is_trial, job_roots
from runtime.importers.jobs.log import Discarded, read_log
from runtime.importers.jobs.rewards import are_binary
from runtime.importers.jobs.tasks import JobTask, Tasks
from runtime.importers.jobs.tasks import arrange as arrange_tasks
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import Remark
from runtime.importers.source import Source, SourceFile

FORMAT: Final = "jobs"

_OPEN: Final = ("interrupted", "running")


@dataclass(slots=True)
class Job:
    """Everything small that is known of a job; the records of its trials stay on disk."""

    source: Source
    layout: Layout
    remarks: list[Remark] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    lock: dict[str, Any] = field(default_factory=dict)
    discarded: Discarded | None = None
    facts: dict[str, Facts] = field(default_factory=dict)
    tasks: Tasks = field(default_factory=lambda: Tasks([], [], []))
    binary: bool = False

    @property
    def ours(self) -> dict[str, Any]:
        """What an export of ours says of the run; empty for Harbor's jobs."""
        ours = self.result.get("acl")
        return ours if isinstance(ours, dict) else {}

    @property
    def ended_trials(self) -> list[Facts]:
        """The trials that have a result, by name."""
        return [facts for _, facts in sorted(self.facts.items()) if facts.ended]

    @property
    def finished(self) -> bool:
        """Whether the job says that it ended."""
        return self.result.get("finished_at") is not None and self.status not in _OPEN

    @property
    def status(self) -> str | None:
        """The status that it tells: Harbor's jobs say only that they finished."""
        told = self.ours.get("status")
        if isinstance(told, str):
            return told
        return "completed" if self.result.get("finished_at") is not None else None

    @property
    def name(self) -> str:
        """The run's id: that of the exported run, else the job's name."""
        folder = PurePosixPath(self.layout.root).name or self.source.root.name
        return _text(self.ours.get("run_id")) or _text(self.config.get("job_name")) or folder

    @property
    def k(self) -> int:
        """How many attempts were asked for: what it says, or the most that a task has."""
        told = self.config.get("n_attempts")
        most = max((max(task.trials, default=0) for task in self.tasks.tasks), default=0)
        return told if type(told) is int and told > 0 else most or 1

    @property
    def version(self) -> str:
        """The version of Harbor, as far as it is told."""
        harbor = self.lock.get("harbor")
        return (_text(harbor.get("version")) if isinstance(harbor, dict) else "") or "unknown"

    def is_over(self, task: JobTask) -> bool:
        """Whether every attempt at a task that was to be made is there and ended."""
        ended = all(self.facts[name].ended for name in task.trials.values())
        if self.ours:
            return ended and bool(task.trials) and (self.finished or len(task.trials) >= self.k)
        wanted = task.planned if task.planned is not None else (0 if self.finished else self.k)
        return ended and bool(task.trials) and len(task.trials) >= wanted


def read_job(source: Source) -> Job:
    """Read what the job's own files say, and of each trial what the job needs to know.

    Raises UsageError for several jobs, for one trial, and where there is neither.
    """
    roots = job_roots(source)
    if len(roots) > 1:
        names = ", ".join(root.rstrip("/") for root in roots[:5])
        raise UsageError(
            f"{source.root} holds {len(roots)} jobs: {names}",
            hint=f"an import is one run: import each, as {source.root}/{roots[0].rstrip('/')}",
        )
    if is_trial(source):
        raise UsageError(
            f"{source.root} is one trial of a job", hint="import the directory of the job above it"
        )
    if not roots:
        raise UsageError(f"{source.root} holds nothing of a job")
    job = Job(source, arrange(source, roots[0]))
    job.result = read_object(job, job.layout.job.get("result.json"))
    job.config = read_object(job, job.layout.job.get("config.json"))
    job.lock = read_object(job, job.layout.job.get("lock.json"))
    if (log := job.layout.job.get("job.log")) is not None:
        job.discarded = read_log(source.read(log))
    for name, files in job.layout.trials.items():
        job.facts[name] = _facts(job, files)
    job.tasks = arrange_tasks(list(job.facts.values()), job.lock)
    job.binary = are_binary(facts.rewards for facts in job.ended_trials)
    return job


def read_object(job: Job, file: SourceFile | None) -> dict[str, Any]:
    """A JSON object of the job; empty where there is none that can be read, which is named."""
    if file is None:
        return {}
    try:
        record = read_record(job.source.read(file))
    except NotARecord as fault:
        job.remarks.append(Remark(file.path, str(fault), damage=not fault.cut, torn=fault.cut))
        return {}
    if record.oddities:
        reason = f"holds {', '.join(record.oddities)}, which JSON has no word for"
        job.remarks.append(Remark(file.path, reason, placed=True))
    return record.value


def _facts(job: Job, files: TrialFiles) -> Facts:
    """What the result of a trial says; without one that can be read, its configuration."""
    file = files.files.get("result.json")
    if file is None:
        job.remarks.append(
            Remark(
                f"{job.layout.root}{files.name}",
                "it has no result.json: it did not end",
                placed=True,
            )
        )
    else:
        result = read_object(job, file)
        if result:
            return facts_of(files.name, result, {})
    config = read_object(job, files.files.get("config.json"))
    return facts_of(files.name, None, config or read_object(job, files.files.get("lock.json")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
