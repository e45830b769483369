"""Which file is what: `results_<time>.json`, and `samples_<task>_<time>.jsonl` for each task."""

import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final

from ledger.errors import UsageError
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.source import Source, SourceFile

FORMAT: Final = "lm_eval"

_SAMPLES: Final = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[0-9.:\-]+)")
_RESULTS: Final = re.compile(r"results_(?P<time>\d{4}-\d\d-\d\dT[0-9.:\-]+)")
_OF_RESULTS: Final = ("configs", "versions", "config", "git_hash", "n-shot")
_LOOKED_AT: Final = 5
_NOT_A_WORD: Final = re.compile(r"\W")


@dataclass(frozen=True, slots=True)
class Samples:
    """A file of samples, with the task and the time that its name tells."""

    file: SourceFile
    task: str
    time: str | None


@dataclass(slots=True)
class Files:
    """All files by what they are; `strangers` are samples of another evaluation.

    `others` are of no kind that the harness writes.
    """

    results: SourceFile | None = None
    document: dict[str, Any] = field(default_factory=dict)
    oddities: tuple[str, ...] = ()
    fault: NotARecord | None = None
    samples: list[Samples] = field(default_factory=list)
    strangers: list[Samples] = field(default_factory=list)
    others: list[SourceFile] = field(default_factory=list)

    @property
    def time(self) -> str | None:
        """When the evaluation was written, as the names of its files tell."""
        told = None if self.results is None else _time_of_results(self.results.path)
        return told or next((one.time for one in self.samples if one.time), None)


def looks_like_lm_eval(source: Source) -> bool:
    """True if any file is one of aggregates or of samples."""
    return any(_is_samples(source, file) or _is_results(source, file) for file in source.files)


def files_of(source: Source) -> Files:
    """Sort all files; UsageError if they are of several evaluations."""
    results = [file for file in source.files if _is_results(source, file)]
    samples = [file for file in source.files if _is_samples(source, file)]
    if len(results) > 1:
        names = ", ".join(file.path for file in results[:_LOOKED_AT])
        raise UsageError(
            f"{source.root} holds several evaluations: {names}",
            hint="put each with its samples in a directory of its own",
        )
    found = Files(results[0] if results else None)
    known = {file.path for file in (*results, *samples)}
    found.others = [file for file in source.files if file.path not in known]
    if found.results is not None:
        try:
            record = read_record(source.read(found.results))
            found.document, found.oddities = record.value, record.oddities
        except NotARecord as fault:
            found.fault = fault
    tasks = _known_tasks(found.document)
    named = [_named(file, tasks) for file in samples]
    time = None if found.results is None else _time_of_results(found.results.path)
    times = {one.time for one in named if one.time is not None}
    if time is None and len(times) > 1:
        raise UsageError(
            f"{source.root} holds samples of several evaluations: {', '.join(sorted(times))}",
            hint="put those of each in a directory of its own",
        )
    for one in named:
        apart = time is not None and one.time not in (None, time)
        (found.strangers if apart else found.samples).append(one)
    return found


def object_of(value: Any) -> dict[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _known_tasks(document: dict[str, Any]) -> list[str]:
    found = {**object_of(document.get("configs")), **object_of(document.get("results"))}
    return sorted(found)


def _named(file: SourceFile, tasks: list[str]) -> Samples:
    """The task of a file; the harness writes `_` for what is no letter or digit of its name."""
    stem = PurePosixPath(file.path).name.removesuffix(".jsonl")
    match = _SAMPLES.fullmatch(stem)
    written = match["task"] if match is not None else stem
    named = [task for task in tasks if written in (task, _NOT_A_WORD.sub("_", task))]
    if not named and match is None:
        # Older releases wrote <model>_<task>.jsonl.
        named = [task for task in tasks if written.endswith(f"_{task}")]
    task = max(named, key=len) if named else written
    return Samples(file, task, match["time"] if match is not None else None)


def _time_of_results(path: str) -> str | None:
    match = _RESULTS.fullmatch(PurePosixPath(path).name.removesuffix(".json"))
    return None if match is None else match["time"]


def _is_results(source: Source, file: SourceFile) -> bool:
    if not file.path.endswith(".json"):
        return False
    data = source.read(file)
    if data.lstrip()[:1] != b"{" or b'"results"' not in data:
        return False
    try:
        value = read_record(data).value
    except NotARecord as fault:
        # Of a file that was cut short its name must tell.
        return fault.cut and _time_of_results(file.path) is not None
    told = value.get("results")
    tables = isinstance(told, dict) and all(isinstance(one, dict) for one in told.values())
    return tables and any(name in value for name in _OF_RESULTS)


def _is_samples(source: Source, file: SourceFile) -> bool:
    if not file.path.endswith(".jsonl"):
        return False
    for line in islice(source.lines(file), _LOOKED_AT):
        try:
            value = read_record(line).value
        except NotARecord:
            continue
        return "doc_id" in value and ("filtered_resps" in value or "resps" in value)
    return _SAMPLES.fullmatch(PurePosixPath(file.path).name.removesuffix(".jsonl")) is not None
