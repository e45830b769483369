"""Erasing: what goes, what stays, and that what went is nowhere any more."""

import hashlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import LedgerView, canonical, database, fold, rewriting
from ledger import events as ev
from ledger.canonical import Binary
from ledger.erasure import KEPT
from ledger.errors import (
    AlreadySealed,
    LedgerLocked,
    LedgerStateError,
    NotStored,
    RunNotFound,
    UsageError,
)
from ledger.store import Ledger
from tests import events_of as say
from tests.compat.freeze import LEDGERS
from tests.erased import assert_gone, pieces, stored
from tests.ledger_checks import broken, check_ledger
from tests.legal_runs import legal_runs

FROZEN = sorted(LEDGERS.glob("*.sqlite"))


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a crash is tested elsewhere; here nothing waits for the disk."""
    monkeypatch.setattr(
        database, "_PRAGMAS", ("PRAGMA synchronous = OFF", "PRAGMA secure_delete = ON")
    )
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "ledger.sqlite"


def write(path: Path, *events: ev.AnyEvent, seal: bool = False) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*events)
        ledger.checkpoint()
        if seal:
            ledger.seal()


def two_tasks(first: object, second: object) -> list[ev.AnyEvent]:
    """Event 5 is the result of `t` with the answer `first`, event 11 that of `u` with `second`."""
    return [
        *say.opening("t", "u"),
        *say.whole_task("t", say.attempt("t", answer=first)),
        *say.whole_task("u", say.attempt("u", answer=second)),
        *say.ending(),
    ]


def erase(path: Path, *sequence: int, **how: object) -> ev.PayloadErased:
    with Ledger.open(path, amends=True) as ledger:
        done = ledger.erase(sequence, reason="asked to", **how)
        ledger.checkpoint()
    with LedgerView.open(path) as view:
        event = view.event(done.seq).event
    assert isinstance(event, ev.PayloadErased)
    return event


# -- gone for good ----------------------------------------------------------------------------


@pytest.mark.parametrize("seal", [False, True], ids=["running", "sealed"])
@pytest.mark.parametrize("length", [40, 20_000], ids=["in the body", "in pieces"])
def test_what_was_erased_is_in_no_byte_of_the_directory(
    path: Path, seal: bool, length: int
) -> None:
    marker = secrets.token_hex(length)
    write(path, *two_tasks(marker, "42"), seal=seal)
    before = pieces(path, marker)
    erase(path, 5)
    assert_gone(path, marker, before)
    assert not broken(path)
    check_ledger(path)


@pytest.mark.parametrize("seal", [False, True], ids=["running", "sealed"])
def test_an_erasure_leaves_one_file_without_wal_and_journal(path: Path, seal: bool) -> None:
    write(path, *two_tasks("a", "b"), seal=seal)
    with Ledger.open(path, amends=True) as ledger:
        ledger.erase([5], reason="asked to")
        ledger.checkpoint()
    beside = {"ledger.sqlite", "ledger.lock", "ledger.checkpoint.unsigned"}
    assert {file.name for file in path.parent.iterdir()} == beside
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with LedgerView.open(path) as view:
        assert view.source.indexed is seal
        assert view.sealed is seal
        assert list(view.checkpoints())[-1][0] == view.size
    assert path.stat().st_mode & 0o777 == (0o444 if seal else 0o644)


def test_a_low_entropy_body_cannot_be_guessed_from_what_remains(path: Path) -> None:
    """Nothing but the salted address is left: no candidate, hashed in any likely way, is found."""
    write(path, *two_tasks("7", "8"), seal=True)
    with LedgerView.open(path) as view:
        _, body = view.raw(5)
    salt = canonical.decode(body)["salt"]
    event = erase(path, 5)
    after = stored(path)
    assert event.blobs == ()
    assert salt.encode() not in after
    assert bytes.fromhex(salt) not in after
    candidates = [b"7", b'"7"', *(canonical.encode(x) for x in ("7", {"final_answer": "7"}))]
    with LedgerView.open(path) as view:
        header = view.event(5).header
        told = {key: value for key, value in canonical.decode(body).items() if key != "salt"}
    for guess in (*candidates, canonical.encode(told), canonical.encode(told | {"salt": "0" * 32})):
        digest = hashlib.sha256(guess).digest()
        assert digest != header.address
        assert digest not in after
        assert digest.hex().encode() not in after


def test_no_piece_of_a_large_value_is_short_enough_to_be_guessed(path: Path) -> None:
    """Digests of pieces stay in `blob` and in `payload.erased`: they are of 4 KiB and more."""
    values = ["x" * 5000, [{"n": n, "t": "y" * 100} for n in range(200)], Binary(b"z" * 70_000)]
    write(path, *two_tasks(values, "42"))
    event = erase(path, 5)
    with LedgerView.open(path) as view:
        lengths = dict(view.source.query("SELECT digest, len FROM blob"))
    assert len(event.blobs) == len(lengths) > 3
    assert min(lengths[bytes.fromhex(digest)] for digest in event.blobs) >= 4096


# -- what goes and what stays -----------------------------------------------------------------


def test_a_piece_that_another_event_needs_stays_and_is_named(path: Path) -> None:
    write(path, *two_tasks("s" * 4096 + "a" * 4096, "s" * 4096 + "b" * 4096))
    shared, own = (hashlib.sha256(letter * 4096).digest() for letter in (b"s", b"a"))
    with Ledger.open(path, amends=True) as ledger:
        done = ledger.erase([5], reason="asked to")
    assert done.plan.shared == {shared: 11}
    assert done.plan.blobs == (own,)
    assert done.plan.sequence == (5,)
    with LedgerView.open(path) as view:
        assert view.resolve(view.event(11).event.final_answer) == "s" * 4096 + "b" * 4096
        with pytest.raises(RunNotFound, match="was erased"):
            view.blob(own)
    check_ledger(path)


def test_everywhere_takes_shared_pieces_and_names_every_event_that_lost_one(path: Path) -> None:
    write(path, *two_tasks("s" * 4096 + "a", "s" * 4096 + "b"))
    event = erase(path, 5, everywhere=True)
    assert event.sequence == (5, 11)
    with LedgerView.open(path) as view:
        assert view.event(5).erased
        assert not view.event(11).erased
        with pytest.raises(RunNotFound):
            view.resolve(view.event(11).event.final_answer)
    assert {f.seq for f in check_ledger(path) if f.code == "erased"} == {5, 11}


def test_two_events_that_share_a_piece_lose_it_together(path: Path) -> None:
    write(path, *two_tasks("s" * 4096 + "a", "s" * 4096 + "b"))
    event = erase(path, 5, 11)
    assert len(event.blobs) == 1
    assert not any(b"s" * 64 in data for data in [stored(path)])


def test_pieces_inside_pieces_of_lists_go_too_but_not_those_of_others(path: Path) -> None:
    inner = "i" * 4096
    kept = "k" * 4096
    long = [{"text": inner + kept + "!", "n": n} for n in range(100)]
    write(path, *two_tasks(long, kept + "?"))
    erase(path, 5)
    after = stored(path)
    assert b"i" * 64 not in after
    assert b"k" * 4096 in after
    check_ledger(path)


def test_a_piece_can_be_erased_by_its_digest_with_all_that_only_it_needs(path: Path) -> None:
    long = [{"text": "i" * 5000, "n": n} for n in range(100)]
    write(path, *two_tasks(long, "42"))
    with LedgerView.open(path) as view:
        first, *_ = view.event(5).event.final_answer.pieces
    event = erase(path, blobs=[first.hex()[:16].upper()])
    assert event.sequence == (5,)
    assert first.hex() in event.blobs
    with LedgerView.open(path) as view:
        assert not view.event(5).erased
        with pytest.raises(RunNotFound):
            view.resolve(view.event(5).event.final_answer)
    check_ledger(path)


def test_a_shared_piece_that_is_named_itself_goes_everywhere_or_not_at_all(path: Path) -> None:
    write(path, *two_tasks("s" * 4096 + "a", "s" * 4096 + "b"))
    digest = hashlib.sha256(b"s" * 4096).hexdigest()
    with pytest.raises(UsageError, match="events 5, 11; with --everywhere"):
        erase(path, blobs=[digest])
    assert erase(path, blobs=[digest], everywhere=True).sequence == (5, 11)


def test_a_piece_that_was_erased_can_be_recorded_again(path: Path) -> None:
    answer = "s" * 4096 + "!"
    write(path, *say.opening("t"), ev.TaskStarted(task="t"), *say.attempt("t", answer=answer))
    with Ledger.open(path, amends=True) as ledger:
        ledger.erase([5], reason="asked to")
        ledger.append(*say.attempt("t", 2, answer=answer))
    with LedgerView.open(path) as view:
        assert view.resolve(view.event(10).event.final_answer) == answer
    check_ledger(path)


def test_a_large_value_that_went_before_does_not_go_again(path: Path) -> None:
    write(path, *two_tasks("s" * 4096 + "a", "42"))
    erase(path, blobs=[hashlib.sha256(b"s" * 4096).hexdigest()])
    assert erase(path, 5).blobs == ()
    check_ledger(path)


# -- refused, with nothing changed -------------------------------------------------------------


def refused(path: Path, *sequence: int, **how: object) -> str:
    before = path.read_bytes()
    with pytest.raises((UsageError, RunNotFound)) as caught:
        erase(path, *sequence, **how)
    assert caught.value.exit_status == 2
    assert path.read_bytes() == before
    return str(caught.value)


def test_what_is_not_there_or_is_gone_is_told_in_one_line(path: Path) -> None:
    write(path, *two_tasks("a", "b" * 5000), seal=True)
    assert "no event 99" in refused(path, 99)
    assert f"no event {2**63}" in refused(path, 2**63)
    assert "nothing was named" in refused(path)
    assert "no blob" in refused(path, blobs=["ab" * 32])
    assert "no digest" in refused(path, blobs=["../../x"])
    assert "16 to 64" in refused(path, blobs=["ab"])
    digest = hashlib.sha256(b"b" * 4096).hexdigest()
    erase(path, 5, blobs=[digest])
    assert "event 5 was erased already, by event 18" in refused(path, 5)
    assert "erased already, by event 18" in refused(path, blobs=[digest])
    assert "no event 99" in refused(path, 11, 99)


@pytest.mark.parametrize("seq", [0, 16, 17, 18])
def test_what_says_what_the_ledger_is_cannot_be_erased(path: Path, seq: int) -> None:
    write(path, *two_tasks("a", "b"), seal=True)
    erase(path, 5)
    with LedgerView.open(path) as view:
        kind = type(view.event(seq).event)
    assert KEPT[kind] in refused(path, seq)


def test_a_ledger_that_is_written_is_not_erased_from(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        with pytest.raises(LedgerLocked, match="being written by process"):
            Ledger.open(path, amends=True)
        assert ledger.erase([2], reason="by its own writer").seq == 3
        ledger.append(ev.TaskStarted(task="t"))
    check_ledger(path)


def test_while_somebody_reads_a_running_ledger_nothing_is_changed(path: Path) -> None:
    write(path, *two_tasks("a" * 50, "b"))
    with Ledger.open(path, amends=True) as ledger, LedgerView.open(path) as reader:
        list(reader.events())
        with pytest.raises(UsageError, match="being read by somebody: nothing was erased"):
            ledger.erase([5], reason="asked to")
        assert ledger.size == 17
        assert reader.event(5).event is not None
        reader.close()
        assert ledger.erase([5], reason="asked to").seq == 17
    check_ledger(path)


def test_a_file_with_two_names_is_not_erased_from(path: Path) -> None:
    write(path, *two_tasks("a", "b"))
    os.link(path, path.with_name("other.sqlite"))
    with pytest.raises(UsageError, match="1 more names"):
        erase(path, 5)


@pytest.mark.parametrize("seal", [False, True], ids=["running", "sealed"])
def test_a_full_disk_leaves_the_ledger_as_it_was(
    path: Path, seal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, *two_tasks("a", "b"), seal=seal)

    def full(*_: object, **__: object) -> None:
        rewriting.new_path(path).write_bytes(b"a part of it")
        raise sqlite3.OperationalError("database or disk is full")

    with Ledger.open(path, amends=True) as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(rewriting, "rewrite", full)
            with pytest.raises(NotStored, match="nothing was erased"):
                ledger.erase([5], reason="asked to")
        assert not rewriting.new_path(path).exists()
        assert ledger.size == 17 + seal
        # The same writer goes on.
        ledger.append(ev.AnnotationAdded(text="full", author="me"))
        assert ledger.erase([5], reason="asked to").seq == 18 + seal
    check_ledger(path)


def test_a_disk_that_fails_before_the_file_is_written_anew_leaves_all_and_a_way_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*say.whole_task("t", say.attempt("t")))

        def fails(_: database.Database) -> bool:
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patch:
            patch.setattr(database.Database, "single", fails)
            with pytest.raises(NotStored, match="nothing was erased: disk I/O error"):
                ledger.erase([5], reason="asked to")
        ledger.append(ev.AnnotationAdded(text="it goes on", author="a"))
        assert ledger.erase([5], reason="asked to").seq == 10
    check_ledger(path)


def test_after_a_seal_only_remarks_and_erasures_follow(path: Path) -> None:
    write(path, *two_tasks("a", "b"), seal=True)
    with pytest.raises(AlreadySealed):
        Ledger.open(path)
    with Ledger.open(path, amends=True) as ledger:
        with pytest.raises(LedgerStateError):
            ledger.append(ev.InterruptRequested(signal="SIGINT", count=1))
        ledger.append(ev.AnnotationAdded(text="good", author="me"))
    with LedgerView.open(path) as view:
        # What was amended is covered and folded when it is closed, whoever forgot it.
        assert view.source.indexed
        assert list(view.checkpoints())[-1][0] == view.size == 19
    assert path.stat().st_mode & 0o777 == 0o444
    assert "sealed at 18 events; 1 more" in next(
        f.message for f in check_ledger(path) if f.code == "sealed"
    )


# -- everything else stays -----------------------------------------------------------------------


def contents(path: Path) -> tuple[list[tuple[bytes, bytes | None]], list[str], list[bytes]]:
    """Headers with bodies, the notes of checkpoints, and the root at each size."""
    with LedgerView.open(path) as view:
        raws = [
            (one.header.encode(), None if one.erased else view.raw(one.seq)[1])
            for one in view.events()
        ]
        notes = [note for _, note in view.checkpoints()]
        return raws, notes, [view.root(size) for size in range(1, view.size + 1)]


def check_erased(path: Path, gone: Iterable[int]) -> None:
    """Erase, and compare everything else with what was there before."""
    before, notes, roots = contents(path)
    event = erase(path, *gone)
    after, notes_now, roots_now = contents(path)
    assert set(gone) <= set(event.sequence)
    for seq, (header, body) in enumerate(before):
        assert after[seq] == (header, None if seq in set(gone) else body)
    assert notes_now[: len(notes)] == notes
    assert roots_now[: len(roots)] == roots
    check_ledger(path)
    with LedgerView.open(path) as view:
        state = fold(view.events())
    assert set(state.gaps) >= set(gone)
    assert state.size == len(after)


def erasable(path: Path) -> list[int]:
    kept = set(KEPT)
    with LedgerView.open(path) as view:
        return [one.seq for one in view.events() if one.event and type(one.event) not in kept]


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), events=legal_runs(most=40), seal=st.booleans())
def test_whatever_is_erased_all_else_is_byte_for_byte_the_same(
    tmp_path: Path, data: st.DataObject, events: list[ev.AnyEvent], seal: bool
) -> None:
    directory = tmp_path / secrets.token_hex(8)
    directory.mkdir()
    path = directory / "ledger.sqlite"
    cut = data.draw(st.integers(0, len(events)))
    with Ledger.create(path) as ledger:
        ledger.append(*events[:cut])
        if cut:
            ledger.checkpoint()
    with Ledger.open(path) as ledger:
        ledger.append(*events[cut:])
        ledger.checkpoint()
        if seal:
            ledger.seal()
    every = st.sets(st.sampled_from(erasable(path)), min_size=1)
    for _ in range(data.draw(st.integers(1, 2))):
        gone = data.draw(every) & set(erasable(path))
        if gone:
            check_erased(path, sorted(gone))
    shutil.rmtree(directory)


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda one: one.stem)
def test_old_ledgers_can_be_erased_from_one_event_of_each_type(path: Path, frozen: Path) -> None:
    shutil.copyfile(frozen, path)
    with LedgerView.open(path) as view:
        first = {one.type: one.seq for one in reversed(list(view.events()))}
    check_erased(path, sorted(set(first.values()) & set(erasable(path))))


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda one: one.stem)
def test_old_ledgers_can_lose_all_that_can_go(path: Path, frozen: Path) -> None:
    shutil.copyfile(frozen, path)
    check_erased(path, erasable(path))
