from typing import ClassVar, Literal

import pytest

from ledger import upcast as module
from ledger.codec import Header, decode_event
from ledger.errors import LedgerDamaged, VersionUnsupported
from ledger.events import BY_CODE, AnnotationAdded
from ledger.events.base import Event, Text
from ledger.upcast import upcast


class AnnotationAddedThird(Event):
    """A made-up later version: `author` became `by`, and got a `role`."""

    type: Literal["annotation.added"] = "annotation.added"
    code: ClassVar[int] = AnnotationAdded.code
    v: ClassVar[int] = 3

    text: Text
    by: Text
    role: Text


@pytest.fixture
def third(monkeypatch: pytest.MonkeyPatch) -> None:
    code = AnnotationAdded.code
    monkeypatch.setitem(BY_CODE, code, AnnotationAddedThird)
    monkeypatch.setitem(module.UPCASTS, (code, 1), lambda f: {"text": f["text"], "by": f["author"]})
    monkeypatch.setitem(module.UPCASTS, (code, 2), lambda f: {**f, "role": "unknown"})


def read(body: bytes) -> object:
    header = Header(
        AnnotationAdded.code, False, bytes(16), 0, 0, 0, 0, 1, None, len(body), bytes(32), None
    )
    return decode_event(header, body)


@pytest.mark.usefixtures("third")
def test_a_body_of_any_older_version_reads_as_the_present_one() -> None:
    salt = b'"salt":"000102030405060708090a0b0c0d0e0f"'
    now = AnnotationAddedThird(text="seen", by="an auditor", role="unknown")
    assert read(b'{"author":"an auditor",%s,"text":"seen","v":1}' % salt) == now
    assert read(b'{"by":"an auditor",%s,"text":"seen","v":2}' % salt) == now
    assert read(b'{"by":"an auditor","role":"unknown",%s,"text":"seen","v":3}' % salt) == now


@pytest.mark.usefixtures("third")
def test_a_field_that_an_old_version_did_not_have_is_damage_in_it() -> None:
    salt = b'"salt":"000102030405060708090a0b0c0d0e0f"'
    with pytest.raises(LedgerDamaged, match="Extra"):
        read(b'{"by":"a","extra":1,%s,"text":"seen","v":2}' % salt)


def test_the_present_version_is_left_as_it_is() -> None:
    fields = {"text": "t", "author": "a"}
    assert upcast(AnnotationAdded.code, 1, fields) == {"text": "t", "author": "a"}


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(VersionUnsupported, match=r"annotation\.added has version 2.*up to 1"):
        upcast(AnnotationAdded.code, 2, {})


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None])
def test_what_is_no_version_is_damage(version: object) -> None:
    with pytest.raises(LedgerDamaged):
        upcast(AnnotationAdded.code, version, {})


def test_every_released_version_of_every_event_type_can_be_brought_up_to_date() -> None:
    for code, model in BY_CODE.items():
        for version in range(1, model.v):
            assert (code, version) in module.UPCASTS
