"""What a witness answers: requests and statuses of C2SP tlog-witness, add-checkpoint.

A request is a line `old <size>`, up to 63 lines with the hashes of a consistency proof, an empty
line, and a signed checkpoint.
"""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ledger import note, tlog
from ledger.errors import ProofInvalid
from ledger.keys import CosigningKey, LogKey

MOST_PROOF_LINES: Final = 63
SIZE_TYPE: Final = "text/x.tlog.size"
TEXT_TYPE: Final = "text/plain; charset=utf-8"
_OLD: Final = re.compile(rb"old (0|[1-9][0-9]{0,18})")
_OWN_ORIGIN: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Request:
    """The size that the client believes the witness knows, a proof from it, and the checkpoint."""

    old: int
    path: tuple[bytes, ...]
    signed: note.SignedNote
    checkpoint: note.Checkpoint


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status, a body, and the type of the body."""

    status: int
    body: bytes
    type: str = TEXT_TYPE


class Refused(Exception):
    """The request is answered with `answer`."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.answer = Answer(status, f"{why}\n".encode())


def parse_request(body: bytes) -> Request:
    """Read the body of an add-checkpoint request; Refused with 400 if it is malformed."""
    head, separator, data = body.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    matched = _OLD.fullmatch(first)
    if not separator or matched is None or int(matched[1]) > tlog.MAX_SIZE:
        raise Refused(400, "the request does not begin with `old <size>`")
    if len(lines) > MOST_PROOF_LINES:
        raise Refused(400, f"a proof has at most {MOST_PROOF_LINES} hashes")
    path = tuple(note.decode_base64(line) or b"" for line in lines)
    if any(len(one) != tlog.HASH_BYTES for one in path):
        raise Refused(400, "a line of the proof is not a hash in base64")
    try:
        signed = note.parse_note(data)
        checkpoint = note.parse_checkpoint(signed.text)
    except ProofInvalid as error:
        raise Refused(400, error.message) from error
    return Request(int(matched[1]), path, signed, checkpoint)


def format_request(old: int, path: Sequence[bytes], signed: bytes) -> bytes:
    """Write the body of an add-checkpoint request."""
    lines = [b"old %d\n" % old, *(b64encode(one) + b"\n" for one in path)]
    return b"".join(lines) + b"\n" + signed


def check_log(request: Request, logs: Sequence[LogKey]) -> None:
    """Return if a log that the witness knows signed the checkpoint; Refused with 404 or 403.

    A log is known by its key's name: its origin is that name, or `acl/<name>/<ledger id>` for each
    ledger that it signs.
    """
    origin = request.checkpoint.origin
    owners = [log for log in logs if _is_of(origin, log.name)]
    if not owners:
        raise Refused(404, f"the log {origin} is not known here")
    try:
        note.signers_of(request.signed, owners)
    except ProofInvalid as error:
        raise Refused(403, error.message) from error


def _is_of(origin: str, name: str) -> bool:
    if origin == name:
        return True
    prefix = f"acl/{name}/"
    return origin.startswith(prefix) and bool(_OWN_ORIGIN.fullmatch(origin.removeprefix(prefix)))


def check_growth(request: Request, latest: note.Checkpoint | None) -> None:
    """Return if the checkpoint extends what the witness saw last; Refused with 400, 409 or 422."""
    new = request.checkpoint
    size, root = (0, tlog.EMPTY_ROOT) if latest is None else (latest.size, latest.root)
    if request.old > new.size:
        raise Refused(400, f"the old size {request.old} is larger than the checkpoint's {new.size}")
    if request.old != size:
        refused = Refused(409, str(size))
        refused.answer = Answer(409, f"{size}\n".encode(), SIZE_TYPE)
        raise refused
    try:
        tlog.check_consistency(size, new.size, request.path, root, new.root)
    except ProofInvalid as error:
        raise Refused(422, error.message) from error


def cosign(request: Request, key: CosigningKey, time: int) -> note.Signature:
    """Return the signature of the witness at `time`, seconds since 1970."""
    return note.Signature(key.name, key.key_id, key.cosign(request.signed.text, time))
