"""Run the command line in this process, on small ledgers made for the test."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acl.main import call
from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say


@dataclass(frozen=True)
class Said:
    """What a command did: exit status, stdout, stderr."""

    status: int
    out: str
    err: str

    def document(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Acl = Callable[..., Said]


@pytest.fixture
def acl(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Acl:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Said:
        capsys.readouterr()
        status = call([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Said(status, out, err)

    return run


def write_run(directory: Path, *, seal: bool = True, run_id: str | None = None) -> Path:
    """A run of three tasks: right, wrong after a retry, and one that failed."""
    directory.mkdir(parents=True)
    retry = ev.AttemptRetried(
        task="wrong",
        attempt=1,
        retry=1,
        max_retries=2,
        retry_delay_seconds=0.5,
        stage="run",
        scope="attempt",
        error=ev.ErrorInfo(code="provider_overloaded", message="try later"),
        discarded_result={"status": "run_error"},
    )
    wrong = [
        ev.AttemptStarted(task="wrong", attempt=1),
        retry,
        say.result("wrong", final_answer="41"),
        say.verdict("wrong", correct=False, score=0.0, reason="41 is not 42"),
        ev.AttemptFinished(
            task="wrong", attempt=1, status="completed", correct=False, score=0.0, retries=1
        ),
    ]
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("right", "wrong", "broken", category="math"))
        ledger.append(*say.whole_task("right", say.attempt("right", score=1.0)))
        ledger.append(*say.whole_task("wrong", wrong))
        ledger.append(*say.whole_task("broken", say.failed_attempt("broken"), error=True))
        if seal:
            ledger.append(*say.ending())
            ledger.seal()
    return directory


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    return write_run(tmp_path / "results" / "bench" / "model-1" / "r1")


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    return write_run(tmp_path / "results" / "bench" / "model-1" / "r2", seal=False)


def flip_a_stored_byte(file: Path) -> None:
    """Change one byte in the middle of the first stored part of events."""
    import sqlite3

    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        (data,) = connection.execute("SELECT data FROM segment ORDER BY id LIMIT 1").fetchone()
    connection.close()
    raw = bytearray(file.read_bytes())
    at = raw.find(data[len(data) // 2 :][:16])
    assert at > 0
    raw[at] ^= 0x40
    file.chmod(0o600)
    file.write_bytes(raw)
