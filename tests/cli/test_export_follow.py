"""`acl export --follow`: files that keep up with a run of another process."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Acl, flip_a_stored_byte

ROOT = Path(__file__).resolve().parents[2]

# A run of three tasks that waits for a line on stdin before each of its steps.
WRITER = """
import sys
from pathlib import Path
from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say

def step(*events):
    ledger.append(*events)
    print(ledger.size, flush=True)
    sys.stdin.readline()

with Ledger.create(Path(sys.argv[1])) as ledger:
    step(*say.opening("one", "two", "three"))
    for task in ("one", "two", "three"):
        step(*say.whole_task(task, say.attempt(task)))
    step(*say.ending())
    ledger.seal()
"""


class Writer:
    """The other process; `go` lets it take its next step."""

    def __init__(self, run: Path) -> None:
        run.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(run)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said()

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "run")
    yield made
    made.end()


def wait_for(path: Path) -> None:
    for _ in range(2400):
        if path.exists():
            return
        time.sleep(0.05)
    pytest.fail(f"{path.name} never came")


@contextmanager
def beside(act: Callable[[], object], writer: Writer) -> Iterator[None]:
    """Have `act` done in a thread meanwhile; what goes wrong there ends the writer, too."""

    def acting() -> None:
        try:
            act()
        except BaseException:
            writer.process.kill()  # else whoever follows it would follow for ever
            raise

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(acting)
        yield
        done.result()


def test_records_appear_while_the_run_goes_on_and_the_end_is_whole(
    acl: Acl, writer: Writer, tmp_path: Path
) -> None:
    seen: list[str] = []

    def drive() -> None:
        wait_for(tmp_path / "out" / "run_info.json")
        seen.append(json.loads((tmp_path / "out" / "run_info.json").read_text())["status"])
        for task in ("one", "two", "three"):
            writer.go()
            writer.said()
            wait_for(tmp_path / "out" / "details" / f"{task}.json")
            seen.append(task)
        seen.append(str((tmp_path / "out" / "MANIFEST.json").exists()))
        writer.go()
        writer.said()
        writer.go()

    with beside(drive, writer):
        said = acl("export", "--follow", "run", "out", "--json")
    assert seen == ["running", "one", "two", "three", "False"]
    assert (said.status, said.document()["status"]) == (0, "completed")
    acl("export", "run", "after")
    assert acl("diff", "--trees", "out", "after").status == 0
    assert acl("verify", "run", "--tree", "out").status == 0
    assert writer.process.wait(60) == 0


def test_a_run_whose_writer_is_gone_is_told_as_interrupted(
    acl: Acl, writer: Writer, tmp_path: Path
) -> None:
    def kill() -> None:
        writer.go()
        writer.said()
        wait_for(tmp_path / "out" / "details" / "one.json")
        writer.process.kill()

    with beside(kill, writer):
        said = acl("export", "--follow", "run", "out", "--json")
    assert (said.status, said.document()["status"]) == (0, "interrupted")
    info = json.loads((tmp_path / "out" / "run_info.json").read_text())
    assert info["status"] == "interrupted"
    assert (tmp_path / "out" / "MANIFEST.json").exists()


def test_a_run_that_is_over_is_exported_at_once(acl: Acl, sealed: Path, killed: Path) -> None:
    assert acl("export", "--follow", sealed, "a", "--json").document()["status"] == "completed"
    assert acl("export", "--follow", killed, "b", "--json").document()["status"] == "interrupted"


def test_a_follower_that_is_interrupted_stops_with_its_signal(
    writer: Writer, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "acl", "export", "--follow", "run", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as follower:
        try:
            wait_for(tmp_path / "out" / "run_info.json")
            follower.send_signal(signal.SIGINT)
            _, err = follower.communicate(timeout=60)
        finally:
            follower.kill()
    assert (follower.returncode, err) == (130, b"")


@pytest.mark.parametrize("wrong", [["--salvage"], ["-f", "agentcompass"]])
def test_what_cannot_be_followed_is_refused(acl: Acl, sealed: Path, wrong: list[str]) -> None:
    said = acl("export", "--follow", *wrong, sealed, "out")
    assert (said.status, said.out) == (2, "")
    assert not Path("out").exists()


def test_a_damaged_ledger_is_not_followed(acl: Acl, sealed: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    said = acl("export", "--follow", sealed, "out")
    assert said.status == 4
    assert not Path("out").exists()
