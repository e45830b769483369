"""Notes and checkpoints against foreign vectors, and against what only looks like one."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import ProofInvalid
from ledger.note import (
    Checkpoint,
    Signature,
    SignedNote,
    Signer,
    Verifier,
    format_checkpoint,
    format_note,
    parse_checkpoint,
    parse_note,
    sign,
    unsigned_origin,
    valid_name,
)
from ledger.tlog import EMPTY_ROOT

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "note.json").read_bytes())

# Well-formed, and refused only by a reader who has the log's key and asks for its origin.
NEED_A_KEY = {
    "size changed after signing",
    "signed by a key of the same name that is not trusted",
    "signed only by a known witness",
    "the witness's key used for a plain note signature under the witness's name",
    "origin of another log, signed by the same key",
    "signature of 63 bytes",
    "signature of 65 bytes",
    "a bit of the signature flipped",
}
ROOT = bytes(range(32))
ROOT_LINE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def why(case):
    return case["why"]


def split_cases(*, keyed):
    return [case for case in VECTORS["must_reject"] if (case["why"] in NEED_A_KEY) is keyed]


@pytest.mark.parametrize("case", VECTORS["must_accept"], ids=why)
def test_checkpoints_of_other_logs_are_read_and_written_byte_for_byte(case):
    data = case["checkpoint"].encode()
    note = parse_note(data)
    checkpoint = parse_checkpoint(note.text)
    assert checkpoint.origin == VECTORS["log_key"]["name"]
    assert checkpoint.size == case["size"]
    assert list(checkpoint.extensions) == (case["extension_lines"] or [])
    assert checkpoint.text == note.text
    assert format_note(note) == data


@pytest.mark.parametrize("case", split_cases(keyed=False), ids=why)
def test_malformed_checkpoints_are_refused_without_any_key(case):
    with pytest.raises(ProofInvalid):
        parse_checkpoint(parse_note(case["input"].encode()).text)


@pytest.mark.parametrize("case", split_cases(keyed=True), ids=why)
def test_what_only_a_key_can_refuse_is_read(case):
    data = case["input"].encode()
    assert format_note(parse_note(data)) == data


def test_every_case_that_needs_a_key_is_in_the_vectors():
    assert {case["why"] for case in split_cases(keyed=True)} == NEED_A_KEY
    assert len(split_cases(keyed=False)) >= 30


@pytest.mark.parametrize("case", VECTORS["notes"], ids=lambda case: case["text"][:8])
def test_a_note_gives_the_signed_text_and_the_signature(case):
    note = parse_note(case["signed"].encode())
    assert note.text.decode() == case["text"]
    (line,) = note.signatures
    assert line.name == VECTORS["log_key"]["name"]
    assert line.key_id.hex() == VECTORS["log_key"]["key_id_hex"]
    assert line.signature.hex() == case["raw_signature_hex"]
    assert format_note(note) == case["signed"].encode()


@pytest.mark.parametrize("case", VECTORS["checkpoints"], ids=lambda case: str(case["size"]))
def test_cosigned_checkpoints_keep_every_line(case):
    assert parse_checkpoint(case["text"].encode()).size == case["size"]
    note = parse_note(case["cosigned"].encode())
    assert note.text == case["text"].encode()
    names = [VECTORS["log_key"]["name"], VECTORS["witness_key"]["name"]]
    assert [line.name for line in note.signatures] == names
    assert len(note.signatures[1].signature) == 72


def test_an_unsigned_checkpoint_says_so_in_its_origin():
    origin = unsigned_origin(bytes.fromhex("00112233445566778899aabbccddeeff"))
    checkpoint = Checkpoint(origin, 7, ROOT)
    expected = f"acl/unsigned/00112233445566778899aabbccddeeff\n7\n{ROOT_LINE}\n"
    assert format_checkpoint(checkpoint) == expected.encode()
    assert parse_checkpoint(expected.encode()) == checkpoint


@given(
    st.from_regex(r"\A[a-z0-9._/-]{1,255}\Z"),
    st.integers(1, 2**63 - 1),
    st.binary(min_size=32, max_size=32),
    st.lists(st.from_regex(r"\A[^\x00-\x1f\ud800-\udfff]{1,20}\Z"), max_size=3),
)
@settings(max_examples=80, deadline=None)
def test_checkpoints_come_back_as_they_were_written(origin, size, root, extensions):
    checkpoint = Checkpoint(origin, size, root, tuple(extensions))
    assert parse_checkpoint(format_checkpoint(checkpoint)) == checkpoint


@pytest.mark.parametrize("line", ["9223372036854775808", "9" * 30, "", "٢", "1\u00a0", "1.0", "00"])
def test_sizes_of_another_spelling_or_beyond_63_bits_are_refused(line):
    with pytest.raises(ProofInvalid, match="size"):
        parse_checkpoint(f"a\n{line}\n{ROOT_LINE}\n".encode())


def test_the_largest_size_is_read():
    assert parse_checkpoint(f"a\n{2**63 - 1}\n{ROOT_LINE}\n".encode()).size == 2**63 - 1


@pytest.mark.parametrize(
    "origin", ["", "a b", "a+b", "A", "é", "a\u00e9", "a" * 256, "a:b", "a\x7f"]
)
def test_origins_that_could_be_taken_for_another_are_refused(origin):
    with pytest.raises(ProofInvalid):
        parse_checkpoint(f"{origin}\n1\n{ROOT_LINE}\n".encode())


def test_an_origin_may_have_255_characters():
    assert parse_checkpoint(f"{'a' * 255}\n1\n{ROOT_LINE}\n".encode()).origin == "a" * 255


@pytest.mark.parametrize(
    "checkpoint",
    [
        Checkpoint("a", -1, ROOT),
        Checkpoint("a", 2**63, ROOT),
        Checkpoint("a", 1, ROOT[:31]),
        Checkpoint("a", 0, ROOT),
        Checkpoint("A", 1, ROOT),
        Checkpoint("a\nb", 1, ROOT),
        Checkpoint("a", 1, ROOT, ("",)),
        Checkpoint("a", 1, ROOT, ("x\ny",)),
        Checkpoint("a", 1, ROOT, ("x\ty",)),
        Checkpoint("a", 1, ROOT, ("\ud800",)),
    ],
)
def test_no_checkpoint_is_written_that_would_not_be_read(checkpoint):
    with pytest.raises(ProofInvalid):
        format_checkpoint(checkpoint)


def test_the_empty_tree_has_the_root_of_no_leaves():
    checkpoint = Checkpoint("a", 0, EMPTY_ROOT)
    assert parse_checkpoint(checkpoint.text) == checkpoint


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a\n1\n", b"a\n1", b"\xff\n1\n\n", b"a\r\n1\r\nx\r\n"]
)
def test_what_is_no_checkpoint_is_refused(text):
    with pytest.raises(ProofInvalid):
        parse_checkpoint(text)


LINE = Signature("k", b"\x01\x02\x03\x04", b"s")


def test_signatures_stand_after_the_last_empty_line():
    note = SignedNote("one\n\n\n— k AQIDBHM=\n".encode(), (LINE,))
    assert format_note(note) == "one\n\n\n— k AQIDBHM=\n\n— k AQIDBHM=\n".encode()
    assert parse_note(format_note(note)) == note


@pytest.mark.parametrize(
    "name", ["", "a b", "a+b", "a\u3000b", "a\u00a0b", "a\u0085b", "a\u2028b", "a\u1680b"]
)
def test_names_that_cannot_name_a_key_are_refused(name):
    assert not valid_name(name)
    with pytest.raises(ProofInvalid):
        parse_note(f"t\n\n— {name} AQIDBHM=\n".encode())
    with pytest.raises(ProofInvalid):
        format_note(SignedNote(b"t\n", (Signature(name, LINE.key_id, b"s"),)))


@pytest.mark.parametrize("name", ["a", "é", "acl.example/run/0001", "a\u200bb", "a\u180eb"])
def test_names_without_a_unicode_space_are_read(name):
    note = SignedNote(b"t\n", (Signature(name, LINE.key_id, b"s"),))
    assert valid_name(name)
    assert parse_note(format_note(note)) == note


@pytest.mark.parametrize(
    "block",
    [
        "— k AQIDBA==\n",
        "— k AQIDBHM\n",
        "— k AQIDBHN=\n",
        "— k AQID_HM=\n",
        "— k  AQIDBHM=\n",
        "— k AQIDBHM= \n",
        "— k\n",
        "—k AQIDBHM=\n",
        "— k AQIDBHM=\nk AQIDBHM=\n",
        "— k AQIDBHMé\n",
        "",
    ],
)
def test_malformed_signature_lines_are_refused(block):
    with pytest.raises(ProofInvalid):
        parse_note(f"t\n\n{block}".encode())


@pytest.mark.parametrize("data", [b"", b"t\n", b"\n\n", b"t\x00\n\n", b"\xc3\n\n", b"\n\n\xe2\n"])
def test_what_is_no_note_is_refused(data):
    with pytest.raises(ProofInvalid):
        parse_note(data)


def test_a_note_has_at_most_100_signatures():
    assert len(parse_note(format_note(SignedNote(b"t\n", (LINE,) * 100))).signatures) == 100
    with pytest.raises(ProofInvalid, match="100"):
        format_note(SignedNote(b"t\n", (LINE,) * 101))


@pytest.mark.parametrize(
    "note",
    [
        SignedNote(b"t", (LINE,)),
        SignedNote(b"", (LINE,)),
        SignedNote(b"t\n", ()),
        SignedNote(b"t\n", (Signature("k", b"\x01", b"signature"),)),
        SignedNote(b"t\n", (Signature("k", LINE.key_id, b""),)),
        SignedNote(b"t\n", (Signature("\ud800", LINE.key_id, b"s"),)),
    ],
)
def test_no_note_is_written_that_would_not_be_read(note):
    with pytest.raises(ProofInvalid):
        format_note(note)


class ReversedText:
    """Signs and verifies with no secret at all: shows the shape that keys will have."""

    name = "k"
    key_id = LINE.key_id

    def sign(self, text: bytes) -> bytes:
        return text[::-1]

    def verify(self, text: bytes, signature: bytes) -> bool:
        return text[::-1] == signature


def test_a_signer_and_a_verifier_meet_in_a_note():
    signer: Signer = ReversedText()
    verifier: Verifier = ReversedText()
    text = Checkpoint("acl/k/00", 1, ROOT).text
    line = Signature(signer.name, signer.key_id, signer.sign(text))
    note = parse_note(format_note(SignedNote(text, (line,))))
    assert verifier.verify(note.text, note.signatures[0].signature)
    assert not verifier.verify(note.text + b"x", note.signatures[0].signature)


def test_a_note_is_signed_by_all_its_signers_in_order() -> None:
    class Key:
        def __init__(self, name: str) -> None:
            self.name = name
            self.key_id = name.encode().ljust(4, b".")[:4]

        def sign(self, text: bytes) -> bytes:
            return self.name.encode() + text

    made = parse_note(sign(b"text\n", [Key("one"), Key("two")]))
    assert made.text == b"text\n"
    assert [(line.name, line.signature) for line in made.signatures] == [
        ("one", b"onetext\n"),
        ("two", b"twotext\n"),
    ]
