from pathlib import Path

import pytest

from exporters.archives import register
from exporters.archives.shelf import locked
from ledger.lock import WriterLock
from tests.archive_runs import write
from tests.cli.conftest import Acl


@pytest.fixture
def project(acl: Acl, tmp_path: Path) -> Path:
    """A project, which is the current directory, with leftovers of every kind."""
    for path in (
        *("artifacts/index.yaml", "artifacts/archives/run_001/metadata.yaml"),
        *("artifacts/jobs/job/result.json", "artifacts/jobs/.tmp.job.1/x", "artifacts/litellm.log"),
        *("artifacts/.cache/x", "artifacts/odd \x1b[31mname", "repos/agent/x", "notes.txt"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    write(tmp_path / "artifacts" / "results" / "run")
    return tmp_path


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def test_a_preview_says_what_would_go_and_changes_nothing(acl: Acl, project: Path) -> None:
    before = tree(project)
    for option in ("-n", "--dry-run"):
        said = acl("clean", option)
        assert said.status == 0
        assert said.out.splitlines() == [
            "[dry-run] would remove: artifacts/.cache",
            "[dry-run] would remove: artifacts/litellm.log",
            "[dry-run] would remove: artifacts/odd \\x1b[31mname",
            "[dry-run] would remove: artifacts/jobs/.tmp.job.1",
        ]
        assert tree(project) == before


def test_cleaning_removes_what_was_previewed_and_nothing_else(acl: Acl, project: Path) -> None:
    before = tree(project)
    said = acl("clean")
    assert said.status == 0
    assert said.out.splitlines()[0] == "removing: artifacts/.cache"
    assert before - tree(project) == {
        *("artifacts/.cache", "artifacts/.cache/x", "artifacts/litellm.log"),
        *("artifacts/odd \x1b[31mname", "artifacts/jobs/.tmp.job.1", "artifacts/jobs/.tmp.job.1/x"),
    }
    assert (project / "repos" / "agent" / "x").exists()
    again = acl("clean")
    assert (again.status, again.out) == (0, "")


def test_json_tells_the_same(acl: Acl, project: Path) -> None:
    told = acl("clean", "-n", "--json").document()
    assert told["dry_run"] is True
    assert told["removed"] == [".cache", "litellm.log", "odd \x1b[31mname", "jobs/.tmp.job.1"]
    assert acl("clean", "--json").document()["removed"] == told["removed"]


def test_a_directory_that_is_missing_is_no_error(acl: Acl) -> None:
    said = acl("clean")
    assert (said.status, said.out, said.err) == (0, "", "")


def test_dangerous_directories_are_refused(
    acl: Acl, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(project)
    (project / "link").symlink_to(project / "repos")
    for directory in ("/", "repos", ".", "..", "artifacts/..", "link", "artifacts/jobs"):
        for options in ([], ["-n"]):
            said = acl("clean", *options, "--artifacts", directory)
            assert said.status == 2, directory
            assert len(said.err.splitlines()) == 1
    monkeypatch.setenv("HOME", str(project / "artifacts"))
    assert acl("clean").status == 2
    assert tree(project) == before | {"link"}


def test_a_run_that_goes_on_refuses_it(acl: Acl, project: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "elsewhere" / "run")
    register(project / "artifacts", run / "ledger.sqlite")
    before = tree(project)
    held = WriterLock(run / "ledger.sqlite")
    for options in ([], ["-n"]):
        said = acl("clean", *options)
        assert said.status == 2
        assert "a run writes there" in said.err
    held.release()
    assert tree(project) == before
    assert acl("clean").status == 0


def test_a_program_that_archives_refuses_it(
    acl: Acl, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acl.clean.LOCK_WAIT", 0.05)
    with locked(project / "artifacts"):
        before = tree(project)
        said = acl("clean")
        assert said.status == 2
        assert "another program archives" in said.err
        assert tree(project) == before


def test_a_lock_that_is_none_is_not_told_as_somebody_at_work(acl: Acl, project: Path) -> None:
    (project / "artifacts" / ".archive.lock").mkdir()
    before = tree(project)
    said = acl("clean")
    assert said.status == 2
    assert "wait" not in said.err
    assert "try again" not in said.err
    assert tree(project) == before


def test_what_cannot_be_removed_is_told(
    acl: Acl, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exporters import cleaning

    remove = cleaning.remove

    def fails(root: Path, path: str) -> None:
        if path == ".cache":
            raise PermissionError(13, "Permission denied")
        remove(root, path)

    monkeypatch.setattr(cleaning, "remove", fails)
    said = acl("clean")
    assert said.status == 1
    assert "artifacts/.cache is kept: Permission denied" in said.err
    assert not (project / "artifacts" / "litellm.log").exists()
