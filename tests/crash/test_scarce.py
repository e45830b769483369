"""Few file descriptors, a strict umask, strange names: what is scarce is told, what is odd works."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from tests.crash.disks import ROOT
from tests.crash.killing import LONGEST
from tests.ledger_checks import check_ledger
from tests.run_comparison import state_of

ASK = ["--benchmark", "acl-arith", "--harness", "calculator", "--model", "none", "--limit", "4"]


def acl(*command: str | bytes, **how: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "acl", *command], cwd=ROOT, capture_output=True, check=False, **how
    )


def the_run(results: Path) -> Path:
    (run,) = (results / "acl-arith" / "none").iterdir()
    return run


@pytest.mark.crash
@pytest.mark.parametrize("descriptors", [9, 10, 11, 12, 13, 14, 16, 20, 24, 32, 48, 64])
def test_with_few_file_descriptors_a_run_ends_or_says_so_in_one_line(
    tmp_path: Path, descriptors: int
) -> None:
    """`descriptors` more than there are when the run begins."""
    limited = (
        "import os, resource, sys\n"
        "import exporters.live, runtime, acl.run, acl.main\n"
        "used = len(os.listdir('/proc/self/fd'))\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (used + int(sys.argv.pop(1)), hard))\n"
        "acl.main.main()\n"
    )
    command = ["run", *ASK, "--concurrency", "16", "--results-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", limited, str(descriptors), *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    assert "fault of acl" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode in {0, 1, 2, 5}
    if done.returncode:
        assert "oo many open files" in done.stderr or "unable to open" in done.stderr
    for file in tmp_path.rglob("ledger.sqlite"):
        check_ledger(file)
    # With more of them all goes well.
    assert acl(*command).returncode == 0


@pytest.mark.crash
def test_a_strict_umask_is_respected_and_hinders_nothing(tmp_path: Path) -> None:
    results = tmp_path / "results"
    done = acl("run", *ASK, "--results-dir", str(results), umask=0o077)
    assert done.returncode == 0, done.stderr
    run = the_run(results)
    for place in [results, *results.rglob("*")]:
        mode = stat.S_IMODE(place.lstat().st_mode)
        assert not mode & 0o077, (place, oct(mode))
    assert stat.S_IMODE((run / "ledger.sqlite").stat().st_mode) == 0o400
    check_ledger(run)
    assert acl("verify", str(run), umask=0o077).returncode == 0


@pytest.mark.crash
def test_a_path_that_is_too_long_for_sqlite_is_refused_in_one_line(tmp_path: Path) -> None:
    results = tmp_path / "/".join(["deep" * 20] * 8)
    done = acl("run", *ASK, "--results-dir", str(results))
    assert done.returncode == 2
    lines = done.stderr.decode().strip().splitlines()
    assert "has a path of" in lines[-1]
    assert "shorter path" in lines[-1]
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.crash
@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "quote'\"`",
        "?mode=rwc&x=%41#frag",
        "100%",
        "new\nline",
        "ümlaut-é-\u202e",
        "-leading",
        "x" * 255,
        os.fsdecode(b"bytes-\xff\xfe"),
        "/".join(["deep" * 20] * 4),
    ],
)
def test_a_results_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    results = tmp_path / name
    done = acl("run", *ASK, "--results-dir", os.fsencode(results))
    assert done.returncode == 0, done.stderr
    run = the_run(results)
    check_ledger(run)
    assert state_of(run).status == "completed"
    for command in ("verify", "show", "log"):
        assert acl(command, os.fsencode(run)).returncode == 0
    again = acl("run", *ASK, "--results-dir", os.fsencode(results), "--reuse", "--run-id", "again")
    assert again.returncode == 0, again.stderr
    with LedgerView.open(run.with_name("again")) as view:
        assert any(one.type == "task.reused" for one in view.events())
    copied = acl("copy", os.fsencode(run), os.fsencode(results / "copy.sqlite"))
    assert copied.returncode == 0, copied.stderr
    assert acl("audit", os.fsencode(results)).returncode in {0, 1}
