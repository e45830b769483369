"""Where a run lives: `<results>/<run name parts>/<benchmark>/<model>/<run id>/`.

Directory names are ASCII and short whatever a user calls things, and a run directory is reserved
by making it: two processes that start in the same second get two runs.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from ledger.errors import LedgerExists, UsageError

MAX_PART: Final = 100
"""Bytes of one directory name; a longer one is cut and gets a digest of the whole."""

_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9._=-]+")
_SEPARATORS: Final = re.compile(r"[/\\]")
_DIGEST: Final = 8


def directory_name(part: str, what: str) -> str:
    """Return the directory name for a name that a user gave; `what` says of what, in errors.

    Raises UsageError for a name that comes to nothing, `.` or `..`.
    """
    name = _FORBIDDEN.sub("_", part)
    if name in {"", ".", ".."}:
        raise UsageError(f"the {what} {part!r} cannot name a directory", hint="choose another")
    # Hidden directories are looked at by nobody who lists runs.
    name = re.sub(r"\A\.", "_", name)
    if len(name) <= MAX_PART:
        return name
    digest = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{name[: MAX_PART - len(digest) - 2]}--{digest}"


def run_root(results_dir: Path, run_name: str, benchmark: str, model: str) -> Path:
    r"""Return the directory of all runs with this name, benchmark and model; nothing is made.

    `run_name` may have several parts, split at `/` and `\\`; empty ones and dots are dropped.
    """
    names = [part for part in _SEPARATORS.split(run_name) if part not in {"", ".", ".."}]
    parts = [directory_name(part, "run name") for part in names]
    parts += [directory_name(benchmark, "benchmark id"), directory_name(model, "model id")]
    return results_dir.joinpath(*parts)


def run_directory(results_dir: Path, root: Path, run_id: str) -> Path:
    """Return the directory of an existing run; UsageError if a link leads to it."""
    path = root / directory_name(run_id, "run id")
    _refuse_links(results_dir, path)
    return path


def reserve(results_dir: Path, root: Path, run_id: str, wall_ns: int) -> Path:
    """Make the directory of a new run and return it; its name is the run's id.

    An explicit `run_id` must not exist: LedgerExists. An empty one becomes the UTC second of
    `wall_ns`, or the next that is free. `results_dir` itself may be a symbolic link, nothing below
    it may.
    """
    _refuse_links(results_dir, root)
    _make(root)
    _refuse_links(results_dir, root)
    if run_id:
        path = root / directory_name(run_id, "run id")
        try:
            path.mkdir()
        except FileExistsError:
            raise LedgerExists(
                f"the run {path.name} exists in {root}",
                hint="choose another run id: --run-id, or output.run_id in the file",
            ) from None
    else:
        path = _first_free(root, wall_ns)
    _sync(root)
    return path


def _first_free(root: Path, wall_ns: int) -> Path:
    for name in _seconds(wall_ns):
        path = root / name
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError("seconds do not end")


def _seconds(wall_ns: int) -> Iterator[str]:
    second = datetime.fromtimestamp(wall_ns // 10**9, UTC)
    while True:
        yield second.strftime("%Y%m%d_%H%M%S")
        second += timedelta(seconds=1)


def _refuse_links(results_dir: Path, path: Path) -> None:
    """Every existing directory from below `results_dir` down to `path` must be a real one."""
    place = results_dir
    for part in path.relative_to(results_dir).parts:
        place /= part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(mode):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a directory"
            raise UsageError(f"{place} is {kind}", hint="only the results directory may be a link")


def _make(directory: Path) -> None:
    """Make `directory` and what is missing above it, each entry durable."""
    missing = []
    place = directory
    while not place.exists():
        missing.append(place)
        place = place.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        _sync(path.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
