"""Two processes and one ledger: the second is refused by name, and a dead one's lock is free."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import LedgerLocked
from ledger.store import Ledger
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]


def start(path: Path) -> subprocess.Popen[str]:
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.writer", str(path), "7"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline()
    return writer


def test_a_second_process_is_refused_while_the_first_lives_and_not_after(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    writer = start(path)
    try:
        with pytest.raises(LedgerLocked, match=f"process {writer.pid}, started 20"):
            Ledger.open(path, wait=0)
        with LedgerView.open(path) as view:
            assert f"process {writer.pid}" in (view.writer() or "")
            assert view.size >= 4
    finally:
        writer.kill()
        writer.communicate()
    with Ledger.open(path, wait=0) as ledger:
        assert ledger.size >= 4
    check_ledger(path)


def test_of_two_that_start_at_once_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.writer", str(path), str(n)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for n in range(2)
    ]
    lines = [writer.stdout.readline() for writer in both if writer.stdout]
    for writer in both:
        writer.kill()
    errors = [writer.communicate()[1] for writer in both]
    assert sorted(map(bool, lines)) == [False, True]
    refused = errors[lines.index("")]
    assert "LedgerLocked" in refused or "LedgerExists" in refused
    check_ledger(path)


READERS = """
import sys, time
from ledger import LedgerView
with LedgerView.open(sys.argv[1]) as view:
    cursor = view.source.query("SELECT seq FROM event")
    next(cursor)
    print("reading", flush=True)
    sys.stdin.readline()
"""


def test_four_readers_in_the_middle_of_a_query_do_not_stop_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    writer = start(path)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READERS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _ in range(4)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "reading\n"
        assert writer.stdout is not None
        before = int(writer.stdout.readline().split()[0])
        for _ in range(50):
            size = int(writer.stdout.readline().split()[0])
        assert size >= before + 50 * 4
    finally:
        for reader in readers:
            reader.communicate("\n")
        writer.kill()
        writer.communicate()
    check_ledger(path)
