"""File systems of a test's own, in a namespace that goes with the program that is run in it."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN_USER = ["unshare", "-rm"]
"""A namespace that anybody may make; no block device can be mounted in it."""
OWN_MOUNTS = ["unshare", "-m"]


def tmpfs(place: Path, size: str) -> list[str]:
    """What to put before a command, so that it finds a small tmpfs at `place`; else skip."""
    return _prefix(OWN_USER, f"mount -t tmpfs -o size={size} tmpfs '{place}'")


def ext4(place: Path, image: Path, megabytes: int) -> list[str]:
    """The same with a real file system on a loop device; skips where root may not do that."""
    if shutil.which("mkfs.ext4") is None or os.geteuid() != 0:
        pytest.skip("only root can mount an image")
    with image.open("wb") as file:
        file.truncate(megabytes * 1024 * 1024)
    # No blocks are kept for root: it fills up for everybody alike.
    make = ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image)]
    subprocess.run(make, check=True, capture_output=True)
    return _prefix(OWN_MOUNTS, f"mount -o loop '{image}' '{place}'")


def read_only(place: Path) -> list[str]:
    """The same with all that is at `place`, and nothing there may be changed."""
    again = f"mount -o remount,ro,bind '{place}'"
    return _prefix(OWN_USER, f"mount --bind '{place}' '{place}' && {again}")


def _prefix(namespace: Sequence[str], mount: str) -> list[str]:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    tried = subprocess.run([*namespace, "sh", "-c", mount], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip("no file system can be mounted here")
    return [*namespace, "sh", "-c", f'{mount} && exec "$@"', "sh"]
