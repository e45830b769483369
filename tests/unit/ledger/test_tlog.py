"""The tree against foreign vectors, against its own definition, and against tampering."""

import functools
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import tlog
from ledger.errors import ProofInvalid
from ledger.tlog import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    leaf_hash,
    prove_consistency,
    prove_inclusion,
    root_of,
    subtrees,
)

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "tree.json").read_bytes())
SMALL = {name: VECTORS[name] for name in ("rfc6962", "tree")}


def unhex(hashes):
    return [bytes.fromhex(item) for item in hashes]


def leaves_of(count):
    return [leaf_hash(b"entry %d" % index) for index in range(count)]


def naive_root(leaves):
    """MTH of RFC 6962 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = naive_root(leaves[:split]), naive_root(leaves[split:])
    return hashlib.sha256(b"\x01" + left + right).digest()


def large_entry(index):
    digest = hashlib.sha256(
        VECTORS["large"]["tag"].encode() + b"\x00" + index.to_bytes(8, "big")
    ).digest()
    return (digest * 10)[: 40 + digest[0]]


@pytest.fixture(scope="module")
def large_leaves():
    return [leaf_hash(large_entry(index)) for index in range(70_000)]


@pytest.mark.parametrize("vectors", SMALL.values(), ids=SMALL)
def test_leaves_and_roots_of_the_vectors(vectors):
    leaves = [leaf_hash(entry) for entry in unhex(vectors["entries_hex"])]
    assert leaves == unhex(vectors["leaf_hashes"])
    for size, root in enumerate(unhex(vectors["roots_by_size"])):
        assert Frontier(leaves[:size]).root() == root
        assert root_of(b"".join(leaves), size) == root


@pytest.mark.parametrize("vectors", SMALL.values(), ids=SMALL)
def test_every_proof_of_the_vectors_is_made_and_accepted(vectors):
    leaves, roots = unhex(vectors["leaf_hashes"]), unhex(vectors["roots_by_size"])
    hashes = subtrees(b"".join(leaves))
    assert len(vectors["inclusion_proofs"]) >= 36
    assert len(vectors["consistency_proofs"]) >= 45
    for case in vectors["inclusion_proofs"]:
        index, size, path = case["index"], case["size"], tuple(unhex(case["path"]))
        assert prove_inclusion(index, size, hashes) == tlog.InclusionProof(index, size, path)
        check_inclusion(leaves[index], index, size, path, roots[size])
    for case in vectors["consistency_proofs"]:
        old, new, path = case["old_size"], case["new_size"], tuple(unhex(case["path"]))
        assert prove_consistency(old, new, hashes) == tlog.ConsistencyProof(old, new, path)
        check_consistency(old, new, path, roots[old], roots[new])


def test_roots_and_proofs_of_the_large_vectors(large_leaves):
    vectors = VECTORS["large"]
    assert [large_entry(i).hex() for i in range(4)] == vectors["first_entries_hex"]
    roots = {int(size): bytes.fromhex(root) for size, root in vectors["roots_by_size"].items()}
    frontier = Frontier()
    for leaf in large_leaves:
        if frontier.size in roots:
            assert frontier.root() == roots[frontier.size]
        frontier.append(leaf)
    assert frontier.root() == roots[70_000]
    hashes = functools.cache(subtrees(b"".join(large_leaves)))
    for case in vectors["inclusion_proofs"]:
        index, size, path = case["index"], case["size"], tuple(unhex(case["path"]))
        assert prove_inclusion(index, size, hashes).path == path
        check_inclusion(large_leaves[index], index, size, path, roots[size])
    for case in vectors["consistency_proofs"]:
        old, new, path = case["old_size"], case["new_size"], tuple(unhex(case["path"]))
        assert prove_consistency(old, new, hashes).path == path
        old_root = roots.get(old) or root_of(b"".join(large_leaves), old)
        check_consistency(old, new, path, old_root, roots[new])


def case_id(case):
    sizes = [str(case[key]) for key in ("size", "index", "old_size", "new_size") if key in case]
    return f"{case['why']} {' '.join(sizes)}"


@pytest.mark.parametrize("case", VECTORS["must_reject_inclusion"], ids=case_id)
def test_wrong_inclusion_proofs_are_refused(case):
    leaf, root = bytes.fromhex(case["leaf_hash"]), bytes.fromhex(case["root"])
    with pytest.raises(ProofInvalid):
        check_inclusion(leaf, case["index"], case["size"], unhex(case["path"]), root)


@pytest.mark.parametrize("case", VECTORS["must_reject_consistency"], ids=case_id)
def test_wrong_consistency_proofs_are_refused(case):
    old_root, new_root = bytes.fromhex(case["old_root"]), bytes.fromhex(case["new_root"])
    with pytest.raises(ProofInvalid):
        check_consistency(
            case["old_size"], case["new_size"], unhex(case["path"]), old_root, new_root
        )


def test_roots_are_those_of_the_recursive_definition():
    leaves = leaves_of(300)
    frontier = Frontier()
    for size in range(300):
        expected = naive_root(leaves[:size])
        assert frontier.size == size
        assert frontier.root() == expected
        assert root_of(b"".join(leaves), size) == expected
        frontier.append(leaves[size])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_proof_verifies_and_every_flipped_bit_fails(data):
    size = data.draw(st.integers(1, 200))
    index = data.draw(st.integers(0, size - 1))
    leaves = leaves_of(size)
    root = naive_root(leaves)
    path = list(prove_inclusion(index, size, subtrees(b"".join(leaves))).path)
    check_inclusion(leaves[index], index, size, path, root)

    def check(hashes):
        leaf, claimed, *siblings = hashes
        check_inclusion(leaf, index, size, siblings, claimed)

    refuses_a_flipped_bit(check, [leaves[index], root, *path], data)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_prefix_proof_verifies_and_every_flipped_bit_fails(data):
    new = data.draw(st.integers(1, 200))
    old = data.draw(st.integers(0, new))
    leaves = leaves_of(new)
    old_root, new_root = naive_root(leaves[:old]), naive_root(leaves)
    path = list(prove_consistency(old, new, subtrees(b"".join(leaves))).path)
    check_consistency(old, new, path, old_root, new_root)

    def check(hashes):
        claimed_old, claimed_new, *rest = hashes
        check_consistency(old, new, rest, claimed_old, claimed_new)

    # From nothing, any new root is consistent: only the old one is a claim.
    refuses_a_flipped_bit(check, [old_root, new_root, *path], data, only_first=old == 0)


def refuses_a_flipped_bit(check, hashes, data, *, only_first=False):
    which = 0 if only_first else data.draw(st.integers(0, len(hashes) - 1))
    bit = data.draw(st.integers(0, 255))
    number = int.from_bytes(hashes[which], "big") ^ 1 << bit
    hashes[which] = number.to_bytes(32, "big")
    with pytest.raises(ProofInvalid):
        check(hashes)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 33])
def test_a_proof_holds_for_no_other_place(size):
    leaves = leaves_of(size)
    root = naive_root(leaves)
    for index in range(size):
        path = prove_inclusion(index, size, subtrees(b"".join(leaves))).path
        for other in range(-1, size + 1):
            if other != index:
                with pytest.raises(ProofInvalid):
                    check_inclusion(leaves[index], other, size, path, root)


def test_subtrees_are_asked_for_complete_and_aligned():
    leaves = leaves_of(100)
    asked = []
    inner = subtrees(b"".join(leaves))

    def hashes(start, end):
        asked.append((start, end))
        return inner(start, end)

    for old in range(101):
        prove_consistency(old, 100, hashes)
        if old < 100:
            prove_inclusion(old, 100, hashes)
    for start, end in asked:
        length = end - start
        assert length & (length - 1) == 0
        assert start % length == 0


def test_a_subtree_of_many_leaves_is_the_same_as_from_its_halves(large_leaves):
    hashes = subtrees(b"".join(large_leaves))
    halves = [hashes(0, 8192), hashes(8192, 16384)]
    assert hashes(0, 16384) == tlog.node_hash(*halves) == naive_root(large_leaves[:16384])


def test_a_copied_frontier_goes_its_own_way():
    leaves = leaves_of(8)
    frontier = Frontier(leaves[:5])
    twin = frontier.copy()
    assert twin == frontier
    twin.append(leaves[5])
    assert twin != frontier
    assert (frontier.size, twin.size) == (5, 6)
    assert frontier.root() == naive_root(leaves[:5])
    assert frontier != Frontier([*leaves[:4], leaves[6]])
    assert frontier != "another thing"


def test_the_frontier_holds_one_hash_for_each_set_bit():
    frontier = Frontier(leaves_of(0b1011001))
    assert len(frontier._nodes) == 4
    assert repr(frontier) == f"Frontier(size=89, root={frontier.root().hex()})"


@pytest.mark.parametrize(("size", "index"), [(0, 0), (-1, 0), (1, -1), (1, 1), (2**63, 1)])
def test_no_proof_is_made_or_accepted_for_a_place_that_is_none(size, index):
    with pytest.raises(ProofInvalid):
        prove_inclusion(index, size, subtrees(b"".join(leaves_of(4))))
    with pytest.raises(ProofInvalid):
        check_inclusion(leaf_hash(b""), index, size, [], leaf_hash(b""))


@pytest.mark.parametrize(("old", "new"), [(-1, 2), (0, -1), (3, 2), (1, 2**63)])
def test_no_proof_is_made_or_accepted_between_sizes_that_are_none(old, new):
    with pytest.raises(ProofInvalid):
        prove_consistency(old, new, subtrees(b"".join(leaves_of(4))))
    with pytest.raises(ProofInvalid):
        check_consistency(old, new, [], EMPTY_ROOT, EMPTY_ROOT)


def test_hashes_of_another_width_are_refused():
    leaf = leaf_hash(b"")
    short = leaf[:31]
    with pytest.raises(ProofInvalid, match="31 bytes"):
        check_inclusion(short, 0, 1, [], short)
    with pytest.raises(ProofInvalid, match="31 bytes"):
        check_inclusion(leaf, 0, 2, [short], leaf)
    with pytest.raises(ProofInvalid, match="31 bytes"):
        check_consistency(1, 2, [short], leaf, leaf)
    with pytest.raises(ProofInvalid, match="31 bytes"):
        Frontier().append(short)
    with pytest.raises(ProofInvalid, match="whole number"):
        subtrees(leaf + short)
    with pytest.raises(ProofInvalid, match="no tree of 2"):
        root_of(leaf, 2)
    with pytest.raises(ProofInvalid, match="no leaves"):
        subtrees(leaf)(0, 2)


def test_an_inner_node_does_not_pass_as_a_leaf():
    entries = [b"a", b"b", b"c", b"d"]
    leaves = [leaf_hash(entry) for entry in entries]
    children = leaves[0] + leaves[1]
    right = tlog.node_hash(*leaves[2:])
    root = naive_root(leaves)
    check_inclusion(tlog.node_hash(*leaves[:2]), 0, 2, [right], root)
    with pytest.raises(ProofInvalid):
        check_inclusion(leaf_hash(children), 0, 2, [right], root)


@given(st.lists(st.integers(0, 40), max_size=6))
def test_leaves_added_together_give_the_tree_that_they_give_one_by_one(groups: list[int]) -> None:
    together, singly = tlog.Frontier(), tlog.Frontier()
    number = 0
    for group in groups:
        added = [tlog.leaf_hash(b"%d" % one) for one in range(number, number + group)]
        number += group
        together.extend(added)
        for leaf in added:
            singly.append(leaf)
        assert together == singly
        assert (together.size, together.root()) == (number, singly.root())


def test_of_leaves_of_which_one_is_no_hash_none_is_added() -> None:
    tree = tlog.Frontier([tlog.leaf_hash(b"one")])
    before = tree.copy()
    with pytest.raises(ProofInvalid):
        tree.extend([tlog.leaf_hash(b"two"), b"short"])
    assert tree == before
