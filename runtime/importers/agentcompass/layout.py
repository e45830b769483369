"""Which file of an AgentCompass 1.0.1 run directory is what.

    params.json run_info.json metrics.json progress.json progress.jsonl run.log summary.md
    details/<normal|error|fatal|running>/<readable>--<sha256 of the task id>/task.json
        attempt-N/result.json checkpoint.json artifacts/** retries/*.json retries/<hex>/**

Read from `agentcompass/runtime/results/layout.py` of that release. Directory names are never
parsed for what they say of the task: that stands in `task.json`.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from runtime.importers.source import Source, SourceFile

STATES: Final = ("normal", "error", "fatal", "running")
"""Best first: of two saves of one task the first wins."""
RUNNING: Final = "running"
RUN_FILES: Final = frozenset(
    (
        "params.json",
        "run_info.json",
        "metrics.json",
        "progress.json",
        "progress.jsonl",
        "run.log",
        "summary.md",
        "analysis_summary.json",
        "analysis_summary.md",
        "MANIFEST.json",
    )
)

_TASK: Final = re.compile(r"(details/(normal|error|fatal|running)/[^/]+)/(.+)", re.DOTALL)
_ATTEMPT: Final = re.compile(r"attempt-([1-9][0-9]{0,8})/(.+)", re.DOTALL)
_RETRY: Final = re.compile(r"retries/[^/]+\.json")
_ARCHIVE: Final = re.compile(r"retries/[0-9a-f]{32}/.+", re.DOTALL)
_UNFINISHED: Final = re.compile(r"(?:.*/)?\.(?:tmp\.[^/]+|[^/]+\.tmp)", re.DOTALL)


@dataclass(slots=True)
class AttemptFiles:
    """The files of one attempt; `archived` are those of executions it made before."""

    result: SourceFile | None = None
    checkpoint: SourceFile | None = None
    retries: list[SourceFile] = field(default_factory=list)
    artifacts: list[SourceFile] = field(default_factory=list)
    archived: list[SourceFile] = field(default_factory=list)
    foreign: list[SourceFile] = field(default_factory=list)

    def all(self) -> list[SourceFile]:
        """Every file, in no order that means something."""
        single = [file for file in (self.result, self.checkpoint) if file is not None]
        return [*single, *self.retries, *self.artifacts, *self.archived, *self.foreign]


@dataclass(slots=True)
class TaskFiles:
    """One task directory: `path` below the run, `state` as its parent is called."""

    path: str
    state: str
    index: SourceFile | None = None
    attempts: dict[int, AttemptFiles] = field(default_factory=dict)
    foreign: list[SourceFile] = field(default_factory=list)

    def all(self) -> list[SourceFile]:
        """Every file, in no order that means something."""
        inside = [file for attempt in self.attempts.values() for file in attempt.all()]
        return [*([self.index] if self.index else []), *inside, *self.foreign]


@dataclass(slots=True)
class Layout:
    """A run directory: its own files by name, its task directories, and what is no part of it.

    `unfinished` are files whose writing was cut short; the program renames them when they are
    whole, so that only a crash leaves them behind.
    """

    run: dict[str, SourceFile] = field(default_factory=dict)
    tasks: list[TaskFiles] = field(default_factory=list)
    foreign: list[SourceFile] = field(default_factory=list)
    unfinished: list[SourceFile] = field(default_factory=list)


def arrange(source: Source) -> Layout:
    """Say of every file of the source what it is."""
    layout = Layout()
    tasks: dict[str, TaskFiles] = {}
    for file in source.files:
        inside = _TASK.fullmatch(file.path)
        if _is_unfinished(file.path, inside):
            layout.unfinished.append(file)
        elif inside:
            path, state, name = inside.groups()
            task = tasks.setdefault(path, TaskFiles(path, state))
            _put_into_task(task, name, file)
        elif file.path in RUN_FILES:
            layout.run[file.path] = file
        else:
            layout.foreign.append(file)
    layout.tasks = list(tasks.values())
    return layout


def _is_unfinished(path: str, inside: re.Match[str] | None) -> bool:
    # What an agent left among its artifacts may be called anything.
    in_artifacts = inside is not None and "/artifacts/" in path
    return not in_artifacts and _UNFINISHED.fullmatch(path) is not None


def _put_into_task(task: TaskFiles, name: str, file: SourceFile) -> None:
    inside = _ATTEMPT.fullmatch(name)
    if inside:
        attempt = task.attempts.setdefault(int(inside[1]), AttemptFiles())
        _put_into_attempt(attempt, inside[2], file)
    elif name == "task.json":
        task.index = file
    else:
        task.foreign.append(file)


def _put_into_attempt(attempt: AttemptFiles, name: str, file: SourceFile) -> None:
    if name == "result.json":
        attempt.result = file
    elif name == "checkpoint.json":
        attempt.checkpoint = file
    elif name.startswith("artifacts/"):
        attempt.artifacts.append(file)
    elif _RETRY.fullmatch(name):
        attempt.retries.append(file)
    elif _ARCHIVE.fullmatch(name):
        attempt.archived.append(file)
    else:
        attempt.foreign.append(file)
