"""What is attested of a sealed run: an in-toto Statement, version 1.

Its subjects are files by their SHA-256: the text of the checkpoint at the seal, which commits to
every event, the manifest of an exported tree, and the ledger itself once it is one file. Its
predicate says in short what the run was and gave. The same ledger and files give the same bytes.
"""

import hashlib
import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exporters.jsontext import JsonText
from ledger import note, sidefile
from ledger.errors import ProofInvalid, UsageError
from ledger.state import RunState

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:agentcompass-ledger:run:v1"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

CHECKPOINT: Final = "checkpoint"
MANIFEST: Final = "MANIFEST.json"
LEDGER: Final = "ledger.sqlite"

_Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)


class Digest(_Part):
    """Digests by algorithm; ours is SHA-256."""

    sha256: _Hex32


class Subject(_Part):
    """A file that the statement is about."""

    name: str
    digest: Digest


class Predicate(_Part):
    """What is said: the run, its sealed tree, and the metrics that were recorded last."""

    run_id: str
    ledger_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    status: str
    benchmark: str | None
    harness: str | None
    model: str | None
    started_at: str | None
    finished_at: str | None
    size: Annotated[int, Field(ge=1)]
    root: _Hex32
    checkpoint: str
    counts: dict[str, int]
    metrics: dict[str, bool | int | float]


class Statement(_Part):
    """The whole payload."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[Subject], Field(min_length=1)]
    predicate_type: Annotated[
        Literal["urn:agentcompass-ledger:run:v1"], Field(alias="predicateType")
    ]
    predicate: Predicate

    def digest(self, name: str) -> str | None:
        """The SHA-256 in hex of the subject of this name, if there is one."""
        return next((one.digest.sha256 for one in self.subject if one.name == name), None)


def statement(state: RunState, checkpoint: bytes, files: dict[str, str]) -> bytes:
    """Write the statement about a run that was sealed, under its checkpoint at the seal.

    `state` is that of the sealed prefix, `checkpoint` a signed note or a bare text, `files` maps
    names to SHA-256 in hex. Raises UsageError for a run that is not sealed.
    """
    if state.sealed_size is None or state.sealed_size != state.size:
        raise UsageError("the run is not sealed", hint="`acl seal RUN` ends one that stopped")
    claim = sidefile.parse(checkpoint)
    text = claim.checkpoint.text
    subjects = {CHECKPOINT: hashlib.sha256(text).hexdigest(), **files}
    metrics = state.metrics[-1][2].metrics if state.metrics else {}
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "run_id": state.run_id,
            "ledger_id": state.ledger_id,
            "status": state.status,
            "benchmark": state.benchmark,
            "harness": _id(state.request, "harness"),
            "model": _id(state.request, "model"),
            "started_at": state.started_at,
            "finished_at": state.ended_at,
            "size": claim.checkpoint.size,
            "root": claim.checkpoint.root.hex(),
            "checkpoint": checkpoint.decode(),
            "counts": {name: getattr(state.counts(), name) for name in _COUNTS},
            "metrics": dict(sorted(metrics.items())),
        },
    }
    return b"".join(JsonText(document, compact=True))


def read_statement(payload: bytes) -> Statement:
    """Read a statement about a run; ProofInvalid for anything else, or if it contradicts itself."""
    try:
        found = Statement.model_validate(json.loads(payload))
    except (ValueError, RecursionError, ValidationError) as error:
        why = str(error).splitlines()[0]
        raise ProofInvalid(f"this is no statement about a run ({why})") from error
    claimed = checkpoint_of(found)
    if hashlib.sha256(claimed.text).hexdigest() != found.digest(CHECKPOINT):
        raise ProofInvalid("the statement is about another checkpoint than it shows")
    if (claimed.size, claimed.root.hex()) != (found.predicate.size, found.predicate.root):
        raise ProofInvalid("the statement gives another size or root than its checkpoint")
    return found


def checkpoint_of(found: Statement) -> note.Checkpoint:
    """The checkpoint that a statement shows."""
    # What is no UTF-8 then is refused with everything else that is no checkpoint.
    text = found.predicate.checkpoint.encode("utf-8", "surrogatepass")
    return sidefile.parse(text).checkpoint


_COUNTS: Final = ("total", "evaluated", "error", "skipped", "missing", "correct", "incorrect")


def _id(request: dict[str, Any], part: str) -> str | None:
    found = request.get(part)
    return found.get("id") if isinstance(found, dict) else None
