"""Which file is what: by its name where the harness gives it one, else by what it holds.

Names are those of swebench.harness.constants: `logs/run_evaluation/<run>/<model>/<instance>/`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from runtime.importers.source import Source, SourceFile

FORMAT: Final = "swebench"
REPORT: Final = "report.json"
PATCH: Final = "patch.diff"
OUTPUT: Final = "test_output.txt"
LOG: Final = "run_instance.log"
METADATA: Final = "run.json"

_EVALUATION: Final = "run_evaluation"
_OF_INSTANCE: Final = frozenset({REPORT, PATCH, OUTPUT, LOG, "eval.sh"})
_MARKS: Final = frozenset({REPORT, LOG, OUTPUT})
_INSTANCE_REPORT: Final = re.compile(
    rb'\A\s*\{\s*"[^"\\]{1,200}"\s*:\s*\{[^}]*"(?:patch_is_None|patch_exists|resolved)"'
)
_RUN_REPORT: Final = re.compile(rb'"(?:resolved_ids|resolved)"\s*:\s*\[')
_RUN_WORDS: Final = (
    rb'"unresolved_ids"',
    rb'"completed_ids"',
    rb'"no_generation"',
    rb'"no_logs"',
)
_PREDICTION: Final = re.compile(rb'"instance_id"\s*:')
_PATCH_WORD: Final = rb'"model_patch"'
_HEAD: Final = 4096
_OF_TRIALS: Final = "verifier"


@dataclass(slots=True)
class Instance:
    """The directory of one instance: its files by name, and others that are named by it."""

    id: str
    files: dict[str, SourceFile] = field(default_factory=dict)
    others: list[SourceFile] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """All files of a source by what they are; `runs` are the (run, model) of their directories."""

    instances: dict[str, Instance] = field(default_factory=dict)
    reports: list[SourceFile] = field(default_factory=list)
    predictions: list[SourceFile] = field(default_factory=list)
    metadata: list[SourceFile] = field(default_factory=list)
    others: list[SourceFile] = field(default_factory=list)
    runs: set[tuple[str, str]] = field(default_factory=set)
    doubles: list[tuple[SourceFile, str]] = field(default_factory=list)


def looks_like_swebench(source: Source) -> bool:
    """True if any file is a report of an instance, or the report of a run.

    Trials of Harbor's jobs have reports of the same shape, below `verifier/`.
    """
    for file in source.files:
        path = PurePosixPath(file.path)
        if path.suffix != ".json" or path.parent.name == _OF_TRIALS:
            continue
        if path.name == REPORT:
            if _INSTANCE_REPORT.search(source.read(file)[:_HEAD]) is not None:
                return True
        elif "/" not in file.path and _is_run_report(source.read(file)):
            return True
    return False


def layout_of(source: Source) -> Layout:
    """Sort all files."""
    found = Layout()
    homes = _homes(source)
    rest = []
    for file in source.files:
        path = PurePosixPath(file.path)
        home = path.parent.as_posix()
        if home in homes and path.name in _OF_INSTANCE:
            _add(found, homes[home], path.name, file)
        elif home in homes:
            found.instances.setdefault(homes[home], Instance(homes[home])).others.append(file)
        else:
            rest.append(file)
    for file in rest:
        _sort_in(found, source, file)
    found.runs |= set(_runs(homes))
    return found


def _homes(source: Source) -> dict[str, str]:
    """The instance of each directory that has logs of one.

    It is the directory's name if that is one of an instance, else what its report names first.
    """
    found = {}
    for file in source.files:
        path = PurePosixPath(file.path)
        if path.name not in _MARKS:
            continue
        named: str | None = path.parent.name
        if path.name == REPORT and repository(path.parent.name) is None:
            named = _named_by(source.read(file)) or named
        if named and (path.name == REPORT or path.parent.as_posix() not in found):
            found[path.parent.as_posix()] = named
    return found


def repository(instance_id: str) -> str | None:
    """`django__django-11099` is an instance of django/django; None for another kind of name."""
    owner, mark, rest = instance_id.partition("__")
    name, dash, number = rest.rpartition("-")
    return f"{owner}/{name}" if mark and dash and owner and name and number else None


def _named_by(data: bytes) -> str | None:
    """The instance that a report names first; None if it is no report."""
    if _INSTANCE_REPORT.search(data[:_HEAD]) is None:
        return None
    try:
        name, _ = json.JSONDecoder().raw_decode(data[data.index(b'"') : _HEAD].decode("utf-8"))
    except (ValueError, UnicodeDecodeError):
        match = re.search(rb'"([^"\\]+)"', data)
        name = None if match is None else match[1].decode("utf-8", "replace")
    return name if isinstance(name, str) and name else None


def _runs(homes: dict[str, str]) -> Iterator[tuple[str, str]]:
    for home in homes:
        parts = PurePosixPath(home).parts
        if _EVALUATION in parts[:-3]:
            at = parts.index(_EVALUATION)
            yield parts[at + 1], parts[at + 2]


def _add(found: Layout, instance_id: str, name: str, file: SourceFile) -> None:
    instance = found.instances.setdefault(instance_id, Instance(instance_id))
    first = instance.files.setdefault(name, file)
    if first is not file:
        found.doubles.append((file, first.path))


def _sort_in(found: Layout, source: Source, file: SourceFile) -> None:
    name = PurePosixPath(file.path).name
    if name.endswith((".json", ".jsonl")):
        data = source.read(file)
        if name == METADATA and b'"dataset"' in data:
            found.metadata.append(file)
            return
        if name.endswith(".json") and _is_run_report(data):
            found.reports.append(file)
            return
        if _PREDICTION.search(data[: 64 * _HEAD]) is not None and _PATCH_WORD in data:
            found.predictions.append(file)
            return
    owner = next((one for one in _stems(name) if one in found.instances), None)
    if owner is not None:
        found.instances[owner].others.append(file)
    else:
        found.others.append(file)


def _stems(name: str) -> Iterator[str]:
    """`a.b.c` as a.b.c, a.b and a: trajectories are named after their instance."""
    yield name
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _is_run_report(data: bytes) -> bool:
    if data.lstrip()[:1] != b"{" or not any(word in data for word in _RUN_WORDS):
        return False
    return _RUN_REPORT.search(data) is not None
