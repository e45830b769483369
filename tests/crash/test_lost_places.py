"""A directory that is moved, deleted or replaced during a run, and one that cannot be written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import LedgerDead
from ledger.store import Ledger
from tests import events_of as say
from tests.crash.disks import ROOT, read_only
from tests.crash.killing import Program, check_left, read_told
from tests.ledger_checks import check_ledger

LOSING = """
import sys
from pathlib import Path
from tests.crash import running

acks, results, how, elsewhere = sys.argv[1:]
running.tell_acknowledgements(Path(acks))
begun, act = [], running.act

async def lose(task, context):
    begun.append(task)
    if len(begun) == 30:
        run = Path(results, "listed/none/one")
        {"renamed": lambda: run.rename(elsewhere),
         "replaced": lambda: (run.rename(elsewhere), run.mkdir()),
         "results renamed": lambda: Path(results).rename(elsewhere)}[how]()
    return await act(task, context)

running.act = lose
sys.exit(running.main_run(Path(results), "one", alarm=lambda line: print(line, file=sys.stderr)))
"""


@pytest.mark.crash
@pytest.mark.parametrize("how", ["renamed", "replaced", "results renamed"])
def test_a_run_whose_directory_is_moved_ends_at_once_and_all_it_acknowledged_is_there(
    tmp_path: Path, how: str
) -> None:
    acks, results, elsewhere = tmp_path / "acks", tmp_path / "results", tmp_path / "elsewhere"
    done = subprocess.run(
        [sys.executable, "-c", LOSING, str(acks), str(results), how, str(elsewhere)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = json.loads(done.stdout)
    assert (done.returncode, outcome["status"]) == (1, "failed")
    assert "was moved, replaced or deleted" in outcome["error"]
    assert "fault of" not in done.stderr
    run = elsewhere / "listed/none/one" if how == "results renamed" else elsewhere
    state = check_left(run, acks)
    assert state.status == "interrupted"
    # Only what was under way is lost: most of the run was never begun.
    assert len(state.tasks) == 40
    assert sum(t.stage == "done" for t in state.tasks.values()) < 40
    # Back in its place it is taken over.
    back = tmp_path / "again" / "listed" / "none" / "one"
    back.parent.mkdir(parents=True)
    shutil.copytree(run, back)
    again = Program(tmp_path / "again.acks", ["run", str(tmp_path / "again"), "two", "reuse"])
    again.to_the_end()
    assert check_left(back.with_name("two"), again.acks).status == "completed"
    assert read_told(acks).size <= state.size


@pytest.mark.parametrize("what", ["directory", "file", "-wal", "another -wal"])
def test_nothing_is_acknowledged_that_went_to_a_file_without_a_name(
    tmp_path: Path, what: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    ledger = Ledger.create(run)
    ledger.append(*say.opening("t"))
    wal = run / "ledger.sqlite-wal"
    match what:
        case "directory":
            shutil.rmtree(run)
        case "file":
            (run / "ledger.sqlite").unlink()
        case "-wal":
            wal.unlink()
        case _:
            wal.rename(tmp_path / "aside")
            wal.write_bytes((tmp_path / "aside").read_bytes())
    for _ in range(2):
        with pytest.raises(LedgerDead, match="was moved, replaced or deleted"):
            ledger.append(ev.AnnotationAdded(text="x", author="a"))
    ledger.close()


def test_a_directory_that_is_moved_and_back_again_is_no_loss(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with Ledger.create(run) as ledger:
        ledger.append(*say.opening("t"))
        run.rename(tmp_path / "aside")
        (tmp_path / "aside").rename(run)
        ledger.append(ev.AnnotationAdded(text="x", author="a"))
    check_ledger(run)


# -- a directory that cannot be written ------------------------------------------------------------

KILLED = """
import os, sys
from ledger.store import Ledger
from tests import events_of as say
ledger = Ledger.create(sys.argv[1])
ledger.append(*say.opening("t"))
ledger.append(*say.whole_task("t", say.attempt("t")))
ledger.checkpoint()
if sys.argv[2] == "sealed":
    ledger.append(*say.ending())
    ledger.seal()
os.kill(os.getpid(), 9)
"""


def acl(prefix: list[str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", "acl", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.crash
@pytest.mark.parametrize("how", ["killed", "sealed"])
def test_what_is_on_a_read_only_disk_is_read_and_what_would_write_says_why_not(
    tmp_path: Path, how: str
) -> None:
    place = tmp_path / "place"
    run = place / "run"
    run.mkdir(parents=True)
    prefix = read_only(place)
    subprocess.run([sys.executable, "-c", KILLED, str(run), how], cwd=ROOT, check=False)
    with LedgerView.open(run, pristine=True) as view:
        size = view.size
    for command in (
        ["verify", str(run)],
        ["log", str(run), "--json"],
        ["show", str(run)],
        ["export", str(run), str(tmp_path / "out")],
    ):
        done = acl(prefix, *command)
        assert done.returncode == 0, done.stderr
        if command[0] == "log":
            assert len(done.stdout.splitlines()) == size
    assert list((tmp_path / "out").rglob("details/*.json"))
    ask = ["--benchmark", "acl-arith", "--harness", "calculator", "--model", "none"]
    for command in (
        ["run", *ask, "--results-dir", str(place / "results")],
        ["annotate", str(run), "a remark", "--author", "me"],
        ["copy", str(run), str(place / "copy.sqlite")],
    ):
        done = acl(prefix, *command)
        assert done.returncode in {1, 2}, (command, done.stderr)
        last = done.stderr.splitlines()[-1]
        assert "ead-only file system" in last or "readonly" in last, (command, done.stderr)
        assert "fault of acl" not in done.stderr
