"""kill -9 at any moment: what was acknowledged is there, the ledger opens, verifies and goes on."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import LedgerRolledBack, UsageError
from ledger.store import Ledger
from tests import events_of as say
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]


def run_until_killed(path: Path, seed: int, lines: int, pause: float) -> list[tuple[int, str]]:
    """Let a writer acknowledge `lines` receipts, kill it, and return all that it acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.writer", str(path), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(lines)]
    time.sleep(pause)
    writer.kill()
    rest, _ = writer.communicate()
    whole = [line for line in "".join([*told, rest]).splitlines(keepends=True) if line[-1] == "\n"]
    return [(int(size), root) for size, root in (line.split() for line in whole)]


def test_killed_again_and_again_a_ledger_keeps_every_acknowledged_event(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    when = random.Random(20)
    for seed in range(4):
        told = run_until_killed(path, seed, when.randint(1, 25), when.random() / 50)
        check_ledger(path)
        with LedgerView.open(path) as view:
            assert view.size >= told[-1][0]
            for size, root in told:
                assert view.root(size).hex() == root
            assert view.writer() is None


# ACL_STEP_STRIDE=1 kills at every step; by default at every fourth.
STRIDE = int(os.environ.get("ACL_STEP_STRIDE", "4"))


@pytest.mark.parametrize(("moment", "first"), [("before", 0), ("after", STRIDE // 2)])
def test_a_writer_killed_at_each_of_its_steps_loses_nothing(
    tmp_path: Path, moment: str, first: int
) -> None:
    steps = subprocess.run(
        [sys.executable, "-m", "tests.crash.steps", str(tmp_path), moment, str(first), str(STRIDE)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    outcomes = [json.loads(line) for line in steps.stdout.splitlines()]
    assert len(outcomes) > 60 // STRIDE
    assert outcomes[-1]["finished"]
    for outcome in outcomes:
        acknowledged = int(outcome["told"][-1]) if outcome["told"] else None
        path = Path(outcome["folder"]) / "ledger.sqlite"
        if acknowledged is None and not path.exists():
            Ledger.create(path).close()
        size = recover(path)
        assert size >= (acknowledged or 0), outcome


def recover(path: Path) -> int:
    """Open what a killed writer left, go on if that is possible, and return how much was there."""
    check_ledger(path)
    try:
        with Ledger.open(path) as ledger:
            size = ledger.size
            ledger.append(*([] if size else say.opening("t")))
            ledger.append(ev.AnnotationAdded(text="after the crash", author="a"))
            ledger.seal()
    except UsageError:
        with LedgerView.open(path) as view:
            assert view.sealed
            size = view.size
    check_ledger(path)
    with LedgerView.open(path) as view:
        assert view.sealed
        assert view.source.indexed
    assert not path.with_name("ledger.sqlite-wal").exists()
    return size


OWN = """
import os, subprocess, sys
from pathlib import Path
from ledger import LedgerView
from ledger.copying import copy_ledger
from ledger.store import Ledger
from ledger.verify import verify
from tests import events_of as say
folder = Path(sys.argv[1])
ledger = Ledger.create(folder)
ledger.append(*say.opening("t"))
with LedgerView.open(folder) as view:
    list(view.events())
with LedgerView.open(folder, pristine=True) as view:
    list(view.events())
ledger.checkpoint()
copy_ledger(folder, folder / "copy.sqlite")
list(verify(folder))
for name in ("ledger.lock", "ledger.checkpoint.unsigned"):
    (folder / name).read_bytes()
LedgerView.open(folder).writer()
receipt = ledger.append(*say.whole_task("t", say.attempt("t")))
reader = subprocess.run(
    [sys.executable, "-c", "import sys; from ledger import LedgerView\\n"
     "with LedgerView.open(sys.argv[1]) as view: print(view.size)", str(folder)],
    capture_output=True, text=True, check=True,
)
assert int(reader.stdout) == 9, reader.stdout
receipt = ledger.append(*say.ending())
print(receipt.size, receipt.root.hex(), flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_writer_that_reads_and_copies_its_own_ledger_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWN, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    size, root = done.stdout.split()
    check_ledger(tmp_path)
    with LedgerView.open(tmp_path) as view:
        assert (view.size, view.root().hex()) == (int(size), root) == (11, root)
    check_ledger(tmp_path / "copy.sqlite")


def test_a_killed_ledger_copied_with_its_wal_goes_on_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    told = run_until_killed(tmp_path / "here" / "ledger.sqlite", 1, 10, 0)
    (tmp_path / "there").mkdir()
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        shutil.copyfile(tmp_path / "here" / name, tmp_path / "there" / name)
    with Ledger.open(tmp_path / "there") as ledger:
        assert ledger.size >= told[-1][0]
        ledger.append(ev.AnnotationAdded(text="moved", author="a"))
    check_ledger(tmp_path / "there")


def test_a_killed_ledger_copied_without_its_wal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "ledger.sqlite"
    program = (
        "import os, sys\n"
        "from ledger.store import Ledger\n"
        "from tests import events_of as say\n"
        "ledger = Ledger.create(sys.argv[1])\n"
        "ledger.append(*say.opening('t'))\n"
        "ledger.checkpoint()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False, cwd=ROOT)
    (tmp_path / "there").mkdir()
    for name in ("ledger.sqlite", "ledger.checkpoint.unsigned"):
        shutil.copyfile(path.with_name(name), tmp_path / "there" / name)
    for opening in (LedgerView.open, Ledger.open):
        with pytest.raises(LedgerRolledBack, match="-wal"):
            opening(tmp_path / "there")
    check_ledger(path)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_file_and_directory_are_synced_before_anything_is_acknowledged(tmp_path: Path) -> None:
    program = (
        "import sys, os\n"
        "from ledger.store import Ledger\n"
        "from tests import events_of as say\n"
        "ledger = Ledger.create(sys.argv[1])\n"
        "os.write(2, b'created')\n"
        "ledger.append(*say.opening('t'))\n"
        "os.write(2, b'appended')\n"
        "ledger.checkpoint()\n"
        "os.write(2, b'checkpointed')\n"
    )
    log = tmp_path / "strace"
    (tmp_path / "run").mkdir()
    traced = "trace=fsync,fdatasync,write,rename"
    writer = [sys.executable, "-c", program, str(tmp_path / "run")]
    done = subprocess.run(
        ["strace", "-f", "-y", "-e", traced, "-o", log, *writer],
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        pytest.skip("strace may not trace here")
    text = log.read_text()
    made, rest = text.split('"created"')
    stored, rest = rest.split('"appended"')
    kept, _ = rest.split('"checkpointed"')
    folder = f"{tmp_path}/run"
    assert f"<{folder}/ledger.sqlite.new>)" in syncs(made)
    assert f"<{folder}>)" in syncs(made[made.rindex("rename(") :])
    assert f"<{folder}/ledger.sqlite-wal>)" in syncs(stored)
    assert f"<{folder}/ledger.checkpoint.unsigned.new>)" in syncs(kept[: kept.rindex("rename(")])
    assert f"<{folder}>)" in syncs(kept[kept.rindex("rename(") :])


def syncs(trace: str) -> str:
    return "\n".join(line for line in trace.splitlines() if "sync(" in line)
