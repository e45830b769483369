"""A disk that fills up: earlier events stay, each failure is told truly, and there is a way on."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]

FILL = """
import os, random, sys
from pathlib import Path
from ledger import LedgerView
from ledger import events as ev
from ledger.errors import NotStored
from ledger.store import Ledger
from tests import events_of as say

def fill(ledger):
    noise = random.Random(ledger.size)
    while True:
        note = ev.AnnotationAdded(text=noise.randbytes(2048).hex(), author="a")
        try:
            receipt = ledger.append(note)
        except NotStored as error:
            assert "annotation.added was not stored" in str(error), error
            assert "disk is full" in str(error), error
            return receipt
        assert receipt.size == ledger.size

def still_good(path, receipt):
    with LedgerView.open(path) as view:
        assert (view.size, view.root()) == (receipt.size, receipt.root)
"""

TMPFS = (
    FILL
    + """
folder = Path(sys.argv[1])
(folder / "ballast").write_bytes(bytes(500_000))
ledger = Ledger.create(folder)
ledger.append(say.created())
receipt = fill(ledger)
still_good(folder, receipt)
assert ledger.size == receipt.size
for _ in range(3):
    try:
        ledger.append(ev.AnnotationAdded(text="x" * 4000, author="a"))
    except NotStored:
        pass
(folder / "ballast").unlink()
after = ledger.append(ev.AnnotationAdded(text="there is room", author="a"))
assert after.first >= receipt.size
second = fill(ledger)
ledger.close()
os.system(f"cp {folder}/ledger.* {sys.argv[2]}/")
"""
)

LIMIT = (
    FILL
    + """
import resource
folder = Path(sys.argv[1])
ledger = Ledger.create(folder)
ledger.append(say.created())
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
receipt = fill(ledger)
still_good(folder, receipt)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
after = ledger.append(ev.AnnotationAdded(text="there is room", author="a"))
assert after.first == receipt.size
still_good(folder, after)
ledger.seal()
"""
)


def test_after_a_limit_on_file_size_the_writer_goes_on(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", LIMIT, str(tmp_path)], check=True, cwd=ROOT)
    check_ledger(tmp_path)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_on_a_full_file_system_nothing_is_lost_and_room_is_enough(tmp_path: Path) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    kept.mkdir()
    mount = f"mount -t tmpfs -o size=2m tmpfs {disk}"
    if subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], check=False, capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    command = f'{mount} && exec "$@"'
    subprocess.run(
        ["unshare", "-rm", "sh", "-c", command, "sh", sys.executable, "-c", TMPFS, disk, kept],
        check=True,
        cwd=ROOT,
    )
    check_ledger(kept)
