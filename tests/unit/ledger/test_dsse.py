"""DSSE envelopes, held against another implementation."""

import json
from base64 import b64decode, b64encode, urlsafe_b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import SSlibKey

from ledger import dsse
from ledger.errors import ProofInvalid
from tests.signed_ledgers import LAB, OTHER, SAME_NAME

TYPE = "application/vnd.in-toto+json"


def their_key(key):
    public = key.verifier.public.hex()
    return SSlibKey(dsse.key_hint(key), "ed25519", "ed25519", {"public": public})


def test_the_encoding_is_that_of_the_specification():
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert dsse.pae("", b"") == b"DSSEv1 0  0 "
    assert dsse.pae("é", "é".encode()) == "DSSEv1 2 é 2 é".encode()


@settings(max_examples=30)
@given(st.text(st.characters(codec="utf-8")), st.binary(max_size=200))
def test_another_implementation_encodes_alike(kind, payload):
    assert dsse.pae(kind, payload) == TheirEnvelope(payload, kind, {}).pae()


def test_another_implementation_accepts_an_envelope():
    data = dsse.encode(dsse.sign(TYPE, b"payload", [LAB, OTHER]))
    theirs = TheirEnvelope.from_dict(json.loads(data))
    assert theirs.payload == b"payload"
    accepted = theirs.verify([their_key(LAB), their_key(OTHER)], 2)
    assert set(accepted) == {dsse.key_hint(LAB), dsse.key_hint(OTHER)}


def test_another_implementation_refuses_a_changed_payload():
    document = json.loads(dsse.encode(dsse.sign(TYPE, b"payload", [LAB])))
    document["payload"] = b64encode(b"Payload").decode()
    theirs = TheirEnvelope.from_dict(document)
    with pytest.raises((VerificationError, UnverifiedSignatureError)):
        theirs.verify([their_key(LAB)], 1)


def test_an_envelope_of_another_implementation_is_accepted():
    signature = LAB.sign(dsse.pae(TYPE, b"payload"))
    for encode in (b64encode, urlsafe_b64encode):
        data = json.dumps(
            {
                "payloadType": TYPE,
                "payload": encode(b"payload").decode(),
                "signatures": [
                    {"sig": encode(b"nobody").decode(), "keyid": "x"},
                    {"keyid": dsse.key_hint(LAB), "sig": encode(signature).decode()},
                ],
                "more": 1,
            }
        )
        envelope = dsse.decode(data.encode())
        assert dsse.check(envelope, [LAB.verifier]) == (LAB.verifier,)


def test_all_known_signers_are_told():
    envelope = dsse.sign(TYPE, b"payload", [LAB, OTHER])
    keys = [SAME_NAME.verifier, OTHER.verifier, LAB.verifier]
    assert dsse.check(envelope, keys) == (LAB.verifier, OTHER.verifier)


@pytest.mark.parametrize("key", [OTHER, SAME_NAME])
def test_another_key_signed_nothing(key):
    with pytest.raises(ProofInvalid, match="no known key"):
        dsse.check(dsse.sign(TYPE, b"payload", [LAB]), [key.verifier])


@pytest.mark.parametrize("change", ["type", "payload", "signature", "whose"])
def test_a_changed_envelope_is_refused(change):
    envelope = dsse.sign(TYPE, b"payload", [LAB])
    line = envelope.signatures[0]
    changed = {
        "type": dsse.Envelope("text/plain", b"payload", (line,)),
        "payload": dsse.Envelope(TYPE, b"payload2", (line,)),
        "signature": dsse.Envelope(TYPE, b"payload", (dsse.Signed(line.key, bytes(64)),)),
        "whose": dsse.Envelope(
            TYPE, b"payload", (dsse.Signed(dsse.key_hint(OTHER), line.signature),)
        ),
    }[change]
    with pytest.raises(ProofInvalid):
        dsse.check(changed, [LAB.verifier, OTHER.verifier])


def test_the_signature_of_a_note_is_none_of_an_envelope():
    """The same key signs checkpoints; neither signature passes for the other."""
    text = b"acl/lab.example/00000000000000000000000000000000\n1\nx\n"
    envelope = dsse.Envelope(TYPE, text, (dsse.Signed(dsse.key_hint(LAB), LAB.sign(text)),))
    with pytest.raises(ProofInvalid):
        dsse.check(envelope, [LAB.verifier])


@settings(max_examples=30)
@given(st.text(st.characters(codec="utf-8")), st.binary(max_size=100))
def test_what_is_written_is_read_back(kind, payload):
    envelope = dsse.sign(kind, payload, [LAB])
    assert dsse.decode(dsse.encode(envelope)) == envelope


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000),
        b'{"payload":"","payloadType":"t","signatures":[]}',
        b'{"payload":"","payload":"","payloadType":"t","signatures":[{"sig":""}]}',
        b'{"payload":"!","payloadType":"t","signatures":[{"sig":""}]}',
        b'{"payload":"","payloadType":1,"signatures":[{"sig":""}]}',
        b'{"payload":"","payloadType":"t","signatures":[{"sig":1}]}',
        b'{"payload":"","payloadType":"t","signatures":[' + b'{"sig":""},' * 100 + b'{"sig":""}]}',
    ],
    ids=range(12),
)
def test_what_is_no_envelope_is_refused(data):
    with pytest.raises(ProofInvalid):
        dsse.decode(data)


def test_a_written_envelope_is_one_line_of_json():
    data = dsse.encode(dsse.sign(TYPE, b"payload", [LAB]))
    document = json.loads(data)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert b64decode(document["payload"]) == b"payload"
    assert document["signatures"][0]["keyid"] == f"lab.example+{LAB.key_id.hex()}"


def test_a_type_that_no_utf_8_has_is_refused():
    document = json.loads(dsse.encode(dsse.sign(TYPE, b"payload", [LAB])))
    with pytest.raises(ProofInvalid, match="no DSSE envelope"):
        dsse.decode(json.dumps({**document, "payloadType": "\ud800"}).encode())
