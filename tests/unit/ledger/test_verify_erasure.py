"""Erasures that are not what they say: bytes that are gone or there without a word."""

from pathlib import Path

import pytest

from ledger import LedgerView, verify
from ledger import events as ev
from ledger.canonical import Binary
from ledger.segment import SegmentReader, single_part
from ledger.store import Copy, Ledger
from tests import events_of as say
from tests.ledger_checks import check_ledger, forge


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A run of which event 5 was erased by event 9; event 10 holds a large value."""
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*say.whole_task("t", say.attempt("t", answer="a" * 5000)))
    with Ledger.open(path) as ledger:
        ledger.erase([5], reason="asked to")
        ledger.append(ev.ExtensionRecorded(name="a.b", payload="b" * 5000))
        ledger.checkpoint()
    return path


def broken(path: Path) -> set[tuple[str, int | None]]:
    return {(f.code, f.seq) for f in verify(path) if f.severity == "broken"}


def test_an_erasure_that_was_done_is_a_remark(path: Path) -> None:
    found = [f for f in check_ledger(path) if f.code == "erased"]
    assert [(f.seq, f.task, f.severity) for f in found] == [(5, "t", "note")]


def test_without_its_row_an_erased_body_is_an_altered_one(path: Path) -> None:
    forge(path, "DELETE FROM erasure")
    assert ("body_altered", 5) in broken(path)


def test_a_row_by_an_event_that_erases_nothing_is_told(path: Path) -> None:
    forge(path, "UPDATE erasure SET by_seq = 8")
    assert ("erasure", 8) in broken(path)


def zeroed(path: Path, table: str, place: tuple[int, int, int], filling: bytes = b"\0") -> str:
    """The statement that puts other bytes to a place of a segment that has one part."""
    segment, offset, length = place
    with LedgerView.open(path) as view:
        plain = bytearray(SegmentReader(view.source.query, table).plain(segment))
    plain[offset : offset + length] = filling * length
    part = single_part(segment, bytes(plain))
    return (
        f"UPDATE {table} SET plain = {part.plain}, hash = {part.hash}, data = x'{part.data.hex()}'"
        f" WHERE id = {part.id}"
    )


def test_bytes_where_something_is_said_to_be_erased_are_told(path: Path) -> None:
    with LedgerView.open(path) as view:
        ((segment, offset, length),) = view.source.query(
            "SELECT seg, off, len FROM erasure WHERE stream = 0"
        )
    forge(path, zeroed(path, "segment", (segment, offset, length), b"x"))
    assert ("erasure", 5) in broken(path)


def test_a_body_that_no_event_says_was_erased_is_told(path: Path) -> None:
    with LedgerView.open(path) as view:
        header = view.event(7).header
        ((segment, offset),) = view.source.query("SELECT seg, off FROM event WHERE seq = 7")
    place = (segment, offset + len(header.encode()), header.body_length)
    numbers = ", ".join(map(str, place))
    row = f"INSERT INTO erasure SELECT max(id) + 1, 0, {numbers}, 9 FROM erasure"
    forge(path, zeroed(path, "segment", place), row)
    assert broken(path) == {("erased_silently", 7)}


def test_a_large_value_that_no_event_says_was_erased_is_told(path: Path) -> None:
    with LedgerView.open(path) as view:
        *_, place = view.source.query("SELECT seg, off, len FROM blob ORDER BY id")
    numbers = ", ".join(map(str, place))
    row = f"INSERT INTO erasure SELECT max(id) + 1, 1, {numbers}, 9 FROM erasure"
    forge(path, zeroed(path, "blobsegment", place), row)
    assert broken(path) == {("erased_silently", 10)}


def copied(tmp_path: Path) -> tuple[Path, Path]:
    """A ledger, and one that holds its task as copies: event 3 is the reuse, 4 to 9 the copies."""
    source, target = tmp_path / "source.sqlite", tmp_path / "target.sqlite"
    with Ledger.create(source) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*say.whole_task("t", say.attempt("t")))
    with LedgerView.open(source) as view, Ledger.create(target) as ledger:
        sequence = tuple(range(3, view.size))
        reuse = ev.TaskReused(
            task="t",
            source_run_id="r0",
            source_ledger_id=view.ledger_id.hex(),
            size=view.size,
            root=view.root().hex(),
            leaves=Binary(view.leaves()),
            sequence=sequence,
        )
        copies = [Copy(view.event(seq).header, view.raw(seq)[1], view.blob) for seq in sequence]
        ledger.append(*say.opening("t"), reuse, *copies)
    return source, target


def test_copies_whose_reuse_was_erased_are_of_unknown_origin_and_not_broken(tmp_path: Path) -> None:
    _, target = copied(tmp_path)
    with Ledger.open(target) as ledger:
        ledger.erase([3, 5], reason="asked to")
    found = {(f.code, f.seq, f.severity) for f in check_ledger(target)}
    assert ("origin_erased", 3, "unproven") in found
    assert not any(code == "origin_claim" for code, *_ in found)


def test_a_copy_comes_from_where_it_does_whichever_of_both_was_erased(tmp_path: Path) -> None:
    source, target = copied(tmp_path)
    for path, seq in ((target, 6), (source, 4)):
        with Ledger.open(path) as ledger:
            ledger.erase([seq], reason="asked to")
        check_ledger(path)
    with LedgerView.open(source) as view:
        found = list(verify(target, sources=[view]))
    assert "origin_at_hand" in {f.code for f in found}
    assert not [f for f in found if f.severity == "broken"]
