import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canonical import Binary
from runtime.importers.originals import MIN_DIGESTED, original, original_bytes, redact_bytes
from runtime.redact import Redactor

GATE = Redactor({})
SECRET = {"id": "x", "api_key": "abc123", "n": [1.0, None, "Authorization: Bearer abcdefghijkl"]}


def keep(path: str, data: bytes, gate=GATE):
    return original(path, data, hashlib.sha256(data).digest(), gate)


@pytest.mark.parametrize(
    "data", [b"", b"plain text\r\n\x00", b'{"a":1}', b"\xff\xfe\x00", "é\n".encode(), b"{broken"]
)
def test_a_file_without_secrets_is_kept_byte_for_byte(data):
    event = keep("f", data)
    assert original_bytes(event.content) == data
    assert event.bytes == len(data)
    assert event.redactions is None


def test_utf8_is_held_as_text_and_other_bytes_as_binary():
    assert keep("f", "é".encode()).content == "é"
    assert keep("f", b"\xff").content == Binary(b"\xff")


def test_the_digest_is_told_from_one_kibibyte_on():
    assert keep("f", b"x" * (MIN_DIGESTED - 1)).sha256 is None
    data = b"x" * MIN_DIGESTED
    assert keep("f", data).sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("end", ["", "\n"])
def test_redacted_json_keeps_the_layout_of_its_writer(indent, ascii_only, end):
    def write(value):
        return (json.dumps(value, indent=indent, ensure_ascii=ascii_only) + end).encode()

    kept, count = redact_bytes("f.json", write(SECRET | {"é": "ü"}), GATE)
    assert count == 2
    clean = {"id": "x", "api_key": "********", "n": [1.0, None, "Authorization: Bearer ********"]}
    assert kept == write(clean | {"é": "ü"})


def test_json_of_an_unknown_writer_is_redacted_too():
    kept, count = redact_bytes("f.json", b'{ "api_key" :"abc123" }', GATE)
    assert (b"abc123" in kept, count) == (False, 1)


def test_a_key_hidden_by_an_escape_is_found():
    data = json.dumps({"log": "\nsk-live-0123456789abcdef"}).encode()
    assert b"0123456789abcdef" not in redact_bytes("f.json", data, GATE)[0]


def test_each_line_of_a_jsonl_file_is_a_value_of_its_own():
    lines = [json.dumps(SECRET), '{"torn": {"password": "hun', "", json.dumps({"a": 1})]
    kept, count = redact_bytes("f.jsonl", "\n".join(lines).encode(), GATE)
    after = kept.decode().split("\n")
    assert json.loads(after[0])["api_key"] == "********"
    assert "hun" not in after[1]
    assert after[2:] == lines[2:]
    assert count == 3


def test_a_secret_in_bytes_that_are_no_text_is_replaced_and_the_rest_stays():
    kept, count = redact_bytes("f.bin", b"\xff\x00password=hunter2\n\xfe", GATE)
    assert kept == b"\xff\x00password=********\n\xfe"
    assert count == 1


def test_without_a_gate_the_bytes_are_stored_whatever_they_hold():
    data = b"password=hunter2"
    event = keep("f", data, gate=None)
    assert event.content == Binary(data)
    assert event.redactions is None


@settings(max_examples=60)
@given(st.binary(max_size=300), st.sampled_from(["f.json", "f.jsonl", "f.log"]))
def test_redacting_again_changes_nothing(data, name):
    once, _ = redact_bytes(name, b"token=abcdef0123\n" + data, GATE)
    assert redact_bytes(name, once, GATE) == (once, 0)
