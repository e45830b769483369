"""Lines that the files of proofs have in common: hashes in base64, and whole checkpoints."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Final, Protocol

from ledger import note, sidefile, tlog
from ledger.errors import ProofInvalid
from ledger.view import Recorded

MAX_PATH: Final = 64
"""More hashes than any path in a tree of fewer than 2^63 leaves has."""

_SIGNATURE: Final = "— ".encode()


class Tree(Protocol):
    """What a proof is made from; a `LedgerView` is one."""

    @property
    def ledger_id(self) -> bytes:
        """The 16 bytes that name the ledger."""
        ...

    @property
    def size(self) -> int:
        """How many events there are."""
        ...

    def event(self, seq: int) -> Recorded:
        """Return one event."""
        ...

    def raw(self, seq: int) -> tuple[bytes, bytes]:
        """Return the exact bytes of header and body."""
        ...

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first `size` events."""
        ...

    def prove(self, seq: int, size: int | None = None) -> tlog.InclusionProof:
        """Prove that event `seq` stands in the tree of the first `size` events."""
        ...

    def prove_prefix(self, old: int, new: int | None = None) -> tlog.ConsistencyProof:
        """Prove that the tree of the first `new` events begins with the first `old` ones."""
        ...


def format_hashes(hashes: Sequence[bytes]) -> bytes:
    """Write one line a hash."""
    return b"".join(b64encode(one) + b"\n" for one in hashes)


def parse_hash(line: bytes) -> bytes:
    """Read a hash of 32 bytes in the one spelling that base64 has for it."""
    found = note.decode_base64(line)
    if found is None or len(found) != tlog.HASH_BYTES:
        raise ProofInvalid(f"a hash of a proof is {tlog.HASH_BYTES} bytes in padded base64")
    return found


def parse_hashes(lines: Sequence[bytes]) -> tuple[bytes, ...]:
    """Read the hashes of a path."""
    if len(lines) > MAX_PATH:
        raise ProofInvalid(f"a path of {len(lines)} hashes is longer than any can be")
    return tuple(map(parse_hash, lines))


def split_head(data: bytes, title: bytes) -> tuple[list[bytes], bytes]:
    """Split a file into the lines between `title` and the first empty line, and what follows."""
    if not data.startswith(title):
        raise ProofInvalid(f"a file of this kind begins with {title.decode().strip()!r}")
    head, separator, rest = data.removeprefix(title).partition(b"\n\n")
    if data.startswith(title + b"\n"):
        # No line at all between the two.
        return [], data.removeprefix(title + b"\n")
    if not separator:
        raise ProofInvalid("no empty line stands before the checkpoint")
    return head.split(b"\n"), rest


def take_checkpoint(data: bytes) -> tuple[bytes, bytes]:
    """Take the first of several checkpoints, with its signatures if it has some; and the rest.

    An empty line stands between them. The lines of a checkpoint's text are never empty, and an
    origin never begins as a signature does, so there is one way to split.
    """
    text, separator, rest = data.partition(b"\n\n")
    if not separator:
        return data, b""
    if not rest.startswith(_SIGNATURE):
        return text + b"\n", rest
    signatures, separator, rest = rest.partition(b"\n\n")
    if not separator:
        return data, b""
    return text + b"\n\n" + signatures + b"\n", rest


def parse_claim(data: bytes) -> sidefile.Claim:
    """Read a signed note or the bare text of a checkpoint, of at least one leaf.

    A bare one has no further lines: they could be signatures that an empty line was taken from.
    """
    claim = sidefile.parse(data)
    if not claim.checkpoint.size:
        raise ProofInvalid("a checkpoint of no event proves nothing")
    if claim.signed is None and claim.checkpoint.extensions:
        raise ProofInvalid("a checkpoint that nobody signed has three lines")
    return claim
