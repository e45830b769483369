"""Which files of a source are Inspect logs, by their content: names and suffixes say nothing."""

import json
import re
from typing import Final

from runtime.importers.inspect.archive import SIGNATURE
from runtime.importers.inspect.bytesource import ByteSource
from runtime.importers.inspect.spans import NoObject, find_parts
from runtime.importers.source import Source, SourceFile

_HEAD: Final = 64 << 10
_MEMBERS: Final = (b"_journal/", b"header.json", b"samples/", b"summaries.json")
_LOCAL_NAME: Final = 30
_STATUS: Final = frozenset({"started", "success", "cancelled", "error"})
_SPEC: Final = (b'"task"', b'"model"', b'"dataset"')
_EVAL: Final = re.compile(rb'"eval"\s*:\s*\{')


def logs_in(source: Source) -> list[SourceFile]:
    """The logs that stand in the source itself; those in directories below belong elsewhere."""
    return [file for file in source.files if "/" not in file.path and is_log(source, file)]


def is_log(source: Source, file: SourceFile) -> bool:
    """True for an archive or an object that begins as a log does, whole or cut off."""
    if not file.size:
        return False
    data = ByteSource(source, file)
    head = data.read(0, _HEAD)
    if head.startswith(SIGNATURE):
        tail = data.read(max(0, file.size - _HEAD), file.size)
        return head[_LOCAL_NAME:].startswith(_MEMBERS) and (
            b"_journal/start.json" in head or b"header.json" in tail
        )
    if not head.lstrip().startswith(b"{") or _EVAL.search(head) is None:
        return False
    return _is_json_log(data)


def _is_json_log(data: ByteSource) -> bool:
    """True if the outermost object says what was evaluated, and how it stands if that is told."""
    try:
        parts = find_parts(data, limit=_HEAD)
    except NoObject:
        return False
    spans = parts.values
    if "status" in spans and not _is_status(data.read(*spans["status"])):
        return False
    if "eval" in spans:
        spec = data.read(*spans["eval"])
        return all(name in spec for name in _SPEC)
    # An object `eval` that is larger than what was looked at, or cut off.
    return parts.open == "eval" and "version" in spans and "status" in spans


def _is_status(value: bytes) -> bool:
    try:
        return json.loads(value) in _STATUS
    except (ValueError, TypeError):
        return False
