import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporters.archives import archive
from exporters.archives.shelf import locked
from ledger import events as ev
from ledger.errors import ExportRefused
from ledger.store import Ledger
from tests.archive_runs import shot, write

ROOT = Path(__file__).resolve().parents[3]


def index(artifacts: Path) -> list[Any]:
    return yaml.safe_load((artifacts / "index.yaml").read_text())["runs"]


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run")


def test_a_run_becomes_an_archive_and_one_entry(artifacts: Path, run: Path) -> None:
    done = archive(artifacts, shot(run))
    assert (done.id, done.is_new) == ("run_001", True)
    assert done.path == artifacts / "archives" / "run_001"
    assert set(files(done.path)) == {"metadata.yaml", "config.yaml", "scripts/command.sh"}
    (entry,) = index(artifacts)
    assert list(entry) == [
        *("id", "started_at", "completed_at", "status", "archive", "notes", "job_dir", "acl")
    ]
    assert list(entry["acl"]) == ["run_id", "ledger_id", "root"]
    assert entry["archive"] == "artifacts/archives/run_001/"


def test_exporting_twice_adds_nothing(artifacts: Path, run: Path) -> None:
    """Upstream fault 10: the archiver added a second entry for the same run."""
    archive(artifacts, shot(run))
    before = files(artifacts)
    again = archive(artifacts, shot(run, job="another-name"))
    assert (again.id, again.is_new) == ("run_001", False)
    assert files(artifacts) == before


def test_another_state_of_an_archived_run_is_refused(artifacts: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "run", seal=False)
    archive(artifacts, shot(run))
    before = files(artifacts)
    with Ledger.open(run) as ledger:
        ledger.append(ev.AnnotationAdded(text="later", author="a"))
    with pytest.raises(ExportRefused, match="archived as run_001") as refused:
        archive(artifacts, shot(run))
    assert "\n" not in str(refused.value)
    assert files(artifacts) == before


def test_a_run_of_the_same_id_in_another_ledger_is_another_run(
    artifacts: Path, run: Path, tmp_path: Path
) -> None:
    archive(artifacts, shot(run))
    assert archive(artifacts, shot(write(tmp_path / "other"))).id == "run_002"
    assert len(index(artifacts)) == 2


@pytest.mark.parametrize(
    ("directories", "ids", "expected"),
    [
        ([], [], "run_001"),
        (["run_007"], [], "run_008"),
        (["run_007"], ["run_012"], "run_013"),
        (["run_999"], [], "run_1000"),
        (["run_x", "other"], [], "run_001"),
    ],
)
def test_the_number_follows_the_highest_that_is_used(
    artifacts: Path, run: Path, directories: list[str], ids: list[str], expected: str
) -> None:
    for name in directories:
        (artifacts / "archives" / name).mkdir(parents=True)
    artifacts.mkdir(exist_ok=True)
    (artifacts / "index.yaml").write_text(yaml.safe_dump({"runs": [{"id": one} for one in ids]}))
    assert archive(artifacts, shot(run)).id == expected
    assert [entry["id"] for entry in index(artifacts)] == [*ids, expected]


def test_archives_and_entries_of_others_stay_as_they_are(artifacts: Path, run: Path) -> None:
    theirs = artifacts / "archives" / "run_001"
    theirs.mkdir(parents=True)
    (theirs / "metadata.yaml").write_text("id: run_001\nstatus: completed\n")
    text = "# kept\nruns:\n- id: run_000\n  status: failed\n"
    (artifacts / "index.yaml").write_text(text)
    archive(artifacts, shot(run))
    assert (artifacts / "index.yaml").read_text().startswith(text)
    assert [entry["id"] for entry in index(artifacts)] == ["run_000", "run_002"]
    assert (theirs / "metadata.yaml").read_text() == "id: run_001\nstatus: completed\n"


def test_an_index_that_is_damaged_is_refused_and_repaired_nothing_is_lost(
    artifacts: Path, run: Path, tmp_path: Path
) -> None:
    archive(artifacts, shot(run))
    text = (artifacts / "index.yaml").read_text()
    (artifacts / "index.yaml").write_text(text + "runs: [\n")
    other = write(tmp_path / "other")
    before = files(artifacts)
    with pytest.raises(ExportRefused, match=r"index\.yaml cannot be read"):
        archive(artifacts, shot(other))
    assert files(artifacts) == before
    (artifacts / "index.yaml").write_text(text)
    assert archive(artifacts, shot(other)).id == "run_002"


def test_an_entry_that_a_killed_program_did_not_write_is_added(
    artifacts: Path, run: Path, tmp_path: Path
) -> None:
    archive(artifacts, shot(run))
    (entry,) = index(artifacts)
    (artifacts / "index.yaml").unlink()
    (artifacts / "archives" / ".acl-0123456789abcdef").mkdir()
    assert archive(artifacts, shot(run)).is_new is False
    assert index(artifacts) == [entry]
    assert [path.name for path in (artifacts / "archives").iterdir()] == ["run_001"]


def test_an_entry_without_its_origin_is_known_by_its_archive(artifacts: Path, run: Path) -> None:
    archive(artifacts, shot(run))
    runs = index(artifacts)
    del runs[0]["acl"]
    (artifacts / "index.yaml").write_text(yaml.safe_dump({"runs": runs}))
    assert archive(artifacts, shot(run)).is_new is False
    assert len(index(artifacts)) == 1


def test_archives_that_are_a_link_are_not_followed(
    artifacts: Path, run: Path, tmp_path: Path
) -> None:
    artifacts.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (artifacts / "archives").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ExportRefused):
        archive(artifacts, shot(run))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (artifacts / "index.yaml").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_where_nothing_can_be_written_that_is_said(artifacts: Path, run: Path) -> None:
    artifacts.mkdir(mode=0o500)
    with pytest.raises(ExportRefused, match="artifacts"):
        archive(artifacts, shot(run))


def test_who_waits_too_long_for_the_lock_is_told(artifacts: Path, run: Path) -> None:
    artifacts.mkdir()
    with locked(artifacts), pytest.raises(ExportRefused, match="another program archives"):
        archive(artifacts, shot(run), wait=0.05)
    assert archive(artifacts, shot(run)).is_new


ARCHIVER = """
import sys
from pathlib import Path
from exporters.archives import archive
from tests.archive_runs import shot, write
artifacts, run = map(Path, sys.argv[1:])
made = shot(run)
print("ready", flush=True)
sys.stdin.read()
print(archive(artifacts, made).id)
"""


def test_twenty_programs_at_once_get_twenty_numbers_and_each_run_one(
    artifacts: Path, tmp_path: Path
) -> None:
    runs = [write(tmp_path / f"run-{number}", run_id=f"r{number}") for number in range(18)]
    # Two runs are archived by two programs each.
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ARCHIVER, artifacts, run],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for run in [*runs, *runs[:2]]
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    said = [process.communicate()[0].decode().strip() for process in started]
    assert [process.returncode for process in started] == [0] * 20
    expected = [f"run_{number:03d}" for number in range(1, 19)]
    assert sorted(said[:18]) == expected
    assert said[18:] == said[:2]
    assert [entry["id"] for entry in index(artifacts)] == expected
    assert sorted(entry["acl"]["run_id"] for entry in index(artifacts)) == sorted(
        f"r{number}" for number in range(18)
    )
    for run_id in expected:
        assert (artifacts / "archives" / run_id / "metadata.yaml").is_file()
