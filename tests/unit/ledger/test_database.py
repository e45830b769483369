import sqlite3
from pathlib import Path

import pytest

from ledger import database, schema
from ledger.database import Database, Rows
from ledger.errors import LedgerDamaged, LedgerExists, NotALedger, UsageError
from ledger.segment import Part, part_hash


@pytest.fixture
def path(tmp_path: Path) -> Path:
    database.create(tmp_path / "ledger.sqlite")
    return tmp_path / "ledger.sqlite"


def rows(seq: int) -> Rows:
    part = Part(seq << 20, 4, part_hash(b"data"), b"data")
    digest = bytes([seq]) * 32
    return Rows([(seq, seq, 0)], [part], [(seq, digest, seq, 0, 4)], [part])


def test_a_new_file_is_an_empty_ledger_and_nothing_else_is_left(path: Path) -> None:
    assert [p.name for p in path.parent.iterdir()] == ["ledger.sqlite"]
    opened = Database(path)
    assert not opened.indexed
    assert list(opened.query("SELECT max(seq) FROM event")) == [(None,)]
    opened.close()


def test_a_file_that_is_there_is_not_replaced(path: Path) -> None:
    with pytest.raises(LedgerExists):
        database.create(path)


def test_where_no_file_can_be_made_it_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(schema, "create", fail)
    with pytest.raises(UsageError, match="disk I/O error"):
        database.create(tmp_path / "ledger.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_rows_of_one_transaction_are_stored_together(path: Path) -> None:
    opened = Database(path)
    opened.begin_writing()
    opened.store(rows(0))
    with pytest.raises(sqlite3.IntegrityError):
        opened.store(Rows([(1, 1, 0)], [], [(7, b"", 0, 0, 0)], []))
    opened.roll_back()
    opened.roll_back()
    assert list(opened.query("SELECT seq FROM event")) == [(0,)]
    opened.store(rows(1))
    assert list(opened.query("SELECT seq FROM event")) == [(0,), (1,)]
    opened.close()


def test_writing_is_durable_and_erases_what_it_deletes(path: Path) -> None:
    opened = Database(path)
    opened.begin_writing()
    settings = {
        name: next(iter(opened.query(f"PRAGMA {name}")))[0]
        for name in ("journal_mode", "synchronous", "secure_delete", "mmap_size", "trusted_schema")
    }
    opened.close()
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
        "mmap_size": 0,
        "trusted_schema": 0,
    }


def test_a_file_system_without_wal_is_refused_with_a_way_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Database(path)
    monkeypatch.setattr(Database, "query", lambda *_: iter([("delete",)]))
    with pytest.raises(UsageError, match=r"cannot hold a WAL.*local disk"):
        opened.begin_writing()
    opened.close()


def test_a_malformed_file_is_damage_and_another_file_no_ledger(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"x" * 5000)
    with pytest.raises(NotALedger):
        Database(tmp_path / "other")
    data = bytearray(path.read_bytes())
    data[2 * schema.PAGE_SIZE] = 0xFF
    path.write_bytes(data)
    opened = Database(path)
    tables = ("event", "segment", "blob", "blobsegment", "erasure", "checkpoint")
    counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in tables)
    with pytest.raises(LedgerDamaged):
        list(opened.query(f"SELECT {counts}"))
    opened.close()


def test_folding_makes_one_read_only_file_with_an_index(path: Path) -> None:
    opened = Database(path)
    opened.begin_writing()
    opened.store(rows(0))
    assert opened.fold()
    assert opened.closed
    assert [p.name for p in path.parent.iterdir()] == ["ledger.sqlite"]
    assert path.stat().st_mode & 0o777 == 0o444
    again = Database(path)
    assert again.indexed
    before = path.read_bytes()
    assert again.fold()
    assert path.read_bytes() == before


def test_folding_waits_for_readers_and_goes_on_where_it_stopped(path: Path) -> None:
    opened = Database(path)
    opened.begin_writing()
    opened.store(rows(0))
    reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    reader.execute("SELECT * FROM event").fetchall()
    assert not opened.fold()
    assert not opened.closed
    reader.close()
    assert opened.fold()


def test_a_malformed_ledger_is_not_folded(path: Path) -> None:
    opened = Database(path)
    opened.begin_writing()
    opened.store(rows(0))
    opened.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET rootpage = 3 WHERE name = 'event'")
    connection.commit()
    connection.close()
    opened = Database(path)
    with pytest.raises(LedgerDamaged):
        opened.fold()
    opened.close()
    assert path.stat().st_mode & 0o222


@pytest.mark.parametrize(
    ("code", "no_room", "doubt"),
    [
        (sqlite3.SQLITE_FULL, True, False),
        (sqlite3.SQLITE_IOERR_WRITE, True, False),
        (sqlite3.SQLITE_IOERR_FSYNC, False, True),
        (sqlite3.SQLITE_IOERR, False, True),
        (sqlite3.SQLITE_BUSY, False, False),
        (sqlite3.SQLITE_CONSTRAINT, False, False),
    ],
)
def test_errors_are_told_apart_by_what_may_be_stored(code: int, no_room: bool, doubt: bool) -> None:
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    assert database.out_of_room(error) is no_room
    assert database.in_doubt(error) is doubt
    assert ("disk is full" in database.explain(error)) is no_room


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full (why)"),
        (sqlite3.SQLITE_IOERR_WRITE, "the disk is full, or fails (why)"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "the disk is full, or fails (why)"),
        (sqlite3.SQLITE_IOERR_FSYNC, "why"),
    ],
)
def test_a_disk_is_called_full_where_sqlite_knows_and_full_or_failing_where_it_does_not(
    code: int, told: str
) -> None:
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    assert database.explain(error) == told
