"""What proofs prove to somebody with keys and no ledger, and what they can be turned into."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import LedgerView, note, sidefile
from ledger.codec import Header
from ledger.errors import AclError, IntegrityError, ProofInvalid, VersionUnsupported
from ledger.keys import LogKey, SigningKey, WitnessKey
from ledger.policy import parse_policy
from ledger.proof import (
    consistency,
    fork,
    format_fork,
    format_inclusion,
    inclusion,
    pack_entry,
    parse_consistency,
    parse_fork,
    parse_inclusion,
)
from ledger.proof.checking import (
    NOBODY,
    Trust,
    check_consistency,
    check_entry,
    check_event,
    check_fork,
    compare,
)
from ledger.proof.history import Fork
from ledger.proof.inclusion import Inclusion
from ledger.tlog import leaf_hash, prove_inclusion, root_of, subtrees
from tests.signed_ledgers import LAB, OTHER, SAME_NAME, WITNESS, make, notes

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "proof.json").read_bytes())
LOG = LogKey.parse(VECTORS["log_key"]["vkey"])
THEIR_WITNESS = WitnessKey.parse(VECTORS["witness_key"]["vkey"])
TRUST = Trust([LAB.verifier])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("checking") / "r")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return make(tmp_path_factory.mktemp("checking") / "o", answer="43")


def proof_of(run, seq, at=-1):
    with LedgerView.open(run) as view:
        return inclusion(view, seq, notes(run)[at])


def cosigned(data, *witnesses, time=1_700_000_000):
    signed = note.parse_note(data)
    lines = [
        note.Signature(one.name, one.key_id, one.cosign(signed.text, time)) for one in witnesses
    ]
    return note.format_note(note.SignedNote(signed.text, (*signed.signatures, *lines)))


# -- foreign proofs -------------------------------------------------------------------------------


@pytest.mark.parametrize("case", VECTORS["tlog_proofs"], ids=lambda case: case["what"])
def test_proofs_of_other_logs_hold_for_their_entries(case):
    proof = parse_inclusion(case["tlog_proof"].encode())
    held = check_entry(bytes.fromhex(case["entry_hex"]), proof, Trust([LOG, THEIR_WITNESS]))
    assert held.index == proof.index
    assert LOG in held.signers
    assert (THEIR_WITNESS in held.signers) == ("witness.example" in case["tlog_proof"])


@pytest.mark.parametrize("case", VECTORS["must_reject"], ids=lambda case: case["why"])
def test_proofs_that_must_be_rejected_are(case):
    trust, entry = Trust([LOG, THEIR_WITNESS]), bytes.fromhex(case["entry_hex"])
    with pytest.raises(ProofInvalid):
        check_entry(entry, parse_inclusion(case["input"].encode()), trust)


def test_there_are_as_many_foreign_cases_as_were_copied():
    assert len(VECTORS["tlog_proofs"]) == 5
    assert len(VECTORS["must_reject"]) == 19


# -- events ---------------------------------------------------------------------------------------


def test_each_event_of_a_ledger_is_proven_under_each_checkpoint_that_covers_it(run):
    with LedgerView.open(run) as view:
        for data in notes(run):
            size = sidefile.parse(data).checkpoint.size
            for seq in range(size):
                held = check_event(parse_inclusion(inclusion(view, seq, data)), TRUST)
                assert (held.entry.head, held.entry.body) == view.raw(seq)
                assert held.checkpoint.size == size
                assert held.signers == (LAB.verifier,)


def test_without_a_key_nothing_is_said_of_who_signed(run):
    assert check_event(parse_inclusion(proof_of(run, 5))).signers == ()


@pytest.mark.parametrize("key", [OTHER, SAME_NAME], ids=["another", "another of the same name"])
def test_another_key_is_not_who_signed(run, key):
    with pytest.raises(ProofInvalid, match="no known key"):
        check_event(parse_inclusion(proof_of(run, 5)), Trust([key.verifier]))


def test_nobodys_checkpoint_is_not_signed_by_anybody(tmp_path):
    bare = make(tmp_path / "u", signers=())
    proof = parse_inclusion(proof_of(bare, 5))
    assert check_event(proof).signers == ()
    with pytest.raises(ProofInvalid, match="nobody signed"):
        check_event(proof, TRUST)


def test_several_signers_are_all_told(tmp_path):
    both = make(tmp_path / "b", signers=(LAB, OTHER))
    keys = Trust([OTHER.verifier, LAB.verifier])
    assert set(check_event(parse_inclusion(proof_of(both, 5)), keys).signers) == {
        LAB.verifier,
        OTHER.verifier,
    }


def test_a_second_signer_alone_does_not_vouch_for_the_name_of_the_first(tmp_path):
    both = make(tmp_path / "b", signers=(LAB, OTHER))
    with pytest.raises(ProofInvalid, match="another log"):
        check_event(parse_inclusion(proof_of(both, 5)), Trust([OTHER.verifier]))


def test_a_witness_alone_is_not_the_log(run):
    data = proof_of(run, 5)
    signed = cosigned(notes(run)[-1], WITNESS)
    with_witness = data.replace(notes(run)[-1], signed)
    with pytest.raises(ProofInvalid, match="only witnesses"):
        check_event(parse_inclusion(with_witness), Trust([WITNESS.verifier]))
    both = Trust([LAB.verifier, WITNESS.verifier])
    assert len(check_event(parse_inclusion(with_witness), both).signers) == 2


def test_a_policy_is_asked(run):
    trust = policy()
    data = proof_of(run, 5)
    with pytest.raises(ProofInvalid, match="policy is not met"):
        check_event(parse_inclusion(data), trust)
    signed = data.replace(notes(run)[-1], cosigned(notes(run)[-1], WITNESS))
    assert len(check_event(parse_inclusion(signed), trust).signers) == 2


def test_the_proof_of_one_event_does_not_prove_another(run):
    """Whatever is taken from another proof: the event, the index, the path or the checkpoint."""
    with LedgerView.open(run) as view:
        proofs = [
            parse_inclusion(inclusion(view, seq, data))
            for data in notes(run)[1:]
            for seq in (3, 4, 5)
        ]
    for one in proofs:
        for two in proofs:
            for mixed in (
                Inclusion(one.index, one.path, one.note, two.extra),
                Inclusion(two.index, one.path, one.note, one.extra),
                Inclusion(two.index, one.path, one.note, two.extra),
                Inclusion(one.index, two.path, one.note, one.extra),
                Inclusion(one.index, one.path, two.note, one.extra),
            ):
                if mixed in (one, two):
                    continue
                with pytest.raises(ProofInvalid):
                    check_event(mixed, TRUST)


def test_an_event_does_not_pass_for_one_of_another_ledger(run):
    """A log of somebody's own that holds a foreign header: its key cannot vouch for its ledger."""
    with LedgerView.open(run) as view:
        head, body = view.raw(0)
    origin = f"acl/{OTHER.name}/{'ab' * 16}"
    own = note.sign(note.Checkpoint(origin, 1, leaf_hash(head)).text, [OTHER])
    proof = Inclusion(0, (), own, pack_entry(head, body))
    with pytest.raises(ProofInvalid, match="ledger"):
        check_event(proof, Trust([OTHER.verifier]))


def test_a_key_whose_name_imitates_an_origin_does_not_vouch_for_that_ledger(run):
    """Its own name is the origin of a ledger of another key, whose line stands beside, unchecked."""
    origin = sidefile.parse(notes(run)[-1]).checkpoint.origin
    imitator = SigningKey(origin, bytes(range(128, 160)))
    signed = note.parse_note(notes(run)[-1])
    line = note.Signature(imitator.name, imitator.key_id, imitator.sign(signed.text))
    forged = note.format_note(note.SignedNote(signed.text, (*signed.signatures, line)))
    proof = parse_inclusion(proof_of(run, 5).replace(notes(run)[-1], forged))
    with pytest.raises(ProofInvalid, match="another log"):
        check_event(proof, Trust([imitator.verifier]))


def test_an_event_does_not_pass_for_one_at_another_place(run):
    """The same header once more, at an index that it does not name."""
    with LedgerView.open(run) as view:
        head, body = view.raw(0)
    origin = sidefile.parse(notes(run)[0]).checkpoint.origin
    leaves = leaf_hash(head) * 2
    forged = note.sign(note.Checkpoint(origin, 2, root_of(leaves)).text, [LAB])
    path = prove_inclusion(1, 2, subtrees(leaves)).path
    with pytest.raises(ProofInvalid, match="event 0"):
        check_event(Inclusion(1, path, forged, pack_entry(head, body)), TRUST)


def test_an_event_of_a_newer_release_is_told_as_that(run):
    with LedgerView.open(run) as view:
        head, body = view.raw(0)
    newer = head[:2] + b"\xff\xff" + head[4:]
    origin = sidefile.parse(notes(run)[0]).checkpoint.origin
    signed = note.sign(note.Checkpoint(origin, 1, leaf_hash(newer)).text, [LAB])
    with pytest.raises(VersionUnsupported):
        check_event(Inclusion(0, (), signed, pack_entry(newer, body)), TRUST)


@pytest.mark.parametrize(
    "spelling",
    [
        b'{"author":"a", "salt":"%s","text":"t","v":1}',
        b'{"text":"t","author":"a","salt":"%s","v":1}',
        b'{"author":"a","author":"b","salt":"%s","text":"t","v":1}',
        b'{"author":"\\u0061","salt":"%s","text":"t","v":1}',
    ],
)
def test_a_body_that_readers_could_take_for_two_is_no_event(spelling):
    """A log that signs one spelling and shows another meaning to somebody else's parser."""
    body = spelling % (b"0" * 32)
    header = Header(
        code=81,
        copied=False,
        ledger_id=bytes(16),
        seq=0,
        wall_ns=0,
        mono_ns=0,
        session=0,
        lease=1,
        attempt=None,
        body_length=len(body),
        address=hashlib.sha256(body).digest(),
        task=None,
    )
    head = header.encode()
    origin = sidefile.signed_origin(LAB.name, bytes(16))
    signed = note.sign(note.Checkpoint(origin, 1, leaf_hash(head)).text, [LAB])
    with pytest.raises(ProofInvalid, match="spelled"):
        check_event(Inclusion(0, (), signed, pack_entry(head, body)), TRUST)


def test_a_proof_without_an_event_proves_none():
    proof = parse_inclusion(VECTORS["tlog_proofs"][0]["tlog_proof"].encode())
    with pytest.raises(ProofInvalid, match="brings no event"):
        check_event(proof)


# -- mutations ------------------------------------------------------------------------------------


def outcome(check, data, trust):
    try:
        return check(data, trust)
    except IntegrityError:
        return None


def event_in(data, trust):
    return check_event(parse_inclusion(data), trust)


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80])
def test_no_byte_of_a_proof_can_be_changed(run, flip):
    data = proof_of(run, 7)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
        assert outcome(event_in, changed, TRUST) is None, at


def test_without_a_key_a_changed_proof_shows_no_other_event_and_no_other_root(run):
    """The number of events is another matter: trees of several sizes share a path."""
    data = proof_of(run, 7)
    before = event_in(data, NOBODY)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        after = outcome(event_in, changed, NOBODY)
        if after is not None:
            assert after.entry == before.entry, at
            assert after.checkpoint.root == before.checkpoint.root, at


@pytest.mark.parametrize("kind", ["event", "consistency", "fork"])
def test_no_line_of_a_proof_can_be_dropped_doubled_or_moved(run, other, kind):
    check, data = {
        "event": (event_in, proof_of(run, 7)),
        "consistency": (extension_in, extension(run)),
        "fork": (fork_in, report(run, other)),
    }[kind]
    lines = data.splitlines(keepends=True)
    before = check(data, TRUST)
    for at, line in enumerate(lines):
        swapped = [*lines[:at], *lines[at + 1 : at + 2], line, *lines[at + 2 :]]
        for changed in (lines[:at] + lines[at + 1 :], [*lines[:at], line, *lines[at:]], swapped):
            # A signature may stand twice, as in any note; then the same is proven by it.
            is_signature = line.startswith("— ".encode())
            after = outcome(check, b"".join(changed), TRUST)
            assert changed == lines or after is None or (is_signature and after == before), line


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_edits_of_a_proof_are_refused(run, data):
    original = proof_of_seven(run)
    start = data.draw(st.integers(0, len(original)))
    end = data.draw(st.integers(start, min(len(original), start + 40)))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    if changed != original:
        assert outcome(event_in, changed, TRUST) is None


_CACHE = {}


def proof_of_seven(run):
    if run not in _CACHE:
        _CACHE[run] = proof_of(run, 7)
    return _CACHE[run]


# -- histories ------------------------------------------------------------------------------------


def extension(run, old=0, new=-1):
    with LedgerView.open(run) as view:
        return consistency(view, notes(run)[old], notes(run)[new])


def extension_in(data, trust):
    return check_consistency(parse_consistency(data), trust)


def report(run, other, old=1, new=-1):
    with LedgerView.open(run) as view:
        return fork(view, notes(other)[old], notes(run)[new])


def fork_in(data, trust):
    return check_fork(parse_fork(data), trust)


def test_an_extension_is_proven_to_who_has_the_key(run):
    held = extension_in(extension(run), TRUST)
    assert held.both == (LAB.verifier,)
    assert held.old.size < held.new.size
    assert extension_in(extension(run), NOBODY).both == ()


def test_an_extension_under_another_key_is_refused(run):
    with pytest.raises(ProofInvalid, match="no known key"):
        extension_in(extension(run), Trust([SAME_NAME.verifier]))


def test_no_byte_of_an_extension_can_be_changed(run):
    data = extension(run)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert outcome(extension_in, changed, TRUST) is None, at


def test_a_history_that_was_replaced_cannot_be_proven_to_be_an_extension(run, other):
    """The path of one history, between the checkpoints of two."""
    proof = parse_consistency(extension(run, 1))
    for old, new in ((notes(other)[1], proof.new), (proof.old, notes(other)[-1])):
        with pytest.raises(ProofInvalid):
            check_consistency(type(proof)(old, new, proof.path), TRUST)


@pytest.mark.parametrize("old", [1, 2, 3])
def test_a_fork_is_proven_to_a_third_party_by_the_key_alone(run, other, old):
    held = fork_in(report(run, other, old), TRUST)
    assert held.both == (LAB.verifier,)
    assert held.root != held.old.root


def test_a_fork_that_two_keys_signed_is_blamed_on_neither_alone(run, tmp_path):
    theirs = make(tmp_path / "o", answer="43", signers=(OTHER,))
    held = fork_in(report(run, theirs), Trust([LAB.verifier, OTHER.verifier]))
    assert held.both == ()
    assert held.old_signers == (OTHER.verifier,)
    assert held.new_signers == (LAB.verifier,)


def test_a_fork_cannot_be_blamed_on_a_key_that_signed_one_side(run, tmp_path):
    theirs = make(tmp_path / "o", answer="43", signers=(SAME_NAME,))
    with pytest.raises(ProofInvalid):
        fork_in(report(run, theirs), TRUST)


def policy():
    lines = [f"log {LAB.verifier.encode()}", f"witness w {WITNESS.verifier.encode()}", "quorum w"]
    return Trust(policy=parse_policy("\n".join([*lines, ""]).encode()))


def test_the_quorum_is_asked_of_the_newer_checkpoint_of_an_extension(run):
    data = extension(run)
    with pytest.raises(ProofInvalid, match="policy is not met"):
        extension_in(data, policy())
    new = notes(run)[-1]
    assert extension_in(data.replace(new, cosigned(new, WITNESS)), policy()).both


def test_a_fork_is_one_without_any_witness(run, other):
    assert fork_in(report(run, other), policy()).both == (LAB.verifier,)


def test_an_honest_log_cannot_be_accused(run):
    """Two checkpoints of one history, with any root and path that the accuser likes."""
    with LedgerView.open(run) as view:
        old, new = notes(run)[1], notes(run)[-1]
        first = sidefile.parse(old).checkpoint
        path = parse_consistency(consistency(view, old, new)).path
        for root in (first.root, bytes(32), view.root(first.size - 1)):
            with pytest.raises(ProofInvalid):
                check_fork(Fork(old, new, root, path), TRUST)
            with pytest.raises(ProofInvalid):
                fork_in(format_fork(Fork(old, new, root, ())), TRUST)


def test_no_byte_of_a_fork_report_can_be_changed(run, other):
    data = report(run, other)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert outcome(fork_in, changed, TRUST) is None, at


def test_checkpoints_of_two_logs_are_no_history(run, tmp_path):
    proof = parse_consistency(extension(run))
    foreign = proof.new.replace(b"acl/lab.example/0", b"acl/lab.example/1")
    with pytest.raises(ProofInvalid, match="two logs"):
        check_consistency(type(proof)(proof.old, foreign, proof.path))


# -- a checkpoint from elsewhere ------------------------------------------------------------------


def test_a_kept_checkpoint_is_the_same_another_size_or_a_contradiction(run, other):
    own = [sidefile.parse(data).checkpoint for data in notes(run)]
    assert compare(own[1], own[1])
    assert not compare(own[1], own[2])
    with pytest.raises(ProofInvalid, match="another root"):
        compare(own[1], sidefile.parse(notes(other)[1]).checkpoint)
    with pytest.raises(ProofInvalid, match="another log"):
        compare(own[1], note.Checkpoint("log.example", own[1].size, own[1].root))


def test_a_proof_is_written_as_it_was_read(run):
    data = proof_of(run, 7)
    assert format_inclusion(parse_inclusion(data)) == data
    assert issubclass(ProofInvalid, AclError)
