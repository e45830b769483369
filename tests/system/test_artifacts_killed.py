"""Runs with an artifacts directory that are stopped or killed, and the commands that come after."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SLOW = ("run", "--benchmark", "slow-arith", "--harness", "calculator", "--limit", "100")
QUICK = ("run", "--benchmark", "acl-arith", "--harness", "calculator", "--limit", "2")


def command(tmp_path: Path, *arguments: str) -> list[Any]:
    where = ("--results-dir", tmp_path / "results", "--artifacts", tmp_path / "artifacts")
    return [sys.executable, "-m", "tests.system.artifacts_run", *arguments, *where]


def start(tmp_path: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command(tmp_path, *arguments),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(found: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not found():
        assert time.monotonic() < until
        time.sleep(0.02)


def jobs(tmp_path: Path) -> list[dict[str, Any]]:
    files = sorted((tmp_path / "artifacts" / "jobs").glob("*/result.json"))
    return [json.loads(file.read_text()) for file in files]


def has_begun(tmp_path: Path) -> bool:
    return any(job["stats"]["n_completed_trials"] for job in jobs(tmp_path))


def index(tmp_path: Path) -> list[dict[str, Any]]:
    file = tmp_path / "artifacts" / "index.yaml"
    return yaml.safe_load(file.read_text())["runs"] if file.exists() else []


def metadata(tmp_path: Path, archive: str) -> dict[str, Any]:
    file = tmp_path / "artifacts" / "archives" / archive / "metadata.yaml"
    return yaml.safe_load(file.read_text())


def test_a_run_that_is_killed_is_archived_by_the_next_command(tmp_path: Path) -> None:
    process = start(tmp_path, *SLOW, "--run-id", "killed")
    wait_for(lambda: has_begun(tmp_path))
    (job,) = jobs(tmp_path)
    assert job["acl"]["status"] == "running"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert index(tmp_path) == []
    said = subprocess.run(
        command(tmp_path, *QUICK, "--run-id", "next"),
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "run killed ended before this: archived as run_001" in said.stderr
    first, second = index(tmp_path)
    assert (first["id"], first["status"]) == ("run_001", "interrupted")
    assert (second["id"], second["status"]) == ("run_002", "completed")
    assert metadata(tmp_path, "run_001")["exit_code"] == 137
    assert {job["acl"]["status"] for job in jobs(tmp_path)} == {"interrupted", "completed"}
    for directory in (tmp_path / "artifacts" / "jobs").iterdir():
        assert (directory / "analysis" / "instances.jsonl").is_file()
    # Nothing more is found by whoever comes then, and nothing that may be thrown away is left.
    again = subprocess.run(
        command(tmp_path, *QUICK), cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert "ended before" not in again.stderr
    assert len(index(tmp_path)) == 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_archives_itself(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(tmp_path, *SLOW)
    wait_for(lambda: has_begun(tmp_path))
    process.send_signal(number)
    assert process.wait(60) == code
    (entry,) = index(tmp_path)
    assert entry["status"] == "interrupted"
    assert metadata(tmp_path, "run_001")["exit_code"] == code
    (job,) = jobs(tmp_path)
    assert job["acl"]["status"] == "cancelled"


def test_nothing_is_cleaned_while_a_run_writes(tmp_path: Path) -> None:
    process = start(tmp_path, *SLOW)
    wait_for(lambda: has_begun(tmp_path))
    (tmp_path / "artifacts" / "litellm.log").write_text("x")
    clean = [sys.executable, "-m", "acl", "clean", "--artifacts", tmp_path / "artifacts"]
    refused = subprocess.run(clean, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "a run writes there" in refused.stderr
    process.kill()
    process.wait()
    assert subprocess.run(clean, cwd=ROOT, check=True, capture_output=True).stdout
    assert not (tmp_path / "artifacts" / "litellm.log").exists()
    # What the killed run left is still there to be archived.
    assert len(jobs(tmp_path)) == 1
    subprocess.run(command(tmp_path, *QUICK), cwd=ROOT, check=True, capture_output=True)
    assert [entry["status"] for entry in index(tmp_path)] == ["interrupted", "completed"]
