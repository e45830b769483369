"""DSSE envelopes, version 1: a payload with signatures over its type and its bytes, as JSON.

    {"payload": base64, "payloadType": type, "signatures": [{"keyid": name+id, "sig": base64}]}

What is signed is the pre-authentication encoding, so that no payload of one type passes for one of
another, nor for a note: a note ends in a line feed, and no checkpoint begins as this does.

>>> pae("http://example.com/HelloWorld", b"hello world")
b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger import note
from ledger.errors import ProofInvalid

MAX_SIGNATURES: Final = 100


@dataclass(frozen=True, slots=True)
class Signed:
    """One signature; `key` is a hint whose it is."""

    key: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload (exact bytes), its type, and its signatures."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signed, ...]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    keyid: str = ""
    sig: str


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    payload: str
    payloadType: str  # noqa: N815 - the name in the format
    signatures: Annotated[list[_Line], Field(min_length=1, max_length=MAX_SIGNATURES)]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, signers: Iterable[note.Signer]) -> Envelope:
    """Make an envelope that every one of `signers` signs."""
    message = pae(payload_type, payload)
    lines = tuple(Signed(key_hint(one), one.sign(message)) for one in signers)
    return Envelope(payload_type, payload, lines)


def encode(envelope: Envelope) -> bytes:
    """Write an envelope as one line of JSON."""
    document = {
        "payload": b64encode(envelope.payload).decode(),
        "payloadType": envelope.payload_type,
        "signatures": [
            {"keyid": one.key, "sig": b64encode(one.signature).decode()}
            for one in envelope.signatures
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def decode(data: bytes) -> Envelope:
    """Read an envelope; ProofInvalid for what is none. Fields that DSSE does not name are skipped.

    Base64 may be of either alphabet.
    """
    try:
        document = _Document.model_validate(json.loads(data, object_pairs_hook=_once))
        # It is signed as UTF-8, which has no lone surrogates; JSON has.
        document.payloadType.encode()
        lines = tuple(Signed(one.keyid, _bytes(one.sig)) for one in document.signatures)
        return Envelope(document.payloadType, _bytes(document.payload), lines)
    except (ValueError, RecursionError, ValidationError) as error:
        why = str(error).splitlines()[0]
        raise ProofInvalid(f"this is no DSSE envelope ({why})") from error


def check(envelope: Envelope, verifiers: Sequence[note.Verifier]) -> tuple[note.Verifier, ...]:
    """Return those of `verifiers` that signed, at least one; ProofInvalid if there is none.

    A signature under the hint of one of `verifiers` that is not its own refuses the whole.
    """
    message = pae(envelope.payload_type, envelope.payload)
    known = {key_hint(one): one for one in verifiers}
    good: dict[str, note.Verifier] = {}
    for line in envelope.signatures:
        verifier = known.get(line.key)
        if verifier is None:
            continue
        if not verifier.verify(message, line.signature):
            raise ProofInvalid(f"the signature that is said to be of {verifier.name} is not")
        good[line.key] = verifier
    if not good:
        raise ProofInvalid("no known key signed this")
    return tuple(good.values())


def key_hint(key: note.Signer | note.Verifier) -> str:
    """Return what names a key in an envelope: as much of its verifier key as is no key."""
    return f"{key.name}+{key.key_id.hex()}"


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except Base64Error as error:
        raise ValueError("its base64 is malformed") from error
