"""Which files are of the form, by what they hold."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from runtime.importers.generic.header import is_header, task_id_of
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.lines import BOM, SUFFIXES
from runtime.importers.source import Source, SourceFile

_LOOKED_AT: Final = 20
_VERDICT: Final = ("correct", "score")
# Lines of other forms have a task and a verdict, too: those of our own tables, and of other tools.
_OTHERS: Final = frozenset(
    {
        "acl",
        "root",
        "ledger_id",
        "doc_id",
        "instance_id",
        "sample_id",
        "eval_id",
        "schema_version",
        "traj",
        "filtered_resps",
    }
)


def is_generic(source: Source) -> bool:
    """True if there is a file of lines, and the first object of each is a header or a record.

    Beside other files only headers are believed: many programs keep some JSON lines.
    """
    found = line_files(source)
    alone = len(found) == len(source.files)
    return bool(found) and all(_begins(source, file, alone=alone) for file in found)


def line_files(source: Source) -> list[SourceFile]:
    """The files that are read: JSON lines by name, or the only file of a source."""
    if len(source.files) == 1 and not source.root.is_dir():
        return list(source.files)
    return [file for file in source.files if file.path.endswith(SUFFIXES)]


def _begins(source: Source, file: SourceFile, *, alone: bool) -> bool:
    first = next(_objects(source, file), None)
    if first is None:
        return False
    if is_header(first):
        return True
    named = alone and file.path.endswith(SUFFIXES) and task_id_of(first.get("task_id")) is not None
    judged = any(first.get(name) is not None for name in _VERDICT)
    return named and judged and not _OTHERS & first.keys()


def _objects(source: Source, file: SourceFile) -> Iterator[dict[str, Any]]:
    """The objects among the first lines; others may be damaged."""
    for line in islice(source.lines(file), _LOOKED_AT):
        try:
            yield read_record(line.removeprefix(BOM)).value
        except NotARecord:
            continue
