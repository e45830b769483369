"""`MANIFEST.json`: the files that an export had when it was whole, compared with those there."""

from collections.abc import Iterator
from typing import Any, Final

from runtime.importers.details.layout import LOGS, MANIFEST
from runtime.importers.details.reading import Document
from runtime.importers.plan import Remark
from runtime.importers.source import Source, SourceFile

SCHEMA: Final = "acl.manifest.v1"
LAYOUT: Final = "details"


def compare(manifest: Document, source: Source) -> Iterator[Remark]:
    """Name every file that is not as the manifest lists it, is missing, or is not listed."""
    listed = _listed(manifest)
    if listed is None:
        yield Remark(MANIFEST, "it lists no files of an export of ours", placed=True, damage=True)
        return
    if manifest.value.get("layout") != LAYOUT:
        layout = manifest.value.get("layout")
        yield Remark(MANIFEST, f"it is of the layout {layout!r}", placed=True, damage=True)
    present = {file.path: file for file in source.files}
    for path, (digest, size) in sorted(listed.items()):
        if path not in present:
            yield Remark(path, f"{MANIFEST} lists it and it is missing", damage=True)
        elif not _is(present[path], digest, size):
            why = f"its bytes are not those that {MANIFEST} lists"
            yield Remark(path, why, placed=True, damage=True)
    for path in sorted(present.keys() - listed.keys() - {MANIFEST, *LOGS}):
        yield Remark(path, f"{MANIFEST} does not list it", placed=True, damage=True)


def _listed(manifest: Document) -> dict[str, tuple[str, int]] | None:
    rows = manifest.value.get("files")
    if manifest.value.get("schema_version") != SCHEMA or not isinstance(rows, list):
        return None
    if not all(_is_row(row) for row in rows):
        return None
    return {row["path"]: (row["sha256"], row["size"]) for row in rows}


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("path"), str)
        and isinstance(row.get("sha256"), str)
        and type(row.get("size")) is int
    )


def _is(file: SourceFile, digest: str, size: int) -> bool:
    return file.size == size and file.sha256.hex() == digest
