import hashlib
import math
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import canonical, codec
from ledger import events as ev
from ledger.codec import (
    Header,
    decode_event,
    decode_event_strictly,
    encode_body,
    is_canonical_body,
)
from ledger.errors import LedgerDamaged, ValueRefused, VersionUnsupported
from tests import events_of as say

SALT = bytes(range(16))
ADDRESS = hashlib.sha256(b"body").digest()


def a_header(**changed: object) -> Header:
    fields: dict[str, object] = {
        "code": 32,
        "copied": False,
        "ledger_id": bytes(range(16, 32)),
        "seq": 258,
        "wall_ns": 1_700_000_000_000_000_001,
        "mono_ns": 77,
        "session": 3,
        "lease": 1,
        "attempt": 2,
        "body_length": 4,
        "address": ADDRESS,
        "task": "t",
    }
    return Header(**{**fields, **changed})


def round_trip(event: ev.AnyEvent) -> tuple[bytes, ev.AnyEvent, dict[bytes, bytes]]:
    pieces: dict[bytes, bytes] = {}
    body = encode_body(event, SALT, pieces.__setitem__)
    header = a_header(
        code=event.code,
        task=event.task,
        attempt=event.attempt,
        lease=event.lease,
        body_length=len(body),
        address=hashlib.sha256(body).digest(),
    )
    return body, decode_event(Header.decode(header.encode()), body), pieces


def test_each_header_field_stands_at_its_documented_offset() -> None:
    data = a_header(copied=True).encode()
    assert data[0:2] == b"\x01\x01"
    assert data[2:4] == b"\x00\x20"
    assert data[4:20] == bytes(range(16, 32))
    assert struct.unpack(">Q", data[20:28]) == (258,)
    assert struct.unpack(">Q", data[28:36]) == (1_700_000_000_000_000_001,)
    assert struct.unpack(">Q", data[36:44]) == (77,)
    assert struct.unpack(">III", data[44:56]) == (3, 1, 2)
    assert struct.unpack(">Q", data[56:64]) == (4,)
    assert data[64:96] == ADDRESS
    assert data[96:] == b"\x00\x01t"


def test_no_task_and_no_attempt_are_not_an_empty_task_and_attempt_zero() -> None:
    none = a_header(task=None, attempt=None).encode()
    empty = a_header(task="").encode()
    assert none[96:] == b"\xff\xff"
    assert none[52:56] == bytes(4)
    assert empty[96:] == b"\x00\x00"
    assert Header.decode(none).task is None
    assert Header.decode(none).attempt is None
    assert Header.decode(empty).task == ""


@given(
    task=st.none() | st.text(st.characters(), max_size=50),
    attempt=st.none() | st.integers(1, 2**32 - 1),
    seq=st.integers(0, 2**63 - 1),
    clocks=st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    copied=st.booleans(),
    code=st.sampled_from(sorted(ev.BY_CODE)),
)
@settings(max_examples=100)
def test_headers_come_back_equal(
    task: str | None,
    attempt: int | None,
    seq: int,
    clocks: tuple[int, int],
    copied: bool,
    code: int,
) -> None:
    header = a_header(
        task=task,
        attempt=attempt,
        seq=seq,
        wall_ns=clocks[0],
        mono_ns=clocks[1],
        copied=copied,
        code=code,
    )
    assert Header.decode(header.encode()) == header


@pytest.mark.parametrize(
    "task", ["\ud800", "a\udc00\ud835", "\x00", "\u2028", "e\u0301", "é", "/.."]
)
def test_odd_task_ids_come_back_equal(task: str) -> None:
    assert Header.decode(a_header(task=task).encode()).task == task


def test_a_copy_keeps_all_of_its_header_but_ledger_and_number_and_says_so() -> None:
    original = a_header()
    copy = original.copied_to(b"\x99" * 16, 7)
    changed = {"ledger_id": b"\x99" * 16, "seq": 7, "copied": True}
    assert copy._asdict() == original._asdict() | changed


def test_a_task_id_of_60000_bytes_fits_and_one_more_is_refused_by_name() -> None:
    assert len(a_header(task="x" * 60_000).encode()) == 60_098
    with pytest.raises(ValueRefused, match=r"\$\.task.*60000.*60001"):
        a_header(task="x" * 60_001).encode()
    with pytest.raises(ValueRefused, match="60002"):
        a_header(task="é" * 30_001).encode()


def test_a_header_of_a_newer_format_or_type_needs_a_newer_release() -> None:
    data = a_header().encode()
    with pytest.raises(VersionUnsupported, match="event 258 has header format 2"):
        Header.decode(b"\x02" + data[1:])
    with pytest.raises(VersionUnsupported, match="type code 65000"):
        Header.decode(data[:2] + struct.pack(">H", 65_000) + data[4:])


@pytest.mark.parametrize(
    "damaged",
    [
        a_header().encode()[:97],
        a_header().encode() + b"x",
        a_header().encode()[:-1],
        a_header().encode()[:1] + b"\x02" + a_header().encode()[2:],
        a_header(task=None).encode()[:96] + b"\xff\xfe",
        a_header(task="").encode()[:96] + b"\x00\x01\xff",
    ],
    ids=["cut", "longer", "task cut", "unknown flag", "task too long", "task not UTF-8"],
)
def test_bytes_that_no_release_writes_are_damage(damaged: bytes) -> None:
    with pytest.raises(LedgerDamaged):
        Header.decode(damaged)


def test_a_body_is_a_sorted_object_with_salt_and_version_and_without_absent_fields() -> None:
    event = say.result("t", final_answer="42", metrics={"b": 1, "a": 2.0})
    body = encode_body(event, SALT, lambda *_: None)
    assert body == (
        b'{"final_answer":"42","metrics":{"a":2.0,"b":1},'
        b'"salt":"000102030405060708090a0b0c0d0e0f","status":"completed","v":1}'
    )


def test_what_stands_in_the_header_is_not_in_the_body() -> None:
    body = encode_body(ev.AttemptStarted(task="t", attempt=3, lease=2), SALT, lambda *_: None)
    assert body == b'{"salt":"000102030405060708090a0b0c0d0e0f","v":1}'


def test_parts_lose_their_absent_fields_and_users_nulls_stay() -> None:
    event = ev.PlanResolved(
        task="t", attempt=1, plan={"a": None, "b": [None]}, plan_hash="h", applied_recipes=("x",)
    )
    body = encode_body(event, SALT, lambda *_: None)
    assert b'"plan":{"a":null,"b":[null]}' in body
    error = ev.ErrorInfo(code="c", message="m")
    failed = say.result("t", status="run_error", error=error)
    assert b'"error":{"code":"c","fatal":false,"message":"m"}' in encode_body(
        failed, SALT, lambda *_: None
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
@settings(max_examples=100)
def test_events_come_back_equal(value: object) -> None:
    event = say.result("t", final_answer=value, trajectory={"messages": [value, value]})
    body, back, _ = round_trip(event)
    assert back == event
    assert is_canonical_body(body)


@pytest.mark.parametrize(
    "event",
    [
        say.created(),
        say.selected("a", "\ud800", category="c"),
        ev.CallFinished(
            task="t", attempt=1, call_id="c", success=True, usage=ev.Usage(input_tokens=1)
        ),
        ev.AttemptRetried(
            task="t",
            attempt=1,
            retry=1,
            max_retries=2,
            retry_delay_seconds=0,
            stage="run",
            scope="attempt",
            error=ev.ErrorInfo(code="c", message="\udc00", traceback="\x00"),
        ),
        ev.ArtifactsCollected(task="t", attempt=1, artifacts=(ev.Artifact(path="p", bytes=3),)),
        ev.LedgerSealed(),
        ev.PayloadErased(sequence=(1, 2), reason="r"),
    ],
    ids=lambda event: event.type,
)
def test_each_kind_of_field_comes_back_equal(event: ev.AnyEvent) -> None:
    body, back, _ = round_trip(event)
    assert back == event
    assert type(back) is type(event)
    assert is_canonical_body(body)


def test_nan_in_a_value_comes_back_as_nan() -> None:
    _, back, _ = round_trip(say.result("t", trajectory=[{"x": math.nan, "y": -math.inf}]))
    assert isinstance(back, ev.ResultRecorded)
    assert math.isnan(back.trajectory[0]["x"])
    assert back.trajectory[0]["y"] == -math.inf


def test_only_value_fields_are_cut_into_pieces() -> None:
    long = "x" * 4096 + "y" * 4096 + "z" * 1808
    body, back, pieces = round_trip(
        say.result(
            "t", status="run_error", trajectory=long, error=ev.ErrorInfo(code="c", message=long)
        )
    )
    assert len(pieces) == 2
    assert isinstance(back, ev.ResultRecorded)
    assert back.error is not None
    assert back.error.message == long
    assert canonical.resolve(back.trajectory, pieces.__getitem__) == long
    assert 10_000 < len(body) < 13_000


def test_a_refused_value_is_named_by_its_path_from_the_event() -> None:
    with pytest.raises(ValueRefused, match=r"\$\.trajectory\[1\]\.x") as refused:
        encode_body(say.result("t", trajectory=[0, {"x": {1}}]), SALT, lambda *_: None)
    assert refused.value.path == "$.trajectory[1].x"


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_field_may_be_nested_200_deep_and_not_201() -> None:
    body, back, _ = round_trip(say.result("t", trajectory=nested(200)))
    assert back == say.result("t", trajectory=nested(200))
    assert is_canonical_body(body)
    with pytest.raises(ValueRefused, match="200"):
        encode_body(say.result("t", trajectory=nested(201)), SALT, lambda *_: None)
    with pytest.raises(ValueRefused, match="200"):
        encode_body(say.result("t", trajectory=nested(2_000)), SALT, lambda *_: None)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b'{"v":1}',
        b'{"salt":"00","v":1}',
        b'{"salt":"000102030405060708090A0B0C0D0E0F","v":1}',
        b'{"salt":"000102030405060708090a0b0c0d0e0f"}',
        b'{"salt":"000102030405060708090a0b0c0d0e0f","v":0}',
        b'{"salt":"000102030405060708090a0b0c0d0e0f","v":true}',
        b'{"salt":"000102030405060708090a0b0c0d0e0f","task":"u","v":1}',
        b'{"salt":"000102030405060708090a0b0c0d0e0f","unknown":1,"v":1}',
    ],
)
def test_bodies_that_no_release_writes_are_damage(body: bytes) -> None:
    header = a_header(body_length=len(body), address=hashlib.sha256(body).digest())
    with pytest.raises(LedgerDamaged) as damage:
        decode_event(header, body)
    assert damage.value.seq == 258


def test_a_body_of_a_newer_version_needs_a_newer_release() -> None:
    body = b'{"salt":"000102030405060708090a0b0c0d0e0f","v":2}'
    header = a_header(body_length=len(body), address=hashlib.sha256(body).digest())
    with pytest.raises(VersionUnsupported, match=r"attempt\.started has version 2"):
        decode_event(header, body)


@pytest.mark.parametrize(
    "spelling",
    [
        b'{"v":1,"salt":"s"}',
        b'{"salt": "s","v":1}',
        b'{"salt":"s","salt":"s","v":1}',
        b'{"salt":"\\u0073","v":1}',
        b'{"salt":"s","v":1} ',
        b"[]",
        b"{",
    ],
)
def test_another_spelling_of_a_body_is_not_canonical(spelling: bytes) -> None:
    assert is_canonical_body(b'{"salt":"s","v":1}')
    assert not is_canonical_body(spelling)


def spelled_member_by_member(body: bytes) -> bool:
    """Whether `body` is what its members amount to, each decoded and encoded by itself."""
    try:
        fields = canonical.decode(body)
        assert isinstance(fields, dict)
        members = [canonical.encode(key) + b":" + canonical.encode(fields[key]) for key in fields]
    except (LedgerDamaged, ValueRefused, AssertionError):
        return False
    return list(fields) == sorted(fields) and b"{" + b",".join(members) + b"}" == body


ODD = [
    "\ud800", "\ud83d\ude00", "$acl", "$acl.x", "a\\b\udfff", 2**64, -(2**63) - 1, 2**63, math.nan,
    -math.inf, -0.0, 1.0, 1e16, 1e-7, "é\x7f\u2028", {"$acl": [1]}, {"\udc00": {"$acl:": None}},
    canonical.Binary(b"\x00\xff"), "x" * 5000, "\ud800" * 5000, [{"k": "y" * 3000}] * 5,
]  # fmt: skip


@given(st.lists(st.sampled_from(ODD) | JSON, max_size=3), st.data())
@settings(max_examples=150, deadline=None)
def test_a_body_is_canonical_exactly_if_each_member_is_written_so(
    values: list[object], data: st.DataObject
) -> None:
    body = encode_body(say.result("t", trajectory={"v": values}), SALT, lambda *_: None)
    assert is_canonical_body(body)
    cuts = st.integers(0, len(body))
    start, end = sorted((data.draw(cuts), data.draw(cuts)))
    for changed in (
        body[:start] + data.draw(st.sampled_from(CHANGES)) + body[start + 1 :],
        body[:start] + body[end:],
        body.replace(*data.draw(st.sampled_from(SPELLINGS))),
    ):
        assert is_canonical_body(changed) == spelled_member_by_member(changed)


CHANGES = [
    b" ",
    b'"',
    b"\\",
    b"0",
    b"-",
    b"e",
    b"$",
    b"{",
    b"]",
    b"A",
    b"\xff",
    b"\\u0041",
    b",",
    b"",
]
SPELLINGS = [
    (b"\\\\u", b"\\\\U"), (b"ud", b"uD"), (b'"nan"', b'"NaN"'), (b'"int","', b'"int","0'),
    (b'"int","-', b'"int","-0'), (b"1.0", b"1.00"), (b"e+16", b"e16"), (b"$acl.", b"$acl:"),
    (b'"str"', b'"text",[]'), (b'["bytes",[],"', b'["bytes",[],"='), (b"-0.0", b"-0"),
    (b"\xc3\xa9", b"\\u00e9"), (b"[[", b"[ ["), (b"1e-7", b"0.0000001"), (b'"$acl"', b'"$acl.$acl"'),
]  # fmt: skip


@given(st.lists(st.sampled_from(ODD) | JSON, max_size=3), st.data())
@settings(max_examples=100, deadline=None)
def test_a_body_read_together_with_its_spelling_is_judged_as_by_itself(
    values: list[object], data: st.DataObject
) -> None:
    body = encode_body(say.result("t", trajectory={"v": values}), SALT, lambda *_: None)
    start = data.draw(st.integers(0, len(body)))
    altered = body[:start] + data.draw(st.sampled_from(CHANGES)) + body[start + 1 :]
    respelled = body.replace(*data.draw(st.sampled_from(SPELLINGS)))
    for one in (body, altered, respelled, b" " + body, body + b"\n", DEEP, DEEP_AND_WIDE):
        header = a_header(code=ev.ResultRecorded.code, body_length=len(one))
        assert read(decode_event_strictly, header, one) == read(separately, header, one)


def separately(header: Header, body: bytes) -> tuple[ev.AnyEvent, bool]:
    return decode_event(header, body), is_canonical_body(body)


def read(
    how: Callable[[Header, bytes], tuple[ev.AnyEvent, bool]], header: Header, body: bytes
) -> object:
    try:
        return how(header, body)
    except (LedgerDamaged, VersionUnsupported) as error:
        return type(error), error.message


_INSIDE = b'{"$acl":["list",["%s"],[' % (b"0" * 64)
DEEP = b'{"salt":"%s","status":"completed","trajectory":%s1%s,"v":1}' % (
    SALT.hex().encode(),
    _INSIDE * 90,
    b"]]}" * 90,
)
DEEP_AND_WIDE = DEEP.replace(b"[1]", b"[1 ]")


def test_envelopes_that_nest_deeper_than_json_is_written_are_canonical_all_the_same() -> None:
    deep = b'{"$acl":["list",["%s"],[' % (b"0" * 64)
    inside = b'{"salt":"s","trajectory":' + deep * 90 + b"1" + b"]]}" * 90 + b',"v":1}'
    assert is_canonical_body(inside)
    assert not is_canonical_body(inside.replace(b"[1]", b"[1 ]"))


def test_every_event_type_has_its_value_fields_marked_for_cutting() -> None:
    cut = {
        f"{model.__name__}.{name}" for model in ev.BY_CODE.values() for name in codec._cut(model)
    }
    assert {"ResultRecorded.trajectory", "CallStarted.messages", "TaskReused.leaves"} <= cut
    assert "TasksSelected.tasks" not in cut
    assert "AttemptFinished.error" not in cut
