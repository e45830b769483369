"""Proofs of one event: C2SP tlog-proof against foreign vectors, and made from ledgers."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import LedgerView, sidefile
from ledger.errors import ProofInvalid, RunNotFound
from ledger.proof.inclusion import (
    Inclusion,
    format_inclusion,
    inclusion,
    pack_entry,
    parse_inclusion,
    unpack_entry,
)
from tests.signed_ledgers import make, notes

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "proof.json").read_bytes())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("inclusion") / "r")


@pytest.mark.parametrize("case", VECTORS["tlog_proofs"], ids=lambda case: case["what"])
def test_proofs_of_other_logs_are_read_and_written_byte_for_byte(case):
    data = case["tlog_proof"].encode()
    proof = parse_inclusion(data)
    assert format_inclusion(proof) == data
    assert data.endswith(proof.note)


def test_extra_data_may_be_absent_empty_or_any_bytes():
    found = {
        case["what"]: parse_inclusion(case["tlog_proof"].encode()).extra
        for case in VECTORS["tlog_proofs"]
    }
    assert found["entry 0"] is None
    assert found["entry 2 with empty extra data"] == b""
    assert found["entry 11 with extra data"] == b"extra \x00 bytes"


def test_a_proof_is_for_exactly_the_size_of_its_checkpoint(run):
    for note in notes(run):
        size = sidefile.parse(note).checkpoint.size
        with LedgerView.open(run) as view:
            for seq in (0, size // 2, size - 1):
                proof = parse_inclusion(inclusion(view, seq, note))
                assert proof.index == seq
                assert proof.path == view.prove(seq, size).path
                assert proof.note == note


def test_a_proof_reads_as_the_specification_spells_it(run):
    note = notes(run)[0]
    with LedgerView.open(run) as view:
        head, body = view.raw(1)
        first = view.prove(1, 3).path
        data = inclusion(view, 1, note)
    extra = b64encode(len(head).to_bytes(2, "big") + head + body)
    hashes = b"".join(b64encode(one) + b"\n" for one in first)
    assert data == (
        b"c2sp.org/tlog-proof@v1\nextra " + extra + b"\nindex 1\n" + hashes + b"\n" + note
    )


def test_what_is_packed_is_the_event_itself(run):
    with LedgerView.open(run) as view:
        head, body = view.raw(5)
        entry = unpack_entry(parse_inclusion(inclusion(view, 5, notes(run)[-1])).extra)
    assert (entry.head, entry.body, entry.header.seq) == (head, body, 5)


def test_a_header_without_its_body_is_an_entry(run):
    with LedgerView.open(run) as view:
        head, _ = view.raw(5)
    assert unpack_entry(pack_entry(head, None)).body is None


@pytest.mark.parametrize("change", [b"x", b"xy"])
def test_a_body_of_another_length_is_refused(run, change):
    with LedgerView.open(run) as view:
        head, body = view.raw(5)
    with pytest.raises(ProofInvalid, match="body"):
        unpack_entry(pack_entry(head, body + change))


def test_the_body_of_another_event_is_refused(run):
    with LedgerView.open(run) as view:
        head, _ = view.raw(5)
        _, body = view.raw(6)
    with pytest.raises(ProofInvalid, match="body"):
        unpack_entry(pack_entry(head, body))


@pytest.mark.parametrize("extra", [b"", b"\x00", b"\x00\x62" + bytes(97), b"\x00\x03abc"])
def test_what_holds_no_header_is_no_event(extra):
    with pytest.raises(ProofInvalid):
        unpack_entry(extra)


def test_an_event_behind_the_checkpoint_has_no_proof(run):
    first = notes(run)[0]
    size = sidefile.parse(first).checkpoint.size
    with LedgerView.open(run) as view, pytest.raises(RunNotFound):
        inclusion(view, size, first)


def test_a_checkpoint_of_another_ledger_proves_nothing_here(run):
    foreign = notes(run)[0].replace(b"acl/lab.example/0", b"acl/lab.example/1")
    with LedgerView.open(run) as view, pytest.raises(ProofInvalid, match="another log"):
        inclusion(view, 0, foreign)


def test_a_checkpoint_of_another_history_proves_nothing_here(run, tmp_path):
    other = make(tmp_path / "o", answer="43")
    with LedgerView.open(run) as view, pytest.raises(ProofInvalid, match="another root"):
        inclusion(view, 0, notes(other)[-1])


def test_a_proof_under_nobodys_signature_says_so_in_its_first_line(tmp_path):
    bare = make(tmp_path / "u", signers=())
    with LedgerView.open(bare) as view:
        data = inclusion(view, 4, notes(bare)[-1])
    assert data.startswith(b"acl/unsigned-proof@v1\n")
    assert format_inclusion(parse_inclusion(data)) == data
    with pytest.raises(ProofInvalid):
        parse_inclusion(data.replace(b"acl/unsigned-proof@v1", b"c2sp.org/tlog-proof@v1"))


def test_a_signed_proof_cannot_pass_for_an_unsigned_one(run):
    with LedgerView.open(run) as view:
        data = inclusion(view, 4, notes(run)[-1])
    with pytest.raises(ProofInvalid):
        parse_inclusion(data.replace(b"c2sp.org/tlog-proof@v1", b"acl/unsigned-proof@v1"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"index 4\n", b"index 04\n"),
        (b"index 4\n", b"index +4\n"),
        (b"index 4\n", b"index 4 \n"),
        (b"index 4\n", b"Index 4\n"),
        (b"index 4\n", "index ٤\n".encode()),
        (b"index 4\n", b"index 99999999999999999999\n"),
        (b"index 4\n", b""),
        (b"index 4\n", b"index 4\nindex 4\n"),
        (b"\nextra ", b"\nextra  "),
        (b"\nextra ", b"\nmore x\nextra "),
        (b"\n\nacl/", b"\nacl/"),
        (b"\n\nacl/", b"\n\n\nacl/"),
        (b"=\n\nacl/", b"\n\nacl/"),
        (b"\n", b"\r\n"),
    ],
)
def test_another_spelling_is_refused(run, old, new):
    with LedgerView.open(run) as view:
        data = inclusion(view, 4, notes(run)[-1])
    assert old in data
    with pytest.raises(ProofInvalid):
        parse_inclusion(data.replace(old, new))


def test_a_path_longer_than_any_is_refused_before_it_is_followed():
    note = VECTORS["checkpoints"][-1]["signed"].encode()
    with pytest.raises(ProofInvalid, match="longer"):
        parse_inclusion(format_inclusion(Inclusion(0, (bytes(32),) * 65, note)))


@settings(max_examples=50)
@given(
    st.integers(0, 2**63 - 1),
    st.lists(st.binary(min_size=32, max_size=32), max_size=8),
    st.none() | st.binary(max_size=64),
)
def test_what_is_written_is_read_back(index, path, extra):
    note = VECTORS["checkpoints"][-1]["signed"].encode()
    proof = Inclusion(index, tuple(path), note, extra)
    assert parse_inclusion(format_inclusion(proof)) == proof
