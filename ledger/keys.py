"""Ed25519 keys of logs and witnesses, in the texts of C2SP signed-note and tlog-cosignature.

A verifier key is `name+id+base64(type || public key)`, a signing key
`PRIVATE+KEY+name+id+base64(type || seed)`; `id` is the first 4 bytes of
SHA-256(name || LF || type || public key) in hex. Type 1 signs a note's text; type 4, a witness,
signs a checkpoint's text together with a time.

>>> key = SigningKey.generate("lab.example/key", entropy=bytes)
>>> key.verifier.encode()
'lab.example/key+62c543a6+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop'
>>> key.verifier.verify(b"a text", key.sign(b"a text"))
True
"""

import hashlib
import os
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger import note
from ledger.errors import KeyRefused

SEED_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
SIGNING_PREFIX: Final = "PRIVATE+KEY+"
MAX_NAME: Final = 200
_TIME_BYTES: Final = 8
_MAX_TIME: Final = 2**63 - 1
_FIELD: Final = 2**255 - 19
# Points of order 1, 2, 4 and 8: whoever names one as a key lets anybody sign.
_SMALL_ORDER: Final = frozenset(
    {
        0,
        1,
        _FIELD - 1,
        2707385501144840649318225287225658788936804267575313519463743609750303402022,
        55188659117513257062467267217118295137698188065244968500265048394206261417927,
    }
)
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}")
# A log's name becomes a part of origins, which are narrower than names of keys and end up in URLs
# and paths, where `.` and `..` lead elsewhere.
_PART: Final = r"(?!\.\.?(?:/|\Z))[a-z0-9._-]+"
_LOG_NAME: Final = re.compile(f"{_PART}(?:/{_PART})*")
_RESERVED: Final = "unsigned"

Entropy = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class _PublicKey:
    """A name and an Ed25519 public key of 32 bytes; KeyRefused if anybody could sign for it."""

    KIND: ClassVar[int]

    name: str
    public: bytes
    key_id: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not note.valid_name(self.name):
            raise KeyRefused(f"{self.name!r} cannot name a key")
        y = int.from_bytes(self.public, "little") & (1 << 255) - 1
        if len(self.public) != SEED_BYTES or y >= _FIELD or y in _SMALL_ORDER:
            raise KeyRefused(f"the key of {self.name!r} is weak: anybody could sign for it")
        hashed = self.name.encode() + b"\n" + bytes([self.KIND]) + self.public
        object.__setattr__(self, "key_id", hashlib.sha256(hashed).digest()[: note.KEY_ID_BYTES])

    def encode(self) -> str:
        """Write the verifier key as a text."""
        return _encode(self.name, self.key_id, self.KIND, self.public)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a verifier key of this type; KeyRefused for another, malformed or weak one."""
        name, key_id, kind, public = _decode(text)
        if kind != cls.KIND:
            raise KeyRefused(f"the key of {name!r} has type {kind}, not {cls.KIND}")
        key = cls(name, public)
        if key.key_id != key_id:
            raise KeyRefused(f"the key of {name!r} has the id {key.key_id.hex()}, not that given")
        return key

    def _verifies(self, message: bytes, signature: bytes) -> bool:
        if len(signature) != SIGNATURE_BYTES:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class LogKey(_PublicKey):
    """The public key of a log; judges signatures over a note's text."""

    KIND: ClassVar[int] = 1

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Tell whether `signature` (64 bytes) is one of this key over `text`."""
        return self._verifies(text, signature)

    def time_of(self, signature: bytes) -> None:
        """Return None: a log's signature has no time."""


@dataclass(frozen=True, slots=True)
class WitnessKey(_PublicKey):
    """The public key of a witness; judges its timed signatures over a checkpoint's text."""

    KIND: ClassVar[int] = 4

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Tell whether `signature` (8 bytes of time, then 64) is one of this key over `text`."""
        time = self.time_of(signature)
        if time is None:
            return False
        return self._verifies(_cosigned(text, time), signature[_TIME_BYTES:])

    def time_of(self, signature: bytes) -> int | None:
        """When the witness says that it signed, seconds since 1970; None if it says nothing."""
        if len(signature) != _TIME_BYTES + SIGNATURE_BYTES:
            return None
        time = int.from_bytes(signature[:_TIME_BYTES], "big")
        return time if time <= _MAX_TIME else None


Verifier = LogKey | WitnessKey


@dataclass(frozen=True, slots=True)
class _PrivateKey:
    """A name and an Ed25519 seed of 32 bytes."""

    KIND: ClassVar[int]

    name: str
    seed: bytes = field(repr=False)

    @classmethod
    def generate(cls, name: str, *, entropy: Entropy = os.urandom) -> Self:
        """Make a new key; KeyRefused if `name` cannot name one."""
        return cls(name, entropy(SEED_BYTES))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a signing key of this type; KeyRefused for anything else, never quoting it."""
        prefix, private, rest = text.strip().partition("+KEY+")
        if prefix != "PRIVATE" or not private:
            raise KeyRefused("this is not a signing key")
        name, key_id, kind, seed = _decode(rest)
        if kind != cls.KIND:
            raise KeyRefused(f"the signing key of {name!r} has type {kind}, not {cls.KIND}")
        key = cls(name, seed)
        if key.key_id != key_id:
            raise KeyRefused(f"the signing key of {name!r} does not have the id that it names")
        return key

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that name the public key."""
        raise NotImplementedError

    def encode(self) -> str:
        """Write the signing key as a text. Whoever reads it can sign."""
        return SIGNING_PREFIX + _encode(self.name, self.key_id, self.KIND, self.seed)

    def _public(self) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()

    def _sign(self, message: bytes) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


@dataclass(frozen=True, slots=True)
class SigningKey(_PrivateKey):
    """The key of a log: it signs checkpoints, whose origin its name is a part of."""

    KIND: ClassVar[int] = LogKey.KIND

    def __post_init__(self) -> None:
        if not _LOG_NAME.fullmatch(self.name) or len(self.name) > MAX_NAME:
            raise KeyRefused(
                f"{self.name!r} cannot name a signing key",
                hint=f"use up to {MAX_NAME} of a-z 0-9 . _ - with single slashes between them,"
                " and no part `.` or `..`",
            )
        if self.name == _RESERVED:
            raise KeyRefused(f"{_RESERVED!r} is what ledgers without a key are called")

    @property
    def verifier(self) -> LogKey:
        """The public key."""
        return LogKey(self.name, self._public())

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that a signature line begins with."""
        return self.verifier.key_id

    def sign(self, text: bytes) -> bytes:
        """Return the signature over `text`, 64 bytes."""
        return self._sign(text)


@dataclass(frozen=True, slots=True)
class CosigningKey(_PrivateKey):
    """The key of a witness."""

    KIND: ClassVar[int] = WitnessKey.KIND

    @property
    def verifier(self) -> WitnessKey:
        """The public key."""
        return WitnessKey(self.name, self._public())

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that a signature line begins with."""
        return self.verifier.key_id

    def cosign(self, text: bytes, time: int) -> bytes:
        """Return the signature over a checkpoint's text, seen at `time` (seconds since 1970)."""
        return time.to_bytes(_TIME_BYTES, "big") + self._sign(_cosigned(text, time))


def parse_verifier(text: str) -> Verifier:
    """Read the verifier key of a log or a witness; KeyRefused if malformed, weak or unknown."""
    kind = _decode(text)[2]
    if kind == WitnessKey.KIND:
        return WitnessKey.parse(text)
    return LogKey.parse(text)


def open_note(
    data: bytes, verifiers: Sequence[note.Verifier]
) -> tuple[note.SignedNote, tuple[note.Verifier, ...]]:
    """Read a note; return it with those of `verifiers` that signed it, at least one.

    Raises ProofInvalid if there is none, or a line is said to be of one of them and is not.
    """
    signed = note.parse_note(data)
    return signed, note.signers_of(signed, verifiers)


def refuse_signing_key(text: str) -> None:
    """Raise KeyRefused for a text with a signing key in it, which is not quoted."""
    if SIGNING_PREFIX in text:
        raise KeyRefused(
            "this is a signing key; a verifier key is wanted, and this one kept secret"
        )


def _cosigned(text: bytes, time: int) -> bytes:
    return b"cosignature/v1\ntime %d\n" % time + text


def _encode(name: str, key_id: bytes, kind: int, key: bytes) -> str:
    return f"{name}+{key_id.hex()}+{b64encode(bytes([kind]) + key).decode()}"


def _decode(text: str) -> tuple[str, bytes, int, bytes]:
    """Take (name, id, type, key) from a text; what is refused may be secret and is not quoted."""
    name, _, rest = text.strip("\n").partition("+")
    key_id, _, encoded = rest.partition("+")
    refuse_signing_key(text)
    key = note.decode_base64(encoded.encode("utf-8", "replace"))
    if not note.valid_name(name) or not _KEY_ID.fullmatch(key_id) or key is None:
        raise KeyRefused("this is not a key", hint="a verifier key is `name+8 hex digits+base64`")
    if len(key) != 1 + SEED_BYTES:
        raise KeyRefused(f"the key of {name!r} has {len(key)} bytes, not {1 + SEED_BYTES}")
    return name, bytes.fromhex(key_id), key[0], key[1:]
