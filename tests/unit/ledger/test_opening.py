import errno
import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import LedgerView, note, sidefile
from ledger import events as ev
from ledger.errors import (
    LedgerDamaged,
    LedgerExists,
    LedgerLocked,
    LedgerRolledBack,
    NotALedger,
    RunNotFound,
    StorageFailed,
)
from ledger.opening import LEDGER_NAME, Source
from ledger.store import Ledger
from tests import events_of as say
from tests.ledger_checks import broken, check_ledger, forge

ROOT = Path(__file__).resolve().parents[3]
KILLED = """
import os, sys
from ledger.store import Ledger
from tests import events_of as say
ledger = Ledger.create(sys.argv[1])
ledger.append(*say.opening("t"))
ledger.checkpoint()
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The directory of a ledger whose writer was killed."""
    folder = tmp_path / "killed"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False, cwd=ROOT)
    assert (folder / "ledger.sqlite-wal").stat().st_size > 0
    return folder


def bytes_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_a_pristine_view_of_a_killed_ledger_changes_nothing_beside_it(killed: Path) -> None:
    before = bytes_of(killed)
    with LedgerView.open(killed, pristine=True) as view:
        assert [e.event for e in view.events()] == say.opening("t")
        assert view.path == killed / "ledger.sqlite"
        assert view.writer() is None
    assert bytes_of(killed) == before


def test_a_pristine_view_of_a_closed_ledger_makes_no_files(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created())
    before = bytes_of(tmp_path)
    with LedgerView.open(tmp_path, pristine=True) as view:
        assert view.size == 1
        assert bytes_of(tmp_path) == before
    assert bytes_of(tmp_path) == before


def test_a_pristine_view_of_a_sealed_ledger_reads_it_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created())
        ledger.seal()
    before = bytes_of(tmp_path)
    monkeypatch.setattr(Source, "_copy", lambda _: pytest.fail("copied"))
    with LedgerView.open(tmp_path, pristine=True) as view:
        assert view.sealed
    assert bytes_of(tmp_path) == before


def test_the_temporary_copy_is_gone_when_the_view_is_closed(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with LedgerView.open(killed, pristine=True):
        assert len(list(scratch.iterdir())) == 1
    assert list(scratch.iterdir()) == []
    (killed / "ledger.sqlite").write_bytes(b"broken")
    with pytest.raises(LedgerDamaged):
        LedgerView.open(killed, pristine=True)
    assert list(scratch.iterdir()) == []


def test_a_ledger_that_cannot_be_read_where_it_is_is_read_from_a_copy(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Source._connect

    def connect(source: Source, file: Path) -> sqlite3.Connection:
        if file == killed / "ledger.sqlite":
            raise sqlite3.OperationalError("unable to open database file")
        return real(source, file)

    monkeypatch.setattr(Source, "_connect", connect)
    with LedgerView.open(killed) as view:
        assert view.size == 3


def test_a_file_that_changes_while_it_is_copied_is_not_read(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.copyfile

    def copy(source: Path, target: Path) -> None:
        real(source, target)
        os.utime(killed / "ledger.sqlite-wal", ns=(1, 1))

    monkeypatch.setattr(shutil, "copyfile", copy)
    with pytest.raises(LedgerLocked):
        LedgerView.open(killed, pristine=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_killed_ledger_in_a_directory_without_write_permission_can_be_read(killed: Path) -> None:
    (killed / "ledger.sqlite-shm").unlink()
    killed.chmod(0o555)
    try:
        with LedgerView.open(killed) as view:
            assert view.size == 3
    finally:
        killed.chmod(0o755)


@pytest.fixture
def no_record_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", refuse)


@pytest.mark.usefixtures("no_record_locks")
def test_where_sqlite_could_lock_nothing_a_copy_is_read(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **how: (opened.append(at), real(at, **how))[1]
    )
    with LedgerView.open(killed) as view:
        assert view.size == 3
    assert opened
    assert not [place for place in opened if str(killed) in place]


def test_a_ledger_that_somebody_writes_is_not_copied_for_want_of_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        request.getfixturevalue("no_record_locks")
        monkeypatch.setattr(shutil, "copyfile", lambda *_: pytest.fail("copied"))
        with LedgerView.open(tmp_path) as view:
            assert view.size == 3


def test_in_the_writing_process_the_file_is_never_opened_but_by_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        opened = []
        real = Path.open
        monkeypatch.setattr(
            Path, "open", lambda p, *a, **k: (opened.append(p), real(p, *a, **k))[1]
        )
        monkeypatch.setattr(shutil, "copyfile", lambda *_: pytest.fail("copied"))
        with LedgerView.open(tmp_path, pristine=True) as view:
            assert view.size == 3
        assert ledger.path not in opened


@pytest.fixture
def source(tmp_path: Path) -> Source:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created(), *(ev.InterruptRequested(signal="x", count=1),) * 30)
    source = Source(tmp_path / "ledger.sqlite")
    yield source
    source.close()


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH DATABASE ':memory:' AS other",
        "INSERT INTO event VALUES (1, 0, 0)",
        "CREATE TEMP TABLE t(x)",
        "DELETE FROM event",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = OFF",
        "SELECT load_extension('x')",
        "SELECT randomblob(1000000000)",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
    ],
)
def test_a_reading_connection_can_do_nothing_else(source: Source, statement: str) -> None:
    with pytest.raises(LedgerDamaged, match=r"not authorized|more work|prohibited|too many"):
        list(source.query(statement))


def test_a_statement_that_takes_more_work_than_any_of_ours_is_stopped(source: Source) -> None:
    joined = ", ".join(f"event AS e{n}" for n in range(6))
    with pytest.raises(LedgerDamaged, match="more work"):
        list(source.query(f"SELECT max(e0.seq + e5.off) FROM {joined}", allowed=1))


def test_what_one_statement_used_is_not_counted_against_the_next(source: Source) -> None:
    for _ in range(50):
        source._budget = 0
        assert len(list(source.query("SELECT seq FROM event"))) == 31


# --- what is no ledger any more ------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed ledger with a checkpoint beside it."""
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint()
    return tmp_path


@pytest.mark.parametrize(
    "content", [b"", b"S", b"SQLite format 3\0", b"SQLite format 3\0" + bytes(5000), b"x" * 5000]
)
@pytest.mark.parametrize("reading", [LedgerView.open, Ledger.open])
def test_a_file_whose_checkpoint_stands_beside_it_is_damaged_and_not_unknown(
    folder: Path, content: bytes, reading: Callable[[Path], object]
) -> None:
    (folder / "ledger.sqlite").write_bytes(content)
    (folder / "ledger.lock").unlink()
    before = bytes_of(folder)
    with pytest.raises(LedgerDamaged, match=r"ledger\.checkpoint\.unsigned"):
        reading(folder)
    assert bytes_of(folder) == before


def test_without_a_checkpoint_sqlites_own_first_bytes_tell_damage(folder: Path) -> None:
    (folder / "ledger.checkpoint.unsigned").unlink()
    whole = (folder / "ledger.sqlite").read_bytes()
    (folder / "ledger.sqlite").write_bytes(whole[:16] + b"\xff" * 84 + whole[100:])
    with pytest.raises(LedgerDamaged, match="is damaged"):
        LedgerView.open(folder)
    (folder / "ledger.sqlite").write_bytes(b"x" + whole[1:])
    with pytest.raises(NotALedger):
        LedgerView.open(folder)


def test_another_programs_database_is_not_a_ledger(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("CREATE TABLE t(x)")
    connection.close()
    with pytest.raises(NotALedger):
        LedgerView.open(tmp_path)


def test_a_ledger_that_is_gone_is_missed_where_its_checkpoint_is_left(folder: Path) -> None:
    (folder / "ledger.sqlite").unlink()
    with pytest.raises(LedgerRolledBack, match="tells of one"):
        LedgerView.open(folder)
    with pytest.raises(LedgerExists, match="a ledger that is gone"):
        Ledger.create(folder)


def test_a_new_ledger_never_takes_in_the_wal_of_one_that_is_gone(killed: Path) -> None:
    for name in ("ledger.sqlite", "ledger.checkpoint.unsigned"):
        (killed / name).unlink()
    with pytest.raises(LedgerExists, match="-wal is of a ledger that is gone"):
        Ledger.create(killed)
    assert not (killed / "ledger.sqlite").exists()


# --- links and pipes -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("reading", [LedgerView.open, Ledger.open])
def test_what_sqlite_would_read_beside_a_ledger_must_be_files(
    folder: Path, suffix: str, reading: Callable[[Path], object]
) -> None:
    beside = folder / f"ledger.sqlite{suffix}"
    os.mkfifo(beside)
    with pytest.raises(LedgerDamaged, match=f"{suffix} is not a file"):
        reading(folder)
    beside.unlink()
    beside.symlink_to(folder / "ledger.lock")
    with pytest.raises(LedgerDamaged, match=f"{suffix} is not a file"):
        reading(folder)


def test_in_a_run_directory_a_link_is_no_ledger(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "ledger.sqlite").symlink_to(folder / "ledger.sqlite")
    for reading in (LedgerView.open, Ledger.open):
        with pytest.raises(NotALedger, match="is not a file"):
            reading(run)
    assert [p.name for p in run.iterdir()] == ["ledger.sqlite"]


def test_a_link_that_is_named_stands_for_the_file_with_its_lock_and_checkpoint(
    folder: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(folder / "ledger.sqlite")
    with Ledger.open(folder), LedgerView.open(link) as view:
        assert view.writer() is not None
        with pytest.raises(LedgerLocked):
            Ledger.open(link)
    sidefile.write(
        folder / "ledger.sqlite",
        note.Checkpoint(note.unsigned_origin(bytes(16)), 99, bytes(32)).text,
        signed=False,
    )
    with pytest.raises(LedgerRolledBack):
        LedgerView.open(link)


def test_an_unfinished_change_of_the_file_itself_is_undone_in_a_copy(folder: Path) -> None:
    """A journal is left where a writer dies while it goes to or from WAL."""
    path = folder / "ledger.sqlite"
    whole = path.read_bytes()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version = 77")
    for number in range(300):
        connection.execute("CREATE TABLE IF NOT EXISTS x(a)")
        connection.execute("INSERT INTO x VALUES (?)", (b"y" * 4000 + b"%d" % number,))
    torn = {one.name: one.read_bytes() for one in folder.iterdir() if "sqlite" in one.name}
    connection.close()
    assert torn["ledger.sqlite"] != whole
    for name, data in torn.items():
        (folder / name).write_bytes(data)
    with LedgerView.open(folder) as view:
        assert [e.event for e in view.events()] == say.opening("t")
    with Ledger.open(folder) as ledger:
        assert ledger.size == 3
    check_ledger(folder)


def test_two_readers_of_a_left_ledger_each_read_a_copy(tmp_path: Path) -> None:
    """A pristine reader does not have the source open, so the next one need not touch it."""
    path = tmp_path / LEDGER_NAME
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    with LedgerView.open(path, pristine=True) as one, LedgerView.open(path, pristine=True) as two:
        assert one.root() == two.root()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == left


def test_readers_in_many_threads_change_nothing_beside_a_left_ledger(killed: Path) -> None:
    def state() -> dict[str, bytes]:
        return {one.name: one.read_bytes() for one in killed.iterdir()}

    before, sizes = state(), []

    def read() -> None:
        for _ in range(10):
            with LedgerView.open(killed, pristine=True) as view:
                sizes.append(view.size)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [3] * 60
    assert state() == before


@pytest.mark.parametrize("table", ["event", "segment", "blob", "blobsegment", "checkpoint"])
def test_a_row_of_the_largest_number_there_is_is_damage(tmp_path: Path, table: str) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), *say.whole_task("t", say.attempt("t", answer="x" * 9000)))
        ledger.checkpoint()
    key = "seq" if table == "event" else "id"
    last = f"(SELECT max({key}) FROM {table})"
    forge(tmp_path / LEDGER_NAME, f"UPDATE {table} SET {key} = {2**63 - 1} WHERE {key} = {last}")
    assert broken(tmp_path) != []
    with LedgerView.open(tmp_path) as view:
        if table == "event":
            with pytest.raises(LedgerDamaged):
                list(view.events())
        else:
            with pytest.raises(RunNotFound):
                view.event(2**64)


def test_a_disk_that_fails_does_not_make_a_ledger_a_missing_or_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint()

    def fails(path: Path, **_: object) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", fails)
        with pytest.raises(StorageFailed, match="Input/output error"):
            LedgerView.open(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_dir", fails)
        with pytest.raises(StorageFailed, match="Input/output error"):
            LedgerView.open(tmp_path)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (sqlite3.SQLITE_IOERR_LOCK, StorageFailed),
        (sqlite3.SQLITE_IOERR_SHMMAP, StorageFailed),
        (sqlite3.SQLITE_CANTOPEN, StorageFailed),
        (sqlite3.SQLITE_IOERR_SHORT_READ, LedgerDamaged),
        (sqlite3.SQLITE_CORRUPT, LedgerDamaged),
    ],
)
def test_what_the_system_refuses_to_sqlite_is_no_damage_and_bytes_that_are_not_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
    source = Source(tmp_path / LEDGER_NAME)

    class Failing:
        def execute(self, *_: object) -> None:
            refused = sqlite3.OperationalError("no")
            refused.sqlite_errorcode = code
            raise refused

    connection = source._connection
    monkeypatch.setattr(source, "_connection", Failing())
    try:
        with pytest.raises(error):
            list(source.query("SELECT seq FROM event"))
    finally:
        connection.close()
        source._forget()
