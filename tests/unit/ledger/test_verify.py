import gc
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from ledger import LedgerView, canonical, note, tlog
from ledger import events as ev
from ledger.codec import HEADER_BYTES, Header, header_length
from ledger.errors import AclError, LedgerDamaged, LedgerStateError, NotALedger, VersionUnsupported
from ledger.machine import Machine
from ledger.schema import PAGE_SIZE
from ledger.segment import part_hash
from ledger.store import Copy, Ledger
from ledger.verify import Finding, verify
from tests import events_of as say
from tests.ledger_checks import broken, check_ledger, forge, plain_events, store_plain

LONG = [{"role": "user", "content": f"{n} " * 1500} for n in range(3)]


def build(path: Path, *, seal: bool = True) -> Path:
    """A finished run of one task: 12 events with the seal, a checkpoint at 9 and one at the end."""
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000, trajectory=LONG)))
        ledger.checkpoint()
        ledger.append(*say.ending())
        if seal:
            ledger.seal()
        else:
            ledger.checkpoint()
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger that is not sealed, so that tests can write to it."""
    return build(tmp_path / "ledger.sqlite", seal=False)


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


def of(findings: list[Finding], code: str) -> Finding:
    (found,) = [finding for finding in findings if finding.code == code]
    return found


# --- how it is used ------------------------------------------------------------------------------


def test_a_verification_that_is_dropped_half_way_ends_quietly_in_any_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    forge(path, "DELETE FROM event WHERE seq = 5")
    found = verify(path)
    assert any(finding.code == "event_missing" for finding in found)
    held = [found]
    del found
    thread = threading.Thread(target=lambda: (held.clear(), gc.collect()))
    thread.start()
    thread.join()
    assert failures == []


# --- a healthy ledger ----------------------------------------------------------------------------


def test_a_healthy_ledger_has_nothing_broken_and_says_what_is_not_proven(tmp_path: Path) -> None:
    findings = check_ledger(build(tmp_path / "ledger.sqlite"))
    assert {(f.code, f.severity) for f in findings} == {
        ("sealed", "note"),
        ("unsigned", "unproven"),
        ("no_outside_checkpoint", "unproven"),
    }
    assert of(findings, "sealed").seq == 11


def test_a_view_and_a_path_give_the_same_findings(path: Path) -> None:
    with LedgerView.open(path) as view:
        assert list(verify(view)) == list(verify(path)) == list(verify(path.parent))
        assert view.size == 11


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotALedger):
        list(verify(tmp_path))


def test_events_after_the_last_checkpoint_are_named(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append(ev.AnnotationAdded(text="late", author="a"))
    found = of(list(verify(path)), "uncovered")
    assert (found.severity, found.seq) == ("unproven", 11)


def test_what_never_ended_is_told(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        ledger.append(ev.AttemptStarted(task="t", attempt=1))
        ledger.append(ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0))
    findings = check_ledger(tmp_path)
    assert {"attempt_open", "calls_open", "interrupted", "not_sealed"} <= codes(findings)
    assert of(findings, "attempt_open").task == "t"


@pytest.mark.parametrize(
    ("events", "doing"),
    [
        (say.opening()[:1], "about to start"),
        (say.opening()[:2], "preparing its tasks"),
        (say.opening("t"), "running its tasks"),
    ],
)
def test_a_run_that_did_not_finish_is_not_said_to_be_running(
    tmp_path: Path, events: list[ev.AnyEvent], doing: str
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*events)
        assert of(list(verify(tmp_path)), "running").message.endswith(f"it is {doing}")
    stopped = f"the run did not finish: it was {doing} when it stopped"
    assert of(check_ledger(tmp_path), "interrupted").message == stopped
    with Ledger.open(tmp_path) as ledger:
        ledger.seal()
        assert of(list(verify(tmp_path)), "interrupted").message == stopped


def test_a_ledger_without_events_is_said_to_be_empty(tmp_path: Path) -> None:
    Ledger.create(tmp_path).close()
    assert {"empty", "not_sealed"} <= codes(check_ledger(tmp_path))


def test_a_folded_ledger_without_the_checkpoint_of_its_seal_is_broken(tmp_path: Path) -> None:
    path = build(tmp_path / "ledger.sqlite")
    path.chmod(0o644)
    for lost in ("id = 1", "1"):
        forge(path, f"DELETE FROM checkpoint WHERE {lost}")
        assert of(broken(path), "seal_checkpoint").seq == 11


def test_a_checkpoint_beside_a_ledger_that_holds_none_of_its_size_tells_of_lost_commits(
    path: Path,
) -> None:
    """It is stored in the ledger before it is written beside it."""
    forge(path, "DELETE FROM checkpoint WHERE id = 1")
    (found,) = broken(path)
    assert found.code == "checkpoint_missing"
    assert "is of 11 events; the ledger holds none of this size" in found.message
    (beside,) = path.parent.glob("ledger.checkpoint*")
    beside.unlink()
    assert broken(path) == []


def test_a_seal_that_broke_off_before_its_checkpoint_is_unproven_and_not_broken(
    tmp_path: Path,
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(ev.LedgerSealed())
    found = of(check_ledger(tmp_path), "seal_checkpoint")
    assert (found.severity, found.seq) == ("unproven", 3)


def test_no_finding_says_its_event_twice(path: Path) -> None:
    plain = plain_events(path)
    for old, new in ((b'"correct":true', b'"correct":null'), (b'"phase":', b'"phaso":')):
        store_plain(path, plain.replace(old, new))
        for found in broken(path):
            if found.seq is not None and found.code != "checkpoint_root":
                assert f"event {found.seq}" not in found.message


def test_a_ledger_can_be_verified_while_it_is_written(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        findings = []
        for number, finding in enumerate(verify(tmp_path)):
            ledger.append(*say.attempt("t", number + 1, answer=f"{number}" * 9000))
            ledger.checkpoint()
            findings.append(finding)
        assert [f for f in findings if f.severity == "broken"] == []
        check_ledger(tmp_path)


def test_an_exported_tree_is_compared_last(path: Path) -> None:
    wrong = Finding("tree", "broken", "a file differs")
    findings = list(verify(path, tree=lambda view: [wrong] if view.size == 11 else []))
    assert findings[-1] == wrong


# --- every byte ----------------------------------------------------------------------------------


def content(path: Path) -> object:
    """Everything that a reader can get out of a ledger."""
    with LedgerView.open(path) as view:
        return (
            view.root(),
            [view.raw(seq) for seq in range(view.size)],
            [view.resolve(dict(e.event)) for e in view.events() if e.event],
            list(view.checkpoints()),
        )


# ACL_FLIP_STRIDE=1 tries every byte, which takes minutes.
STRIDE = int(os.environ.get("ACL_FLIP_STRIDE", "61"))


def test_each_flipped_byte_of_the_file_is_found_or_changes_nothing(tmp_path: Path) -> None:
    path = build(tmp_path / "ledger.sqlite")
    expected = content(path)
    data = path.read_bytes()
    damaged = tmp_path / "damaged.sqlite"
    detected = 0
    for place in range(0, len(data), STRIDE):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        damaged.write_bytes(flipped)
        try:
            found = bool(broken(damaged))
        except AclError:
            found = True
        detected += found
        assert found or content(damaged) == expected, f"byte {place} of {len(data)}"
    assert detected > 0


def test_each_flipped_byte_of_the_plain_events_is_found_and_named(path: Path) -> None:
    plain = plain_events(path)
    ends = event_ends(plain)
    for place in range(0, len(plain), 17):
        flipped = bytearray(plain)
        flipped[place] ^= 1 << place % 8
        store_plain(path, bytes(flipped))
        seq = next(n for n, end in enumerate(ends) if place < end)
        found = broken(path)
        # What only the tree commits to is named by the span between two checkpoints.
        spans = [f.seq for f in found if f.code == "checkpoint_root"]
        named = seq in {f.seq for f in found} or min(n for n in spans if n is not None) <= seq
        assert named, f"byte {place} of event {seq}"


def event_ends(plain: bytes) -> list[int]:
    ends, offset = [], 0
    while offset < len(plain):
        length = header_length(plain[offset : offset + HEADER_BYTES])
        offset += length + Header.decode(plain[offset : offset + length]).body_length
        ends.append(offset)
    return ends


def mutations(value: Any) -> Iterator[Any]:
    """Each way to change one nested value, or to rename one nested key."""
    match value:
        case dict():
            for key in value:
                yield {(k + "x" if k == key else k): v for k, v in value.items()}
                for changed in mutations(value[key]):
                    yield {**value, key: changed}
        case list():
            yield [*value, None]
            for n in range(len(value)):
                for changed in mutations(value[n]):
                    yield [*value[:n], changed, *value[n + 1 :]]
        case bool() | None:
            yield not value
        case int() | float():
            yield value + 1
        case str():
            yield value + "x"


def test_each_changed_nested_value_of_each_body_is_found(path: Path) -> None:
    with LedgerView.open(path) as view:
        bodies = [view.raw(seq) for seq in range(view.size)]
    plain = plain_events(path)
    checked = 0
    for seq, (head, body) in enumerate(bodies):
        for changed in mutations(json.loads(body)):
            new = json.dumps(changed, sort_keys=True, separators=(",", ":")).encode()
            fixed = head[:56] + len(new).to_bytes(8, "big") + head[64:]
            whole = b"".join(h + b for h, b in bodies[:seq])
            rest = b"".join(h + b for h, b in bodies[seq + 1 :])
            shift = len(new) - len(body)
            store_plain(
                path,
                whole + fixed + new + rest,
                f"UPDATE event SET off = off + {shift} WHERE seq > {seq}",
            )
            found = broken(path)
            assert seq in {f.seq for f in found if f.code == "body_altered"}, new
            forge(path, f"UPDATE event SET off = off - {shift} WHERE seq > {seq}")
            checked += 1
    assert checked > 100
    store_plain(path, plain)
    check_ledger(path)


def test_a_body_changed_together_with_its_address_is_found_by_the_tree(path: Path) -> None:
    with LedgerView.open(path) as view:
        bodies = [view.raw(seq) for seq in range(view.size)]
    head, body = bodies[6]
    body = body.replace(b'"version":"1"', b'"version":"2"')
    head = head[:64] + hashlib.sha256(body).digest() + head[96:]
    bodies[6] = head, body
    store_plain(path, b"".join(h + b for h, b in bodies))
    found = broken(path)[0]
    assert codes(broken(path)) == {"checkpoint_root"}
    assert "checkpoint 0 at 9 events has another root: one of events 0 to 8" in found.message
    assert found.seq == 0


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "code", "seq"),
    [
        ("DELETE FROM event WHERE seq = 10", "rolled_back", 10),
        ("DELETE FROM event WHERE seq >= 8", "rolled_back", 8),
        ("DELETE FROM event WHERE seq = 5", "event_missing", 5),
        ("UPDATE event SET seq = seq + 1 WHERE seq = 10", "event_missing", 10),
        ("UPDATE event SET off = off - 1 WHERE seq = 5", "event_place", 5),
        ("UPDATE event SET seg = 3 WHERE seq = 5", "event_place", 5),
        ("UPDATE event SET seg = -1 WHERE seq = 5", "event_place", 5),
        ("UPDATE event SET off = 9223372036854775807 WHERE seq = 5", "event_unreadable", 5),
        ("INSERT INTO event SELECT 11, seg, off FROM event WHERE seq = 5", "event_place", 11),
        ("UPDATE event SET seq = -1 WHERE seq = 0", "table", None),
        ("UPDATE blob SET digest = zeroblob(32) WHERE id = 1", "blob_missing", 5),
        ("UPDATE blob SET digest = x'00' WHERE id = 1", "blob_missing", 5),
        ("UPDATE blob SET off = off + 1 WHERE id = 1", "blob_altered", 5),
        ("UPDATE blob SET len = len - 1 WHERE id = 1", "blob_altered", 5),
        ("UPDATE blob SET seg = 77 WHERE id = 1", "blob_altered", 5),
        ("DELETE FROM blob WHERE id = 1", "blob_missing", 5),
        ("DELETE FROM blobsegment", "blob_altered", 5),
        ("DELETE FROM segment WHERE id = 0", "event_unreadable", 0),
        ("UPDATE segment SET hash = hash + 1 WHERE id = 1", "segment", 3),
        ("UPDATE segment SET plain = plain + 1 WHERE id = 1", "segment", 3),
        ("UPDATE blobsegment SET hash = hash + 1", "blob_segment", 5),
        ("UPDATE checkpoint SET size = 8 WHERE id = 0", "checkpoint", None),
        ("DELETE FROM checkpoint WHERE id = 0", "checkpoint_missing", None),
        ("UPDATE checkpoint SET note = 'nothing' WHERE id = 0", "checkpoint", None),
        (
            "UPDATE checkpoint SET note = replace(note, 'unsigned', 'signed')",
            "checkpoint_origin",
            None,
        ),
        ("UPDATE checkpoint SET hash = hash + 1 WHERE id = 0", "checkpoint", None),
        (
            "UPDATE checkpoint SET note = replace(note, 'unsigned/', 'unsigned/0')",
            "checkpoint_origin",
            None,
        ),
    ],
)
def test_each_forged_row_is_found_and_named(
    path: Path, statement: str, code: str, seq: int | None
) -> None:
    forge(path, statement)
    found = broken(path)
    assert (code, seq) in {(f.code, f.seq) for f in found}, found


def test_swapped_events_are_found(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        (four, five) = connection.execute("SELECT off FROM event WHERE seq IN (4, 5)").fetchall()
    connection.close()
    forge(
        path,
        f"UPDATE event SET off = {five[0]} WHERE seq = 4",
        f"UPDATE event SET off = {four[0]} WHERE seq = 5",
    )
    assert {4, 5} <= {f.seq for f in broken(path) if f.code == "event_misplaced"}


def test_events_swapped_with_everything_that_names_them_are_found_by_the_tree(path: Path) -> None:
    with LedgerView.open(path) as view:
        raws = [view.raw(seq) for seq in range(view.size)]
    for one, other in ((4, 5), (5, 4)):
        head = raws[one][0]
        raws[one] = head[:20] + other.to_bytes(8, "big") + head[28:], raws[one][1]
    raws[4], raws[5] = raws[5], raws[4]
    offsets = [sum(len(h) + len(b) for h, b in raws[:n]) for n in range(len(raws))]
    store_plain(
        path,
        b"".join(h + b for h, b in raws),
        *(f"UPDATE event SET seg = 0, off = {o} WHERE seq = {n}" for n, o in enumerate(offsets)),
    )
    assert {"illegal", "checkpoint_root"} <= codes(broken(path))


def test_a_bomb_in_a_segment_is_not_expanded(path: Path) -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(300_000_000))
    row = f"(0, 793, {part_hash(bomb)}, x'{bomb.hex()}')"
    forge(path, "DELETE FROM segment", f"INSERT INTO segment VALUES {row}")
    tracemalloc.start()
    found = broken(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "segment 0 cannot be decompressed" in found[0].message
    assert peak < 10_000_000
    with (
        LedgerView.open(path) as view,
        pytest.raises(LedgerDamaged, match="holds more than it says"),
    ):
        view.event(0)


def test_one_damaged_page_hides_as_little_as_it_can(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
        for n in range(12):
            ledger.append(*(ev.AnnotationAdded(text=f"{n}-{k}", author="a") for k in range(100)))
            ledger.checkpoint()
    data = path.read_bytes()
    damaged = tmp_path / "damaged.sqlite"
    partly = 0
    for page in range(1, len(data) // PAGE_SIZE):
        damaged.write_bytes(data[: page * PAGE_SIZE] + b"\xff" + data[page * PAGE_SIZE + 1 :])
        try:
            found = broken(damaged)
        except AclError:
            continue
        assert found, f"page {page}"
        gaps = [f for f in found if f.code == "event_missing"]
        partly += bool(gaps) and "events 0 to 1200" not in gaps[0].message
    assert partly >= 3


def test_bytes_that_no_event_names_are_found(path: Path) -> None:
    store_plain(path, plain_events(path) + b"hidden")
    assert codes(broken(path)) == {"segment_hidden"}


def test_a_segment_that_no_event_names_is_found(path: Path) -> None:
    frame = zstandard.ZstdCompressor().compress(b"hidden")
    row = f"({1 << 20}, 6, {part_hash(frame)}, x'{frame.hex()}')"
    forge(path, f"INSERT INTO segment VALUES {row}", f"INSERT INTO blobsegment VALUES {row}")
    assert codes(broken(path)) == {"segment_hidden", "blob_rows"}


def test_pieces_that_no_event_refers_to_are_only_noted(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        ((last,),) = connection.execute("SELECT max(id) FROM blob").fetchall()
    connection.close()
    frame = zstandard.ZstdCompressor().compress(b"orphan")
    forge(
        path,
        f"INSERT INTO blobsegment VALUES ({1 << 20}, 6, {part_hash(frame)}, x'{frame.hex()}')",
        f"INSERT INTO blob VALUES ({last + 1}, x'{hashlib.sha256(b'orphan').hexdigest()}', 1, 0, 6)",
    )
    findings = check_ledger(path)
    assert of(findings, "orphan_pieces").severity == "note"


@pytest.mark.parametrize(
    "forgery",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more(x)",
        "DROP TRIGGER event_delete",
        "CREATE TRIGGER t AFTER INSERT ON event BEGIN SELECT 1; END",
    ],
)
def test_a_forged_schema_is_found(path: Path, forgery: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(forgery)
    connection.close()
    assert codes(broken(path)) == {"schema"}


def test_an_index_that_disagrees_with_its_table_is_found(tmp_path: Path) -> None:
    path = build(tmp_path / "ledger.sqlite")
    path.chmod(0o644)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'blob_digest'")
        connection.execute("PRAGMA writable_schema = RESET")
    connection.close()
    forge(path, "UPDATE blob SET digest = zeroblob(32) WHERE id = 0")
    assert "blob_missing" in codes(broken(path))


def test_everything_is_reported_and_not_only_the_first(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    for _ in range(3):
        with Ledger.create(path) if not path.exists() else Ledger.open(path) as ledger:
            if not ledger.size:
                ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
            ledger.append(*say.attempt("t", ledger.size, answer=f"{ledger.size}" * 5000))
    forge(
        path,
        "UPDATE segment SET data = zeroblob(length(data)) WHERE id >> 20 = 0",
        "UPDATE segment SET hash = hash + 1 WHERE id >> 20 = 2",
        "UPDATE blob SET digest = zeroblob(32) WHERE id = 2",
    )
    found = broken(path)
    assert {f.seq for f in found if f.code == "segment"} == {0, 4, 12}
    assert {"segment", "event_unreadable", "blob_altered", "blob_missing"} <= codes(found)


# --- meaning -------------------------------------------------------------------------------------


def test_an_event_that_was_never_legal_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        real = Machine.admit

        def lenient(machine: Machine, batch: Any) -> Any:
            try:
                return real(machine, batch)
            except LedgerStateError:
                return real(machine, ())

        monkeypatch.setattr(Machine, "admit", lenient)
        ledger.append(*say.attempt("t"))
        monkeypatch.undo()
    found = broken(tmp_path)
    assert [(f.code, f.seq, f.task) for f in found] == [("illegal", 3, "t")]


def append_body(path: Path, body: bytes, **header: Any) -> None:
    """Append one annotation with this body, as a program with a fault could."""
    with LedgerView.open(path) as view:
        last = view.event(view.size - 1).header
    new = last._replace(
        code=ev.AnnotationAdded.code,
        seq=last.seq + 1,
        body_length=len(body),
        address=hashlib.sha256(body).digest(),
        **header,
    )
    plain = plain_events(path)
    store_plain(
        path,
        plain + new.encode() + body,
        f"INSERT INTO event VALUES ({last.seq + 1}, 0, {len(plain)})",
    )


SALT = '"salt":"000102030405060708090a0b0c0d0e0f"'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (f'{{"author":"a",{SALT},"text":"t","v":1}}', None),
        (f'{{"author": "a",{SALT},"text":"t","v":1}}', "body_spelling"),
        (f'{{{SALT},"author":"a","text":"t","v":1}}', "body_spelling"),
        (f'{{"author":"b","author":"a",{SALT},"text":"t","v":1}}', "body_spelling"),
        (f'{{"author":"a",{SALT},"text":"\\u0074","v":1}}', "body_spelling"),
        (f'{{{SALT},"text":"t","v":1}}', "body_invalid"),
        (f'{{"author":"a",{SALT},"text":1,"v":1}}', "body_invalid"),
        (f'{{"author":"a",{SALT},"text":"t","v":1,"x":1}}', "body_invalid"),
        ("not JSON", "body_invalid"),
    ],
)
def test_a_body_that_no_release_writes_is_found(path: Path, body: str, code: str | None) -> None:
    append_body(path, body.encode())
    found = broken(path)
    assert code in codes(found) if code else found == []
    assert {f.seq for f in found} <= {11}


def test_a_reference_to_a_piece_of_another_kind_is_found(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        ((digest,),) = connection.execute("SELECT digest FROM blob WHERE id = 0").fetchall()
    connection.close()
    for kind, rest in (("list", []), ("bytes", "")):
        body = canonical.encode({"name": "a.b", "payload": 1, "salt": "0" * 32, "v": 1}).replace(
            b'"payload":1',
            b'"payload":'
            + json.dumps({"$acl": [kind, [digest.hex()], rest]}, separators=(",", ":")).encode(),
        )
        append_extension(path, body)
    found = [(f.code, f.seq) for f in broken(path) if f.code != "illegal"]
    assert found == [("blob_kind", 11), ("blob_kind", 12)]


def append_extension(path: Path, body: bytes) -> None:
    append_body(path, body)
    plain = plain_events(path)
    start = event_ends(plain)[-2]
    store_plain(path, plain[: start + 2] + b"\x00\x53" + plain[start + 4 :])


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({"session": 0, "mono_ns": 0}, "clock"),
        ({"ledger_id": bytes(16)}, "event_foreign"),
        ({"copied": True}, "copy_unnamed"),
    ],
)
def test_a_header_that_does_not_fit_is_found(path: Path, header: dict[str, Any], code: str) -> None:
    append_body(path, f'{{"author":"a",{SALT},"text":"t","v":1}}'.encode(), **header)
    assert code in codes(list(verify(path)))


def test_a_session_that_went_back_is_found(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append(ev.AnnotationAdded(text="x", author="a"))
    # The second session has a segment of its own; join them first.
    with LedgerView.open(path) as view:
        raws = [b"".join(view.raw(seq)) for seq in range(view.size)]
    offset = len(b"".join(raws[:-1]))
    store_plain(path, b"".join(raws), f"UPDATE event SET seg = 0, off = {offset} WHERE seq = 11")
    append_body(path, f'{{"author":"a",{SALT},"text":"t","v":1}}'.encode(), session=0)
    assert [(f.code, f.seq) for f in broken(path)] == [("event_session", 12)]


def test_an_event_of_a_newer_release_is_not_damage(path: Path) -> None:
    append_body(path, f'{{"author":"a",{SALT},"text":"t","v":9}}'.encode())
    with pytest.raises(VersionUnsupported, match=r"annotation\.added has version 9"):
        list(verify(path))


def test_an_unknown_type_of_event_is_not_damage_where_all_else_holds(path: Path) -> None:
    append_body(path, f'{{"author":"a",{SALT},"text":"t","v":1}}'.encode())
    plain = plain_events(path)
    start = event_ends(plain)[-2]
    store_plain(path, plain[: start + 2] + b"\xff\x00" + plain[start + 4 :])
    with pytest.raises(VersionUnsupported, match="type code 65280"):
        list(verify(path))
    forge(path, "UPDATE blob SET digest = zeroblob(32) WHERE id = 1")
    assert {"version", "blob_missing"} <= codes(broken(path))


# --- erasure -------------------------------------------------------------------------------------


def erase_body(path: Path, seq: int) -> None:
    plain = bytearray(plain_events(path))
    ends = [0, *event_ends(bytes(plain))]
    with LedgerView.open(path) as view:
        head, body = view.raw(seq)
    start = ends[seq] + len(head)
    plain[start : start + len(body)] = bytes(len(body))
    store_plain(
        path, bytes(plain), f"INSERT INTO erasure VALUES (0, 0, 0, {start}, {len(body)}, 11)"
    )


def test_an_erased_body_is_read_as_erased_and_its_header_still_holds(path: Path) -> None:
    body = canonical.encode({"reason": "private", "salt": "0" * 32, "sequence": [10], "v": 1})
    append_body(path, body)
    plain = plain_events(path)
    start = event_ends(plain)[-2]
    store_plain(path, plain[: start + 2] + b"\x00\x50" + plain[start + 4 :])
    root = None
    with LedgerView.open(path) as view:
        root = view.root()
    erase_body(path, 10)
    findings = list(verify(path))
    assert [f for f in findings if f.severity == "broken"] == []
    assert of(findings, "erased").seq == 10
    with LedgerView.open(path) as view:
        assert view.root() == root
        assert view.event(10).erased
        assert view.event(9).event is not None


def test_a_body_that_is_gone_without_a_word_is_found(path: Path) -> None:
    erase_body(path, 10)
    assert (10, "erased_silently") in {(f.seq, f.code) for f in broken(path)}


# --- checkpoints and keys ------------------------------------------------------------------------


def cut(path: Path, size: int) -> None:
    """Drop all events from `size` on, and everything that would tell, but for outside."""
    with LedgerView.open(path) as view:
        raws = [b"".join(view.raw(seq)) for seq in range(size)]
    store_plain(
        path,
        b"".join(raws),
        f"DELETE FROM event WHERE seq >= {size}",
        f"DELETE FROM checkpoint WHERE size > {size}",
        "DELETE FROM segment" if size == 0 else "SELECT 1",
    )
    for beside in path.parent.glob("ledger.checkpoint*"):
        beside.unlink()


@pytest.mark.parametrize("dropped", [1, 3, 11])
def test_a_dropped_tail_shows_only_against_a_checkpoint_from_outside(
    path: Path, dropped: int
) -> None:
    with LedgerView.open(path) as view:
        kept = [text.encode() for _, text in view.checkpoints()]
    cut(path, 11 - dropped)
    findings = list(verify(path))
    assert [f for f in findings if f.severity == "broken"] == []
    assert "no_outside_checkpoint" in codes(findings)
    assert "rolled_back" in codes(broken(path, checkpoint=kept[-1]))
    found = of(broken(path, min_size=11), "too_small")
    assert found.seq == 11 - dropped


def test_a_kept_checkpoint_proves_what_it_covers(path: Path) -> None:
    with LedgerView.open(path) as view:
        kept = note.parse_checkpoint(next(view.checkpoints())[1].encode())
    with Ledger.open(path) as ledger:
        ledger.append(ev.AnnotationAdded(text="more", author="a"))
    for given in (kept, kept.text, [kept]):
        findings = list(verify(path, checkpoint=given))
        assert [f for f in findings if f.severity == "broken"] == []
        assert "the first 9 events" in of(findings, "outside_checkpoint").message
        assert "no_outside_checkpoint" not in codes(findings)


def test_a_kept_checkpoint_of_other_content_is_contradicted(path: Path) -> None:
    with LedgerView.open(path) as view:
        origin = note.unsigned_origin(view.ledger_id)
    other = note.Checkpoint(origin, 5, hashlib.sha256(b"other").digest())
    assert codes(broken(path, checkpoint=other)) == {"checkpoint_root"}
    foreign = note.Checkpoint(note.unsigned_origin(bytes(16)), 5, other.root)
    assert codes(broken(path, checkpoint=foreign)) == {"checkpoint_origin"}
    assert codes(broken(path, checkpoint=b"rubbish")) == {"checkpoint"}


class Key:
    """A keyed hash in the place of a signature: enough to see who is asked what."""

    def __init__(self, name: str, secret: bytes = b"secret") -> None:
        self.name = name
        self.key_id = hashlib.sha256(name.encode()).digest()[:4]
        self._secret = secret

    def sign(self, text: bytes) -> bytes:
        return hashlib.sha256(self._secret + text).digest()

    def verify(self, text: bytes, signature: bytes) -> bool:
        return signature == self.sign(text)

    def time_of(self, signature: bytes) -> None:
        return None


def test_a_signature_is_proven_only_by_a_key_that_was_brought(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint(Key("lab"))
    assert "unsigned" in codes(check_ledger(tmp_path))
    assert "unsigned" in codes(list(verify(tmp_path, verifiers=[Key("other")])))
    found = of(list(verify(tmp_path, verifiers=[Key("lab")])), "signed")
    assert found.message == "the first 3 events are signed by lab"
    assert "signature" in codes(broken(tmp_path, verifiers=[Key("lab", b"another secret")]))


class Wants:
    """A policy that wants one key."""

    verifiers = ()

    def __init__(self, name: str) -> None:
        self._name = name

    def fault(self, signed: note.SignedNote) -> str | None:
        names = {line.name for line in signed.signatures}
        return None if self._name in names else f"{self._name} did not sign"


def test_a_policy_says_what_is_missing(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint()
        assert (
            "no checkpoint is signed"
            in of(list(verify(tmp_path, policy=Wants("lab"))), "policy").message
        )
        ledger.checkpoint(Key("lab"))
    assert "policy" not in codes(list(verify(tmp_path, policy=Wants("lab"))))
    assert (
        "witness did not sign"
        in of(list(verify(tmp_path, policy=Wants("witness"))), "policy").message
    )


# --- copies of another ledger --------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return build(tmp_path / "source.sqlite")


def reuse(
    source: Path,
    target: Path,
    change: Callable[[dict[str, Any]], dict[str, Any]] = lambda fields: fields,
    *,
    chained: bool = False,
    left_out: int = 0,
) -> Path:
    """Reuse the task of `source` in a new ledger, with `change` made to the event that says so."""
    with LedgerView.open(source) as view:
        events = [
            e for e in view.events() if e.task == "t" and not isinstance(e.event, ev.TaskReused)
        ]
        *_, (_, checkpoint) = view.checkpoints()
        fields = {
            "task": "t",
            "source_run_id": "r1",
            "source_ledger_id": view.ledger_id.hex(),
            "size": view.size,
            "root": view.root().hex(),
            "leaves": canonical.Binary(view.leaves()),
            "sequence": tuple(e.seq for e in events),
            "checkpoint": checkpoint,
            "chained": chained,
        }
        copies = [Copy(e.header, view.raw(e.seq)[1], view.blob) for e in events]
        with Ledger.create(target) as ledger:
            ledger.append(*say.opening("t"))
            ledger.append(
                ev.TaskReused.model_validate(change(fields)), *copies[: len(copies) - left_out]
            )
    return target


def test_copies_are_those_of_the_ledger_that_they_name(source: Path, tmp_path: Path) -> None:
    target = reuse(source, tmp_path / "target.sqlite")
    found = of(check_ledger(target), "origin_claim")
    assert (found.severity, found.seq, found.task) == ("unproven", 3, "t")


def test_copies_of_copies_are_followed_as_well(source: Path, tmp_path: Path) -> None:
    first = reuse(source, tmp_path / "first.sqlite")
    with Ledger.open(first) as ledger:
        ledger.checkpoint()
    second = reuse(first, tmp_path / "second.sqlite", chained=True)
    assert "origin_claim" in codes(check_ledger(second))


def test_a_signed_origin_is_named(tmp_path: Path) -> None:
    source = build(tmp_path / "source.sqlite", seal=False)
    with Ledger.open(source) as ledger:
        ledger.checkpoint(Key("lab"))
    target = reuse(source, tmp_path / "target.sqlite")
    assert "origin_claim" in codes(check_ledger(target))
    findings = list(verify(target, verifiers=[Key("lab")]))
    assert "signed by lab" in of(findings, "origin_signed").message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda f: {**f, "sequence": (f["sequence"][1], *f["sequence"][1:])}, "copy_altered"),
        (lambda f: {**f, "sequence": f["sequence"][:-1]}, "copy_unnamed"),
        (lambda f: {**f, "sequence": (*f["sequence"], 11)}, "copies_missing"),
        (lambda f: {**f, "source_ledger_id": "00" * 16, "checkpoint": None}, "copy_altered"),
        (lambda f: {**f, "source_ledger_id": "no hex", "checkpoint": None}, "copy_altered"),
        (lambda f: {**f, "root": "00" * 32}, "origin"),
        (lambda f: {**f, "size": f["size"] - 1}, "origin"),
        (lambda f: {**f, "leaves": "no leaves"}, "origin"),
        (lambda f: {**f, "checkpoint": "no checkpoint"}, "origin"),
        (
            lambda f: {**f, "checkpoint": f["checkpoint"].replace("unsigned/", "unsigned/0")},
            "origin",
        ),
        (lambda f: {**f, "leaves": canonical.Binary(bytes(32 * f["size"]))}, "origin"),
    ],
)
def test_a_reuse_that_does_not_hold_is_found(
    source: Path,
    tmp_path: Path,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    code: str,
) -> None:
    target = reuse(source, tmp_path / "target.sqlite", change)
    assert code in codes(broken(target))


def test_a_verdict_changed_in_a_copy_is_found(source: Path, tmp_path: Path) -> None:
    target = reuse(source, tmp_path / "target.sqlite")
    with LedgerView.open(target) as view:
        raws = [view.raw(seq) for seq in range(view.size)]
        seq = next(e.seq for e in view.events() if e.type == "evaluation.finished")
    head, body = raws[seq]
    body = body.replace(b'"correct":true', b'"correct":null')
    raws[seq] = head[:64] + hashlib.sha256(body).digest() + head[96:], body
    store_plain(target, b"".join(h + b for h, b in raws))
    assert ("copy_altered", seq) in {(f.code, f.seq) for f in broken(target)}


def test_leaves_of_a_source_are_the_trees(source: Path) -> None:
    with LedgerView.open(source) as view:
        assert tlog.root_of(view.leaves()) == view.root()


def test_a_copy_of_the_file_is_as_good(source: Path, tmp_path: Path) -> None:
    shutil.copyfile(source, tmp_path / "copy.sqlite")
    check_ledger(tmp_path / "copy.sqlite")


def test_what_follows_a_damaged_part_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        for number in range(1, 60):
            ledger.append(*say.attempt("t", number, answer=f"answer {number}"))
    forge(path, "UPDATE segment SET data = zeroblob(length(data)) WHERE id = 3")
    found = broken(path)
    (rest,) = [f for f in found if f.code == "segment_rest"]
    assert rest.message.startswith(f"events {rest.seq} to 239")
    assert sum(f.seq is not None and f.seq > 4 for f in found) < 10


def test_damage_is_not_told_as_an_unfinished_run_or_a_newer_release(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        for number in range(1, 40):
            ledger.append(*say.attempt("t", number, answer=f"answer {number}"))
        ledger.append(ev.TaskFinished(task="t", reason="all_attempts", error=False), *say.ending())
        ledger.seal()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        (data,) = connection.execute("SELECT data FROM segment WHERE id = 2").fetchone()
    connection.close()
    for at in range(4, len(data) - 1, 5):
        victim = tmp_path / f"{at}.sqlite"
        shutil.copyfile(path, victim)
        altered = data[:at] + bytes([data[at] ^ 0x24]) + data[at + 1 :]
        forge(victim, f"UPDATE segment SET data = x'{altered.hex()}' WHERE id = 2")
        found = list(verify(victim))
        assert "segment" in codes(found)
        assert not {"interrupted", "attempt_open", "version"} & codes(found)
        (rest,) = [f for f in found if f.code == "segment_rest"] or [None]
        if rest is not None:
            first, last = rest.message.split(",")[0].removeprefix("events ").split(" to ")
            assert int(first) <= int(last)
