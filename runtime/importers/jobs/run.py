"""The import of a job: its plan, and its events, one trial after another."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from ledger import events as ev
from runtime.importers.foreign import ForeignAttempt, task_items
from runtime.importers.jobs.attempt import Circumstances, attempt_of
from runtime.importers.jobs.facts import Facts
from runtime.importers.jobs.job import FORMAT, Job
from runtime.importers.jobs.layout import TrialFiles
from runtime.importers.jobs.metrics import source_metrics
from runtime.importers.jobs.oddities import oddities
from runtime.importers.jobs.request import Asked, asked, our_own, persistence_params
from runtime.importers.jobs.rewards import main_reward
from runtime.importers.jobs.tasks import JobTask
from runtime.importers.jsontext import read_record
from runtime.importers.plan import (
    ImportPlan,
    Item,
    Original,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.times import utc

_HEAD: Final = ("config.json", "config.yaml", "lock.json")
_TAIL: Final = ("result.json", "job.log", "MANIFEST.json")
_ENDS: Final[dict[str, tuple[ev.RunStatus, int]]] = {
    "completed": ("completed", 0),
    "failed": ("failed", 1),
    "timed_out": ("timed_out", 1),
    "cancelled": ("cancelled", 130),
}


def plan_of(job: Job) -> ImportPlan:
    """Walk through the whole job once, keeping nothing but what must be told; then the plan."""
    odd = list(oddities(job))
    remarks = [*job.remarks, *odd]
    for _ in job_items(job, remarks):
        pass
    kinds = job.tasks.kinds
    request = _request(job, remarks)
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


def _request(job: Job, remarks: list[Remark]) -> dict[str, Any]:
    file = job.layout.job.get("config.yaml")
    if job.ours and file is not None:
        request = our_own(job.source.read(file), job.k)
        if request is not None:
            return request
        reason = "it holds no request of ours; one is made of what the trials say"
        remarks.append(Remark(file.path, reason, damage=True))
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


def _result(job: Job, files: TrialFiles) -> dict[str, Any]:
    value: dict[str, Any] = read_record(job.source.read(files.files["result.json"])).value
    return value


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


def _originals(job: Job, names: Sequence[str]) -> Iterator[Original]:
    for name in names:
        if name in job.layout.job:
            yield Original(job.layout.job[name])


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
