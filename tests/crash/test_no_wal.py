"""A file system without shared memory, or without locks: writing is refused by name, reading works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.errors import LedgerDamaged, UsageError
from ledger.lock import NO_LOCKS, fcntl, holder
from ledger.store import Ledger
from tests import events_of as say
from tests.crash.disks import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shim is for Linux")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    source = Path(__file__).with_name("no_shared_memory.c")
    build = ["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(build, check=True)
    return library


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a sealed ledger and one whose writer was killed."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("sealed", "killed"):
        (folder / name).mkdir()
        program = (
            "import os, sys\n"
            "from ledger.store import Ledger\n"
            "from tests import events_of as say\n"
            "ledger = Ledger.create(sys.argv[1])\n"
            "ledger.append(*say.opening('t'))\n"
            "ledger.append(*say.whole_task('t', say.attempt('t')))\n"
            "ledger.checkpoint()\n"
            "if 'sealed' in sys.argv[1]: ledger.append(*say.ending()); ledger.seal()\n"
            "os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", program, folder / name], cwd=ROOT, check=False)
    return folder


def acl(shim: Path, lacks: str, where: Path, *command: str) -> tuple[int, str, str]:
    shown = {"ACL_TEST_LACKS": lacks, "ACL_TEST_WHERE": str(where), "LD_PRELOAD": str(shim)}
    done = subprocess.run(
        [sys.executable, "-m", "acl", *command],
        cwd=ROOT,
        env={**os.environ, **shown},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def stored(runs: Path) -> dict[Path, bytes]:
    """What holds events: each ledger, and its -wal."""
    files = [*runs.rglob("ledger.sqlite"), *runs.rglob("ledger.sqlite-wal")]
    return {file: file.read_bytes() for file in files if file.stat().st_size}


@pytest.mark.crash
@pytest.mark.parametrize("lacks", ["mmap", "fcntl", "flock"])
def test_without_shared_memory_or_locks_runs_are_refused_and_what_is_there_is_read(
    shim: Path, runs: Path, lacks: str
) -> None:
    before = stored(runs)
    for run in ("sealed", "killed"):
        for command in ("verify", "show", "log"):
            status, _, errors = acl(shim, lacks, runs, command, str(runs / run))
            assert (status, errors) == (0, "")
    assert stored(runs) == before
    ask = ["--benchmark", "acl-arith", "--harness", "calculator", "--model", "none"]
    for command in (
        ["run", *ask, "--results-dir", str(runs / f"results-{lacks}")],
        ["seal", str(runs / "killed")],
    ):
        status, _, errors = acl(shim, lacks, runs, *command)
        assert status == 2
        (line,) = errors.splitlines()
        assert "write to a local disk" in line
        assert str(runs) in line
        assert {"mmap": "WAL", "fcntl": "cannot be locked", "flock": "No locks"}[lacks] in line
    # Nothing of it stays: on a disk that has them the ledger goes on.
    if lacks == "flock":
        with Ledger.open(runs / "killed") as ledger:
            ledger.seal()


@pytest.mark.parametrize("number", sorted(NO_LOCKS))
def test_where_nobody_gets_a_lock_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))

    def refuse(file: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert holder(tmp_path / "ledger.sqlite") is None
    with pytest.raises(UsageError, match="cannot be written"):
        Ledger.open(tmp_path)


@pytest.mark.parametrize("suffix", ["-shm", "-wal"])
def test_a_directory_in_the_place_of_what_sqlite_makes_is_named(
    tmp_path: Path, suffix: str
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
    (tmp_path / f"ledger.sqlite{suffix}").mkdir()
    with pytest.raises(LedgerDamaged, match=f"ledger.sqlite{suffix} is not a file"):
        Ledger.open(tmp_path)
