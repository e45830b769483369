import errno
import os
import sqlite3
from pathlib import Path

import pytest

from ledger import LedgerView, copying
from ledger import events as ev
from ledger.copying import copy_ledger
from ledger.errors import LedgerExists, LedgerRolledBack, NotALedger, NotStored
from ledger.store import Ledger
from tests import events_of as say
from tests.ledger_checks import check_ledger


def test_a_live_ledger_becomes_one_file_with_every_acknowledged_event(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(ev.TaskStarted(task="t"), *say.attempt("t", answer="x" * 20_000))
        copy = copy_ledger(tmp_path, tmp_path / "copy.sqlite")
        assert copy == tmp_path / "copy.sqlite"
        with LedgerView.open(copy, pristine=True) as view:
            assert (view.size, view.root()) == (ledger.size, ledger.root())
        assert not list(tmp_path.glob("copy.sqlite?*"))
        ledger.append(ev.TaskFinished(task="t", reason="all_attempts", error=False))
    check_ledger(tmp_path)
    check_ledger(copy)


def test_a_copy_can_be_written_on(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
    with Ledger.open(copy_ledger(tmp_path, tmp_path / "copy.sqlite")) as copy:
        copy.append(ev.TaskStarted(task="t"))
    check_ledger(tmp_path / "copy.sqlite")


def test_a_sealed_ledger_stays_sealed_and_read_only(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.seal()
    copy = copy_ledger(tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite")
    with LedgerView.open(copy) as one, LedgerView.open(tmp_path) as other:
        assert one.sealed
        assert one.root() == other.root()
    assert copy.stat().st_mode & 0o777 == 0o444
    check_ledger(copy)


def test_a_directory_gets_the_ledger_under_its_fixed_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Ledger.create(tmp_path / "a") as ledger:
        ledger.append(say.created())
    assert copy_ledger(tmp_path / "a", tmp_path / "b") == tmp_path / "b" / "ledger.sqlite"
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["ledger.sqlite"]


def test_nothing_is_ever_replaced(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created())
    for target in (tmp_path / "ledger.sqlite", tmp_path):
        with pytest.raises(LedgerExists):
            copy_ledger(tmp_path, target)
    (tmp_path / "other").write_bytes(b"mine")
    with pytest.raises(LedgerExists):
        copy_ledger(tmp_path, tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == b"mine"
    check_ledger(tmp_path)


def test_what_is_no_ledger_or_was_rolled_back_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"text")
    with pytest.raises(NotALedger):
        copy_ledger(tmp_path / "text", tmp_path / "copy")
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created())
    old = (tmp_path / "ledger.sqlite").read_bytes()
    with Ledger.open(tmp_path) as ledger:
        ledger.append(ev.RunStarted())
        ledger.checkpoint()
    (tmp_path / "ledger.sqlite").write_bytes(old)
    with pytest.raises(LedgerRolledBack):
        copy_ledger(tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_copy_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created())

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(LedgerView, "copy_into", fail)
    before = {p.name for p in tmp_path.iterdir()}
    with pytest.raises(NotStored, match="disk full"):
        copy_ledger(tmp_path, tmp_path / "copy")
    assert {p.name for p in tmp_path.iterdir()} - {
        "ledger.sqlite-wal",
        "ledger.sqlite-shm",
    } == before
    with pytest.raises(NotStored):
        copy_ledger(tmp_path, tmp_path / "missing" / "copy")


def test_a_copy_that_is_not_known_to_be_on_disk_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))

    def fails(_: Path) -> None:
        raise OSError(errno.EIO, "the disk fails")

    with monkeypatch.context() as patch:
        patch.setattr(copying, "sync_directory", fails)
        with pytest.raises(NotStored, match=r"copy\.sqlite was not written .*the disk fails"):
            copy_ledger(tmp_path, tmp_path / "copy.sqlite")
    assert not list(tmp_path.glob("copy*"))
    check_ledger(copy_ledger(tmp_path, tmp_path / "copy.sqlite"))


def test_what_few_may_read_is_for_few_when_it_is_sealed_and_when_it_is_copied(
    tmp_path: Path,
) -> None:
    before = os.umask(0o077)
    try:
        with Ledger.create(tmp_path) as ledger:
            ledger.append(*say.opening("t"))
            ledger.seal()
        copy = copy_ledger(tmp_path, tmp_path / "copy.sqlite")
    finally:
        os.umask(before)
    for file in (tmp_path / "ledger.sqlite", copy):
        assert file.stat().st_mode & 0o777 == 0o400


def test_what_sqlite_could_not_remove_beside_the_copy_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
    real = copying._write

    def leaves_it(view: LedgerView, new: Path) -> None:
        real(view, new)
        new.with_name(f"{new.name}-shm").touch()

    monkeypatch.setattr(copying, "_write", leaves_it)
    copy_ledger(tmp_path, tmp_path / "copy.sqlite")
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.sqlite"]
