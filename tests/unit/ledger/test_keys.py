"""Keys against foreign vectors: what they sign, what they refuse, what they never say."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import note
from ledger.errors import KeyRefused, ProofInvalid
from ledger.keys import CosigningKey, LogKey, SigningKey, WitnessKey, open_note, parse_verifier

DATA = Path(__file__).parents[2] / "data" / "vectors"
KEYS = json.loads((DATA / "keys.json").read_bytes())
NOTES = json.loads((DATA / "note.json").read_bytes())
LOG = SigningKey.parse(KEYS["log_key"]["skey"])
WITNESS = CosigningKey(
    KEYS["witness_key"]["name"], bytes.fromhex(KEYS["witness_key"]["ed25519_seed_hex"])
)


def why(case):
    return case["why"]


def test_a_signing_key_has_the_public_key_of_the_vectors_and_is_written_as_it_was_read():
    assert LOG.verifier.encode() == KEYS["log_key"]["vkey"]
    assert LOG.key_id.hex() == KEYS["log_key"]["key_id_hex"]
    assert LOG.encode() == KEYS["log_key"]["skey"]
    assert WITNESS.verifier.encode() == KEYS["witness_key"]["vkey"]
    assert CosigningKey.parse(WITNESS.encode()) == WITNESS


@pytest.mark.parametrize("case", KEYS["must_reject"], ids=why)
def test_keys_that_are_weak_or_malformed_are_refused(case):
    with pytest.raises(KeyRefused):
        LogKey.parse(case["input"])


@pytest.mark.parametrize(
    "case", [c for c in KEYS["must_reject"] if "order" in c["why"] or "2^255" in c["why"]], ids=why
)
def test_a_witness_with_a_weak_key_is_refused_too(case):
    key = note.decode_base64(case["input"].rpartition("+")[2].encode())
    with pytest.raises(KeyRefused, match="weak"):
        WitnessKey("w.example/weak", key[1:])


@pytest.mark.parametrize("case", NOTES["notes"], ids=lambda case: case["text"][:8])
def test_a_text_is_signed_as_the_vectors_say(case):
    assert LOG.sign(case["text"].encode()).hex() == case["raw_signature_hex"]
    assert note.sign(case["text"].encode(), [LOG]) == case["signed"].encode()


@pytest.mark.parametrize("case", NOTES["checkpoints"], ids=lambda case: str(case["size"]))
def test_a_checkpoint_is_cosigned_as_the_vectors_say(case):
    signed, who = open_note(case["cosigned"].encode(), [LOG.verifier, WITNESS.verifier])
    assert who == (LOG.verifier, WITNESS.verifier)
    line = signed.signatures[1]
    time = WITNESS.verifier.time_of(line.signature)
    assert time is not None
    assert WITNESS.cosign(case["text"].encode(), time) == line.signature
    assert LOG.verifier.time_of(signed.signatures[0].signature) is None


@pytest.mark.parametrize("case", NOTES["must_accept"], ids=why)
def test_good_checkpoints_are_opened_and_cosigners_counted_once(case):
    _, who = open_note(case["checkpoint"].encode(), [LOG.verifier, WITNESS.verifier])
    assert LOG.verifier in who
    assert len(who) - 1 == case["known_cosignatures"]


@pytest.mark.parametrize("case", NOTES["must_reject"], ids=why)
def test_bad_checkpoints_are_refused_by_whoever_has_the_key_of_the_log(case):
    def opened():
        signed, _ = open_note(case["input"].encode(), [LOG.verifier])
        return note.parse_checkpoint(signed.text)

    if case["why"] == "origin of another log, signed by the same key":
        # A key may sign for many logs: whoever asks for one compares the origin.
        assert opened().origin != KEYS["log_key"]["name"]
    else:
        with pytest.raises(ProofInvalid):
            opened()


def test_a_false_line_of_a_known_key_spoils_the_note_even_beside_a_good_one():
    text = b"a text\n"
    good, bad = LOG.sign(text), LOG.sign(b"another\n")
    lines = [note.Signature(LOG.name, LOG.key_id, one) for one in (good, bad)]
    with pytest.raises(ProofInvalid, match="is not"):
        open_note(note.format_note(note.SignedNote(text, tuple(lines))), [LOG.verifier])


def test_a_log_key_and_a_witness_key_of_one_seed_do_not_stand_for_each_other():
    text = note.format_checkpoint(note.Checkpoint("acl/k/0", 1, bytes(32)))
    log, witness = SigningKey("k", bytes(32)), CosigningKey("k", bytes(32))
    assert log.key_id != witness.key_id
    assert not log.verifier.verify(text, witness.cosign(text, 1)[8:])
    assert not witness.verifier.verify(text, bytes(8) + log.sign(text))


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.integers(0, 2**63 - 1))
@settings(max_examples=50, deadline=None)
def test_what_a_key_signs_it_verifies_and_nothing_else(seed, text, time):
    log, witness = SigningKey("a/b", seed), CosigningKey("A-b.c", seed)
    assert log.verifier.verify(text, log.sign(text))
    assert not log.verifier.verify(text + b"x", log.sign(text))
    assert witness.verifier.verify(text, witness.cosign(text, time))
    assert witness.verifier.time_of(witness.cosign(text, time)) == time
    assert not witness.verifier.verify(text, witness.cosign(text, time ^ 1)[:8] + bytes(64))


def test_the_time_of_a_cosignature_is_signed():
    witness = CosigningKey("w", bytes(32))
    signature = witness.cosign(b"text\n", 7)
    assert not witness.verifier.verify(b"text\n", (8).to_bytes(8, "big") + signature[8:])


@pytest.mark.parametrize(
    "name", ["", "A", "a b", "a+b", "unsigned", "ä", "a//b", "/a", "a/", "a" * 201, "a\n", "a@b"]
)
def test_names_that_would_give_two_spellings_of_one_origin_are_refused(name):
    with pytest.raises(KeyRefused):
        SigningKey.generate(name)


@pytest.mark.parametrize("name", [".", "..", "../a", "a/..", "a/./b", "a/../b"])
def test_names_with_a_part_that_leads_elsewhere_in_a_path_are_refused(name):
    with pytest.raises(KeyRefused, match="cannot name a signing key"):
        SigningKey.generate(name)


@pytest.mark.parametrize("name", ["...", ".a", "a.", "..a/b..", "lab.example/e.v-al_1"])
def test_dots_within_a_part_are_a_name(name):
    assert SigningKey.parse(SigningKey.generate(name).encode()).name == name


def test_no_message_and_no_representation_quotes_a_secret():
    key = SigningKey.generate("lab")
    secret = key.encode()
    assert secret not in repr(key)
    assert key.seed.hex() not in repr(key)
    for parse in (LogKey.parse, parse_verifier, CosigningKey.parse):
        for spoiled in (secret, secret[:-1], secret.replace("PRIVATE", "PRIVATF")):
            with pytest.raises(KeyRefused) as refused:
                parse(spoiled)
            assert secret.rpartition("+")[2][:8] not in str(refused.value)


def test_a_verifier_key_is_read_with_a_line_end_and_by_its_type():
    assert parse_verifier(KEYS["log_key"]["vkey"] + "\n") == LOG.verifier
    assert parse_verifier(KEYS["witness_key"]["vkey"]) == WITNESS.verifier


@pytest.mark.parametrize("text", ["\udcff+62c543a6+ATtq", "PRIVATE+KEY+\udcff+62c543a6+ATtq"])
def test_a_key_in_an_argument_that_is_no_utf_8_is_refused(text: str) -> None:
    public = b64encode(b"\1" + bytes(range(32))).decode()
    for parse in (parse_verifier, SigningKey.parse):
        with pytest.raises(KeyRefused):
            parse(text.replace("ATtq", public))
