"""Signed notes and checkpoints, the texts of C2SP signed-note and tlog-checkpoint.

A note is a text, an empty line and one line per signature::

    <text: one or more lines, each ended by LF>
    <empty line>
    — <name> <base64(4-byte key id || signature)>

The signed bytes are the text with its last LF, without the empty line. A checkpoint is such a text
of three lines (origin, number of leaves, root in base64) and perhaps extension lines. Without a
key the checkpoint's text stands alone, under an origin that says so.

>>> import hashlib
>>> checkpoint = Checkpoint(unsigned_origin(bytes(16)), 0, hashlib.sha256(b"").digest())
>>> print(format_checkpoint(checkpoint).decode(), end="")
acl/unsigned/00000000000000000000000000000000
0
47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
>>> parse_checkpoint(format_checkpoint(checkpoint)) == checkpoint
True

Parsing says what a note claims. Who signed it, and whether its origin is the one asked for, is for
whoever brings the keys.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.errors import ProofInvalid
from ledger.tlog import EMPTY_ROOT, HASH_BYTES, MAX_SIZE

KEY_ID_BYTES = 4
MAX_SIGNATURES = 100
MAX_ORIGIN = 255

# Narrower than C2SP, so that letter case and Unicode forms cannot make two origins of one.
_ORIGIN = re.compile(rb"[a-z0-9._/-]+")
_SIZE = re.compile(rb"0|[1-9][0-9]*")
_MOST_SIZE_DIGITS = len(str(MAX_SIZE))
_DASH = "— ".encode()
_FORBIDDEN_CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f]")
# Go's unicode.IsSpace, which is what C2SP means; Python's own idea of a space is wider. And what no
# UTF-8 has, as in an argument or a variable of other bytes.
_NAME_FORBIDS = re.compile(
    "[+\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ud800-\udfff]"
)


class Signer(Protocol):
    """A key that makes one signature line."""

    @property
    def name(self) -> str:
        """Key name, as in `Signature.name`."""
        ...

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that a signature line begins with."""
        ...

    def sign(self, text: bytes) -> bytes:
        """Return the signature over `text`, without the key id."""
        ...


class Verifier(Protocol):
    """A key that judges the signature lines of its name and key id."""

    @property
    def name(self) -> str:
        """Key name, as in `Signature.name`."""
        ...

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that a signature line begins with."""
        ...

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Tell whether `signature` is one of this key over `text`."""
        ...

    def time_of(self, signature: bytes) -> int | None:
        """When a witness says that it signed, seconds since 1970; None from a log's key."""
        ...


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line: whose key it claims to be of, and the bytes."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A text, the exact signed bytes, with its signatures in the order of the lines."""

    text: bytes
    signatures: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The claim that the log `origin` had `root` (32 bytes) when it had `size` leaves."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @property
    def text(self) -> bytes:
        """The bytes that are signed."""
        return format_checkpoint(self)


def unsigned_origin(ledger_id: bytes) -> str:
    """Return the origin of a ledger (id of 16 bytes) whose checkpoints nobody signs."""
    return f"acl/unsigned/{ledger_id.hex()}"


def format_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Write a checkpoint's text; raise ProofInvalid for one that `parse_checkpoint` refuses."""
    root = b64encode(checkpoint.root).decode("ascii")
    lines = (checkpoint.origin, str(checkpoint.size), root, *checkpoint.extensions)
    text = _encode("".join(line + "\n" for line in lines))
    if parse_checkpoint(text) != checkpoint:
        raise ProofInvalid("a line of a checkpoint holds a line end")
    return text


def parse_checkpoint(text: bytes) -> Checkpoint:
    """Read the text of a checkpoint, without an empty line or signatures.

    Raises ProofInvalid for another spelling of origin, size or root than the one that
    `format_checkpoint` writes, and for an empty tree with another root than it has.
    """
    _check_text(text)
    origin, *rest = text[:-1].split(b"\n")
    if len(rest) < 2:
        raise ProofInvalid("a checkpoint has at least three lines")
    size, root, extensions = _parse_size(rest[0]), _parse_root(rest[1]), rest[2:]
    if len(origin) > MAX_ORIGIN or not _ORIGIN.fullmatch(origin):
        raise ProofInvalid(f"an origin is 1 to {MAX_ORIGIN} of a-z 0-9 . _ / -")
    if size == 0 and root != EMPTY_ROOT:
        raise ProofInvalid("a checkpoint of size 0 has another root than that of no leaves")
    if not all(extensions):
        raise ProofInvalid("a checkpoint has an empty extension line")
    return Checkpoint(
        origin.decode("ascii"), size, root, tuple(line.decode() for line in extensions)
    )


def format_note(note: SignedNote) -> bytes:
    """Write a note; raise ProofInvalid for one that `parse_note` refuses."""
    data = note.text + b"\n" + b"".join(map(format_line, note.signatures))
    if parse_note(data) != note:
        raise ProofInvalid("a note holds a signature of another form")
    return data


def with_lines(note: SignedNote, lines: Sequence[Signature]) -> SignedNote:
    """Return a note with further signatures; a new one of a key takes the place of an older one."""
    new = {(line.name, line.key_id) for line in lines}
    kept = [line for line in note.signatures if (line.name, line.key_id) not in new]
    return SignedNote(note.text, (*kept, *lines))


def format_line(line: Signature) -> bytes:
    """Write one signature line, with its line end."""
    return _DASH + _encode(line.name) + b" " + b64encode(line.key_id + line.signature) + b"\n"


def sign(text: bytes, signers: Iterable[Signer]) -> bytes:
    """Write the note of a text that every one of `signers` signs."""
    lines = tuple(Signature(one.name, one.key_id, one.sign(text)) for one in signers)
    return format_note(SignedNote(text, lines))


def parse_note(data: bytes) -> SignedNote:
    """Read a note; its text may hold empty lines, signatures stand after the last one.

    Raises ProofInvalid for what is no note: other line ends, control characters, no or more than
    100 signatures, or a signature line that is malformed.
    """
    _check_text(data)
    text, separator, block = data.rpartition(b"\n\n")
    if not separator or not text:
        raise ProofInvalid("a note has an empty line between text and signatures")
    lines = block[:-1].split(b"\n") if block else []
    if not 1 <= len(lines) <= MAX_SIGNATURES:
        raise ProofInvalid(f"a note has 1 to {MAX_SIGNATURES} signatures, this one {len(lines)}")
    return SignedNote(text + b"\n", tuple(map(_parse_signature, lines)))


def good_lines(
    signed: SignedNote, verifiers: Sequence[Verifier]
) -> tuple[tuple[Verifier, Signature], ...]:
    """Return the signature lines of `verifiers`, one for each that signed.

    Lines of unknown keys say nothing. Raises ProofInvalid if a line that names one of `verifiers`
    is not of it.
    """
    known = {(one.name, one.key_id): one for one in verifiers}
    good: dict[tuple[str, bytes], tuple[Verifier, Signature]] = {}
    for line in signed.signatures:
        verifier = known.get((line.name, line.key_id))
        if verifier is None:
            continue
        if not verifier.verify(signed.text, line.signature):
            raise ProofInvalid(f"the signature that is said to be of {line.name} is not")
        good.setdefault((line.name, line.key_id), (verifier, line))
    return tuple(good.values())


def signers_of(signed: SignedNote, verifiers: Sequence[Verifier]) -> tuple[Verifier, ...]:
    """Return those of `verifiers` that signed a note; ProofInvalid also if none did."""
    good = good_lines(signed, verifiers)
    if not good:
        raise ProofInvalid("no known key signed this")
    return tuple(verifier for verifier, _ in good)


def valid_name(name: str) -> bool:
    """Tell whether `name` can name a key: not empty, UTF-8, no Unicode space, no plus sign."""
    return bool(name) and not _NAME_FORBIDS.search(name)


def _parse_signature(line: bytes) -> Signature:
    if not line.startswith(_DASH):
        raise ProofInvalid("a signature line begins with an em dash and a space")
    name, _, encoded = line.removeprefix(_DASH).decode().partition(" ")
    if not valid_name(name):
        raise ProofInvalid("a signature line has no valid key name")
    signed = decode_base64(encoded.encode())
    if signed is None or len(signed) <= KEY_ID_BYTES:
        raise ProofInvalid("a signature line does not end in base64 of a key id and a signature")
    return Signature(name, signed[:KEY_ID_BYTES], signed[KEY_ID_BYTES:])


def _encode(text: str) -> bytes:
    # What is no UTF-8 then is refused with everything else that parsing refuses.
    return text.encode("utf-8", "surrogatepass")


def _check_text(data: bytes) -> None:
    if not data.endswith(b"\n"):
        raise ProofInvalid("a note ends with a line end")
    if _FORBIDDEN_CONTROL.search(data):
        raise ProofInvalid("a note holds a control character other than LF")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise ProofInvalid("a note is not UTF-8") from None


def _parse_size(line: bytes) -> int:
    # int() takes signs, spaces, underscores and the digits of every script.
    if not _SIZE.fullmatch(line) or len(line) > _MOST_SIZE_DIGITS or int(line) > MAX_SIZE:
        raise ProofInvalid("a checkpoint's size is a plain decimal below 2^63")
    return int(line)


def _parse_root(line: bytes) -> bytes:
    root = decode_base64(line)
    if root is None or len(root) != HASH_BYTES:
        raise ProofInvalid(f"a checkpoint's root is {HASH_BYTES} bytes in padded base64")
    return root


def decode_base64(encoded: bytes) -> bytes | None:
    """Decode the one spelling that `b64encode` writes; None for any other."""
    try:
        data = b64decode(encoded, validate=True)
    except Base64Error:
        return None
    return data if b64encode(data) == encoded else None
