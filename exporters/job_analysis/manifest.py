"""`MANIFEST.json` of an analysis: its files with their digests, and what they were made of."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exporters import OutFile
from exporters.identity import Identity
from exporters.jsontext import json_bytes
from ledger.errors import ExportRefused
from ledger.events.base import Text

MANIFEST: Final = "MANIFEST.json"

_Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Listed(_Part):
    """A file of the analysis."""

    sha256: _Hex32
    bytes: _Count


class Origin(_Part):
    """The prefix of a ledger that the analysis is of."""

    run_id: Text
    ledger_id: str
    size: _Count
    root: _Hex32


class AnalysisManifest(_Part):
    """The whole file."""

    files: dict[str, Listed]
    source: Origin


def with_manifest(files: Iterable[OutFile], identity: Identity) -> Iterator[OutFile]:
    """Pass files on, and end with the manifest of them; their bytes are whole."""
    listed: dict[str, object] = {}
    for file in files:
        data = file.data if isinstance(file.data, bytes) else b"".join(file.data)
        listed[file.path] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        yield OutFile(file.path, data)
    document = {
        "files": dict(sorted(listed.items())),
        "source": {
            "run_id": identity.run_id,
            "ledger_id": identity.ledger_id,
            "size": identity.size,
            "root": identity.root,
        },
    }
    yield OutFile(MANIFEST, json_bytes(document))


def read_analysis_manifest(data: bytes) -> AnalysisManifest:
    """Read the file; raises ExportRefused for what no analysis wrote."""
    try:
        return AnalysisManifest.model_validate(json.loads(data))
    except (ValueError, RecursionError, ValidationError) as error:
        why = str(error).splitlines()[0]
        raise ExportRefused(f"{MANIFEST} is none of an analysis ({why})") from None
