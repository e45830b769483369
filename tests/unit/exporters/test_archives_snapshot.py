import os
import subprocess
from pathlib import Path

import pytest
import yaml

from exporters.archives.snapshot import standing
from ledger.canonical import Binary
from tests.archive_runs import CONFIG, created, shot, source, state_of, write

ENDS = [
    ("completed", 0, "completed", 0),
    ("failed", 5, "failed", 1),
    ("timed_out", 124, "failed", 124),
    ("cancelled", 130, "interrupted", 130),
    ("cancelled", 143, "interrupted", 143),
    (None, 0, "interrupted", 137),
]


@pytest.mark.parametrize(("status", "ended", "told", "exit_code"), ENDS)
def test_each_end_has_its_status_and_exit_code(
    tmp_path: Path, status: str | None, ended: int, told: str, exit_code: int
) -> None:
    run = write(tmp_path / "run", status=status, exit_code=ended)
    assert standing(state_of(run)) == (told, exit_code)


def metadata(run: Path, **how: object) -> dict:
    files = {file.path: file.data for file in shot(run, **how).all_files("run_007")}
    return yaml.safe_load(files["metadata.yaml"])


def test_metadata_have_the_documented_keys_in_their_order(tmp_path: Path) -> None:
    run = write(tmp_path / "run")
    told = metadata(run)
    assert list(told) == [
        *("id", "block", "started_at", "completed_at", "status", "exit_code", "job_dir"),
        *("repos", "notes", "acl"),
    ]
    assert list(told["acl"]) == [
        *("run_id", "ledger_id", "size", "root", "ledger_path", "acl_version", "command"),
        *("python", "platform", "packages_lock_sha256", "repos_dirty"),
    ]


def test_metadata_tell_times_commits_and_which_events_they_were_made_of(tmp_path: Path) -> None:
    run = write(tmp_path / "run")
    state = state_of(run)
    told = metadata(run, job="a-job")
    assert (told["id"], told["job_dir"]) == ("run_007", "artifacts/jobs/a-job")
    # The clock gives a second to each event: the run begins with the first.
    assert told["started_at"] == "2025-06-15T15:06:41Z"
    assert told["completed_at"] == state.finished_at[:19] + "Z"
    assert told["repos"] == {"other": "b" * 40, "tree": "a" * 40}
    assert told["acl"]["repos_dirty"] == {"other": None, "tree": False}
    assert told["acl"]["command"] == ["acl", "run", "--benchmark", "b c", "--harness", "it's"]
    assert (told["acl"]["size"], told["acl"]["root"]) == (state.size, state.root.hex())
    assert told["acl"]["ledger_path"] == "../r/ledger.sqlite"


def test_a_run_that_was_killed_ends_with_its_last_event_and_says_so(tmp_path: Path) -> None:
    run = write(tmp_path / "run", status=None)
    told = metadata(run)
    assert (told["status"], told["exit_code"]) == ("interrupted", 137)
    assert told["completed_at"] == state_of(run).last_at[:19] + "Z"
    assert "killed" in told["notes"]


def test_a_run_without_commits_has_an_empty_map(tmp_path: Path) -> None:
    run = write(tmp_path / "run", first=created(repos={}))
    assert metadata(run)["repos"] == {}


def files_of(run: Path) -> dict[str, bytes]:
    return {file.path: bytes(file.data) for file in shot(run).files()}


def test_the_configuration_is_kept_as_it_was(tmp_path: Path) -> None:
    assert files_of(write(tmp_path / "run"))["config.yaml"] == CONFIG


@pytest.mark.parametrize(
    "command",
    [
        ("printf", "%s\\n", "a b", "it's", "$HOME", "`x`", 'say "hi"', "*", "ä"),
        ("printf", "%s\\n", "two\nlines", ""),
        ("printf", "%s\\n", os.fsdecode(b"\xff\xfe")),
    ],
)
def test_the_command_means_to_a_shell_what_it_was(tmp_path: Path, command: tuple[str, ...]) -> None:
    run = write(tmp_path / "run", first=created(command=command))
    script = tmp_path / "command.sh"
    script.write_bytes(files_of(run)["scripts/command.sh"])
    said = subprocess.run(["/bin/sh", script], capture_output=True, check=True).stdout
    assert said == b"".join(os.fsencode(word) + b"\n" for word in command[2:])


def test_a_run_without_a_command_says_so_in_a_comment(tmp_path: Path) -> None:
    run = write(tmp_path / "run", first=created(command=()))
    first, second = files_of(run)["scripts/command.sh"].decode().splitlines()
    assert first == "#!/bin/sh"
    assert second.startswith("# ")


def test_sources_stand_by_role_and_lead_nowhere_else(tmp_path: Path) -> None:
    run = write(
        tmp_path / "run",
        source("benchmark", "pkg/bench.py"),
        source("harness", "pkg/harness.py", Binary(b"\xff")),
        source("recipe", "../../x y/.hidden.py"),
        source("analyzer", "pkg/big.py", None),
        source("benchmark", "pkg/Bench.py", "B = 2\n"),
    )
    found = {path: data for path, data in files_of(run).items() if path.startswith("scripts/")}
    assert set(found) == {
        "scripts/command.sh",
        "scripts/benchmark/pkg/bench.py",
        "scripts/benchmark/pkg/Bench-2.py",
        "scripts/harness/pkg/harness.py",
        "scripts/recipe/_../_../x_y/_.hidden.py",
    }
    assert found["scripts/benchmark/pkg/bench.py"] == b"A = 1\n"
    assert found["scripts/harness/pkg/harness.py"] == b"\xff"


def test_whatever_a_ledger_holds_can_be_told(tmp_path: Path) -> None:
    run = write(tmp_path / "run", first=created(command=("acl", "\ud800\x00é")))
    assert metadata(run)["acl"]["command"] == ["acl", "\ud800\x00é"]
    assert files_of(run)["scripts/command.sh"]
