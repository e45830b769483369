import dataclasses
import errno
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger import LedgerView, canonical, database, note, schema, sidefile, tlog, writer
from ledger import events as ev
from ledger.codec import Header
from ledger.database import Database, Rows
from ledger.errors import (
    AclError,
    AlreadySealed,
    IntegrityError,
    LedgerDamaged,
    LedgerDead,
    LedgerExists,
    LedgerLocked,
    LedgerRolledBack,
    LedgerStateError,
    NotALedger,
    NotStored,
    RunNotFound,
    StorageFailed,
    UsageError,
    ValueRefused,
)
from ledger.store import Copy, Ledger, Receipt
from tests import events_of as say
from tests.ledger_checks import check_ledger
from tests.signed_ledgers import LAB

ROOT = Path(__file__).resolve().parents[3]


def ticking(step: int = 1_000_000) -> Callable[[], tuple[int, int]]:
    """A clock that goes on by the same step each time it is asked."""
    now = [1_700_000_000_000_000_000, 0]

    def clock() -> tuple[int, int]:
        now[0] += step
        now[1] += step
        return now[0], now[1]

    return clock


def counting() -> Callable[[int], bytes]:
    """Bytes that look random and are the same each time."""
    calls = [0]

    def entropy(length: int) -> bytes:
        calls[0] += 1
        return hashlib.sha256(b"%d" % calls[0]).digest()[:length]

    return entropy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.create(path, clock=ticking(), entropy=counting()) as made:
        yield made
    check_ledger(path)


def note_of(text: str) -> ev.AnnotationAdded:
    return ev.AnnotationAdded(text=text, author="a")


def started(ledger: Ledger, *tasks: str) -> None:
    ledger.append(*say.opening(*tasks), *(ev.TaskStarted(task=task) for task in tasks))


# --- create, open, close -------------------------------------------------------------------------


def test_what_is_appended_is_there_when_it_is_acknowledged(ledger: Ledger, path: Path) -> None:
    receipt = ledger.append(*say.opening("t"))
    with LedgerView.open(path) as view:
        assert [r.event for r in view.events()] == say.opening("t")
        assert (receipt.first, receipt.size, receipt.root) == (0, 3, view.root())
    assert (ledger.size, ledger.root()) == (3, receipt.root)


def test_a_directory_holds_its_ledger_under_the_fixed_name(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        assert ledger.path == tmp_path / "ledger.sqlite"
    with Ledger.open(tmp_path) as ledger:
        ledger.append(say.created())
    check_ledger(tmp_path)


def test_create_never_replaces_what_is_there(path: Path) -> None:
    path.write_bytes(b"something")
    with pytest.raises(LedgerExists):
        Ledger.create(path)
    assert path.read_bytes() == b"something"


def test_a_ledger_that_is_not_known_to_be_on_disk_is_not_made(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database, "sync_directory", _no_room)
        with pytest.raises(UsageError, match="no ledger can be made"):
            Ledger.create(path)
    assert not path.exists()
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
    check_ledger(path)


def test_what_the_system_refuses_while_a_writer_reads_is_told_and_it_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*say.whole_task("t", say.attempt("t")))
        real = Database.query

        def fails(self: Database, sql: str, args: tuple[object, ...] = ()) -> Iterator[object]:
            if "FROM segment" in sql:
                raise sqlite3.OperationalError("disk I/O error")
            yield from real(self, sql, args)

        with monkeypatch.context() as patch:
            patch.setattr(Database, "query", fails)
            with pytest.raises(StorageFailed, match="disk I/O error"):
                ledger.erase([5], reason="asked to")
        ledger.append(ev.AnnotationAdded(text="it goes on", author="a"))
        assert ledger.erase([5], reason="asked to").seq == 10
    check_ledger(path)


def test_create_goes_on_after_one_that_died_half_way(path: Path) -> None:
    path.with_name("ledger.sqlite.new").write_bytes(b"half")
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
    assert not path.with_name("ledger.sqlite.new").exists()
    check_ledger(path)


def test_where_nothing_can_be_made_the_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="missing"):
        Ledger.create(tmp_path / "missing" / "ledger.sqlite")
    with pytest.raises(NotALedger, match="missing"):
        Ledger.open(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("locked_before", [False, True])
def test_what_is_no_ledger_is_not_opened_and_gets_no_lock(path: Path, locked_before: bool) -> None:
    path.write_bytes(b"text" * 1000)
    if locked_before:
        path.with_name("ledger.lock").touch()
    with pytest.raises(NotALedger):
        Ledger.open(path)
    assert path.with_name("ledger.lock").exists() is locked_before


def test_the_same_clock_and_entropy_give_the_same_root_and_bodies(tmp_path: Path) -> None:
    seen = []
    for name in ("a.sqlite", "b.sqlite"):
        with Ledger.create(tmp_path / name, clock=ticking(), entropy=counting()) as ledger:
            ledger.append(*say.opening("t"))
            ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 20_000)))
            with ledger.view() as view:
                seen.append((ledger.root(), [view.raw(seq) for seq in range(ledger.size)]))
    assert seen[0] == seen[1]


def test_other_entropy_gives_other_bodies_for_equal_events(tmp_path: Path) -> None:
    roots = set()
    for name in ("a.sqlite", "b.sqlite"):
        with Ledger.create(tmp_path / name, clock=ticking()) as ledger:
            roots.add(ledger.append(say.created()).root)
    assert len(roots) == 2


def test_a_second_writer_is_refused_and_told_who_writes(ledger: Ledger, path: Path) -> None:
    with pytest.raises(LedgerLocked, match=r"is being written by process \d+, started"):
        Ledger.open(path, wait=0)
    ledger.append(say.created())


def test_a_closed_ledger_opens_again_in_the_next_session(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
    with Ledger.open(path) as ledger:
        assert ledger.size == 3
        ledger.append(ev.TaskStarted(task="t"))
    check_ledger(path)
    with LedgerView.open(path) as view:
        assert [r.header.session for r in view.events()] == [0, 0, 0, 1]


def test_opening_knows_the_state_that_events_left(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
    with Ledger.open(path) as ledger, pytest.raises(LedgerStateError):
        ledger.append(say.created())


def test_an_empty_ledger_can_be_opened_and_written(path: Path) -> None:
    Ledger.create(path).close()
    with Ledger.open(path) as ledger:
        ledger.append(say.created())
    check_ledger(path)


def test_a_clean_close_leaves_one_file_and_the_lock(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
    assert {p.name for p in path.parent.iterdir()} == {"ledger.sqlite", "ledger.lock"}


def test_after_closing_nothing_can_be_appended(path: Path) -> None:
    ledger = Ledger.create(path)
    ledger.close()
    ledger.close()
    with pytest.raises(UsageError, match="closed"):
        ledger.append(say.created())


# --- append --------------------------------------------------------------------------------------


def test_one_append_is_stored_whole_or_not_at_all(ledger: Ledger) -> None:
    ledger.append(*say.opening("t"))
    root = ledger.root()
    with pytest.raises(LedgerStateError):
        ledger.append(ev.TaskStarted(task="t"), ev.TaskStarted(task="t"))
    assert (ledger.size, ledger.root()) == (3, root)
    ledger.append(ev.TaskStarted(task="t"))


def test_a_refused_value_stores_nothing_of_its_batch(ledger: Ledger) -> None:
    started(ledger, "t")
    size = ledger.size
    with pytest.raises(ValueRefused, match=r"\$\.trajectory\[0\]"):
        ledger.append(
            ev.AttemptStarted(task="t", attempt=1),
            say.result("t", trajectory=["x" * 9000, {2}][1:]),
        )
    assert ledger.size == size
    ledger.append(*say.attempt("t"))


def test_a_task_id_over_60000_bytes_is_refused_by_name(ledger: Ledger) -> None:
    ledger.append(*say.opening("t" * 60_000))
    with pytest.raises(ValueRefused, match=r"\$\.task: .*|task id has at most 60000"):
        ledger.append(ev.AnnotationAdded(task="t" * 60_001, text="x", author="a"))
    ledger.append(ev.TaskStarted(task="t" * 60_000))


@pytest.mark.parametrize("task", ["\ud800", "a\udc00", "\x00", "\u2028", "a/../b", "é", "e\u0301"])
def test_odd_task_ids_come_back_equal(ledger: Ledger, task: str) -> None:
    started(ledger, task)
    ledger.append(*say.attempt(task, answer=task))
    with ledger.view() as view:
        events = list(view.events(since=3))
    assert {event.task for event in events} == {task}
    assert isinstance(events[2].event, ev.ResultRecorded)
    assert events[2].event.final_answer == task


def test_appending_nothing_is_true_at_once(ledger: Ledger) -> None:
    ledger.append(say.created())
    receipt = ledger.append()
    assert (receipt.first, receipt.size, receipt.root) == (1, 1, ledger.root())


def test_a_group_is_one_transaction_and_a_bad_batch_fails_alone(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = []
    real = Database.store
    monkeypatch.setattr(Database, "store", lambda db, rows: (commits.append(1), real(db, rows))[1])
    outcomes = ledger.append_group(
        [
            say.opening("t"),
            [say.created()],
            [ev.TaskStarted(task="t")],
            [ev.AnnotationAdded(task="x" * 60_001, text="x", author="a")],
            say.attempt("t"),
        ]
    )
    assert [type(o) for o in outcomes] == [
        Receipt,
        LedgerStateError,
        Receipt,
        ValueRefused,
        Receipt,
    ]
    assert [(o.first, o.size) for o in outcomes if isinstance(o, Receipt)] == [
        (0, 3),
        (3, 4),
        (4, 8),
    ]
    assert commits == [1]
    with ledger.view() as view:
        assert [r.event for r in view.events()] == [
            *say.opening("t"),
            ev.TaskStarted(task="t"),
            *say.attempt("t"),
        ]


def test_each_receipt_of_a_group_is_true_of_its_own_prefix(ledger: Ledger) -> None:
    outcomes = ledger.append_group([say.opening("t"), [ev.TaskStarted(task="t")], say.attempt("t")])
    with ledger.view() as view:
        for outcome in outcomes:
            assert isinstance(outcome, Receipt)
            assert view.root(outcome.size) == outcome.root


def test_callers_that_wait_share_one_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = []
    gate = threading.Event()
    real = Database.store

    def slow(database: Database, rows: Rows) -> None:
        commits.append(len(rows.events))
        gate.wait(30)
        real(database, rows)

    with Ledger.create(path) as ledger:
        ledger.append(say.created())
        monkeypatch.setattr(Database, "store", slow)
        receipts: list[Receipt] = []
        threads = [
            threading.Thread(target=lambda n=n: receipts.append(ledger.append(note_of(str(n)))))
            for n in range(9)
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 30
        while len(ledger._waiting) < 8 and time.monotonic() < deadline:
            time.sleep(0.001)
        gate.set()
        for thread in threads:
            thread.join()
    assert commits == [1, 8]
    assert sorted(r.first for r in receipts) == list(range(1, 10))
    check_ledger(path)


def test_many_threads_each_get_their_own_events(ledger: Ledger) -> None:
    ledger.append(say.created())
    receipts: dict[str, Receipt] = {}

    def say_many(name: str) -> None:
        for n in range(20):
            receipts[f"{name}{n}"] = ledger.append(note_of(f"{name}{n}"))

    threads = [threading.Thread(target=say_many, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ledger.view() as view:
        for text, receipt in receipts.items():
            event = view.event(receipt.first).event
            assert isinstance(event, ev.AnnotationAdded)
            assert event.text == text
    assert ledger.size == 81


def test_a_clock_that_breaks_costs_the_batch_and_nothing_else(path: Path) -> None:
    working = ticking()
    broken = [False]

    def clock() -> tuple[int, int]:
        if broken[0]:
            raise ZeroDivisionError
        return working()

    with Ledger.create(path, clock=clock) as ledger:
        ledger.append(say.created())
        broken[0] = True
        with pytest.raises(ZeroDivisionError):
            ledger.append(note_of("lost"))
        broken[0] = False
        assert ledger.append(note_of("kept")).first == 1
    check_ledger(path)


class Slow:
    """Makes the first commit wait until several callers stand behind it."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self.entered = threading.Event(), threading.Event()
        real = Database.store

        def store(database: Database, rows: Rows) -> None:
            self.entered.set()
            self.gate.wait(30)
            real(database, rows)

        monkeypatch.setattr(Database, "store", store)
        self.ledger = ledger
        self.outcomes: dict[str, Receipt | BaseException] = {}
        self.threads: list[threading.Thread] = []

    def _append(self, name: str, *items: ev.AnyEvent | Copy) -> None:
        try:
            self.outcomes[name] = self.ledger.append(*items)
        except BaseException as error:  # noqa: BLE001 - what a caller is told is looked at
            self.outcomes[name] = error

    def call(self, name: str, *items: ev.AnyEvent | Copy) -> None:
        """Let another thread append, and return when it waits."""
        waiting = len(self.ledger._waiting)
        is_first = not self.threads
        self.threads.append(threading.Thread(target=self._append, args=(name, *items)))
        self.threads[-1].start()
        if is_first:
            assert self.entered.wait(30)
        deadline = time.monotonic() + 30
        while not is_first and len(self.ledger._waiting) == waiting:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def finish(self) -> None:
        self.gate.set()
        for thread in self.threads:
            thread.join()


def bad_copy(path: Path) -> Copy:
    """A copy whose pieces come from code that breaks."""
    with Ledger.create(path) as source:
        source.append(*say.opening("t"), ev.TaskStarted(task="t"))
        source.append(*say.attempt("t", answer="x" * 9000))
    with LedgerView.open(path) as view:
        (seq,) = [e.seq for e in view.events() if e.type == "result.recorded"]
        head, body = view.raw(seq)

    def fetch(_digest: bytes) -> bytes:
        raise ZeroDivisionError

    return Copy(Header.decode(head), body, fetch)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_who_waits_with_a_batch_that_breaks_the_program_is_stored_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    bad = bad_copy(path.with_name("source.sqlite"))
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
        slow = Slow(ledger, monkeypatch)
        slow.call("first", note_of("first"))
        for number in range(3):
            slow.call(str(number), bad if number == place else note_of(str(number)))
        slow.finish()
        told = slow.outcomes
        assert isinstance(told.pop(str(place)), ZeroDivisionError)
        receipts = [told[name] for name in sorted(told)]
        assert sorted(r.first for r in receipts if isinstance(r, Receipt)) == [1, 2, 3]
        assert ledger.append(note_of("later")).first == 4
    with LedgerView.open(path) as view:
        texts = [e.event.text for e in view.events(since=1)]
        for name, receipt in told.items():
            assert texts[receipt.first - 1] == name
    check_ledger(path)


@pytest.mark.parametrize("stored", [False, True])
def test_who_waits_in_a_commit_that_is_interrupted_is_told_what_became_of_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
        slow = Slow(ledger, monkeypatch)
        slow.call("first", note_of("first"))
        slow.call("a", note_of("a"))
        slow.call("b", note_of("b"))
        real = Database.store
        calls = []

        def interrupted(database: Database, rows: Rows) -> None:
            calls.append(rows)
            if len(calls) > 1 or stored:
                real(database, rows)
            if len(calls) == 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(Database, "store", interrupted)
        slow.finish()
        told = slow.outcomes
        assert isinstance(told["first"], Receipt)
        kinds = sorted(type(told[name]).__name__ for name in "ab")
        assert kinds == ["KeyboardInterrupt", "Receipt"]
        assert ledger.size == (4 if stored else 3)
        assert ledger.append(note_of("later")).first == ledger.size - 1
    check_ledger(path)


# --- large values --------------------------------------------------------------------------------


def blob_bytes(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        (total,) = connection.execute("SELECT coalesce(sum(len), 0) FROM blob").fetchone()
    connection.close()
    return int(total)


def test_a_growing_conversation_costs_its_new_part(path: Path) -> None:
    messages: list[object] = []
    with Ledger.create(path) as ledger:
        started(ledger, "t")
        ledger.append(ev.AttemptStarted(task="t", attempt=1))
        for n in range(60):
            text = hashlib.sha256(b"%d" % n).hexdigest() * 6
            messages += [{"role": "user", "content": text}, {"role": "tool", "content": text[::-1]}]
            ledger.append(
                ev.CallStarted(task="t", attempt=1, call_id=str(n), call_index=n, messages=messages)
            )
        with ledger.view() as view:
            last = view.event(ledger.size - 1).event
            assert isinstance(last, ev.CallStarted)
            assert view.resolve(last.messages) == messages
    final = len(json.dumps(messages))
    assert blob_bytes(path) <= 3 * final
    assert path.stat().st_size <= 3 * final
    check_ledger(path)


def test_a_large_value_is_stored_once_however_often_it_is_said(path: Path) -> None:
    text = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(1600))
    with Ledger.create(path) as ledger:
        started(ledger, "t")
        for number in range(1, 6):
            ledger.append(*say.attempt("t", number, answer=text))
    once = 25 * 4096
    assert blob_bytes(path) == once
    check_ledger(path)


def test_a_piece_that_was_forgotten_is_stored_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.tail._REMEMBERED", 2)
    text = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(640))
    with Ledger.create(path) as ledger:
        started(ledger, "t")
        for number in (1, 2):
            ledger.append(*say.attempt("t", number, answer=text))
        with ledger.view() as view:
            for seq in (5, 9):
                event = view.event(seq).event
                assert isinstance(event, ev.ResultRecorded)
                assert view.resolve(event.final_answer) == text
    # ten pieces, and then the eight that are not the last two
    assert blob_bytes(path) == 18 * 4096
    check_ledger(path)


def test_pieces_of_earlier_sessions_are_remembered(path: Path) -> None:
    text = "x" * 50_000
    with Ledger.create(path) as ledger:
        started(ledger, "t")
        ledger.append(*say.attempt("t", 1, answer=text))
    before = blob_bytes(path)
    with Ledger.open(path) as ledger:
        ledger.append(*say.attempt("t", 2, answer=text))
    assert blob_bytes(path) == before
    check_ledger(path)


def test_pieces_of_a_refused_batch_are_not_taken_for_stored(ledger: Ledger) -> None:
    started(ledger, "t")
    text = "y" * 50_000
    with pytest.raises(LedgerStateError):
        ledger.append(say.result("t", final_answer=text))
    ledger.append(*say.attempt("t", answer=text))
    with ledger.view() as view:
        event = view.event(5).event
        assert isinstance(event, ev.ResultRecorded)
        assert view.resolve(event.final_answer) == text


# --- failing disks -------------------------------------------------------------------------------


class Failing:
    """Makes the next store fail, before or after its commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: sqlite3.Error | None = None
        self.after_commit = False
        real = Database.store

        def store_rows(database: Database, rows: Rows) -> None:
            error, self.error = self.error, None
            if error is None or self.after_commit:
                real(database, rows)
            if error is not None:
                raise error

        monkeypatch.setattr(Database, "store", store_rows)

    def next(self, code: int | None = None, *, after_commit: bool = False) -> None:
        self.error = sqlite3.OperationalError("made up")
        self.after_commit = after_commit
        if code is not None:
            self.error.sqlite_errorcode = code


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    return Failing(monkeypatch)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE])
def test_a_full_disk_is_named_with_the_event_and_the_writer_goes_on(
    ledger: Ledger, failing: Failing, code: int
) -> None:
    started(ledger, "t")
    failing.next(code)
    with pytest.raises(
        NotStored, match=r"attempt\.started was not stored as event 4: .*disk is full"
    ):
        ledger.append(*say.attempt("t", answer="z" * 9000))
    assert ledger.size == 4
    receipt = ledger.append(*say.attempt("t", answer="z" * 9000))
    assert (receipt.first, receipt.size) == (4, 8)


def test_every_caller_of_a_failed_commit_is_told(ledger: Ledger, failing: Failing) -> None:
    ledger.append(*say.opening("t"))
    failing.next(sqlite3.SQLITE_FULL)
    outcomes = ledger.append_group([[ev.TaskStarted(task="t")], [say.created()], say.attempt("t")])
    assert [type(o) for o in outcomes] == [NotStored, LedgerStateError, NotStored]
    assert ledger.size == 3


def test_after_any_other_failure_the_file_is_asked_and_not_stored_is_true(
    ledger: Ledger, failing: Failing
) -> None:
    ledger.append(*say.opening("t"))
    failing.next()
    with pytest.raises(NotStored):
        ledger.append(ev.TaskStarted(task="t"))
    assert ledger.append(ev.TaskStarted(task="t")).first == 3


def test_a_commit_that_failed_and_is_stored_all_the_same_is_acknowledged(
    ledger: Ledger, failing: Failing
) -> None:
    ledger.append(*say.opening("t"))
    failing.next(after_commit=True)
    receipt = ledger.append(ev.TaskStarted(task="t"))
    assert (receipt.first, receipt.size) == (3, 4)
    with ledger.view() as view:
        assert view.size == 4
        assert view.root() == receipt.root
    ledger.append(*say.attempt("t"))


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_READ])
def test_after_an_io_error_the_writer_is_dead_until_a_new_opening(
    path: Path, failing: Failing, code: int
) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        failing.next(code)
        with pytest.raises(LedgerDead, match=r"task\.started at 3"):
            ledger.append(ev.TaskStarted(task="t"))
        with pytest.raises(LedgerDead):
            ledger.append(note_of("x"))
        with pytest.raises(LedgerDead):
            ledger.checkpoint()
    with Ledger.open(path) as ledger:
        assert ledger.size == 3
        ledger.append(ev.TaskStarted(task="t"))
    check_ledger(path)


def test_a_file_that_cannot_be_opened_again_leaves_the_writer_dead(
    path: Path, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        failing.next()
        monkeypatch.setattr(
            writer, "Database", lambda _: (_ for _ in ()).throw(UsageError("no longer there"))
        )
        with pytest.raises(LedgerDead, match="no longer there"):
            ledger.append(ev.TaskStarted(task="t"))
        with pytest.raises(LedgerDead):
            ledger.append(note_of("x"))
    check_ledger(path)


def test_new_segments_begin_after_a_failed_commit(
    ledger: Ledger, failing: Failing, path: Path
) -> None:
    ledger.append(*say.opening("t"))
    failing.next(sqlite3.SQLITE_FULL)
    with pytest.raises(NotStored):
        ledger.append(ev.TaskStarted(task="t"))
    ledger.append(ev.TaskStarted(task="t"))
    with ledger.view() as view:
        rows = list(view.source.query("SELECT seq, seg, off FROM event"))
    assert [row[1] for row in rows] == [0, 0, 0, 1]


# --- checkpoints and seal ------------------------------------------------------------------------


def test_a_checkpoint_stands_in_the_ledger_and_beside_it(ledger: Ledger, path: Path) -> None:
    ledger.append(*say.opening("t"))
    checkpoint = ledger.checkpoint()
    assert checkpoint == note.Checkpoint(f"acl/unsigned/{ledger.ledger_id.hex()}", 3, ledger.root())
    beside = path.with_name("ledger.checkpoint.unsigned").read_bytes()
    assert note.parse_checkpoint(beside) == checkpoint
    with ledger.view() as view:
        assert list(view.checkpoints()) == [(3, beside.decode())]


def test_the_same_checkpoint_is_not_stored_twice(ledger: Ledger) -> None:
    ledger.append(*say.opening("t"))
    assert ledger.checkpoint() == ledger.checkpoint()
    ledger.append(ev.TaskStarted(task="t"))
    ledger.checkpoint()
    with ledger.view() as view:
        assert [size for size, _ in view.checkpoints()] == [3, 4]


def test_there_is_no_checkpoint_of_an_empty_ledger(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="no event yet"):
        ledger.checkpoint()


class FakeSigner:
    name = "lab"
    key_id = b"\x01\x02\x03\x04"

    def sign(self, text: bytes) -> bytes:
        return hashlib.sha256(b"secret" + text).digest()

    def verify(self, text: bytes, signature: bytes) -> bool:
        return signature == self.sign(text)


def test_a_signed_checkpoint_names_its_key_in_the_origin(ledger: Ledger, path: Path) -> None:
    ledger.append(*say.opening("t"))
    ledger.checkpoint()
    checkpoint = ledger.checkpoint(FakeSigner())
    assert checkpoint.origin == f"acl/lab/{ledger.ledger_id.hex()}"
    signed = note.parse_note(path.with_name("ledger.checkpoint").read_bytes())
    assert FakeSigner().verify(signed.text, signed.signatures[0].signature)
    with ledger.view() as view:
        assert [size for size, _ in view.checkpoints()] == [3, 3]


def test_a_checkpoint_that_finds_no_room_can_be_made_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append(*say.opening("t"))

    def full(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Database, "store_checkpoint", full)
        with pytest.raises(NotStored, match="the checkpoint at 3 was not stored"):
            ledger.checkpoint()
    ledger.append(ev.TaskStarted(task="t"))
    assert ledger.checkpoint().size == 4


def test_a_checkpoint_file_that_cannot_be_written_is_written_later(
    ledger: Ledger, path: Path
) -> None:
    ledger.append(*say.opening("t"))
    obstacle = path.with_name("ledger.checkpoint.unsigned.new")
    obstacle.mkdir()
    with pytest.raises(NotStored):
        ledger.checkpoint()
    obstacle.rmdir()
    assert ledger.checkpoint().size == 3
    assert path.with_name("ledger.checkpoint.unsigned").exists()


def test_a_sealed_ledger_is_one_read_only_file(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        checkpoint = ledger.seal()
        assert ledger.sealed
        with pytest.raises(UsageError, match="sealed"):
            ledger.append(note_of("late"))
    assert checkpoint.size == 4
    assert {p.name for p in path.parent.iterdir()} == {
        "ledger.sqlite",
        "ledger.lock",
        "ledger.checkpoint.unsigned",
    }
    assert path.stat().st_mode & 0o777 == 0o444
    with LedgerView.open(path) as view:
        assert view.sealed
        assert view.source.indexed
    check_ledger(path)


def test_a_ledger_without_an_event_is_not_sealed(path: Path) -> None:
    with Ledger.create(path) as ledger, pytest.raises(RunNotFound, match="holds no event yet"):
        ledger.seal()
    with Ledger.open(path) as ledger:
        ledger.append(say.created())
    check_ledger(path)


def test_opening_a_sealed_ledger_tells_at_how_many_events(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
        ledger.seal()
        with pytest.raises(AlreadySealed) as refusal:
            ledger.append(note_of("late"))
    assert refusal.value.size == 2
    with pytest.raises(AlreadySealed) as refusal:
        Ledger.open(path)
    assert refusal.value.size == 2


def test_a_seal_that_broke_off_before_its_checkpoint_gets_it_from_the_next_opening(
    path: Path,
) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(say.created())
        ledger.append(ev.LedgerSealed())
    with pytest.raises(AlreadySealed):
        Ledger.open(path)
    with LedgerView.open(path) as view:
        assert view.source.indexed
        assert [size for size, _ in view.checkpoints()] == [2]
        assert sidefile.read(path)[0].claim.checkpoint == note.Checkpoint(
            note.unsigned_origin(view.ledger_id), 2, view.root()
        )
    check_ledger(path)


@pytest.mark.parametrize(("suffix", "data"), [("-wal", b""), ("-shm", bytes(32768))])
def test_what_sqlite_could_not_remove_goes_when_the_ledger_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, data: bytes
) -> None:
    real, left = Database._single, tmp_path / f"ledger.sqlite{suffix}"

    def leaves_it(self: Database) -> bool:
        found = real(self)
        left.write_bytes(data)
        return found

    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        with monkeypatch.context() as patch:
            patch.setattr(Database, "_single", leaves_it)
            ledger.seal()
    assert not left.exists()
    check_ledger(tmp_path)


def test_a_seal_that_got_no_side_file_gets_it_with_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint()
        with monkeypatch.context() as patch:
            patch.setattr(sidefile, "write", _no_room)
            with pytest.raises(NotStored, match="no room"):
                ledger.seal()
    with pytest.raises(AlreadySealed):
        Ledger.open(tmp_path)
    path = tmp_path / "ledger.sqlite"
    (beside,) = sidefile.read(path)
    with LedgerView.open(tmp_path) as view:
        assert (beside.claim.checkpoint.size, beside.claim.checkpoint.root) == (4, view.root(4))
    assert path.stat().st_mode & 0o777 == 0o444
    check_ledger(path)


def test_what_others_signed_after_the_seal_stays_beside_it(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.seal()
    side = tmp_path / "ledger.checkpoint"
    (unsigned,) = sidefile.read(tmp_path / "ledger.sqlite")
    unsigned.path.unlink()
    said = unsigned.claim.checkpoint
    origin = sidefile.signed_origin(LAB.name, ledger.ledger_id)
    signed = note.sign(note.Checkpoint(origin, said.size, said.root).text, [LAB])
    side.write_bytes(signed)
    with pytest.raises(AlreadySealed):
        Ledger.open(tmp_path)
    assert side.read_bytes() == signed
    assert not unsigned.path.exists()


def test_what_the_system_refuses_while_a_ledger_is_opened_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint()

    def none_left(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "a file")

    with monkeypatch.context() as patch:
        patch.setattr(sidefile, "content", none_left)
        for opening in (Ledger.open, LedgerView.open):
            with pytest.raises(StorageFailed, match="a file: Too many open files"):
                opening(tmp_path)
    with Ledger.open(tmp_path) as ledger:
        assert ledger.size == 3


def _no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "there is no room")


def test_with_a_reader_connected_the_seal_waits_for_the_next_opening(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        with ledger.view() as view:
            ledger.seal()
            assert view.sealed
        assert path.with_name("ledger.sqlite-wal").exists()
    assert path.stat().st_mode & 0o777 != 0o444
    check_ledger(path)
    with pytest.raises(AlreadySealed, match="is sealed at"):
        Ledger.open(path)
    assert path.stat().st_mode & 0o777 == 0o444
    assert not path.with_name("ledger.sqlite-wal").exists()
    check_ledger(path)


def test_sealing_again_finishes_what_a_reader_held_up(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        with ledger.view():
            first = ledger.seal()
        assert ledger.seal() == first
        assert ledger.size == 4
    assert path.stat().st_mode & 0o777 == 0o444


def test_opening_a_sealed_ledger_changes_nothing(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.seal()
    before = path.read_bytes()
    with pytest.raises(AlreadySealed, match="is sealed at"):
        Ledger.open(path)
    assert path.read_bytes() == before


# --- recovery on opening -------------------------------------------------------------------------


def test_a_ledger_older_than_its_checkpoint_file_is_refused(path: Path, tmp_path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
    old = path.read_bytes()
    with Ledger.open(path) as ledger:
        ledger.append(ev.TaskStarted(task="t"))
        ledger.checkpoint()
    path.write_bytes(old)
    with pytest.raises(
        LedgerRolledBack, match=r"has 3 events, ledger\.checkpoint\.unsigned knows of 4"
    ):
        Ledger.open(path)


@pytest.mark.parametrize("fault", ["rolled_back", "foreign", "garbage", "altered"])
def test_a_refused_opening_keeps_file_and_wal_as_they_are(tmp_path: Path, fault: str) -> None:
    program = (
        "import os, sys\n"
        "from ledger.store import Ledger\n"
        "from tests import events_of as say\n"
        "ledger = Ledger.create(sys.argv[1])\n"
        "ledger.append(*say.opening('t'))\n"
        "ledger.checkpoint()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, cwd=ROOT)
    side = tmp_path / "ledger.checkpoint.unsigned"
    claimed = sidefile.parse(side.read_bytes()).checkpoint
    match fault:
        case "rolled_back":
            side.write_bytes(dataclasses.replace(claimed, size=99).text)
        case "foreign":
            side.write_bytes(
                dataclasses.replace(claimed, origin=note.unsigned_origin(bytes(16))).text
            )
        case "garbage":
            side.write_bytes(b"?")
        case _:
            side.write_bytes(dataclasses.replace(claimed, root=bytes(32)).text)
    names = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.checkpoint.unsigned")
    before = [(tmp_path / name).read_bytes() for name in names]
    with pytest.raises(IntegrityError):
        Ledger.open(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == before
    side.unlink()
    with Ledger.open(tmp_path) as ledger:
        assert ledger.size == 3
    check_ledger(tmp_path)


def test_a_checkpoint_file_of_another_ledger_is_refused(path: Path, tmp_path: Path) -> None:
    for one in (path, tmp_path / "other.sqlite"):
        with Ledger.create(one) as ledger:
            ledger.append(*say.opening("t"))
            ledger.checkpoint()
    (tmp_path / "other.checkpoint.unsigned").rename(path.with_suffix(".checkpoint.unsigned"))
    with pytest.raises(LedgerDamaged, match=r"root|another ledger"):
        Ledger.open(path)


def test_damage_is_found_when_a_ledger_is_opened_to_go_on(path: Path) -> None:
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER segment_update")
    connection.execute("UPDATE segment SET hash = hash + 1")
    (sql,) = [s for s in schema.CHANGE_TRIGGERS if s.startswith("CREATE TRIGGER segment_update ")]
    connection.execute(sql)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerDamaged) as damage:
        Ledger.open(path)
    assert damage.value.seq == 0


# --- copies --------------------------------------------------------------------------------------


def test_a_copy_keeps_header_and_body_and_brings_its_pieces(tmp_path: Path) -> None:
    conversation = [{"role": "user", "content": f"{n} " * 2000} for n in range(5)]
    with Ledger.create(tmp_path / "a.sqlite") as source:
        started(source, "t")
        source.append(*say.attempt("t", answer="x" * 9000, trajectory={"steps": conversation}))
        source.append(ev.TaskFinished(task="t", reason="all_attempts", error=False))
    with LedgerView.open(tmp_path / "a.sqlite") as view:
        copied = [Copy(r.header, view.raw(r.seq)[1], view.blob) for r in view.events(since=3)]
        reused = ev.TaskReused(
            task="t",
            source_run_id="r1",
            source_ledger_id=view.ledger_id.hex(),
            size=view.size,
            root=view.root().hex(),
            leaves=canonical.Binary(view.leaves()),
            sequence=tuple(range(3, view.size)),
        )
        with Ledger.create(tmp_path / "b.sqlite") as target:
            target.append(*say.opening("t"), reused, *copied)
            with target.view() as there:
                for old, new in zip(view.events(since=3), there.events(since=4), strict=True):
                    assert new.event == old.event
                    assert new.copied
                    assert new.address == old.address
                    assert new.wall_ns == old.wall_ns
                    assert new.header.ledger_id == target.ledger_id
                    if isinstance(old.event, ev.ResultRecorded):
                        assert isinstance(new.event, ev.ResultRecorded)
                        assert there.resolve(new.event.trajectory) == {"steps": conversation}
    check_ledger(tmp_path / "b.sqlite")


def test_a_copy_that_is_not_what_its_header_says_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    with Ledger.create(tmp_path / "a.sqlite") as source:
        started(source, "t")
        with source.view() as view:
            head = view.event(3).header
            body = view.raw(3)[1]
    ledger.append(*say.opening("t"))
    altered = body.replace(b'"v":1', b'"v":1 ')[:-2] + b"1}"
    with pytest.raises(AclError):
        ledger.append(Copy(head, altered, lambda _: b""))
    assert ledger.size == 3


# --- cost ----------------------------------------------------------------------------------------


def test_an_append_asks_the_file_nothing_however_long_it_is(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append(say.created())
    monkeypatch.setattr(
        Database, "query", lambda *_: pytest.fail("an append must not read the ledger")
    )
    for n in range(50):
        ledger.append(note_of("x" * n))


def test_roots_of_receipts_are_those_of_the_leaves(ledger: Ledger) -> None:
    roots = [ledger.append(event).root for event in say.opening("t")]
    with ledger.view() as view:
        leaves = view.leaves()
    assert [tlog.root_of(leaves, size) for size in (1, 2, 3)] == roots
