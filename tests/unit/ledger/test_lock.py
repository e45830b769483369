import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ledger.errors import LedgerDamaged, LedgerLocked, UsageError
from ledger.lock import NO_LOCKS, WriterLock, has_record_locks, holder, lock_path, pause

HOLD = """
import sys, time
from pathlib import Path
from ledger.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


RECORD_LOCK = """
import fcntl
file = open(Path(sys.argv[1]).with_suffix(".lock"), "w")
fcntl.lockf(file, fcntl.LOCK_EX)
"""


def hold_in_another_process(ledger: Path, program: str = HOLD) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(ledger)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_lock_stands_beside_the_ledger(ledger: Path) -> None:
    lock = WriterLock(ledger)
    assert lock_path(ledger) == ledger.with_name("ledger.lock")
    assert lock_path(ledger).exists()
    lock.release()
    assert lock_path(ledger).exists()


def test_a_second_writer_in_this_process_is_refused_and_told_who_holds_it(ledger: Path) -> None:
    lock = WriterLock(ledger)
    with pytest.raises(LedgerLocked, match=f"process {os.getpid()}, started ") as refused:
        WriterLock(ledger, wait=0)
    assert refused.value.holder.startswith(f"process {os.getpid()}")
    lock.release()
    WriterLock(ledger, wait=0).release()


def test_a_second_writer_in_another_process_is_refused_until_the_first_is_dead(
    ledger: Path,
) -> None:
    process = hold_in_another_process(ledger)
    try:
        assert (holder(ledger) or "").startswith(f"process {process.pid}, started 20")
        with pytest.raises(LedgerLocked, match=f"process {process.pid}"):
            WriterLock(ledger, wait=0)
    finally:
        end(process)
    assert holder(ledger) is None
    lock = WriterLock(ledger, wait=0)
    assert (holder(ledger) or "").startswith(f"process {os.getpid()}")
    lock.release()


def test_a_writer_waits_for_the_lock_as_long_as_it_is_told(ledger: Path) -> None:
    lock = WriterLock(ledger)
    releaser = threading.Timer(0.05, lock.release)
    releaser.start()
    WriterLock(ledger, wait=30).release()
    releaser.join()


def test_nobody_holds_a_lock_that_was_never_taken(ledger: Path) -> None:
    assert holder(ledger) is None
    assert not lock_path(ledger).exists()


def test_asking_who_holds_it_never_makes_a_writer_give_up(ledger: Path) -> None:
    WriterLock(ledger).release()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            holder(ledger)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(50):
            WriterLock(ledger).release()
    finally:
        stop.set()
        asking.join()


def test_a_released_lock_can_be_released_again(ledger: Path) -> None:
    lock = WriterLock(ledger)
    lock.release()
    lock.release()


def test_a_child_process_does_not_inherit_the_lock(ledger: Path) -> None:
    lock = WriterLock(ledger)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
    )
    lock.release()
    try:
        # The kernel lets go of it while the child begins.
        WriterLock(ledger, wait=5).release()
    finally:
        child.communicate(b"\n")


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "directory"])
def test_only_a_regular_file_is_a_lock_and_nothing_else_is_touched_or_waited_for(
    ledger: Path, kind: str
) -> None:
    victim = ledger.parent / "victim"
    victim.write_bytes(b"precious")
    match kind:
        case "link":
            lock_path(ledger).symlink_to(victim)
        case "dangling":
            lock_path(ledger).symlink_to(ledger.parent / "nowhere")
        case "pipe":
            os.mkfifo(lock_path(ledger))
        case _:
            lock_path(ledger).mkdir()
    for use in (WriterLock, holder):
        with pytest.raises(LedgerDamaged, match=r"ledger\.lock is not a file"):
            use(ledger)
    assert victim.read_bytes() == b"precious"
    assert not (ledger.parent / "nowhere").exists()


def test_who_has_waited_longest_asks_most_often() -> None:
    for left, usual in [(30.0, 0.1), (15.0, 0.05), (3.0, 0.01), (0.2, 0.01), (3600.0, 0.1)]:
        pauses = {pause(left) for _ in range(50)}
        assert len(pauses) > 1
        assert all(0.5 * usual <= one <= 1.5 * usual for one in pauses)


def test_the_holder_is_named_whoever_was_named_before(ledger: Path) -> None:
    lock_path(ledger).write_text("process 1234567890, of a longer name\n" * 2)
    lock = WriterLock(ledger)
    assert holder(ledger) == lock_path(ledger).read_text().strip()
    assert "1234567890" not in (holder(ledger) or "")
    lock.release()


@pytest.mark.parametrize("number", sorted(NO_LOCKS))
def test_where_sqlite_could_lock_nothing_a_writer_is_refused_at_once(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "lockf", refuse)
        with pytest.raises(UsageError, match="cannot be locked") as refused:
            WriterLock(ledger, wait=0)
        assert refused.value.hint == "write to a local disk"
        assert not has_record_locks(ledger)
    # Nothing of it stays.
    assert has_record_locks(ledger)
    WriterLock(ledger, wait=0).release()


def test_a_record_lock_that_another_program_has_on_the_lock_file_keeps_nobody_out(
    ledger: Path,
) -> None:
    hold = HOLD.replace("lock = WriterLock(Path(sys.argv[1]))", RECORD_LOCK)
    process = hold_in_another_process(ledger, hold)
    try:
        WriterLock(ledger, wait=0).release()
        assert has_record_locks(ledger)
    finally:
        end(process)


def test_readers_find_record_locks_where_there_is_no_lock_file(ledger: Path) -> None:
    assert has_record_locks(ledger)
    lock_path(ledger).symlink_to(ledger)
    assert has_record_locks(ledger)
