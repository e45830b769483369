"""`MANIFEST.json`: which files an export has, and of which prefix of which ledger. Written last."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exporters import OutFile
from exporters.folder import Entry, Folder
from exporters.identity import Identity
from exporters.jsontext import json_bytes
from exporters.paths import checked_path
from ledger.errors import ExportRefused
from ledger.events.base import Text

MANIFEST: Final = "MANIFEST.json"
SCHEMA: Final = "acl.manifest.v1"
MAX_BYTES: Final = 256 * 1024 * 1024

_Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Listed(_Part):
    """One exported file."""

    path: str
    sha256: _Hex32
    size: _Count


class Salvage(_Part):
    """The first event of a damaged ledger that was not as stored: the export ends before it."""

    damaged_at: _Count


class Trailer(_Part):
    """The prefix that was exported."""

    schema_: Annotated[str, Field(alias="schema")]
    run_id: Text
    ledger_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    size: _Count
    root: _Hex32
    salvaged: Salvage | None = None


class Manifest(_Part):
    """The whole file; paths are sorted and each fits `checked_path`."""

    schema_version: str
    layout: str
    options: dict[str, str] = Field(default_factory=dict)
    files: list[Listed]
    acl: Trailer


def manifest_file(
    entries: Iterable[Entry],
    identity: Identity,
    layout: str,
    options: Mapping[str, str] | None = None,
) -> OutFile:
    """The manifest of these files; `options` are those of the layout, where any were given."""
    document = {
        "schema_version": SCHEMA,
        "layout": layout,
        **({"options": dict(sorted(options.items()))} if options else {}),
        "files": [
            {"path": entry.path, "sha256": entry.sha256, "size": entry.size}
            for entry in sorted(entries, key=lambda entry: entry.path)
        ],
        "acl": identity.trailer(),
    }
    return OutFile(MANIFEST, json_bytes(document))


def read_manifest(folder: Folder) -> Manifest | None:
    """The manifest of a directory, or None where it has none.

    Raises ExportRefused for a file of that name that no export of ours wrote.
    """
    try:
        with folder.reading(MANIFEST) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        found = Manifest.model_validate(json.loads(data))
        for listed in found.files:
            checked_path(listed.path)
    except (ValueError, RecursionError, ValidationError, ExportRefused) as error:
        why = str(error).splitlines()[0]
        raise ExportRefused(f"{folder.path / MANIFEST} is not a manifest of ours ({why})") from None
    return found
