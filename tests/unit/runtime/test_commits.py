import shutil
import subprocess
from pathlib import Path

import pytest

from runtime import commits as module
from runtime.commits import commits


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(directory)},
    )
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "agent"
    (root / "src").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    (root / "src" / "a.py").write_text("A = 1\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    return root


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    module._commit.cache_clear()


def without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")


def test_a_file_tells_the_commit_of_its_work_tree(tree: Path) -> None:
    found = commits([tree / "src" / "a.py", tree])
    assert list(found) == ["agent"]
    assert found["agent"].sha == git(tree, "rev-parse", "HEAD")
    assert found["agent"].dirty is False


def test_a_changed_file_makes_the_tree_dirty(tree: Path) -> None:
    (tree / "src" / "a.py").write_text("A = 2\n")
    assert commits([tree])["agent"].dirty is True


@pytest.mark.parametrize("how", ["loose", "packed", "detached"])
def test_without_git_the_commit_is_read_and_nobody_says_whether_it_is_clean(
    tree: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = git(tree, "rev-parse", "HEAD")
    if how == "packed":
        git(tree, "pack-refs", "--all")
    if how == "detached":
        git(tree, "checkout", "-q", "--detach")
    without_git(monkeypatch)
    found = commits([tree])["agent"]
    assert (found.sha, found.dirty) == (sha, None)


def test_a_linked_work_tree_has_its_own_commit(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tree, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    (tmp_path / "linked" / "b.py").write_text("")
    git(tmp_path / "linked", "add", ".")
    git(tmp_path / "linked", "commit", "-q", "-m", "two")
    sha = git(tmp_path / "linked", "rev-parse", "HEAD")
    assert commits([tmp_path / "linked"])["linked"].sha == sha
    module._commit.cache_clear()
    without_git(monkeypatch)
    assert commits([tmp_path / "linked"])["linked"].sha == sha
    assert sha != git(tree, "rev-parse", "HEAD")


def test_what_is_installed_in_a_work_tree_is_not_of_its_commit(tree: Path) -> None:
    installed = tree / ".venv" / "lib" / "site-packages" / "other"
    installed.mkdir(parents=True)
    assert commits([installed / "x.py"]) == {}


def test_trees_of_one_name_are_told_apart(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "copy" / "agent")
    assert list(commits([tree, tmp_path / "copy" / "agent"])) == ["agent", "agent-2"]


def test_places_without_a_commit_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("gitdir: /nowhere\n")
    assert commits([tmp_path / "new", tmp_path / "odd", tmp_path / "gone"]) == {}


def test_a_program_that_the_work_tree_names_is_not_run(tree: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(trap))
    assert commits([tree])["agent"].sha
    assert not (tmp_path / "sprung").exists()


def test_a_git_directory_of_the_environment_is_not_taken_for_the_tree(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert commits([tree])["agent"].dirty is False
