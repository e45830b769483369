"""Every nested value of every body is covered by its commitment, and every header by the tree."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView, canonical
from ledger.codec import Header, decode_event, encode_body
from ledger.events import BY_CODE, AnyEvent
from ledger.verify import Finding, verify
from tests.attacks.forging import Record, pieces, records, replace_events, replace_pieces, stored
from tests.attacks.runs import record
from tests.every_event import every_event
from tests.ledger_checks import forge

SALT = b"\x07" * 16


def mutations(value: Any) -> Iterator[Any]:
    """Every value that differs from `value` in one place: changed, renamed, added, left out."""
    match value:
        case dict():
            yield {**value, "zz added": 1}
            for key, inner in value.items():
                rest = {name: other for name, other in value.items() if name != key}
                yield rest
                yield {**rest, key + "x": inner}
                yield from ({**rest, key: changed} for changed in mutations(inner))
        case list():
            yield [*value, None]
            if value:
                yield value[:-1]
            if value != value[::-1]:
                yield value[::-1]
            for place, inner in enumerate(value):
                before, behind = value[:place], value[place + 1 :]
                yield from ([*before, changed, *behind] for changed in mutations(inner))
        case _:
            yield from _other(value)


def _other(value: Any) -> Iterator[Any]:
    match value:
        case bool() | None:
            yield not value
        case int():
            yield value + 1
            yield float(value)
        case float():
            yield -value
        case str():
            yield value + "x"
            yield value[:-1] + chr(ord(value[-1]) ^ 1) if value else "x"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger that holds no checkpoint."""
    run = tmp_path / "run"
    record(run, seal=False)
    forge(run / "ledger.sqlite", "DELETE FROM checkpoint")
    for beside in run.glob("*.checkpoint*"):
        beside.unlink()
    return run / "ledger.sqlite"


def as_stored(event: AnyEvent, first: Header, seq: int) -> Record:
    """An event as a writer would store it behind `first`."""
    body = encode_body(event, SALT, lambda digest, piece: None)
    fields = {"lease": event.lease, "attempt": event.attempt, "task": event.task}
    return stored(first, seq, event.code, body, **fields)


def findings(path: Path) -> set[tuple[str, int | None]]:
    return {(found.code, found.seq) for found in verify(path) if found.severity == "broken"}


@pytest.mark.parametrize("event", every_event(), ids=lambda event: event.type)
def test_each_change_of_a_nested_value_is_found_by_the_commitment_alone(
    path: Path, event: AnyEvent
) -> None:
    """Re-encoded canonically, with its length and every place and check put right."""
    first = records(path)[0]
    head, body = as_stored(event, Header.decode(first[0]), 1)
    assert decode_event(Header.decode(head), body) == event
    replace_events(path, [first, (head, body)])
    assert "body_altered" not in {code for code, _ in findings(path)}
    tried = 0
    for changed in mutations(json.loads(body)):
        new = json.dumps(changed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        data = new.encode()
        assert data != body
        fixed = head[:56] + len(data).to_bytes(8, "big") + head[64:]
        replace_events(path, [first, (fixed, data)])
        assert ("body_altered", 1) in findings(path), new
        tried += 1
    assert tried >= 5


def test_the_events_tried_are_of_every_type_and_fill_every_field() -> None:
    events = every_event()
    assert {event.code for event in events} == set(BY_CODE)
    for event in events:
        for name in type(event).model_fields:
            if name not in ("task", "attempt"):
                assert getattr(event, name) is not None, (event.type, name)


# --- headers and blobs ---------------------------------------------------------------------------


HEADER_FIELDS = {
    "format": 0,
    "flags": 1,
    "type code": 3,
    "ledger id": 10,
    "sequence number": 27,
    "wall clock": 33,
    "monotonic clock": 43,
    "session": 47,
    "lease": 51,
    "attempt": 55,
    "body length": 63,
    "address": 70,
    "length of the task id": 97,
    "task id": 98,
}


@pytest.mark.parametrize("field", HEADER_FIELDS)
def test_each_field_of_a_header_is_covered(tmp_path: Path, field: str) -> None:
    """Of every event; what only the tree covers is found by the next checkpoint."""
    run = tmp_path / "run"
    record(run, seal=True)
    path = run / "ledger.sqlite"
    path.chmod(0o644)
    held = records(path)
    tried = 0
    for seq, (head, body) in enumerate(held):
        place = HEADER_FIELDS[field]
        if place >= len(head):
            continue
        new = bytearray(head)
        new[place] ^= 1
        replace_events(path, [*held[:seq], (bytes(new), body), *held[seq + 1 :]])
        assert findings(path), (seq, field)
        tried += 1
    assert tried >= 10
    replace_events(path, held)
    assert findings(path) == set()


def test_each_piece_of_a_blob_is_covered(tmp_path: Path) -> None:
    run = tmp_path / "run"
    record(run, seal=True)
    path = run / "ledger.sqlite"
    path.chmod(0o644)
    held = pieces(path)
    assert len(held) >= 3
    for number, piece in enumerate(held):
        for place in {0, len(piece) // 2, len(piece) - 1}:
            new = bytearray(piece)
            new[place] ^= 1
            changed = [*held[:number], bytes(new), *held[number + 1 :]]
            replace_pieces(path, changed, keep_digests=True)
            assert "blob_altered" in {code for code, _ in findings(path)}
            replace_pieces(path, changed)
            assert "blob_missing" in {code for code, _ in findings(path)}
    replace_pieces(path, held)
    assert findings(path) == set()


# --- the same content in other words -------------------------------------------------------------


@pytest.mark.parametrize(
    "spell",
    [
        lambda body: json.dumps(json.loads(body), sort_keys=True).encode(),
        lambda body: json.dumps(dict(reversed(json.loads(body).items()))).encode(),
        lambda body: body.replace(b'{"', b'{"a":1,"a":2,"', 1),
        lambda body: body.replace(b"a", b"\\u0061", 1),
        lambda body: body + b" ",
        lambda body: b"\xef\xbb\xbf" + body,
    ],
    ids=["spaces", "order", "twice", "escape", "behind", "mark"],
)
def test_another_spelling_is_found_even_where_it_is_committed_to(path: Path, spell: Any) -> None:
    """L4 of the cases: what is hashed and what is read must be tied to each other."""
    first, (head, body) = records(path)[:2]
    text = canonical.encode({**json.loads(body), "redactions": 1, "v": 1})
    new = spell(text)
    fixed = head[:56] + len(new).to_bytes(8, "big") + sha256(new).digest() + head[96:]
    replace_events(path, [first, (fixed, new)])
    found: list[Finding] = list(verify(path))
    codes = {one.code for one in found if one.severity == "broken"}
    assert codes & {"body_spelling", "body_invalid"}
    fixed = head[:56] + len(text).to_bytes(8, "big") + sha256(text).digest() + head[96:]
    replace_events(path, [first, (fixed, text)])
    assert findings(path) == set()
    with LedgerView.open(path) as view:
        assert view.event(1).event is not None
