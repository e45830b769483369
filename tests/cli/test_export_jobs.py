"""`acl export -f jobs`, and `acl export --at` in every layout."""

import json
import sqlite3
from pathlib import Path

import pytest

from ledger import LedgerView
from tests import job_runs as say
from tests.cli.conftest import Acl, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def result(directory: str | Path) -> dict:
    (job,) = Path(directory, "jobs").iterdir()
    return json.loads((job / "result.json").read_text())


def test_a_run_becomes_a_job_below_the_directory(acl: Acl, run: Path) -> None:
    told = acl("export", "-f", "jobs", run, "artifacts", "--json").document()
    assert (told["format"], told["status"]) == ("jobs", "completed")
    assert Path(told["path"]).parent.name == "jobs"
    stats = result("artifacts")["stats"]
    assert (stats["n_completed_trials"], stats["n_errored_trials"], stats["n_retries"]) == (3, 1, 1)


def test_an_existing_job_of_another_state_is_refused_with_status_5(acl: Acl, run: Path) -> None:
    assert acl("export", "-f", "jobs", run, "artifacts", "--at", "9").status == 0
    assert result("artifacts")["acl"]["size"] == 10
    said = acl("export", "-f", "jobs", run, "artifacts")
    assert said.status == 5
    assert "--force" in said.err
    assert acl("export", "-f", "jobs", run, "artifacts", "--force").status == 0
    assert result("artifacts")["acl"]["status"] == "completed"


def test_a_job_may_be_named(acl: Acl, run: Path) -> None:
    assert acl("export", "-f", "jobs", run, "artifacts", "--job-name", "mine").status == 0
    assert [path.name for path in Path("artifacts/jobs").iterdir()] == ["mine"]


def test_a_trajectory_may_hold_what_is_new_alone(acl: Acl, tmp_path: Path) -> None:
    messages = [say.said("user", "one"), say.said("user", "two")]
    during = [*say.call("a", 1, 0, messages[:1]), *say.call("a", 1, 1, messages)]
    events = [*say.opening("a"), *say.whole("a", say.attempt("a", 1, *during)), *say.ending()]
    run = say.write(tmp_path / "run", *events)
    assert acl("export", "-f", "jobs", run, "out", "--trajectory", "delta").status == 0
    (file,) = Path("out").rglob("litellm-trajectory.jsonl")
    last = json.loads(file.read_text().splitlines()[-1])["request_body"]
    assert last["messages"] == messages[1:]
    assert last["messages_prefix"] == {"call_index": 0, "count": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "jobs", "--trajectory", "short"),
        ("-f", "jobs", "--job-name", "/"),
        ("--job-name", "mine"),
        ("--trajectory", "full"),
        ("--force",),
        ("--at", "9999"),
        ("--at", "3", "--follow"),
        ("-f", "tiles", "--at", "3"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error_and_writes_nothing(
    acl: Acl, run: Path, arguments: tuple[str, ...]
) -> None:
    assert acl("export", *arguments, run, "out").status == 2
    assert not list(Path("out").rglob("*.json"))


def test_an_earlier_state_is_exported_in_the_details_layout_too(acl: Acl, run: Path) -> None:
    with LedgerView.open(run) as view:
        at = next(r.seq for r in view.events() if r.type == "task.finished")
    assert acl("export", run, "out", "--at", at).status == 0
    info = json.loads(Path("out/run_info.json").read_text())
    assert (info["status"], info["acl"]["size"]) == ("interrupted", at + 1)
    assert [path.name for path in Path("out/details").iterdir()] == ["right_math.json"]
    assert acl("verify", run, "--tree", "out").status == 0


def damage(run: Path) -> None:
    """Make the second part of the ledger unreadable."""
    file = run / "ledger.sqlite"
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        (data,) = connection.execute("SELECT data FROM segment WHERE id = 2").fetchone()
    connection.close()
    raw = bytearray(file.read_bytes())
    at = raw.find(data)
    raw[at : at + 4] = bytes(4)
    file.chmod(0o600)
    file.write_bytes(raw)


def test_nothing_is_written_from_a_damaged_ledger_unless_it_is_salvaged(
    acl: Acl, run: Path
) -> None:
    damage(run)
    assert acl("export", "-f", "jobs", run, "artifacts").status == 4
    assert not Path("artifacts").exists()
    said = acl("export", "-f", "jobs", run, "artifacts", "--salvage")
    assert said.status == 0
    assert "damaged at event" in said.err
    told = result("artifacts")["acl"]
    assert told["salvaged"]["damaged_at"] == told["size"] > 0


def test_verify_checks_a_job_against_the_ledger(acl: Acl, run: Path) -> None:
    acl("export", "-f", "jobs", run, "artifacts", "--job-name", "mine")
    assert acl("verify", run, "--tree", "artifacts/jobs/mine").status == 0
    Path("artifacts/jobs/mine/result.json").write_text("{}")
    said = acl("verify", run, "--tree", "artifacts/jobs/mine")
    assert said.status == 4
    assert "result.json is not what the ledger says" in said.out + said.err
