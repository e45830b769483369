"""File names of task records: readable, short, ASCII, and never the same for two tasks.

A name is decided from the whole task list, which is known before the first attempt, so a live
projection and a later export agree. Nothing is ever parsed back from a name.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ledger.state import TaskState

MAX_STEM: Final = 120
"""Bytes of a name without `_error_` and `.json`."""
ERROR_MARK: Final = "_error_"

_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9._=-]+")
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)}
)
_DIGITS: Final = 12


def normalise(part: str) -> str:
    """Replace each run of characters that some file system refuses by one underscore."""
    return _FORBIDDEN.sub("_", part)


def detail_names(tasks: Iterable[TaskState]) -> dict[str, str]:
    """The name of each task's record, by task id, without `_error_` and `.json`.

    `<task>[_<category>]`; a name that is empty, too long, reserved, begins with `.` or `_error_`,
    or that a file system which folds case would take for another task's, gets `--` and 12 hex
    digits of SHA-256(task id NUL category).
    """
    return distinct_names({task.id: (task.id, task.category) for task in tasks})


def distinct_names(
    keys: Mapping[str, tuple[str, str | None]], reserved: frozenset[str] = frozenset()
) -> dict[str, str]:
    """The name of each pair of a task's id and its category, by task id, as `detail_names` says.

    `reserved` are lower-case names that no task may have, whatever the case.
    """
    degree = {
        task_id: 0 if _is_fit(name := _plain(*key)) and name.lower() not in reserved else 1
        for task_id, key in keys.items()
    }
    while True:
        names = {task_id: _NAMES[degree[task_id]](*key) for task_id, key in keys.items()}
        taken = Counter(name.lower() for name in names.values())
        clashing = [task_id for task_id, name in names.items() if taken[name.lower()] > 1]
        if not clashing:
            return names
        # Whoever is still plain gives way first; only then those whose short digests are equal.
        least = min(degree[task_id] for task_id in clashing)
        for task_id in clashing:
            if degree[task_id] == least:
                degree[task_id] += 1


def _plain(task_id: str, category: str | None) -> str:
    suffix = "" if category is None else f"_{normalise(category)}"
    return normalise(task_id) + suffix


def _is_fit(name: str) -> bool:
    return (
        0 < len(name) <= MAX_STEM
        and not name.startswith(".")
        and not name.lower().startswith(ERROR_MARK)
        and not _is_device(name)
    )


def _is_device(name: str) -> bool:
    # Windows looks at what stands before the first dot.
    return name.split(".", 1)[0].lower() in _DEVICES


def _marked(task_id: str, category: str | None) -> str:
    key = f"{task_id}\0{category or ''}".encode("utf-8", "surrogatepass")
    return _with(task_id, category, hashlib.sha256(key).hexdigest()[:_DIGITS])


def _marked_in_full(task_id: str, category: str | None) -> str:
    # A NUL in an id can make two keys of `_marked` equal; this spelling is injective.
    key = json.dumps([task_id, category]).encode()
    return _with(task_id, category, hashlib.sha256(key).hexdigest())


def _with(task_id: str, category: str | None, digest: str) -> str:
    suffix = f"--{digest}"
    return _tame(_plain(task_id, category))[: MAX_STEM - len(suffix)] + suffix


def _tame(name: str) -> str:
    """Take from the front what the digest at the end would not cure."""
    while name.startswith(".") or name.lower().startswith(ERROR_MARK):
        name = name[1:]
    return name.replace(".", "_", 1) if _is_device(name) else name


# From the readable name to the one that cannot clash.
_NAMES: Final = (_plain, _marked, _marked_in_full)
