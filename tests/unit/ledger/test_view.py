import hashlib
import os
import sqlite3
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from ledger import Blobs, LedgerView, schema, tlog
from ledger import events as ev
from ledger.errors import (
    AclError,
    LedgerDamaged,
    LedgerRolledBack,
    NotALedger,
    RunNotFound,
    VersionUnsupported,
)
from ledger.store import Ledger
from ledger.verify import verify
from tests import events_of as say
from tests.ledger_checks import check_ledger, forge, plain_events, store_plain

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of 20 events, not sealed, with some large values."""
    path = tmp_path / "ledger.sqlite"
    clock = iter(range(1_700_000_000_123_456_789, 2**62, 1_000_000))
    with Ledger.create(path, clock=lambda: (next(clock), 5)) as ledger:
        ledger.append(*say.opening("a", "b", "c"))
        for task in "abc":
            trajectory = [{"role": "user", "content": f"{task}{n} " * 300} for n in range(20)]
            ledger.append(*say.whole_task(task, say.attempt(task, trajectory=trajectory)))
        ledger.checkpoint()
        ledger.append(*say.ending())
    return path


# --- what is read --------------------------------------------------------------------------------


def test_events_come_in_order_with_their_place(path: Path) -> None:
    with LedgerView.open(path) as view:
        events = list(view.events())
        assert view.size == 23
    assert [e.seq for e in events] == list(range(23))
    first, reused = events[0], events[6]
    assert (first.type, first.task, first.attempt, first.lease) == ("run.created", None, None, 1)
    assert (reused.type, reused.task, reused.attempt) == ("evaluation.finished", "a", 1)
    assert not any(e.copied or e.erased for e in events)
    assert first.at == "2023-11-14T22:13:20.123456Z"
    assert first.wall_ns == 1_700_000_000_123_456_789


def test_a_range_of_events_can_be_asked_for(path: Path) -> None:
    with LedgerView.open(path) as view:
        assert [e.seq for e in view.events(since=20)] == [20, 21, 22]
        assert [e.seq for e in view.events(since=3, until=5)] == [3, 4]
        assert [e.seq for e in view.events(since=22, until=99)] == [22]
        assert list(view.events(since=23)) == []


def test_one_event_by_its_number(path: Path) -> None:
    with LedgerView.open(path) as view:
        assert view.event(3).event == ev.TaskStarted(task="a")
        for absent in (-1, 23):
            with pytest.raises(RunNotFound, match=f"no event {absent}"):
                view.event(absent)


def test_raw_bytes_are_those_that_are_committed_to(path: Path) -> None:
    with LedgerView.open(path) as view:
        leaves = view.leaves()
        for seq in range(view.size):
            head, body = view.raw(seq)
            assert hashlib.sha256(b"\x00" + head).digest() == leaves[32 * seq : 32 * seq + 32]
            assert hashlib.sha256(body).digest() == head[64:96] == view.event(seq).address
            assert view.event(seq).leaf == leaves[32 * seq : 32 * seq + 32]


def test_many_events_come_in_the_order_that_was_asked_for(path: Path) -> None:
    with LedgerView.open(path) as view:
        sequence = [*range(22, -1, -2), 3, 4, 3]
        stored = list(view.stored(iter(sequence)))
        assert [(header.encode(), body) for header, body in stored] == [*map(view.raw, sequence)]
        assert list(view.stored([])) == []


@pytest.mark.parametrize("absent", [-1, 23, 2**63 + 1])
def test_many_events_end_where_one_is_absent(path: Path, absent: int) -> None:
    with LedgerView.open(path) as view:
        found = view.stored([4, 5, absent, 6])
        assert [next(found)[0].seq, next(found)[0].seq] == [4, 5]
        with pytest.raises(RunNotFound, match=f"no event {absent}"):
            next(found)


def test_roots_of_all_sizes_are_those_of_the_leaves(path: Path) -> None:
    with LedgerView.open(path) as view:
        leaves = view.leaves()
        for size in (0, 1, 22, 7, 23, 3):
            assert view.root(size) == tlog.root_of(leaves, size)
        assert view.root() == tlog.root_of(leaves)
        assert view.leaves(5) == leaves[: 5 * 32]
        with pytest.raises(RunNotFound):
            view.root(24)


def test_proofs_verify(path: Path) -> None:
    with LedgerView.open(path) as view:
        for seq, size in ((0, 1), (3, 23), (22, 23), (4, 9)):
            proof = view.prove(seq, size)
            tlog.check_inclusion(view.event(seq).leaf, seq, size, proof.path, view.root(size))
        proof = view.prove_prefix(9)
        tlog.check_consistency(9, 23, proof.path, view.root(9), view.root())
        with pytest.raises(RunNotFound):
            view.prove(9, 9)


def test_large_values_are_put_back_together(path: Path) -> None:
    with LedgerView.open(path) as view:
        event = view.event(5).event
        assert isinstance(event, ev.ResultRecorded)
        assert view.resolve(event.trajectory) == [
            {"role": "user", "content": f"a{n} " * 300} for n in range(20)
        ]


def test_an_absent_blob_is_not_found(path: Path) -> None:
    with LedgerView.open(path) as view, pytest.raises(RunNotFound, match="no blob 000000"):
        view.blob(bytes(32))


def test_blobs_are_found_before_and_after_the_index_is_made(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        digests = [d for (d,) in connection.execute("SELECT digest FROM blob")]
    connection.close()
    assert len(digests) > 10
    for sealed in (False, True):
        with LedgerView.open(path) as view:
            assert view.source.indexed is sealed
            for digest in digests:
                assert hashlib.sha256(view.blob(digest)).digest() == digest
        if not sealed:
            with Ledger.open(path) as ledger:
                ledger.seal()


def test_checkpoints_are_listed(path: Path) -> None:
    with LedgerView.open(path) as view:
        ((size, text),) = view.checkpoints()
        assert size == 21
        assert text.startswith(f"acl/unsigned/{view.ledger_id.hex()}\n21\n")


def test_sealed_is_told_from_the_events(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger, ledger.view() as view:
        assert not view.sealed
        ledger.append(say.created())
        assert not view.sealed
        ledger.seal()
        assert view.sealed
        ledger.append(ev.AnnotationAdded(text="seen", author="a"))
        assert view.sealed


def test_an_empty_ledger_has_no_events_and_no_name(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger, ledger.view() as view:
        assert (view.size, view.ledger_id, list(view.events())) == (0, b"", [])
        assert view.root() == hashlib.sha256(b"").digest()
        ledger.append(say.created())
        assert view.ledger_id == ledger.ledger_id


def test_a_view_is_what_an_exporter_fetches_from(path: Path) -> None:
    with LedgerView.open(path) as view:
        blobs: Blobs = view
        assert blobs.event(0).seq == 0


# --- while it is written -------------------------------------------------------------------------


def test_a_reader_sees_each_event_once_it_is_acknowledged(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger, ledger.view() as view:
        for n, event in enumerate(say.opening("t")):
            ledger.append(event)
            assert view.event(n).event == event
            assert view.root() == ledger.root()
        ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000)))
        result = view.event(5).event
        assert isinstance(result, ev.ResultRecorded)
        assert view.resolve(result.final_answer) == "x" * 9000


def test_another_process_sees_acknowledged_events_at_once(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from ledger import LedgerView\n"
        "with LedgerView.open(sys.argv[1]) as view:\n"
        "    for line in sys.stdin:\n"
        "        print(view.size, view.root().hex(), view.writer(), flush=True)\n"
    )
    with Ledger.create(tmp_path) as ledger:
        reader = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdin is not None
        assert reader.stdout is not None
        for event in say.opening("t"):
            receipt = ledger.append(event)
            reader.stdin.write("\n")
            reader.stdin.flush()
            size, root, writer = reader.stdout.readline().split(maxsplit=2)
            assert (int(size), root) == (receipt.size, receipt.root.hex())
            assert f"process {os.getpid()}" in writer
        reader.communicate()


def test_a_reader_in_the_middle_of_a_scan_does_not_block_the_writer(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        with ledger.view() as view:
            events = view.events()
            next(events)
            for number in range(1, 50):
                ledger.append(*say.attempt("t", number))
            ledger.checkpoint()
            assert [e.seq for e in events] == [1, 2, 3]
            assert view.size == 4 + 49 * 4


def test_a_reader_with_an_open_cursor_does_not_block_the_writer(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        with ledger.view() as view:
            cursor = view.source.query("SELECT seq FROM event")
            next(cursor)
            for number in range(1, 300):
                ledger.append(*say.attempt("t", number))
            assert [seq for (seq,) in cursor] == [1, 2, 3]
    check_ledger(tmp_path)


def test_a_ledger_without_events_says_so_once_nobody_writes_it(tmp_path: Path) -> None:
    with Ledger.create(tmp_path), LedgerView.open(tmp_path) as view:
        assert list(view.events()) == []
    with pytest.raises(RunNotFound, match="holds no event yet"):
        LedgerView.open(tmp_path)


# --- what is no ledger ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"SQLite", b"x" * 5000, b"SQLite format 4\x00" + bytes(4080)]
)
def test_other_files_are_not_ledgers(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(NotALedger):
        LedgerView.open(tmp_path / "f")


def test_nothing_a_directory_and_a_pipe_are_not_ledgers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("", "absent", "pipe", "absent/ledger.sqlite", "nul\x00"):
        with pytest.raises(NotALedger):
            LedgerView.open(tmp_path / name)
    assert {p.name for p in tmp_path.iterdir()} == {"pipe"}


def test_another_database_is_not_a_ledger(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "f") as connection:
        connection.execute("CREATE TABLE event(seq)")
    connection.close()
    with pytest.raises(NotALedger):
        LedgerView.open(tmp_path / "f")


def test_a_newer_format_is_named(path: Path) -> None:
    forge(path, "PRAGMA user_version = 7")
    with pytest.raises(VersionUnsupported, match="format 7"):
        LedgerView.open(path)


def test_a_name_that_means_something_in_a_uri_is_a_name(tmp_path: Path) -> None:
    odd = tmp_path / "a?mode=rwc#%41 é.sqlite"
    with Ledger.create(odd) as ledger:
        ledger.append(say.created())
    with LedgerView.open(odd) as view:
        assert view.size == 1
    check_ledger(odd)


# --- rolled back and damaged ---------------------------------------------------------------------


def test_a_copy_without_its_wal_is_refused_as_rolled_back(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "a.sqlite") as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint()
        # Another process copies only the main file and what stands beside it.
        for name in ("a.sqlite", "a.checkpoint.unsigned"):
            target = tmp_path / name.replace("a", "b", 1)
            subprocess.run(["cp", tmp_path / name, target], check=True)
    with pytest.raises(LedgerRolledBack, match=r"b\.sqlite has 0 events.*knows of 3.*-wal"):
        LedgerView.open(tmp_path / "b.sqlite")


def test_an_older_copy_is_refused_where_the_checkpoint_file_is_newer(path: Path) -> None:
    old = path.read_bytes()
    with Ledger.open(path) as ledger:
        ledger.append(ev.AnnotationAdded(text="more", author="a"))
        ledger.checkpoint()
    path.write_bytes(old)
    with pytest.raises(LedgerRolledBack, match=r"has 23 events.*knows of 24"):
        LedgerView.open(path)


@pytest.mark.parametrize("damaged", range(5))
def test_a_flipped_byte_is_named_with_its_event_and_events_before_are_read(
    path: Path, damaged: int
) -> None:
    with sqlite3.connect(path) as connection:
        parts = connection.execute("SELECT id, data, plain FROM segment ORDER BY id").fetchall()
        offsets = [off for (off,) in connection.execute("SELECT off FROM event ORDER BY seq")]
    connection.close()
    assert len(parts) == 5
    part, data, _ = parts[damaged]
    begin = parts[damaged - 1][2] if damaged else 0
    first = offsets.index(begin)
    flipped = data[:5] + bytes([data[5] ^ 1]) + data[6:]
    forge(path, f"UPDATE segment SET data = x'{flipped.hex()}' WHERE id = {part}")
    with LedgerView.open(path) as view:
        events = view.events()
        assert [next(events).seq for _ in range(first)] == list(range(first))
        named = f"event {first}: segment 0 part {damaged}"
        with pytest.raises(LedgerDamaged, match=named) as damage:
            next(events)
    assert damage.value.seq == first
    assert next(f for f in verify(path) if f.severity == "broken").seq == first


def test_what_verify_does_not_name_can_be_read_whichever_page_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        for number in range(1, 80):
            ledger.append(*say.attempt("t", number, answer=f"{number}" * 3000))
            ledger.checkpoint()
    data = path.read_bytes()
    partly = 0
    for page in range(1, len(data) // schema.PAGE_SIZE):
        path.write_bytes(
            data[: page * schema.PAGE_SIZE] + b"\xff" * 8 + data[page * schema.PAGE_SIZE + 8 :]
        )
        try:
            faults = [f for f in verify(path) if f.severity == "broken"]
        except AclError:
            continue
        first = min((f.seq for f in faults if f.seq is not None), default=None)
        if first is None:
            continue
        partly += first > 3
        with LedgerView.open(path) as view:
            assert [e.seq for e in view.events(until=first)] == list(range(first)), f"page {page}"
    assert partly > 5


def test_a_body_that_is_not_the_committed_one_is_named(path: Path) -> None:
    plain = plain_events(path)
    altered = plain.replace(b'"correct":true', b'"correct":null', 1)
    assert altered != plain
    store_plain(path, altered)
    with LedgerView.open(path) as view:
        assert view.event(5).seq == 5
        with pytest.raises(
            LedgerDamaged, match="event 6 is not what its header commits to"
        ) as damage:
            view.event(6)
    assert damage.value.seq == 6


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("DELETE FROM event WHERE seq = 7", 7),
        ("UPDATE event SET seg = 9 WHERE seq = 7", 7),
        ("UPDATE event SET seg = 4611686018427387904 WHERE seq = 7", 7),
        ("UPDATE event SET off = off + 1 WHERE seq = 7", 7),
        ("UPDATE event SET off = -5 WHERE seq = 7", 7),
        ("UPDATE event SET off = (SELECT off FROM event WHERE seq = 8) WHERE seq = 7", 7),
        ("DELETE FROM segment", 0),
    ],
)
def test_rows_that_lead_astray_are_damage_of_their_event(
    path: Path, statement: str, seq: int
) -> None:
    forge(path, statement)
    with LedgerView.open(path) as view, pytest.raises(LedgerDamaged) as damage:
        list(view.events())
    assert damage.value.seq == seq


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE blob SET off = off + 1",
        "UPDATE blob SET seg = seg + 1",
        "UPDATE blob SET len = len - 1",
        "UPDATE blob SET len = -1",
        "DELETE FROM blobsegment",
    ],
)
def test_blobs_that_are_not_their_digest_are_damage(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        ((digest,),) = connection.execute("SELECT digest FROM blob WHERE id = 3").fetchall()
    connection.close()
    forge(path, statement)
    with LedgerView.open(path) as view, pytest.raises(LedgerDamaged, match=digest.hex()):
        view.blob(digest)


def test_a_second_copy_of_a_blob_serves_where_the_first_is_damaged(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        ((digest, seg, off, length, last),) = connection.execute(
            "SELECT digest, seg, off, len, (SELECT max(id) FROM blob) FROM blob WHERE id = 3"
        ).fetchall()
    connection.close()
    forge(
        path,
        f"INSERT INTO blob VALUES ({last + 1}, x'{digest.hex()}', {seg}, {off}, {length})",
        "UPDATE blob SET off = off + 1 WHERE id = 3",
    )
    with LedgerView.open(path) as view:
        assert hashlib.sha256(view.blob(digest)).digest() == digest


def test_a_cell_of_another_type_is_damage(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for table in ("event", "blob", "segment"):
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '') WHERE name = ?",
                (table,),
            )
        connection.execute("PRAGMA writable_schema = RESET")
    connection.close()
    forge(path, "UPDATE event SET off = 'twelve' WHERE seq = 2", "UPDATE segment SET data = 'text'")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for table in ("event", "blob", "segment"):
            (sql,) = [s for s in schema.STATEMENTS if s.startswith(f"CREATE TABLE {table}(")]
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, table))
    connection.close()
    with LedgerView.open(path) as view, pytest.raises(LedgerDamaged, match="another type"):
        list(view.events())
    with LedgerView.open(path) as view, pytest.raises(LedgerDamaged, match="another type"):
        view.event(1)


# --- memory --------------------------------------------------------------------------------------

BIG = """
import hashlib, sys
from ledger import LedgerView
from ledger import events as ev
from ledger.store import Ledger
from ledger.verify import verify
from tests import events_of as say
from tests.memory_peak import peak
block = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(16384))
text = "".join([block[n:] + block[:n] for n in range(100)])
digest = hashlib.sha256(text.encode()).digest()
with Ledger.create(sys.argv[1]) as ledger:
    ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
    ledger.append(*say.attempt("t", answer=text))
del text
with LedgerView.open(sys.argv[1]) as view:
    back = view.resolve(view.event(5).event.final_answer)
    assert len(back) == 100 * 2**20 and hashlib.sha256(back.encode()).digest() == digest
print(peak())
"""


def test_a_text_of_100_mb_comes_back_and_takes_a_few_times_its_size(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert int(done.stdout) < 6 * 100 * 2**20


def test_reading_many_events_keeps_few(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(say.created())
        for n in range(30):
            ledger.append(
                *(ev.AnnotationAdded(text=f"{n} {k} " * 3000, author="a") for k in range(100))
            )
    tracemalloc.start()
    with LedgerView.open(tmp_path) as view:
        assert sum(1 for _ in view.events()) == 3001
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Of 60 MB: the cached segments, and one chunk of rows.
    assert peak < 24 * 2**20
