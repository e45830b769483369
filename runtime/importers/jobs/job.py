"""A whole job: what its own files say, and the plan of the import."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError
from runtime.importers.foreign import ForeignAttempt, task_items
from runtime.importers.jobs import manifest
from runtime.importers.jobs.attempt import Circumstances, attempt_of
from runtime.importers.jobs.checks import differences, zeros
from runtime.importers.jobs.facts import Facts, facts_of
from runtime.importers.jobs.layout import Layout, TrialFiles, arrange, is_trial, job_roots
from runtime.importers.jobs.log import Discarded, read_log
from runtime.importers.jobs.metrics import source_metrics
from runtime.importers.jobs.request import Asked, asked, our_own, persistence_params
from runtime.importers.jobs.rewards import are_binary, main_reward
from runtime.importers.jobs.tasks import JobTask, Tasks
from runtime.importers.jobs.tasks import arrange as arrange_tasks
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import (
    ImportPlan,
    Item,
    Original,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.source import Source, SourceFile
from runtime.importers.times import utc

FORMAT: Final = "jobs"

_HEAD: Final = ("config.json", "config.yaml", "lock.json")
_TAIL: Final = ("result.json", "job.log", "MANIFEST.json")
_ENDS: Final[dict[str, tuple[ev.RunStatus, int]]] = {
    "completed": ("completed", 0),
    "failed": ("failed", 1),
    "timed_out": ("timed_out", 1),
    "cancelled": ("cancelled", 130),
}
_OPEN: Final = ("interrupted", "running")
_FEW: Final = 5


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
    job.result = _read(job, job.layout.job.get("result.json"))
    job.config = _read(job, job.layout.job.get("config.json"))
    job.lock = _read(job, job.layout.job.get("lock.json"))
    if (log := job.layout.job.get("job.log")) is not None:
        job.discarded = read_log(source.read(log))
    for name, files in job.layout.trials.items():
        job.facts[name] = _facts(job, files)
    job.tasks = arrange_tasks(list(job.facts.values()), job.lock)
    job.binary = are_binary(facts.rewards for facts in job.ended_trials)
    _tell(job)
    return job


def plan_of(job: Job) -> ImportPlan:
    """Walk through the whole job once, keeping nothing but what must be told; then the plan."""
    remarks = list(job.remarks)
    for _ in job_items(job, remarks):
        pass
    kinds = job.tasks.kinds
    request = _request(job)
    of = Asked(kinds)
    benchmark, at, version = of.benchmark.partition("@")
    lost = {remark.source for remark in remarks if not remark.placed}
    return ImportPlan(
        format=FORMAT,
        format_version=_text(job.ours.get("schema")) or f"harbor {job.version}",
        run_name="",
        benchmark=benchmark,
        model=of.model,
        run_id=job.name,
        request=request,
        persistence_params=persistence_params({}, request),
        selected=ev.TasksSelected(
            benchmark=benchmark,
            benchmark_version=version if at else None,
            tasks=tuple(_task_ref(job, task) for task in job.tasks.tasks),
        ),
        items=lambda: job_items(job, []),
        records_in=len(job.source.files),
        records_out=len({file.path for file in job.source.files} - lost),
        source_status=job.status,
        started_at=_started_at(job),
        finished_at=utc(job.result.get("finished_at")) or _last(job),
        remarks=tuple(remarks),
    )


def job_items(job: Job, remarks: list[Remark]) -> Iterator[Item]:
    """Everything after `tasks.selected`, one trial at a time."""
    yield from _originals(job, _HEAD)
    for task in job.tasks.tasks:
        if task.trials:
            over = job.is_over(task)
            attempts = _attempts(job, task, remarks)
            for item in task_items(task.id, attempts):
                if over or not isinstance(item, ev.TaskFinished):
                    yield item
    for file in (*job.layout.derived, *job.layout.beside, *job.layout.foreign):
        yield Original(file)
    yield from _end(job, remarks)


def _attempts(job: Job, task: JobTask, remarks: list[Remark]) -> Iterator[ForeignAttempt]:
    around = Circumstances(job.source, job.binary, job.version)
    budget = job.config.get("retry")
    most = budget.get("max_retries") if isinstance(budget, dict) else None
    for number, name in sorted(task.trials.items()):
        files, facts = job.layout.trials[name], job.facts[name]
        result = _result(job, files) if facts.ended else None
        retries = () if job.discarded is None else job.discarded.retries(name, _count(most))
        yield attempt_of(around, files, facts, result, number, retries, remarks)


def _end(job: Job, remarks: list[Remark]) -> Iterator[Item]:
    metrics = _metrics(job)
    over = all(job.is_over(task) for task in job.tasks.tasks)
    if over and job.finished:
        yield ev.SummaryStarted()
    yield from _originals(job, _TAIL)
    path = f"{job.layout.root}result.json"
    if job.finished and not over and job.status == "completed":
        remarks.append(
            Remark(
                path, "the job ended, and not all of its trials are here", placed=True, damage=True
            )
        )
        return
    if metrics is not None and over and job.finished:
        yield metrics
    if job.finished:
        status, code = _ENDS.get(job.status or "", ("failed", 1))
        yield SourceEnd(status, None, code)


def _metrics(job: Job) -> SourceMetrics | None:
    tasks = {name: task.id for task in job.tasks.tasks for name in task.trials.values()}
    trials = job.ended_trials
    return source_metrics(job.result, trials, tasks, binary=job.binary) if trials else None


def _request(job: Job) -> dict[str, Any]:
    file = job.layout.job.get("config.yaml")
    if job.ours and file is not None:
        request = our_own(job.source.read(file), job.k)
        if request is not None:
            return request
        reason = "it holds no request of ours; one is made of what the trials say"
        job.remarks.append(Remark(file.path, reason, damage=True))
    return asked(job.tasks.kinds, k=job.k, name=job.name, config=job.config, lock=job.lock)


def _task_ref(job: Job, task: JobTask) -> ev.TaskRef:
    several = len(job.tasks.kinds) > 1
    told = {"task_name": task.name, "task_id": task.task_id, "source": task.kind.source}
    threshold = _threshold([job.facts[name] for name in task.trials.values()])
    return ev.TaskRef(
        task_id=task.id,
        category=task.kind.key if several else None,
        checksum=task.checksums[0] if task.checksums else None,
        metadata={
            "source": {name: value for name, value in told.items() if value is not None},
            **({} if threshold is None else {"resolve_threshold": threshold}),
        },
    )


def _threshold(trials: Sequence[Facts]) -> float | None:
    """A score that divides resolved from other attempts as the exported run did; None: 1 does."""
    scores = [(main_reward(one.rewards or {}), one.resolved) for one in trials]
    enough = [score for score, resolved in scores if resolved is True and score is not None]
    least = min(enough, default=1.0)
    return least if least < 1 else None


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
        result = _read(job, file)
        if result:
            return facts_of(files.name, result, {})
    config = _read(job, files.files.get("config.json"))
    return facts_of(files.name, None, config or _read(job, files.files.get("lock.json")))


def _result(job: Job, files: TrialFiles) -> dict[str, Any]:
    value: dict[str, Any] = read_record(job.source.read(files.files["result.json"])).value
    return value


def _tell(job: Job) -> None:
    """Name whatever the job's own files say that its trials do not, and what is no part of it."""
    root = job.layout.root
    path = f"{root}result.json"
    if not job.result and "result.json" not in job.layout.job:
        job.remarks.append(Remark(path, "it is not there: the job did not get to it", placed=True))
    for name in ("started_at", "finished_at"):
        value = job.result.get(name)
        if value is not None and utc(value) is None:
            reason = f"{name} is {value!r}, which has no zone; the trials' times are told instead"
            job.remarks.append(Remark(path, reason, placed=True))
    if job.result:
        _tell_differences(job, path)
    if job.ours and (listed := _read(job, job.layout.job.get(manifest.NAME))):
        job.remarks += manifest.compare(listed, job.source, root)
    for name in job.tasks.guessed:
        reason = "nothing but the name of its directory tells of its task"
        job.remarks.append(Remark(f"{root}{name}", reason, placed=True))
    _tell_tasks(job)
    if job.discarded is not None:
        for name in sorted(set(job.discarded.by_trial) - set(job.facts)):
            reason = f"it tells of discarded tries of {name}, which has no directory"
            job.remarks.append(Remark(f"{root}job.log", reason, placed=True))
    foreign = [*job.layout.foreign, *_foreign(job.layout.trials.values())]
    job.remarks += [Remark(file.path, "no file of this layout") for file in foreign]
    beside = "it stands beside the job, and is only kept"
    job.remarks += [Remark(file.path, beside, placed=True) for file in job.layout.beside]
    job.remarks += [Remark(name, f"left alone: {why}") for name, why in job.source.skipped]


def _tell_differences(job: Job, path: str) -> None:
    retries = None if job.discarded is None else job.discarded.total
    stale = "" if job.finished else " (the job did not end: this is of its last save)"
    for reason in differences(job.result, job.ended_trials, retries, ours=bool(job.ours)):
        job.remarks.append(Remark(path, f"{reason}{stale}", placed=True))
    counted = zeros(job.ended_trials) if job.finished and not job.ours else None
    if counted is not None:
        job.remarks.append(Remark(path, counted, placed=True))


def _tell_tasks(job: Job) -> None:
    root = job.layout.root
    lacking = []
    for task in job.tasks.tasks:
        if len(task.checksums) > 1:
            name = next(iter(task.trials.values()))
            reason = f"{task.id} has {len(task.checksums)} checksums: the task changed on the way"
            job.remarks.append(Remark(f"{root}{name}", reason, placed=True))
        if task.planned is not None and len(task.trials) < task.planned:
            lacking.append(f"{task.id} ({len(task.trials)} of {task.planned})")
    if lacking:
        names = ", ".join(lacking[:_FEW]) + ("" if len(lacking) <= _FEW else ", …")
        reason = f"{len(lacking)} tasks have fewer trials than were planned: {names}"
        job.remarks.append(Remark(f"{root}lock.json", reason, placed=True))


def _started_at(job: Job) -> str | None:
    told = utc(job.result.get("started_at"))
    times = [utc(facts.started_at) for facts in job.facts.values()]
    known = [time for time in times if time is not None]
    return told or min(known, key=datetime.fromisoformat, default=None)


def _last(job: Job) -> str | None:
    """When the last trial ended, if the job did and does not say when in UTC."""
    if not job.finished:
        return None
    times = [utc(facts.finished_at) for facts in job.ended_trials]
    known = [time for time in times if time is not None]
    return max(known, key=datetime.fromisoformat, default=None)


def _foreign(trials: Iterable[TrialFiles]) -> list[SourceFile]:
    return [file for trial in trials for file in trial.foreign]


def _originals(job: Job, names: Sequence[str]) -> Iterator[Original]:
    for name in names:
        if name in job.layout.job:
            yield Original(job.layout.job[name])


def _read(job: Job, file: SourceFile | None) -> dict[str, Any]:
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


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
