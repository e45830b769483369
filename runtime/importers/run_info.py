"""`run_info.json`, as far as it tells which program wrote the directory it is in."""

import re
from dataclasses import dataclass
from typing import Any, Final

from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.source import Source

RUN_INFO: Final = "run_info.json"
MANIFEST: Final = "MANIFEST.json"

_SCHEMA: Final = re.compile(r"agentcompass\.run_info\.v([0-9]{1,9})")
_QUOTED: Final = re.compile(rb'"' + _SCHEMA.pattern.encode() + rb'"')
_EXPORT: Final = re.compile(r"acl\.export\.v[0-9]+")


@dataclass(frozen=True, slots=True)
class Writer:
    """What a directory says of its writer.

    `version` is that of the schema of its `run_info.json`, None where it tells none. `is_export`
    is True for what `acl export` writes, whatever program made the run; `layout` is then that of
    its manifest, None without one.
    """

    version: int | None
    is_export: bool
    layout: str | None = None


def writer_of(source: Source) -> Writer:
    """Read which program wrote a directory; damage hides no more than it must."""
    data = {
        file.path: source.read(file) for file in source.files if file.path in (RUN_INFO, MANIFEST)
    }
    info = _object(data.get(RUN_INFO))
    if info is None:
        # A text that was cut short still begins with the schema.
        match = _QUOTED.search(data.get(RUN_INFO, b""))
        version = None if match is None else int(match[1])
    else:
        schema = info.get("schema_version")
        told = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
        # An imported run keeps its source's schema below `request`, which says nothing of these.
        version = None if told is None else int(told[1])
    manifest = _object(data.get(MANIFEST))
    layout = manifest.get("layout") if manifest is not None and _is_ours(manifest) else None
    is_export = _is_ours(info) or _is_ours(manifest)
    return Writer(version, is_export, layout if isinstance(layout, str) else None)


def _object(data: bytes | None) -> dict[str, Any] | None:
    try:
        return None if data is None else read_record(data).value
    except NotARecord:
        return None


def _is_ours(document: dict[str, Any] | None) -> bool:
    words = None if document is None else document.get("acl")
    schema = words.get("schema") if isinstance(words, dict) else None
    return isinstance(schema, str) and _EXPORT.fullmatch(schema) is not None
