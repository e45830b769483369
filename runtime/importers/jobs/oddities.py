"""What is odd about a job: where its own files do not say what its trials say."""

from collections.abc import Iterable, Iterator
from typing import Final

from runtime.importers.jobs import manifest
from runtime.importers.jobs.checks import differences, zeros
from runtime.importers.jobs.job import Job, read_object
from runtime.importers.jobs.layout import TrialFiles
from runtime.importers.plan import Remark
from runtime.importers.source import SourceFile
from runtime.importers.times import utc

_FEW: Final = 5


def oddities(job: Job) -> Iterator[Remark]:
    """Name whatever the job's own files say that its trials do not, and what is no part of it."""
    root = job.layout.root
    path = f"{root}result.json"
    if not job.result and "result.json" not in job.layout.job:
        yield Remark(path, "it is not there: the job did not get to it", placed=True)
    for name in ("started_at", "finished_at"):
        value = job.result.get(name)
        if value is not None and utc(value) is None:
            reason = f"{name} is {value!r}, which has no zone; the trials' times are told instead"
            yield Remark(path, reason, placed=True)
    if job.result:
        yield from _differences(job, path)
    if job.ours and (listed := read_object(job, job.layout.job.get(manifest.NAME))):
        yield from manifest.compare(listed, job.source, root)
    for name in job.tasks.guessed:
        reason = "nothing but the name of its directory tells of its task"
        yield Remark(f"{root}{name}", reason, placed=True)
    yield from _tasks(job)
    if job.discarded is not None:
        for name in sorted(set(job.discarded.by_trial) - set(job.facts)):
            reason = f"it tells of discarded tries of {name}, which has no directory"
            yield Remark(f"{root}job.log", reason, placed=True)
    foreign = [*job.layout.foreign, *_foreign(job.layout.trials.values())]
    yield from (Remark(file.path, "no file of this layout") for file in foreign)
    beside = "it stands beside the job, and is only kept"
    yield from (Remark(file.path, beside, placed=True) for file in job.layout.beside)
    yield from (Remark(name, f"left alone: {why}") for name, why in job.source.skipped)


def _differences(job: Job, path: str) -> Iterator[Remark]:
    retries = None if job.discarded is None else job.discarded.total
    stale = "" if job.finished else " (the job did not end: this is of its last save)"
    for reason in differences(job.result, job.ended_trials, retries, ours=bool(job.ours)):
        yield Remark(path, f"{reason}{stale}", placed=True)
    counted = zeros(job.ended_trials) if job.finished and not job.ours else None
    if counted is not None:
        yield Remark(path, counted, placed=True)


def _tasks(job: Job) -> Iterator[Remark]:
    root = job.layout.root
    lacking = []
    for task in job.tasks.tasks:
        if len(task.checksums) > 1:
            name = next(iter(task.trials.values()))
            reason = f"{task.id} has {len(task.checksums)} checksums: the task changed on the way"
            yield Remark(f"{root}{name}", reason, placed=True)
        if task.planned is not None and len(task.trials) < task.planned:
            lacking.append(f"{task.id} ({len(task.trials)} of {task.planned})")
    if lacking:
        names = ", ".join(lacking[:_FEW]) + ("" if len(lacking) <= _FEW else ", …")
        reason = f"{len(lacking)} tasks have fewer trials than were planned: {names}"
        yield Remark(f"{root}lock.json", reason, placed=True)


def _foreign(trials: Iterable[TrialFiles]) -> list[SourceFile]:
    return [file for trial in trials for file in trial.foreign]
