"""Tree, proofs, notes and proof files against a second implementation, over random sizes."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import LedgerView, note, sidefile, tlog
from ledger.errors import ProofInvalid
from ledger.keys import SigningKey
from ledger.proof import checking, inclusion, parse_inclusion
from tests import tree_reference as reference
from tests.attacks.runs import LAB, record

MOST = 4000
ENTRIES = [b"entry %d" % number for number in range(MOST)]
TREE = reference.Tree(ENTRIES)
LEAVES = b"".join(tlog.leaf_hash(entry) for entry in ENTRIES)
sizes = st.integers(1, MOST) | st.sampled_from([2**n + d for n in range(1, 12) for d in (-1, 0, 1)])
FEW = settings(max_examples=150, deadline=None)


@functools.cache
def subtrees() -> tlog.Subtrees:
    return functools.cache(tlog.subtrees(LEAVES))


@given(size=sizes)
@FEW
def test_roots_are_those_of_the_definition(size: int) -> None:
    root = TREE.mth(0, size)
    assert tlog.root_of(LEAVES[: 32 * size]) == root
    assert tlog.root_of(LEAVES, size) == root


def test_a_growing_tree_has_the_root_of_the_definition_at_every_size() -> None:
    frontier = tlog.Frontier()
    for size in range(MOST + 1):
        if size < 600 or size % 97 == 0:
            assert frontier.root() == TREE.mth(0, size)
        if size < MOST:
            frontier.append(tlog.leaf_hash(ENTRIES[size]))


@given(size=sizes, data=st.data())
@FEW
def test_inclusion_proofs_are_those_of_the_definition(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    path = TREE.path(index, 0, size)
    assert list(tlog.prove_inclusion(index, size, subtrees()).path) == path
    leaf, root = LEAVES[32 * index : 32 * index + 32], TREE.mth(0, size)
    tlog.check_inclusion(leaf, index, size, path, root)
    assert reference.root_of_path(leaf, index, size, path) == root


@given(size=sizes, data=st.data())
@FEW
def test_consistency_proofs_are_those_of_the_definition(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, size))
    proof = TREE.proof(old, size)
    assert list(tlog.prove_consistency(old, size, subtrees()).path) == proof
    old_root, root = TREE.mth(0, old), TREE.mth(0, size)
    tlog.check_consistency(old, size, proof, old_root, root)
    assert reference.roots_of_proof(old, size, proof, old_root) == (old_root, root)


hashes = st.integers(0, 3).map(lambda n: LEAVES[32 * n : 32 * n + 32])


@given(size=st.integers(1, 40), data=st.data())
@settings(max_examples=300, deadline=None)
def test_both_refuse_the_same_inclusion_proofs(size: int, data: st.DataObject) -> None:
    """Right ones that were changed: another index or size, a hash more, less, swapped or altered."""
    index = data.draw(st.integers(0, size - 1))
    path = _changed(TREE.path(index, 0, size), data)
    said_index, said_size = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 41))
    leaf, root = LEAVES[32 * index : 32 * index + 32], TREE.mth(0, size)
    for one, of in ((index, size), (said_index, size), (index, said_size)):
        right = one < of and reference.root_of_path(leaf, one, of, path) == root
        assert _accepts(tlog.check_inclusion, leaf, one, of, path, root) is right


@given(size=st.integers(2, 40), data=st.data())
@settings(max_examples=300, deadline=None)
def test_both_refuse_the_same_consistency_proofs(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, size))
    proof = _changed(TREE.proof(old, size), data)
    old_root, root = TREE.mth(0, old), TREE.mth(0, size)
    said_old, said_size = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 41))
    for one, of in ((old, size), (said_old, size), (old, said_size)):
        found = reference.roots_of_proof(one, of, proof, old_root) if one <= of else None
        right = found == (old_root, root)
        assert _accepts(tlog.check_consistency, one, of, proof, old_root, root) is right


def _changed(path: list[bytes], data: st.DataObject) -> list[bytes]:
    match data.draw(st.sampled_from(["", "more", "less", "swap", "alter"])):
        case "more":
            at = data.draw(st.integers(0, len(path)))
            return [*path[:at], data.draw(hashes), *path[at:]]
        case "less" if path:
            return path[:-1]
        case "swap" if len(path) > 1:
            return [path[1], path[0], *path[2:]]
        case "alter" if path:
            at = data.draw(st.integers(0, len(path) - 1))
            return [*path[:at], data.draw(hashes), *path[at + 1 :]]
        case _:
            return path


def _accepts(check, *arguments: object) -> bool:
    try:
        check(*arguments)
    except ProofInvalid:
        return False
    return True


names = st.text(st.sampled_from("abc012.-_"), min_size=1, max_size=30).filter(
    lambda name: name not in (".", "..")
)


@given(
    name=names,
    others=st.lists(names, max_size=3),
    size=st.integers(1, 2**63 - 1),
    root=st.binary(min_size=32, max_size=32),
    seed=st.binary(min_size=32, max_size=32),
)
@settings(max_examples=60, deadline=None)
def test_notes_are_read_alike(
    name: str, others: list[str], size: int, root: bytes, seed: bytes
) -> None:
    keys = [SigningKey.generate(one, entropy=lambda n: seed[:n]) for one in [name, *others]]
    origin = sidefile.signed_origin(name, bytes(16))
    data = note.sign(note.Checkpoint(origin, size, root).text, keys)
    found = reference.read_note(data)
    assert (found.origin, found.size, found.root) == (origin, size, root)
    assert all(reference.signed_by(found, key.verifier.encode()) for key in keys)
    parsed = note.parse_note(data)
    assert parsed.text == found.text
    lines = [(line.name, line.key_id, line.signature) for line in parsed.signatures]
    assert lines == found.signatures
    stranger = SigningKey.generate(name, entropy=bytes).verifier
    if stranger.key_id != keys[0].key_id:
        assert not reference.signed_by(found, stranger.encode())


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A proof of each event of a run, under its last checkpoint."""
    run = tmp_path_factory.mktemp("run") / "run"
    kept = record(run, seal=True)
    with LedgerView.open(run) as view:
        return [inclusion(view, seq, kept) for seq in range(view.size)]


def test_proof_files_prove_the_same_to_both(proofs: list[bytes]) -> None:
    trust = checking.Trust([LAB.verifier])
    for seq, data in enumerate(proofs):
        entry = checking.check_event(parse_inclusion(data), trust).entry
        assert reference.proves(data, LAB.verifier.encode()) == (entry.head, entry.body)
        assert entry.header.seq == seq
    assert len(proofs) > 20
