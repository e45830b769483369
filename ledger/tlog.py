"""The Merkle tree of RFC 6962 section 2.1 and RFC 9162 section 2.1, with SHA-256.

    leaf = SHA-256(0x00 || entry)    node = SHA-256(0x01 || left || right)    empty = SHA-256("")

A tree of n > 1 leaves is the node of its first k and its other leaves, k being the largest power of
two smaller than n. Everything here is arithmetic on hashes of 32 bytes: entries, files and
signatures are somebody else's.

>>> tree = Frontier([leaf_hash(b"one"), leaf_hash(b"two"), leaf_hash(b"three")])
>>> leaves = b"".join([leaf_hash(b"one"), leaf_hash(b"two"), leaf_hash(b"three")])
>>> proof = prove_inclusion(1, 3, subtrees(leaves))
>>> check_inclusion(leaf_hash(b"two"), proof.index, proof.size, proof.path, tree.root())
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ledger.errors import ProofInvalid

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()
MAX_SIZE = 2**63 - 1
"""The largest tree; checkpoints carry sizes below 2^63."""

_LEAF, _NODE = b"\x00", b"\x01"
_BATCH_LEAVES = 4096

Subtrees = Callable[[int, int], bytes]
"""Gives the root of the leaves [start, end); asked for complete, aligned subtrees only: the length
is a power of two and divides `start`."""


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That a leaf stands at `index` in the tree of `size` leaves; `path` begins at its sibling."""

    index: int
    size: int
    path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """That the tree of `new` leaves begins with the `old` ones; `path` as in RFC 6962 2.1.2."""

    old: int
    new: int
    path: tuple[bytes, ...]


def leaf_hash(entry: bytes) -> bytes:
    """Hash an entry into a leaf."""
    return hashlib.sha256(_LEAF + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two children into their node."""
    return hashlib.sha256(_NODE + left + right).digest()


class Frontier:
    """The tree as far as appending and its root need it: one hash per bit set in `size`.

    Memory and the cost of `append` and `root` grow with the logarithm of `size`. Two frontiers are
    equal if and only if their trees are. `copy` is cheap, for work that may have to be taken back.
    """

    __slots__ = ("_nodes", "_size")

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._size = 0
        # Roots of complete subtrees from left to right, each smaller than the one before it.
        self._nodes: list[bytes] = []
        self.extend(leaves)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self._size

    @classmethod
    def resume(cls, size: int, nodes: Sequence[bytes]) -> "Frontier":
        """Return the tree of `size` leaves that has these `nodes`; ProofInvalid if none can.

        Whether they are those of a tree that is known only its root tells.
        """
        if type(size) is not int:
            raise ProofInvalid(f"{size!r} is not a tree size")
        _check_size(size, "size")
        _check_widths(*nodes)
        if len(nodes) != size.bit_count():
            raise ProofInvalid(f"a tree of {size} leaves has {size.bit_count()} complete subtrees")
        tree = cls()
        tree._size, tree._nodes = size, list(nodes)
        return tree

    @property
    def nodes(self) -> tuple[bytes, ...]:
        """The roots of the complete subtrees from left to right, each smaller than the last."""
        return tuple(self._nodes)

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash at the end."""
        _check_widths(leaf)
        size = self._size
        node = leaf
        while size & 1:
            node = node_hash(self._nodes.pop(), node)
            size >>= 1
        self._nodes.append(node)
        self._size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes at the end in order: the same as one by one, in half the time."""
        level = list(leaves)
        _check_widths(*level)
        # Of the tree before, at the height of `level`: does a complete subtree end there?
        before = self._size
        self._size += len(level)
        new: list[bytes] = []
        while level:
            if before & 1:
                level.insert(0, self._nodes.pop())
            if len(level) & 1:
                new.append(level.pop())
            level = list(map(node_hash, level[::2], level[1::2]))
            before >>= 1
        self._nodes += reversed(new)

    def root(self) -> bytes:
        """Return the root, 32 bytes; `EMPTY_ROOT` before the first leaf."""
        return _fold(self._nodes) if self._nodes else EMPTY_ROOT

    def copy(self) -> "Frontier":
        """Return a tree of its own with the same leaves."""
        twin = Frontier()
        twin._size = self._size
        twin._nodes = self._nodes.copy()
        return twin

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        return self._size == other._size and self._nodes == other._nodes

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Frontier(size={self._size}, root={self.root().hex()})"


def subtrees(leaves: bytes) -> Subtrees:
    """Answer for subtrees from leaf hashes that stand one after another in `leaves`.

    Takes time in proportion to the leaves of the subtree and little memory. For many proofs over
    one tree, `functools.cache(subtrees(leaves))`.
    """
    _check_flat(leaves)

    def subtree(start: int, end: int) -> bytes:
        if not 0 <= start < end <= len(leaves) // HASH_BYTES:
            raise ProofInvalid(f"no leaves [{start}, {end}) in {len(leaves) // HASH_BYTES}")
        if end - start > _BATCH_LEAVES:
            middle = start + (end - start) // 2
            return node_hash(subtree(start, middle), subtree(middle, end))
        level = leaves[start * HASH_BYTES : end * HASH_BYTES]
        while len(level) > HASH_BYTES:
            level = _level_above(level)
        return level

    return subtree


def root_of(leaves: bytes, size: int | None = None) -> bytes:
    """Return the root of the first `size` leaf hashes that stand one after another in `leaves`."""
    held = _check_flat(leaves)
    size = held if size is None else size
    _check_size(size, "size")
    if size > held:
        raise ProofInvalid(f"no tree of {size} leaves in {held}")
    return _range_hash(0, size, subtrees(leaves)) if size else EMPTY_ROOT


def prove_inclusion(index: int, size: int, hashes: Subtrees) -> InclusionProof:
    """Prove that leaf `index` stands in the tree of `size` leaves (RFC 6962 2.1.1).

    Raises ProofInvalid if there is no such leaf in such a tree.
    """
    _check_index(index, size)
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_hash(middle, end, hashes))
            end = middle
        else:
            path.append(_range_hash(start, middle, hashes))
            start = middle
    return InclusionProof(index, size, tuple(reversed(path)))


def prove_consistency(old: int, new: int, hashes: Subtrees) -> ConsistencyProof:
    """Prove that the tree of `new` leaves begins with the `old` ones (RFC 6962 2.1.2).

    The proof is empty for equal sizes and from the empty tree. Raises ProofInvalid if the sizes
    are no sizes or in the wrong order.
    """
    _check_sizes(old, new)
    path: list[bytes] = []
    start, end = 0, new
    if old in (0, new):
        return ConsistencyProof(old, new, ())
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_range_hash(middle, end, hashes))
            end = middle
        else:
            path.append(_range_hash(start, middle, hashes))
            start = middle
    # The old tree ends where a subtree ends. If that is all of the old tree, its root is known.
    if start > 0:
        path.append(_range_hash(start, end, hashes))
    return ConsistencyProof(old, new, tuple(reversed(path)))


def check_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> None:
    """Return if `path` proves `leaf` at `index` of the tree with `size` and `root`.

    Raises ProofInvalid with the reason otherwise. RFC 9162 2.1.3.2.
    """
    _check_index(index, size)
    _check_widths(leaf, root, *path)
    node_index, last_index, node = index, size - 1, leaf
    for sibling in path:
        if last_index == 0:
            raise ProofInvalid("the inclusion proof is too long")
        if node_index & 1 or node_index == last_index:
            node = node_hash(sibling, node)
            while not node_index & 1 and node_index:
                node_index >>= 1
                last_index >>= 1
        else:
            node = node_hash(node, sibling)
        node_index >>= 1
        last_index >>= 1
    if last_index != 0:
        raise ProofInvalid("the inclusion proof is too short")
    if node != root:
        raise ProofInvalid(f"the inclusion proof of leaf {index} leads to another root")


def check_consistency(
    old: int, new: int, path: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Return if `path` proves that the tree with `new` and `new_root` begins with the old one.

    Raises ProofInvalid with the reason otherwise. RFC 9162 2.1.4.2; from the empty tree as in C2SP
    tlog-witness: no path, and the old root is that of no leaves.
    """
    _check_sizes(old, new)
    _check_widths(old_root, new_root, *path)
    if old in (0, new):
        _check_trivial_consistency(old, new, path, old_root, new_root)
        return
    if not path:
        raise ProofInvalid("the consistency proof is empty")
    seen_old, seen_new = _climb(old, new, path, old_root)
    if seen_old != old_root:
        raise ProofInvalid(f"the consistency proof leads to another root at size {old}")
    if seen_new != new_root:
        raise ProofInvalid(f"the consistency proof leads to another root at size {new}")


def _check_trivial_consistency(
    old: int, new: int, path: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    if path:
        raise ProofInvalid(f"a consistency proof from {old} to {new} has no hashes")
    if old == 0 and old_root != EMPTY_ROOT:
        raise ProofInvalid("the root at size 0 is not that of no leaves")
    if old == new and old_root != new_root:
        raise ProofInvalid(f"two trees of size {old} have different roots")


def _climb(old: int, new: int, path: Sequence[bytes], old_root: bytes) -> tuple[bytes, bytes]:
    """Return the two roots that a consistency proof leads to."""
    if old & (old - 1) == 0:
        path = (old_root, *path)
    old_index, last_index = old - 1, new - 1
    while old_index & 1:
        old_index >>= 1
        last_index >>= 1
    seen_old = seen_new = path[0]
    for sibling in path[1:]:
        if last_index == 0:
            raise ProofInvalid("the consistency proof is too long")
        if old_index & 1 or old_index == last_index:
            seen_old = node_hash(sibling, seen_old)
            seen_new = node_hash(sibling, seen_new)
            while not old_index & 1 and old_index:
                old_index >>= 1
                last_index >>= 1
        else:
            seen_new = node_hash(seen_new, sibling)
        old_index >>= 1
        last_index >>= 1
    if last_index != 0:
        raise ProofInvalid("the consistency proof is too short")
    return seen_old, seen_new


def _split(size: int) -> int:
    """The largest power of two smaller than `size`."""
    return 1 << (size - 1).bit_length() - 1


def _range_hash(start: int, end: int, hashes: Subtrees) -> bytes:
    """The root over the leaves [start, end); a subtree of that length could begin at `start`."""
    nodes = []
    while start < end:
        length = 1 << (end - start).bit_length() - 1
        nodes.append(hashes(start, start + length))
        start += length
    return _fold(nodes)


def _fold(nodes: Sequence[bytes]) -> bytes:
    """The root over complete subtrees of falling size."""
    node = nodes[-1]
    for left in reversed(nodes[:-1]):
        node = node_hash(left, node)
    return node


def _level_above(level: bytes) -> bytes:
    return b"".join(
        [
            hashlib.sha256(_NODE + level[at : at + 2 * HASH_BYTES]).digest()
            for at in range(0, len(level), 2 * HASH_BYTES)
        ]
    )


def _check_flat(leaves: bytes) -> int:
    if len(leaves) % HASH_BYTES:
        raise ProofInvalid(f"{len(leaves)} bytes are no whole number of leaf hashes")
    return len(leaves) // HASH_BYTES


def _check_size(size: int, name: str) -> None:
    if not 0 <= size <= MAX_SIZE:
        raise ProofInvalid(f"{name} {size} is not a tree size")


def _check_sizes(old: int, new: int) -> None:
    _check_size(old, "old size")
    _check_size(new, "new size")
    if old > new:
        raise ProofInvalid(f"the old size {old} is larger than the new size {new}")


def _check_index(index: int, size: int) -> None:
    _check_size(size, "size")
    if not 0 <= index < size:
        raise ProofInvalid(f"a tree of size {size} has no leaf {index}")


def _check_widths(*hashes: bytes) -> None:
    for given in hashes:
        if len(given) != HASH_BYTES:
            raise ProofInvalid(f"a hash has {len(given)} bytes, not {HASH_BYTES}")
