"""Readers that stay for long: the writer goes on, the -wal shrinks again, nothing is lost."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import AlreadySealed, LedgerLocked
from ledger.store import Ledger
from tests import events_of as say
from tests.crash.disks import ROOT
from tests.ledger_checks import check_ledger

# SQLite copies a -wal of this many pages into the file when a commit finds it so long.
CHECKPOINTED = 1000 * (4096 + 24) + 32
# To this it is cut.
WAL_BYTES = 32 * 1024 * 1024

READER = """
import sys
from ledger import LedgerView
with LedgerView.open(sys.argv[1]) as view:
    # In the middle of a query: this is a snapshot of now.
    cursor = view.source.query("SELECT seq FROM event")
    seen = [next(cursor)[0]]
    print("reading", flush=True)
    sys.stdin.readline()
    seen += [seq for seq, in cursor]
    print(len(seen), flush=True)
"""


@contextmanager
def reading(run: Path, count: int) -> Iterator[list["subprocess.Popen[str]"]]:
    """So many processes in the middle of a query; they go on when they are sent a line."""
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(run)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "reading\n"
        yield readers
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()


def seen_by(reader: "subprocess.Popen[str]") -> int:
    told, _ = reader.communicate("\n")
    return int(told)


def wal(run: Path) -> int:
    return (run / "ledger.sqlite-wal").stat().st_size


def grow(ledger: Ledger, megabytes: int) -> None:
    """Append what does not compress, half a megabyte at a time."""
    noise = random.Random(ledger.size)
    for _ in range(2 * megabytes):
        ledger.append(ev.AnnotationAdded(text=noise.randbytes(500_000).hex(), author="a"))


@pytest.mark.parametrize(
    ("least", "most"),
    [
        (2 * CHECKPOINTED, 0),
        # So long that it is cut when it is written from its beginning again.
        pytest.param(WAL_BYTES + 8_000_000, WAL_BYTES, marks=pytest.mark.crash),
    ],
)
def test_while_a_reader_stays_the_wal_grows_and_shrinks_when_it_is_gone(
    tmp_path: Path, least: int, most: int
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        with reading(tmp_path, 1) as (reader,):
            while wal(tmp_path) < least:
                grow(ledger, 1)
            with LedgerView.open(tmp_path) as view:
                assert view.size == ledger.size
            # It sees what there was when it began.
            assert seen_by(reader) == 3
        # The next commit finds it so long, and the one after that begins it anew.
        grow(ledger, 1)
        longest = most or wal(tmp_path)
        grow(ledger, 4)
        assert wal(tmp_path) <= longest
        size = ledger.size
    assert not (tmp_path / "ledger.sqlite-wal").exists()
    check_ledger(tmp_path)
    with LedgerView.open(tmp_path) as view:
        assert view.size == size


@pytest.mark.crash
def test_a_ledger_sealed_while_it_is_read_is_folded_by_the_next_opener(tmp_path: Path) -> None:
    with reading_after(tmp_path) as (ledger, reader):
        ledger.append(*say.whole_task("t", say.attempt("t")))
        ledger.append(*say.ending())
        ledger.seal()
        ledger.close()
        assert (tmp_path / "ledger.sqlite-wal").exists()
        assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o222
        check_ledger(tmp_path)
        # Somebody still reads: the next opener cannot fold it either, and loses nothing.
        with pytest.raises(AlreadySealed):
            Ledger.open(tmp_path)
        assert seen_by(reader) == 3
    with pytest.raises(AlreadySealed):
        Ledger.open(tmp_path)
    assert not (tmp_path / "ledger.sqlite-wal").exists()
    assert not (tmp_path / "ledger.sqlite").stat().st_mode & 0o222
    check_ledger(tmp_path)


@contextmanager
def reading_after(run: Path) -> Iterator[tuple[Ledger, "subprocess.Popen[str]"]]:
    with Ledger.create(run) as ledger:
        ledger.append(*say.opening("t"))
        with reading(run, 1) as (reader,):
            yield ledger, reader


@pytest.mark.crash
def test_beside_four_readers_a_second_writer_is_refused_by_name_again_and_again(
    tmp_path: Path,
) -> None:
    second = (
        "import os, sys\n"
        "from ledger.errors import LedgerLocked\n"
        "from ledger.store import Ledger\n"
        "for _ in range(20):\n"
        "    try:\n"
        "        Ledger.open(sys.argv[1], wait=0.01)\n"
        "    except LedgerLocked as error:\n"
        "        assert f'process {os.getppid()}' in str(error), error\n"
        "    else:\n"
        "        sys.exit('it was let in')\n"
    )
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        with reading(tmp_path, 4) as readers:
            other = subprocess.Popen([sys.executable, "-c", second, str(tmp_path)], cwd=ROOT)
            n = 0
            while other.poll() is None or n < 50:
                ledger.append(ev.AnnotationAdded(text=f"{n}", author="a"))
                n += 1
            assert other.returncode == 0
            assert {seen_by(reader) for reader in readers} == {3}
        with pytest.raises(LedgerLocked, match="process"):
            Ledger.open(tmp_path, wait=0)
        assert ledger.size == 3 + n
    check_ledger(tmp_path)
