"""Runs that begin in the same second have the same usual name for their jobs."""

import json
from pathlib import Path

from exporters.folder import Folder
from exporters.jobs.job import AS_USUAL
from exporters.jobs.live import LiveJob
from exporters.jobs.place import directory_of
from ledger import LedgerView, fold
from tests.archive_runs import write


def follow(live: LiveJob, run: Path) -> None:
    with LedgerView.open(run) as view:
        live(fold(view.events()), view)


def usual(artifacts: Path, run: Path) -> Path:
    with LedgerView.open(run) as view:
        return directory_of(artifacts, fold(view.events()), AS_USUAL)


def owners(artifacts: Path) -> dict[str, str]:
    files = (artifacts / "jobs").glob("*/result.json")
    return {file.parent.name: json.loads(file.read_text())["acl"]["run_id"] for file in files}


def test_a_job_that_another_run_is_making_is_waited_for_and_left_to_it(tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"
    first = write(tmp_path / "first", run_id="r1", status=None)
    second = write(tmp_path / "second", run_id="r2", status=None)
    target = usual(artifacts, first)
    assert target == usual(artifacts, second)
    target.mkdir()
    with Folder.open(target) as held:
        assert held.try_lock()
        (target / ".acl-0123456789abcdef").mkdir()
        follow(LiveJob(artifacts), second)
        assert owners(artifacts) == {}
    follow(LiveJob(artifacts), first)
    follow(LiveJob(artifacts), second)
    found = owners(artifacts)
    assert found.pop(target.name) == "r1"
    assert list(found.values()) == ["r2"]


def test_what_a_killed_run_left_before_its_first_file_is_no_job(tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"
    run = write(tmp_path / "run", status=None)
    target = usual(artifacts, run)
    (target / ".acl-0123456789abcdef").mkdir(parents=True)
    follow(LiveJob(artifacts), run)
    assert owners(artifacts) == {target.name: "r1"}
