"""`metadata.yaml` of an archive, and the entry that `index.yaml` has of it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from ledger.events.base import Text

ArchiveStatus = Literal["completed", "failed", "interrupted"]

NAME: Final = "metadata.yaml"
BLOCK: Final = "eval"
"""What the metadata call the part of a pipeline that evaluates."""

_Hex16 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Provenance(_Part):
    """Which events of which ledger the archive was made of, and what program recorded them.

    `ledger_path` is relative to the artifacts directory; None where no such path says anything
    on another machine.
    """

    run_id: Text
    ledger_id: _Hex16
    size: int
    root: _Hex32
    ledger_path: Text | None
    acl_version: str
    command: Annotated[tuple[Text, ...], Field(strict=False)]
    python: str
    platform: str
    packages_lock_sha256: _Hex32
    repos_dirty: dict[Text, bool | None]


class Metadata(_Part):
    """The whole file, in the order of its keys; times are UTC, `YYYY-MM-DDTHH:MM:SSZ`."""

    id: Annotated[str, Field(pattern=r"^run_[0-9]{3,}$")]
    block: str
    started_at: str | None
    completed_at: str | None
    status: ArchiveStatus
    exit_code: int
    job_dir: Text
    repos: dict[Text, _Sha]
    notes: Text
    acl: Provenance

    def entry(self) -> dict[str, Any]:
        """What `index.yaml` tells of this archive."""
        return {
            "id": self.id,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "status": self.status,
            "archive": f"artifacts/archives/{self.id}/",
            "notes": self.notes,
            "job_dir": self.job_dir,
            "acl": {
                "run_id": self.acl.run_id,
                "ledger_id": self.acl.ledger_id,
                "root": self.acl.root,
            },
        }


def yaml_bytes(document: Mapping[str, Any]) -> bytes:
    """The text of a document of ours, keys in the order in which they stand."""
    # Lone surrogates come out as escapes, so that whatever a ledger holds can be written.
    text: str = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=100)
    return text.encode("utf-8")
