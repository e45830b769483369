"""Which commits the source trees stood at that a run works with."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from ledger.events import Repo

PATIENCE: Final = 2.0
"""Seconds that git may take to say whether a work tree is clean."""

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OID: Final = re.compile(r"^# branch\.oid ([0-9a-f]{40,64})$", re.MULTILINE)
# Below these stands what was installed, even where they stand in a work tree themselves.
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
# A work tree may come from anywhere: nothing that its configuration names is run.
_STATUS: Final = (
    *("git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"),
    *("--untracked-files=no", "--ignore-submodules=all"),
)
_MOST_BYTES: Final = 16 * 1024 * 1024


def commits(places: Iterable[Path]) -> dict[str, Repo]:
    """The commit of each work tree that one of `places` stands in, by the name of its directory.

    A tree of a name that is taken gets a number behind it. Read once in a process, since the code
    that runs was loaded once. Trees without a commit are left out; nothing is raised.
    """
    found: dict[str, Repo] = {}
    for root in dict.fromkeys(filter(None, map(_work_tree, places))):
        repo = _commit(root)
        if repo is not None:
            found[_free(_shown(root), found)] = repo
    return found


def _work_tree(place: Path) -> Path | None:
    with suppress(OSError, RuntimeError):
        place = place.resolve()
        for directory in (place, *place.parents):
            if directory.name in _INSTALLED:
                return None
            if (directory / ".git").exists():
                return directory
    return None


def _shown(root: Path) -> str:
    return (root.name or "root").encode("utf-8", "backslashreplace").decode("utf-8")


def _free(name: str, taken: dict[str, Repo]) -> str:
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


@cache
def _commit(root: Path) -> Repo | None:
    """Ask git, or else read what git would: then nobody says whether the tree is clean."""
    return _asked(root) or _read(root)


def _asked(root: Path) -> Repo | None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            _STATUS,
            cwd=root,
            env={**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    said = done.stdout.decode("utf-8", "replace")
    oid = _OID.search(said)
    if done.returncode or oid is None:
        return None
    return Repo(sha=oid[1], dirty=any(not line.startswith("#") for line in said.splitlines()))


def _read(root: Path) -> Repo | None:
    """The commit that HEAD names, directly or by a branch, without git."""
    with suppress(OSError, ValueError):
        git = root / ".git"
        if git.is_file():
            # A linked work tree: this file says where its HEAD is.
            git = root / _text(git).removeprefix("gitdir:").strip()
        common = git / "commondir"
        shared = git / _text(common).strip() if common.is_file() else git
        head = _text(git / "HEAD").strip()
        if not head.startswith("ref:"):
            return Repo(sha=head) if _SHA.fullmatch(head) else None
        branch = head.removeprefix("ref:").strip()
        for sha in _named(branch, git, shared):
            return Repo(sha=sha)
    return None


def _named(branch: str, *directories: Path) -> Iterator[str]:
    """What a branch stands at, in a file of its own or else in the list of packed ones."""
    for directory in directories:
        with suppress(OSError):
            sha = _text(directory / branch).strip()
            if _SHA.fullmatch(sha):
                yield sha
    for line in _text(directories[-1] / "packed-refs").splitlines():
        sha, _, name = line.partition(" ")
        if name == branch and _SHA.fullmatch(sha):
            yield sha


def _text(file: Path) -> str:
    with file.open(encoding="utf-8", errors="surrogateescape") as opened:
        return opened.read(_MOST_BYTES)
