"""All samples of one task, read once: its documents, and the sums that aggregates are made of."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import statistics
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.lines import Line, few, lines_of, why_no_record
from runtime.importers.lm_eval.files import Samples
from runtime.importers.lm_eval.sample import Number, Sample, as_float, is_truth, read_sample
from runtime.importers.plan import Remark
from runtime.importers.source import Source

_TOLERANCE: Final = 1e-9


@dataclass(slots=True)
class Column:
    """The values of one metric under one filter."""

    values: list[float] = field(default_factory=list)
    truth: bool = True

    def add(self, value: Number) -> None:
        """Take one more value."""
        self.values.append(as_float(value))
        self.truth = self.truth and is_truth(value)

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.mean(self.values)

    @property
    def stderr(self) -> float | None:
        """The standard error of their mean; None for fewer than two."""
        count = len(self.values)
        if count < 2:
            return None
        centre = self.mean
        squares = math.fsum((value - centre) ** 2 for value in self.values)
        return math.sqrt(squares / (count - 1)) / math.sqrt(count)


@dataclass(slots=True)
class TaskScan:
    """A task: the lines of each document by filter, and its columns by (metric, filter).

    `headline` is the metric and filter that give the verdict.
    """

    name: str
    docs: dict[int, dict[str, Line]] = field(default_factory=dict)
    checksums: dict[int, str | None] = field(default_factory=dict)
    columns: dict[tuple[str, str], Column] = field(default_factory=dict)
    headline: tuple[str, str] | None = None
    records: int = 0
    placed: int = 0
    hashed: Any = field(default_factory=hashlib.sha256)
    remarks: list[Remark] = field(default_factory=list)
    told: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @property
    def judged_by_truth(self) -> bool:
        """True if every value of the headline is 0 or 1, so that it says right or wrong."""
        return self.headline is not None and self.columns[self.headline].truth

    def differing(self, told: dict[str, Any], means: set[str]) -> Iterator[str]:
        """What the aggregates of the task say otherwise than its samples; only of means."""
        for (metric, key), column in self.columns.items():
            if metric not in means:
                continue
            pairs = ((f"{metric},{key}", column.mean), (f"{metric}_stderr,{key}", column.stderr))
            for name, value in pairs:
                given = told.get(name)
                if not isinstance(given, int | float) or value is None:
                    continue
                if not math.isclose(as_float(given), value, rel_tol=1e-6, abs_tol=_TOLERANCE):
                    yield f"{self.name}: {name} is {given!r}, and its samples give {value!r}"


def scan_task(source: Source, samples: Samples, scan: TaskScan) -> None:
    """Read a file of samples into `scan`; names every line that has no place."""
    for line, data in lines_of(source, samples.file):
        scan.records += 1
        try:
            record = read_record(data)
        except NotARecord as fault:
            why, damage = why_no_record(data, fault)
            scan.remarks.append(Remark(line.place, why, damage=damage, torn=not damage))
            continue
        for word in record.oddities:
            _tell(scan, line, f"holds {word}, which is not JSON: kept")
        try:
            _place(scan, line, read_sample(record.value))
        except NotARecord as fault:
            scan.remarks.append(Remark(line.place, f"no sample: {fault}", damage=True))


def told_of(scan: TaskScan) -> Iterator[Remark]:
    """What is odd about lines that have their place."""
    for (path, reason), numbers in scan.told.items():
        yield Remark(path, f"{reason} ({few(numbers)})", placed=True)


def _place(scan: TaskScan, line: Line, sample: Sample) -> None:
    filters = scan.docs.setdefault(sample.doc_id, {})
    first = filters.get(sample.filter)
    if first is not None:
        if first.part.sha256 == line.part.sha256:
            scan.placed += 1
            _tell(scan, line, "says again what an earlier line says: counted once")
        else:
            reason = f"document {sample.doc_id} stands under filter {sample.filter!r} already"
            scan.remarks.append(Remark(line.place, f"{reason}, at {first.place}", damage=True))
        return
    filters[sample.filter] = line
    scan.placed += 1
    before = scan.checksums.setdefault(sample.doc_id, sample.doc_hash)
    if before != sample.doc_hash:
        _tell(scan, line, "its document is another one than under an earlier filter")
    if sample.hashes is not None:
        scan.hashed.update(sample.hashes.encode("utf-8", "surrogatepass"))
    for metric, value in sample.measures.items():
        key = (metric, sample.filter)
        scan.headline = scan.headline or key
        scan.columns.setdefault(key, Column()).add(value)
    if sample.others:
        names = ", ".join(sorted(sample.others))
        _tell(scan, line, f"measures that are no finite numbers, kept in extra: {names}")


def _tell(scan: TaskScan, line: Line, reason: str) -> None:
    scan.told.setdefault((line.file.path, reason), []).append(line.number)
