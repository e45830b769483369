"""The -wal files here are made by a writer that is killed, then damaged."""

import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import LedgerDamaged
from ledger.lock import WriterLock
from ledger.schema import PAGE_SIZE
from ledger.store import Ledger
from ledger.verify import verify
from ledger.wal import unread_commits
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[3]
FRAME = 24 + PAGE_SIZE
WRITER = """
import os, sys
from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say
ledger = Ledger.create(sys.argv[1])
ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
for number in range(1, 7):
    ledger.append(*say.attempt("t", number, answer="x" * 9000 * number))
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a ledger whose writer was killed after seven commits."""
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, "-c", WRITER, str(folder)], check=False, cwd=ROOT)
    (folder / "ledger.sqlite-shm").unlink(missing_ok=True)
    return folder


@pytest.fixture
def folder(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "copy"))


def wal_of(folder: Path) -> Path:
    return folder / "ledger.sqlite-wal"


def commits(wal: bytes) -> list[int]:
    """The numbers of the frames that end a transaction."""
    count = (len(wal) - 32) // FRAME
    sizes = [struct.unpack_from(">I", wal, 32 + n * FRAME + 4)[0] for n in range(count)]
    return [number for number, size in enumerate(sizes) if size]


def fault(folder: Path, wal: bytes) -> str | None:
    wal_of(folder).write_bytes(wal)
    return unread_commits(folder / "ledger.sqlite")


def flipped(wal: bytes, offset: int) -> bytes:
    return wal[:offset] + bytes([wal[offset] ^ 4]) + wal[offset + 1 :]


def test_a_sound_wal_and_none_at_all_are_no_damage(folder: Path) -> None:
    wal = wal_of(folder).read_bytes()
    assert len(commits(wal)) == 7
    assert fault(folder, wal) is None
    wal_of(folder).unlink()
    assert unread_commits(folder / "ledger.sqlite") is None


def test_a_flipped_bit_anywhere_before_the_last_transaction_is_found(folder: Path) -> None:
    wal = wal_of(folder).read_bytes()
    end = 32 + (commits(wal)[-2] + 1) * FRAME
    noise = random.Random(3)
    places = [*range(32), *(noise.randrange(end) for _ in range(100))]
    places += [32 + commits(wal)[2] * FRAME + n for n in range(24)]
    for place in places:
        assert fault(folder, flipped(wal, place)), place


def test_a_wal_that_ends_anywhere_is_what_a_crash_leaves(folder: Path) -> None:
    wal = wal_of(folder).read_bytes()
    noise = random.Random(4)
    for _ in range(100):
        assert fault(folder, wal[: noise.randrange(len(wal))]) is None


def test_sectors_lost_in_the_last_transaction_are_what_a_power_cut_leaves(folder: Path) -> None:
    wal = wal_of(folder).read_bytes()
    first = 32 + (commits(wal)[-2] + 1) * FRAME
    noise = random.Random(5)
    for _ in range(100):
        torn = bytearray(wal)
        for sector in range(-(-first // 512), len(wal) // 512):
            if noise.random() < 0.3:
                torn[sector * 512 : sector * 512 + 512] = bytes(512)
        assert fault(folder, bytes(torn)) is None


def test_frames_of_an_earlier_log_behind_a_new_one_are_no_damage(folder: Path) -> None:
    wal = wal_of(folder).read_bytes()
    other = folder / "other"
    other.mkdir()
    subprocess.run([sys.executable, "-c", WRITER, str(other)], check=False, cwd=ROOT)
    newer = wal_of(other).read_bytes()
    for count in (1, commits(newer)[0] + 1, commits(newer)[2] + 1):
        end = 32 + count * FRAME
        assert fault(folder, newer[:end] + wal[end:]) is None


@pytest.mark.parametrize("kind", ["directory", "link", "pipe"])
def test_what_is_no_file_hides_no_commits_and_is_named_by_who_opens_the_ledger(
    folder: Path, kind: str
) -> None:
    wal_of(folder).rename(folder / "aside")
    if kind == "directory":
        wal_of(folder).mkdir()
    elif kind == "link":
        wal_of(folder).symlink_to(folder / "aside")
    else:
        os.mkfifo(wal_of(folder))
    assert unread_commits(folder / "ledger.sqlite") is None
    for look in (Ledger.open, LedgerView.open):
        with pytest.raises(LedgerDamaged, match=r"sqlite-wal is not a file"):
            look(folder)


@pytest.mark.parametrize("place", ["header", "frame"])
def test_a_ledger_with_commits_that_are_not_read_is_broken_and_not_written(
    folder: Path, place: str
) -> None:
    wal = wal_of(folder).read_bytes()
    at = 9 if place == "header" else 32 + (commits(wal)[2] + 1) * FRAME + 2000
    wal_of(folder).write_bytes(flipped(wal, at))
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".lock"}
    with pytest.raises(LedgerDamaged, match="-wal is damaged"):
        Ledger.open(folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".lock"} == before
    (found,) = [f for f in verify(folder) if f.severity == "broken" and f.code == "wal_damaged"]
    if place == "frame":
        with LedgerView.open(folder) as view:
            assert view.size > 0
            assert found.seq == view.size
    wal_of(folder).write_bytes(wal)
    check_ledger(folder)


def test_a_torn_last_transaction_is_no_damage_to_verify_and_the_ledger_goes_on(
    folder: Path,
) -> None:
    wal = wal_of(folder).read_bytes()
    wal_of(folder).write_bytes(wal[: 32 + commits(wal)[-1] * FRAME + 99])
    with LedgerView.open(folder) as view:
        size = len(list(view.events()))
    check_ledger(folder)
    with Ledger.open(folder) as ledger:
        assert ledger.size == size


def test_while_somebody_holds_the_lock_the_wal_is_not_judged(folder: Path) -> None:
    wal = wal_of(folder).read_bytes()
    wal_of(folder).write_bytes(flipped(wal, 32 + (commits(wal)[2] + 1) * FRAME + 2000))
    lock = WriterLock(folder / "ledger.sqlite")
    assert not [f for f in verify(folder) if f.code == "wal_damaged"]
    lock.release()
    assert [f for f in verify(folder) if f.code == "wal_damaged"]
