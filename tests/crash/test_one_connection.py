"""One read-write connection to a ledger at a time, in one process; everybody else only reads.

Of the versions of SQLite that are in use most can damage a file in WAL mode when two connections
write or checkpoint at once (3.7.0 to 3.51.2; repaired in 3.51.3, and in 3.44.6 and 3.50.7).
"""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import AclError
from ledger.store import Ledger
from tests import events_of as say
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]
# Who makes connections: to a ledger, to a new file that is none yet, or to a database of its own.
CONNECTING = {
    "ledger/database.py",
    "ledger/opening.py",
    "ledger/copying.py",
    "ledger/rewriting.py",
    "ledger/records.py",
    "ledger/schema.py",
    "ledger/verify/pieces.py",
    "exporters/tables/database.py",
    "acl/demo.py",
}

WATCHED = """
import json, os, sqlite3, sys, tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

results, told = Path(sys.argv[1]), open(sys.argv[2], "w")
temporary = str(Path(tempfile.gettempdir()) / "acl-")
writing = {}
seen = {"ro": 0, "rw": 0, "new": 0, "own": 0}
last = []

def is_open(connection):
    try:
        connection.total_changes
    except sqlite3.ProgrammingError:
        return False
    return True

def watch(event, arguments):
    if event == "sqlite3.connect":
        last[:] = [os.fspath(arguments[0])]
    elif event == "sqlite3.connect/handle":
        # An exception in a hook would be taken for one of connecting.
        try:
            note(last[0], arguments[0])
        except Exception as error:
            print("fault", repr(error), last, file=told, flush=True)

def note(name, connection):
    if not name or name == ":memory:":
        kind = "own"
    elif name.startswith("file:"):
        url = urlsplit(name)
        path, kind = unquote(url.path), url.query.removeprefix("mode=")
        if kind == "rw":
            others = [one for one in writing.get(path, []) if is_open(one)]
            assert not others, "two read-write connections"
            assert "process %d," % os.getpid() in Path(path).with_suffix(".lock").read_text()
            writing[path] = [connection]
        else:
            assert kind == "ro", name
    else:
        assert name.endswith(".new") or name.startswith(temporary), "a plain connection"
        kind = "new"
    seen[kind] += 1

sys.addaudithook(watch)

from acl.main import call

run = str(results / "acl-arith" / "none" / "one")
more = str(results.parent)
ask = "run --benchmark acl-arith --harness calculator --model none --concurrency 16 --k 2 -n 20"
ask = ask.replace(" -n 20", " --limit 20").split() + ["--results-dir", str(results)]
for command in (
    [*ask, "--run-id", "one"],
    [*ask, "--run-id", "two", "--reuse"],
    ["ls", str(results)],
    ["log", run],
    ["show", run],
    ["verify", run],
    ["replay", run],
    ["query", run, "select count(*) from attempts"],
    ["copy", run, more + "/copy.sqlite"],
    ["export", "-f", "jsonl", run, more + "/lines"],
    ["export", "-f", "tiles", run, more + "/tiles"],
    ["diff", run, run[:-3] + "two"],
    ["audit", str(results)],
    ["analyze", run, "--out", more + "/analysis"],
    ["checkpoint", run],
    ["prove", run, "3", "-o", more + "/proof"],
    ["annotate", run, "seen", "--author", "me"],
    ["erase", run, "12", "--reason", "asked to"],
    ["verify", run],
):
    print(command[0], call(command), file=told, flush=True)
print("seen", json.dumps(seen), file=told, flush=True)
"""


def test_no_other_module_makes_connections() -> None:
    connects = re.compile(r"sqlite3\.connect\(|sqlite_utils\.Database\(|sqlite3\.dbapi2|apsw")
    found = {
        str(file.relative_to(ROOT))
        for part in ("ledger", "runtime", "exporters", "acl")
        for file in (ROOT / part).rglob("*.py")
        if connects.search(file.read_text())
    }
    assert found == CONNECTING


def test_through_all_commands_a_ledger_has_one_writing_connection_at_a_time(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = [sys.executable, "-c", WATCHED, str(tmp_path / "results"), str(told)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = told.read_text().splitlines()
    assert not [line for line in lines if line.startswith("fault")]
    statuses = [line.split() for line in lines if not line.startswith("seen")]
    assert [one for one in statuses if one[1] != "0"] == [], done.stderr
    (seen,) = [line for line in lines if line.startswith("seen")]
    # The hook saw connections of each kind.
    assert not re.search(r": 0\b", seen), seen


# -- readers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a ledger whose writer was killed: most of it is in the -wal."""
    folder = tmp_path_factory.mktemp("left")
    program = (
        "import os, sys\n"
        "from ledger.store import Ledger\n"
        "from tests import events_of as say\n"
        "ledger = Ledger.create(sys.argv[1])\n"
        "ledger.append(*say.opening('t'))\n"
        "for n in range(20):\n"
        "    ledger.append(say.ev.AnnotationAdded(text='x' * 5000, author=str(n)))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder


def files(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in ("ledger.sqlite", "ledger.sqlite-wal")}


@pytest.mark.parametrize(
    "statement",
    [
        *(f"PRAGMA wal_checkpoint({how})" for how in ("PASSIVE", "FULL", "RESTART", "TRUNCATE")),
        "PRAGMA journal_mode = DELETE",
        "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA query_only = OFF",
        "BEGIN IMMEDIATE",
        "VACUUM",
        "DELETE FROM event",
    ],
)
def test_a_reader_can_neither_checkpoint_nor_reset_the_wal(left: Path, statement: str) -> None:
    before = files(left)
    with LedgerView.open(left) as view:
        size = view.size
        with pytest.raises(AclError, match=r"not authorized|authorization denied"):
            list(view.source.query(statement))
        assert view.size == size
    # Nor does the last one that closes.
    assert files(left) == before


def test_a_reader_that_closes_last_leaves_the_wal_to_the_next_writer(left: Path) -> None:
    before = files(left)
    for _ in range(2):
        with LedgerView.open(left) as one, LedgerView.open(left) as other:
            assert one.size == other.size == 23
    assert files(left) == before
    with Ledger.open(left) as ledger:
        assert ledger.size == 23
        ledger.append(*say.whole_task("t", say.attempt("t")))
    check_ledger(left)
