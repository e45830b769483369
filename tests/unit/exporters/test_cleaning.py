import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from exporters import cleaning
from exporters.archives import register
from exporters.cleaning import KEPT, checked_root, plan, remove
from exporters.folder import Folder
from exporters.write import lock_stage
from ledger.errors import UsageError
from ledger.lock import WriterLock
from tests.archive_runs import write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "artifacts"
    directory.mkdir()
    return directory


def put(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def test_what_is_named_in_the_requirements_is_kept(root: Path) -> None:
    assert {"env", "envs", "index.yaml", "archives", "jobs", "datasets", "runtime"} <= KEPT
    for name in KEPT:
        put(root, name if name.endswith((".yaml", ".lock")) else f"{name}/x")
    assert plan(root).removed == []


def test_everything_else_goes_hidden_or_not(root: Path) -> None:
    (root / "link").symlink_to(root / "index.yaml")
    (root / "empty").mkdir()
    os.mkfifo(root / "pipe")
    put(
        root,
        "litellm.log",
        ".hidden/x",
        "litellm_config.yaml",
        "Jobs/x",
        "jobs2/x",
        "-rf",
        "a b\nc",
    )
    assert set(plan(root).removed) == {
        *("link", "empty", "pipe", "litellm.log", ".hidden", "litellm_config.yaml", "Jobs"),
        *("jobs2", "-rf", "a b\nc"),
    }


def test_ledgers_are_kept_at_any_depth_and_by_any_name(root: Path, tmp_path: Path) -> None:
    write(root / "results" / "a" / "b" / "run")
    put(root, "results/a/other.txt", "plain/x")
    run = write(tmp_path / "run")
    (root / "deep" / "er").mkdir(parents=True)
    shutil.copy(run / "ledger.sqlite", root / "deep" / "er" / "copy.db")
    shutil.copy(run / "ledger.sqlite", root / "published.sqlite")
    put(root, "published.checkpoint", "published.checkpoint.unsigned", "published.lock")
    put(root, "published.txt")
    # The name alone counts, too: what it holds may be in a file beside it.
    put(root, "begun/ledger.sqlite")
    sqlite3.connect(root / "cache.db").execute("CREATE TABLE a (b)").connection.close()
    assert plan(root).removed == ["cache.db", "plain", "published.txt"]


def test_a_ledger_behind_a_link_is_no_reason_to_keep_the_link(root: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "run")
    (root / "link").symlink_to(run)
    (root / "dir").mkdir()
    (root / "dir" / "link").symlink_to(run)
    for path in plan(root).removed:
        remove(root, path)
    assert list(root.iterdir()) == []
    assert (run / "ledger.sqlite").is_file()


def test_links_are_removed_and_never_what_they_lead_to(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside/precious")
    (root / "to-directory").symlink_to(tmp_path / "outside")
    (root / "to-file").symlink_to(tmp_path / "outside" / "precious")
    (root / "dangling").symlink_to(tmp_path / "nothing")
    (root / "loop").symlink_to(root / "loop")
    (root / "within").mkdir()
    (root / "within" / "up").symlink_to(tmp_path)
    for path in plan(root).removed:
        remove(root, path)
    assert list(root.iterdir()) == []
    assert (tmp_path / "outside" / "precious").read_text() == "x"


def test_a_directory_that_became_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    put(root, "logs/x")
    put(tmp_path, "outside/precious")
    (found,) = plan(root).removed
    shutil.rmtree(root / "logs")
    (root / "logs").symlink_to(tmp_path / "outside")
    remove(root, found)
    assert list(root.iterdir()) == []
    assert (tmp_path / "outside" / "precious").exists()


def test_what_is_gone_meanwhile_is_no_error(root: Path) -> None:
    put(root, "a/x", "b")
    found = plan(root).removed
    shutil.rmtree(root / "a")
    (root / "b").unlink()
    for path in found:
        remove(root, path)


def test_what_cannot_be_looked_into_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "closed/x", "open/x")
    scandir = os.scandir

    def refuse(path: object) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = plan(root)
    assert found.removed == ["open"]
    assert found.unknown == {"closed": "Permission denied"}


def test_stages_that_nobody_writes_any_more_go(root: Path) -> None:
    put(
        root, "jobs/.tmp.job.123/x", "jobs/.tmp.other.9/x", "jobs/.acl-job-0/x", "jobs/job/.tmp.x/x"
    )
    (root / "jobs" / ".tmp.link").symlink_to(root)
    put(root, "jobs/.tmp.other.9.old/x")
    with Folder.open(root / "jobs" / ".tmp.other.9") as held:
        assert held.try_lock()
        assert plan(root).removed == ["jobs/.acl-job-0", "jobs/.tmp.job.123", "jobs/.tmp.link"]
    assert "jobs/.tmp.other.9" in plan(root).removed
    for path in plan(root).removed:
        remove(root, path)
    assert [path.name for path in (root / "jobs").iterdir()] == ["job"]


def test_a_stage_in_which_somebody_began_to_work_meanwhile_stays(root: Path) -> None:
    put(root, "jobs/.tmp.job.1/x")
    (found,) = plan(root).removed
    with Folder.open(root / found) as held:
        assert held.try_lock()
        with pytest.raises(OSError, match="an exporter is at work in it"):
            remove(root, found)
        assert (root / found / "x").exists()
    remove(root, found)
    assert not (root / found).exists()


def test_whoever_makes_a_stage_that_is_being_removed_does_not_get_its_lock(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "jobs/.tmp.job.1/x")
    (found,) = plan(root).removed
    real = shutil.rmtree

    def removing(*given: Any, **named: Any) -> None:
        assert lock_stage(root / found) is None
        real(*given, **named)

    monkeypatch.setattr(shutil, "rmtree", removing)
    remove(root, found)
    assert not (root / found).exists()


def test_a_link_in_the_place_of_the_jobs_is_left_alone(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/.tmp.job.1/x")
    (root / "jobs").symlink_to(tmp_path / "elsewhere")
    assert plan(root).removed == []


def test_a_run_that_writes_there_refuses_all(root: Path, tmp_path: Path) -> None:
    put(root, "logs/x")
    run = write(tmp_path / "run")
    register(root, run / "ledger.sqlite")
    held = WriterLock(run / "ledger.sqlite")
    with pytest.raises(UsageError, match="a run writes there: run"):
        plan(root)
    held.release()
    assert plan(root).removed == ["logs"]


def test_a_ledger_below_it_that_is_written_refuses_all(root: Path) -> None:
    run = write(root / "results" / "run")
    put(root, "logs/x")
    held = WriterLock(run / "ledger.sqlite")
    with pytest.raises(UsageError, match="a run writes there"):
        plan(root)
    held.release()
    assert plan(root).removed == ["logs"]


# -- which directory --------------------------------------------------------------------------


def check(directory: Path, project: Path, home: Path | None = None) -> Path | None:
    return checked_root(directory, project=project, home=home)


def test_only_a_directory_of_that_name_is_cleaned(root: Path, tmp_path: Path) -> None:
    assert check(root, tmp_path) == root
    assert check(root / "jobs" / "..", tmp_path) == root
    for other in (tmp_path, root / "jobs", root / "..", Path("/"), tmp_path / "Artifacts"):
        with pytest.raises(UsageError, match="not called 'artifacts'"):
            check(other, tmp_path)


def test_the_name_that_counts_is_the_one_behind_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert check(tmp_path / "link", tmp_path) == root
    (tmp_path / "data").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "artifacts").symlink_to(tmp_path / "data")
    with pytest.raises(UsageError, match="not called"):
        check(tmp_path / "sub" / "artifacts", tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UsageError):
        check(tmp_path / "loop", tmp_path)


def test_home_and_projects_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="home"):
        check(root, tmp_path, home=root)
    with pytest.raises(UsageError, match="home"):
        check(root, tmp_path, home=root / "me")
    with pytest.raises(UsageError, match="project"):
        check(root, root)
    (root / ".git").write_text("gitdir: elsewhere\n")
    with pytest.raises(UsageError, match="project"):
        check(root, tmp_path)


def test_a_directory_that_is_missing_is_no_error_and_a_file_is(tmp_path: Path) -> None:
    assert check(tmp_path / "artifacts", tmp_path) is None
    assert check(tmp_path / "gone" / "artifacts", tmp_path) is None
    (tmp_path / "artifacts").write_text("x")
    with pytest.raises(UsageError, match="not a directory"):
        check(tmp_path / "artifacts", tmp_path)


def test_another_file_system_below_it_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "mounted/x", "logs/x")
    lstat = os.lstat

    def other_device(path: object) -> object:
        found = lstat(path)
        if str(path).endswith("mounted"):
            return os.stat_result((*found[:2], found.st_dev + 1, *found[3:10]))
        return found

    monkeypatch.setattr(cleaning.os, "lstat", other_device)
    assert plan(root).unknown == {"mounted": "it is on another file system"}
