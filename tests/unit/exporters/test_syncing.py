"""Files that are brought to disk side by side."""

import os
import threading
from pathlib import Path

import pytest

from exporters.syncing import Syncing


class Failed(Exception):
    """What tells of a file that could not be synced."""


def failed(path: str, error: OSError) -> Exception:
    return Failed(f"{path}: {error.strerror}")


def opened(directory: Path, number: int) -> list[int]:
    return [os.open(directory / str(n), os.O_WRONLY | os.O_CREAT) for n in range(number)]


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("sync")]


@pytest.mark.parametrize("number", [0, 1, 2, 200])
def test_all_are_synced_and_closed_when_it_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    synced = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", watch)
    descriptors = opened(tmp_path, number)
    nodes = {os.fstat(descriptor).st_ino for descriptor in descriptors}
    syncing = Syncing(failed)
    for n, descriptor in enumerate(descriptors):
        syncing.add(str(n), descriptor)
    syncing.settle()
    assert set(synced) == nodes
    assert len(synced) == number
    assert not any(map(is_open, descriptors))
    assert workers() == []


def test_a_single_one_needs_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by = []
    monkeypatch.setattr(os, "fsync", lambda _: by.append(threading.current_thread()))
    syncing = Syncing(failed)
    for descriptor in opened(tmp_path, 1):
        syncing.add("one", descriptor)
    syncing.settle()
    assert by == [threading.main_thread()]


@pytest.mark.parametrize(("number", "bad"), [(1, 0), (2, 1), (2, 0), (150, 3), (150, 149)])
def test_an_error_names_its_file_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, bad: int
) -> None:
    descriptors = opened(tmp_path, number)
    node = os.fstat(descriptors[bad]).st_ino

    def refuse(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == node:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    syncing = Syncing(failed)
    given = 0

    def give() -> None:
        nonlocal given
        for n, descriptor in enumerate(descriptors):
            given += 1
            syncing.add(str(n), descriptor)
        syncing.settle()

    with pytest.raises(Failed, match=f"^{bad}: Input/output error"):
        give()
    assert not any(map(is_open, descriptors[:given]))
    assert workers() == []
    for descriptor in descriptors[given:]:
        os.close(descriptor)


@pytest.mark.parametrize("number", [0, 1, 20])
def test_closing_closes_what_was_not_waited_for(tmp_path: Path, number: int) -> None:
    descriptors = opened(tmp_path, number)
    syncing = Syncing(failed)
    for n, descriptor in enumerate(descriptors):
        syncing.add(str(n), descriptor)
    syncing.close()
    syncing.close()
    assert not any(map(is_open, descriptors))
    assert workers() == []
