"""One event in one file: C2SP tlog-proof, version 1.

    c2sp.org/tlog-proof@v1
    extra <base64>           a ledger's: u16 length of the header, header, body
    index <decimal>
    <base64 hash>            the path: the leaf's sibling first, the root's child last
    <empty line>
    <checkpoint>             with its signatures, as it was published

What `extra` holds is not trusted for standing there: the header hashes to the leaf that the path
leads from, and names the SHA-256 of the body. Without the body (erased, say) the header is proven
alone. Under a checkpoint that nobody signed the first line is `acl/unsigned-proof@v1`: C2SP has no
such file, and no reader of those takes it for one.
"""

import hashlib
import re
import struct
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from ledger import note, sidefile, tlog
from ledger.codec import Header, is_canonical_body
from ledger.errors import LedgerDamaged, ProofInvalid
from ledger.proof.lines import Tree, format_hashes, parse_claim, parse_hashes, split_head

SIGNED: Final = b"c2sp.org/tlog-proof@v1\n"
UNSIGNED: Final = b"acl/unsigned-proof@v1\n"

_EXTRA: Final = b"extra "
_INDEX: Final = re.compile(rb"index (0|[1-9][0-9]*)")
_MOST_DIGITS: Final = len(str(tlog.MAX_SIZE))
_LENGTH: Final = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A file as it was read: an index, its path, and the checkpoint that the path leads to.

    `note` are the exact bytes of the checkpoint with its signatures; `extra` is None where there
    is no such line.
    """

    index: int
    path: tuple[bytes, ...]
    note: bytes
    extra: bytes | None = None

    @property
    def claim(self) -> sidefile.Claim:
        """The checkpoint, and who is said to have signed it."""
        return parse_claim(self.note)


@dataclass(frozen=True, slots=True)
class Entry:
    """An event that a proof brings along: header and body agree with each other.

    `head` are the exact bytes of the header, which the leaf is the hash of; `body` is None where
    only the header is there.
    """

    head: bytes
    header: Header
    body: bytes | None


def parse_inclusion(data: bytes) -> Inclusion:
    """Read exactly what `format_inclusion` writes; ProofInvalid for anything else.

    Whether the path leads to the root is not asked here.
    """
    title = UNSIGNED if data.startswith(UNSIGNED) else SIGNED
    lines, checkpoint = split_head(data, title)
    extra = None
    if lines and lines[0].startswith(_EXTRA):
        extra = note.decode_base64(lines.pop(0).removeprefix(_EXTRA))
        if extra is None:
            raise ProofInvalid("the extra data of a proof is padded base64")
    index = _INDEX.fullmatch(lines[0]) if lines else None
    if index is None or len(index[1]) > _MOST_DIGITS:
        raise ProofInvalid("a proof has a line with the index, a plain decimal")
    proof = Inclusion(int(index[1]), parse_hashes(lines[1:]), checkpoint, extra)
    if (proof.claim.signed is None) != (title == UNSIGNED):
        raise ProofInvalid("only a proof under a signed checkpoint begins as one of C2SP does")
    return proof


def format_inclusion(proof: Inclusion) -> bytes:
    """Write the file."""
    extra = b"" if proof.extra is None else _EXTRA + b64encode(proof.extra) + b"\n"
    title = UNSIGNED if proof.claim.signed is None else SIGNED
    index = b"index %d\n" % proof.index
    return title + extra + index + format_hashes(proof.path) + b"\n" + proof.note


def pack_entry(head: bytes, body: bytes | None) -> bytes:
    """Write the extra data of an event's proof."""
    return _LENGTH.pack(len(head)) + head + (body or b"")


def unpack_entry(extra: bytes) -> Entry:
    """Read the extra data of an event's proof.

    Raises ProofInvalid for what is no header, and for a body that is not the one that the header
    commits to, or not canonical; VersionUnsupported for a header of a newer release.
    """
    head, body = split_extra(extra)
    try:
        header = Header.decode(head)
    except LedgerDamaged as error:
        raise ProofInvalid(f"the proof brings no event along: {error.message}") from error
    if not body:
        return Entry(head, header, None)
    if len(body) != header.body_length or hashlib.sha256(body).digest() != header.address:
        raise ProofInvalid("the body is not the one that the header commits to")
    if not is_canonical_body(body):
        # Another reader could take it for something else.
        raise ProofInvalid("the body is not spelled in the one way that its content has")
    return Entry(head, header, body)


def split_extra(extra: bytes) -> tuple[bytes, bytes]:
    """Split extra data into the bytes of a header and of a body, whatever those are."""
    if len(extra) < _LENGTH.size:
        raise ProofInvalid("the proof brings no event along")
    (length,) = _LENGTH.unpack_from(extra)
    body = extra[_LENGTH.size + length :]
    head = extra[_LENGTH.size : _LENGTH.size + length]
    if len(head) != length:
        raise ProofInvalid("the header that the proof brings along is cut")
    return head, body


def inclusion(tree: Tree, seq: int, checkpoint: bytes) -> bytes:
    """Prove that event `seq` stands in the tree of `checkpoint`, a note or a bare text.

    Raises ProofInvalid for a checkpoint that is not of this ledger, or has another root than the
    ledger at its size; RunNotFound if it does not reach to the event, or the ledger not to it.
    """
    claim = parse_claim(checkpoint)
    size, root = claim.checkpoint.size, claim.checkpoint.root
    if not claim.is_of(tree.ledger_id):
        raise ProofInvalid(f"the checkpoint is of another log: {claim.checkpoint.origin}")
    proof = tree.prove(seq, size)
    head, body = _bytes_of(tree, seq)
    try:
        tlog.check_inclusion(tlog.leaf_hash(head), seq, size, proof.path, root)
    except ProofInvalid as error:
        raise ProofInvalid(
            f"the checkpoint at {size} events has another root than the ledger has there",
            hint="`acl prove RUN --from` that checkpoint reports the two histories",
        ) from error
    return format_inclusion(Inclusion(seq, proof.path, checkpoint, pack_entry(head, body)))


def _bytes_of(tree: Tree, seq: int) -> tuple[bytes, bytes | None]:
    recorded = tree.event(seq)
    if not recorded.erased:
        return tree.raw(seq)
    head = recorded.header.encode()
    assert tlog.leaf_hash(head) == recorded.leaf, "headers are written as they were read"
    return head, None
