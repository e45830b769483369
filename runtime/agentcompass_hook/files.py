"""The files of one task of a run that is going on, as an importer would find them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runtime.importers.agentcompass.layout import STATES, TaskFiles, arrange
from runtime.importers.source import Source, SourceFile

_DETAILS: Final = "details"


def file_of(run: Path, path: str) -> SourceFile:
    """One file below the run directory, hashed as it is now."""
    data = (run / path).read_bytes()
    return SourceFile(path, len(data), hashlib.sha256(data).digest())


def source_of(run: Path, *paths: str) -> Source:
    """Some files of the run as a source."""
    return Source(run, tuple(file_of(run, path) for path in paths), ())


def task_source(run: Path, directory: str) -> tuple[Source, TaskFiles]:
    """All files of the task whose directory is `directory`, below the run."""
    paths = sorted(_regular(run / directory))
    source = source_of(run, *(path.relative_to(run).as_posix() for path in paths))
    (files,) = arrange(source).tasks
    return source, files


def find_task(run: Path, task_id: str) -> str | None:
    """The directory of a task, below the run, wherever it stands now."""
    digest = hashlib.sha256(task_id.encode()).hexdigest()
    # Of those at work there are few.
    for state in reversed(STATES):
        for found in (run / _DETAILS / state).glob(f"*--{digest}"):
            return found.relative_to(run).as_posix()
    return None


def artifacts_of(run: Path, task_id: str, attempt: int) -> Source:
    """What an attempt left, as it is now."""
    home = find_task(run, task_id)
    place = run / (home or "") / f"attempt-{attempt}" / "artifacts"
    found = sorted(_regular(place)) if home is not None and place.is_dir() else []
    return source_of(run, *(path.relative_to(run).as_posix() for path in found))


def _regular(directory: Path) -> Iterator[Path]:
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path
