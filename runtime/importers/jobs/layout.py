"""Which file of a Harbor job directory is what, and where in a source the job is.

    config.json lock.json result.json job.log              (ours: config.yaml MANIFEST.json)
    <trial>/config.json lock.json result.json trial.log exception.txt
            agent/** user-agent/** verifier/** artifacts/** steps/<name>/{agent,verifier}/**
    analysis/**                                            derived from the trials

Read from `harbor/models/trial/paths.py` and `harbor/job.py` of harbor 0.25.0. A job is told from a
trial by what its files say, since both have a `result.json` and a `config.json`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.source import Source, SourceFile

ANALYSIS: Final = "analysis"
JOB_FILES: Final = frozenset(
    ("result.json", "config.json", "config.yaml", "lock.json", "job.log", "MANIFEST.json")
)
TRIAL_FILES: Final = frozenset(
    ("result.json", "config.json", "lock.json", "trial.log", "exception.txt")
)
TRIAL_FOLDERS: Final = ("agent", "user-agent", "verifier", "artifacts", "steps")

_TOLD_BY: Final = ("result.json", "config.json", "lock.json")
_JOB_KEYS: Final = {
    "result.json": frozenset({"n_total_trials", "stats"}),
    "config.json": frozenset({"job_name", "agents"}),
    "lock.json": frozenset({"trials", "harbor"}),
}
_TRIAL_KEYS: Final = {
    "result.json": frozenset({"trial_name", "task_name"}),
    "config.json": frozenset({"trial_name", "task"}),
    "lock.json": frozenset({"task", "agent"}),
}
_COMMON: Final = frozenset({"task", "agent", "agents", "stats", "trials"})
"""Keys that other programs' files have as well."""
_MAX_DEPTH: Final = 6
_OURS: Final = re.compile(rb'"layout":\s*"jobs"')


@dataclass(slots=True)
class TrialFiles:
    """One trial directory: its files by their paths below it, and those of no known kind."""

    name: str
    files: dict[str, SourceFile] = field(default_factory=dict)
    foreign: list[SourceFile] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """A job: its own files by name, its trials by directory, what is derived and what is neither.

    `root` is its place below the source, empty or with a slash at its end; `beside` is what the
    source has outside of it.
    """

    root: str
    job: dict[str, SourceFile] = field(default_factory=dict)
    trials: dict[str, TrialFiles] = field(default_factory=dict)
    derived: list[SourceFile] = field(default_factory=list)
    foreign: list[SourceFile] = field(default_factory=list)
    beside: list[SourceFile] = field(default_factory=list)


def arrange(source: Source, root: str) -> Layout:
    """Say of every file what it is to the job at `root`."""
    layout = Layout(root)
    folders: dict[str, TrialFiles] = {}
    for file in source.files:
        inside = file.path.startswith(root)
        name, slash, rest = file.path[len(root) :].partition("/")
        if not inside:
            layout.beside.append(file)
        elif not slash and name in JOB_FILES:
            layout.job[name] = file
        elif slash and name == ANALYSIS:
            layout.derived.append(file)
        elif slash:
            trial = folders.setdefault(name, TrialFiles(name))
            known = rest in TRIAL_FILES or rest.partition("/")[0] in TRIAL_FOLDERS
            trial.files[rest] = file
            if not known:
                trial.foreign.append(file)
        else:
            layout.foreign.append(file)
    for name, trial in folders.items():
        if len(trial.foreign) < len(trial.files):
            layout.trials[name] = trial
        else:
            layout.foreign += trial.foreign
    return layout


def job_roots(source: Source) -> list[str]:
    """Where jobs are in the source, the outermost ones, sorted."""
    jobs: set[str] = set()
    parents: set[str] = set()
    for file in _telling(source):
        folder, _, name = file.path.rpartition("/")
        if _is_below(f"{folder}/", jobs | {f"{trial}/" for trial in parents}):
            continue
        data = source.read(file)
        if name == "MANIFEST.json":
            if _OURS.search(data):
                jobs.add(f"{folder}/" if folder else "")
        elif _has(data, _JOB_KEYS[name]):
            jobs.add(f"{folder}/" if folder else "")
        elif folder and _has(data, _TRIAL_KEYS[name]):
            parents.add(folder)
    above = {trial.rpartition("/")[0] for trial in parents}
    bare = {f"{folder}/" if folder else "" for folder in above}
    found = jobs | {root for root in bare if not _is_below(root, jobs)}
    return sorted(root for root in found if not _is_below(root, found - {root}))


def is_trial(source: Source) -> bool:
    """Whether the source is no job but one trial of a job."""
    at_top = [file for file in source.files if file.path in _TOLD_BY]
    return any(_has(source.read(file), _TRIAL_KEYS[file.path]) for file in at_top)


def _telling(source: Source) -> Iterator[SourceFile]:
    """The files that may tell of a job, those further up first."""
    found = [
        file
        for file in source.files
        if file.path.rpartition("/")[2] in (*_TOLD_BY, "MANIFEST.json")
        and file.path.count("/") < _MAX_DEPTH
    ]
    yield from sorted(found, key=lambda file: file.path.count("/"))


def _is_below(folder: str, roots: set[str]) -> bool:
    return any(folder.startswith(root) and folder != root for root in roots)


def _has(data: bytes, keys: frozenset[str]) -> bool:
    """Whether a JSON object has these keys; of one that was cut short, whether it names one."""
    named = [key for key in keys if f'"{key}"'.encode() in data]
    if not named:
        return False  # most files that have such a name in other formats
    try:
        return keys <= read_record(data).value.keys()
    except NotARecord as fault:
        return fault.cut and not _COMMON.issuperset(named)
