"""Directories below which no link is followed."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from exporters import OutFile
from exporters.folder import Folder
from ledger.errors import ExportRefused


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_replace_swaps_a_file_at_once_and_leaves_no_temporary(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        folder.replace(OutFile("d/a", b"one"))
        before = (tmp_path / "d" / "a").stat().st_ino
        with (tmp_path / "d" / "a").open("rb") as reader:
            folder.replace(OutFile("d/a", [b"t", b"wo"]))
            assert reader.read() == b"one"
    assert (tmp_path / "d" / "a").read_bytes() == b"two"
    assert (tmp_path / "d" / "a").stat().st_ino != before
    assert names(tmp_path / "d") == ["a"]


def test_a_reader_sees_the_old_file_or_the_new_one_and_never_a_part(tmp_path: Path) -> None:
    wholes = {bytes([65 + n]) * 50_000 for n in range(3)}
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add((tmp_path / "a").read_bytes())

    with Folder.open(tmp_path) as folder:
        folder.replace(OutFile("a", b"A" * 50_000))
        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(30):
            for whole in wholes:
                folder.replace(OutFile("a", [whole[:20_000], whole[20_000:]]))
        done.set()
        reader.join()
    assert seen
    assert seen <= wholes


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    def pieces() -> object:
        yield b"half"
        raise ValueError("the exporter failed")

    with Folder.open(tmp_path) as folder:
        folder.replace(OutFile("a", b"one"))
        with pytest.raises(ValueError, match="the exporter failed"):
            folder.replace(OutFile("a", pieces()))
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"one"


def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Folder.open(tmp_path) as folder, pytest.raises(ExportRefused):
        folder.replace(OutFile("a", b"one"))
    assert names(tmp_path) == ["a"]


def test_files_are_listed_sorted_without_temporaries_and_links_are_not_entered(
    tmp_path: Path,
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_text("")
    (tmp_path / "a").write_text("")
    (tmp_path / ".acl-1").mkdir()
    (tmp_path / ".acl-1" / "hidden").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    with Folder.open(tmp_path) as folder:
        assert list(folder.files()) == ["a", "b/x", "link"]


def test_reading_refuses_links_and_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with Folder.open(tmp_path) as folder:
        for path in ("link", "d", "pipe"):
            with pytest.raises(ExportRefused):
                folder.digest(path)
        with pytest.raises(FileNotFoundError):
            folder.digest("none")
        with pytest.raises(FileNotFoundError):
            folder.digest("none/none")


def test_removing_takes_the_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("keep")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with Folder.open(tmp_path) as folder:
        folder.remove("link")
        folder.remove("none")
        folder.remove("none/none")
        folder.sync()
    assert names(tmp_path) == ["a"]


def test_a_directory_that_was_replaced_is_not_current(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with Folder.open(tmp_path / "d") as folder:
        assert folder.is_current()
        (tmp_path / "d").rename(tmp_path / "e")
        assert not folder.is_current()
        (tmp_path / "d").mkdir()
        assert not folder.is_current()


def test_holds_tells_whether_something_stands_there(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    with Folder.open(tmp_path) as folder:
        assert folder.holds("dangling")
        assert not folder.holds("none")
        assert not folder.holds("none/none")


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(ExportRefused):
        Folder.open(tmp_path / "a")


def test_a_directory_is_taken_with_all_below_it_and_removed_with_all_below_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "stage").mkdir()
    (tmp_path / "target").mkdir()
    with Folder.open(tmp_path / "stage") as stage, Folder.open(tmp_path / "target") as target:
        stage.create(OutFile("trial/agent/a", b"one"))
        target.take(stage, "trial")
        assert list(target.files()) == ["trial/agent/a"]
        assert names(tmp_path / "stage") == []
        target.remove_tree("trial")
        target.remove_tree("trial")
    assert names(tmp_path / "target") == []


def test_a_link_is_not_removed_as_a_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "trial").symlink_to(tmp_path / "elsewhere")
    with Folder.open(tmp_path / "target") as target, pytest.raises(ExportRefused):
        target.remove_tree("trial")
    assert names(tmp_path / "elsewhere") == ["kept"]


def test_a_directory_that_the_system_does_not_give_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with Folder.open(tmp_path) as folder:
        for call in ("scandir", "dup"):
            with monkeypatch.context() as patch:
                patch.setattr(os, call, none_left)
                with pytest.raises(ExportRefused, match="Too many open files"):
                    list(folder.files()) if call == "scandir" else folder.holds("a/b")
                with pytest.raises(ExportRefused, match="Too many open files"):
                    folder.clear_temporaries() if call == "scandir" else folder.remove("a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", none_left)
        with pytest.raises(ExportRefused, match="Too many open files"):
            Folder.open(tmp_path)


@pytest.mark.parametrize(
    ("call", "look"),
    [
        ("fstat", Folder.is_current),
        ("fstat", Folder.mark),
        ("fstat", Folder.mode),
        ("scandir", Folder.names),
        ("stat", lambda folder: folder.holds("a")),
    ],
)
def test_a_look_that_the_disk_fails_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, look: Callable[[Folder], object]
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "a").write_bytes(b"there")
    with Folder.open(tmp_path) as folder:
        look(folder)
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            with pytest.raises(ExportRefused, match="Input/output error"):
                look(folder)
