"""Trees, proofs, notes and proof files once more, word for word from their definitions.

Shares no code with the ledger. RFC 6962 section 2.1 for the tree; C2SP signed-note, tlog-checkpoint
and tlog-proof for the texts. Slow, and meant to be read beside those pages.
"""

import base64
import hashlib
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def _h(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _k(n: int) -> int:
    """The largest power of two smaller than n."""
    k = 1
    while 2 * k < n:
        k = 2 * k
    return k


class Tree:
    """D[n] of RFC 6962: entries, and the hashes over ranges of them."""

    def __init__(self, entries: list[bytes]) -> None:
        self.d = entries
        self._known: dict[tuple[int, int], bytes] = {}

    def mth(self, start: int, end: int) -> bytes:
        """MTH(D[start:end])."""
        if start == end:
            return _h(b"")
        if (start, end) not in self._known:
            if end - start == 1:
                value = _h(b"\x00" + self.d[start])
            else:
                k = _k(end - start)
                value = _h(b"\x01" + self.mth(start, start + k) + self.mth(start + k, end))
            self._known[start, end] = value
        return self._known[start, end]

    def path(self, m: int, start: int, end: int) -> list[bytes]:
        """PATH(m, D[start:end])."""
        n = end - start
        if n == 1:
            return []
        k = _k(n)
        if m < k:
            return [*self.path(m, start, start + k), self.mth(start + k, end)]
        return [*self.path(m - k, start + k, end), self.mth(start, start + k)]

    def proof(self, m: int, n: int) -> list[bytes]:
        """PROOF(m, D[n]) for 0 < m <= n."""
        return self._subproof(m, 0, n, known=True)

    def _subproof(self, m: int, start: int, end: int, *, known: bool) -> list[bytes]:
        n = end - start
        if m == n:
            return [] if known else [self.mth(start, end)]
        k = _k(n)
        if m <= k:
            return [
                *self._subproof(m, start, start + k, known=known),
                self.mth(start + k, end),
            ]
        return [
            *self._subproof(m - k, start + k, end, known=False),
            self.mth(start, start + k),
        ]


def root_of_path(leaf: bytes, m: int, n: int, path: list[bytes]) -> bytes | None:
    """The root that a path leads to, by going down the tree; None if its length is wrong."""
    if n == 1:
        return leaf if not path else None
    if not path:
        return None
    k, last = _k(n), path[-1]
    if m < k:
        left = root_of_path(leaf, m, k, path[:-1])
        return None if left is None else _h(b"\x01" + left + last)
    right = root_of_path(leaf, m - k, n - k, path[:-1])
    return None if right is None else _h(b"\x01" + last + right)


def roots_of_proof(
    m: int, n: int, proof: list[bytes], old: bytes, *, known: bool = True
) -> tuple[bytes, bytes] | None:
    """The roots of the first m and of all n leaves that a consistency proof leads to."""
    if m == n:
        if known:
            return None if proof else (old, old)
        return (proof[0], proof[0]) if len(proof) == 1 else None
    if not proof:
        return None
    k, last = _k(n), proof[-1]
    if m <= k:
        found = roots_of_proof(m, k, proof[:-1], old, known=known)
        return None if found is None else (found[0], _h(b"\x01" + found[1] + last))
    found = roots_of_proof(m - k, n - k, proof[:-1], old, known=False)
    if found is None:
        return None
    return _h(b"\x01" + last + found[0]), _h(b"\x01" + last + found[1])


@dataclass
class Note:
    """A signed checkpoint: its three fields, its text, and who signed as (name, id, signature)."""

    origin: str
    size: int
    root: bytes
    text: bytes
    signatures: list[tuple[str, bytes, bytes]]


def read_note(data: bytes) -> Note:
    """Read a signed checkpoint without extension lines."""
    found = re.fullmatch(
        rb"(([^\n]+)\n(0|[1-9][0-9]*)\n([A-Za-z0-9+/]{43}=)\n)\n((?:\xe2\x80\x94 [^ \n]+ [^ \n]+\n)+)",
        data,
    )
    assert found is not None, data
    text, origin, size, root, lines = found.groups()
    signatures = []
    for line in lines.decode().split("\n")[:-1]:
        _, name, encoded = line.split(" ")
        blob = base64.b64decode(encoded)
        signatures.append((name, blob[:4], blob[4:]))
    return Note(origin.decode(), int(size), base64.b64decode(root), text, signatures)


def signed_by(note: Note, vkey: str) -> bool:
    """Whether the note has a good signature of a verifier key of type 1, given as its text."""
    name, key_id, encoded = vkey.split("+", 2)
    key = base64.b64decode(encoded)
    assert key[0] == 1
    assert _h(name.encode() + b"\n" + key)[:4].hex() == key_id
    for signer, its_id, signature in note.signatures:
        if (signer, its_id.hex()) != (name, key_id):
            continue
        try:
            Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature, note.text)
        except InvalidSignature:
            return False
        return True
    return False


@dataclass
class ProofFile:
    """What a .tlog-proof file holds."""

    extra: bytes
    index: int
    path: list[bytes]
    note: Note


def read_proof(data: bytes) -> ProofFile:
    """Read a .tlog-proof file with extra data."""
    head, checkpoint = data.split(b"\n\n", 1)
    lines = head.decode().split("\n")
    assert lines[0] == "c2sp.org/tlog-proof@v1"
    assert lines[1].startswith("extra ")
    assert lines[2].startswith("index ")
    path = [base64.b64decode(line) for line in lines[3:]]
    return ProofFile(base64.b64decode(lines[1][6:]), int(lines[2][6:]), path, read_note(checkpoint))


def proves(data: bytes, vkey: str) -> tuple[bytes, bytes] | None:
    """The header and body that a proof file proves under a key; None if it proves nothing."""
    proof = read_proof(data)
    length = int.from_bytes(proof.extra[:2], "big")
    head, body = proof.extra[2 : 2 + length], proof.extra[2 + length :]
    if not proof.index < proof.note.size or not signed_by(proof.note, vkey):
        return None
    leaf = _h(b"\x00" + head)
    if root_of_path(leaf, proof.index, proof.note.size, proof.path) != proof.note.root:
        return None
    if head[64:96] != _h(body) or int.from_bytes(head[20:28], "big") != proof.index:
        return None
    return head, body
