import os
from pathlib import Path

import pytest

from ledger.errors import UsageError
from runtime.importers.source import Source


def make(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_every_file_is_found_once_sorted_by_its_path(tmp_path):
    source = Source.open(make(tmp_path, {"b/x": b"1", "a": b"22", "b/a/z": b""}))
    assert [(file.path, file.size) for file in source.files] == [("a", 2), ("b/a/z", 0), ("b/x", 1)]


def test_the_identity_is_of_paths_and_bytes_and_not_of_the_directory_name(tmp_path):
    files = {"b/x": b"1", "a": b"22"}
    one = Source.open(make(tmp_path / "one", files)).identity
    assert Source.open(make(tmp_path / "two", files)).identity == one
    others = [{"b/x": b"2", "a": b"22"}, {"b/y": b"1", "a": b"22"}, {"b/x": b"1"}, {}]
    found = {Source.open(make(tmp_path / f"o{n}", o)).identity for n, o in enumerate(others[:3])}
    assert len(found | {one}) == 4


def test_moving_bytes_between_files_changes_the_identity(tmp_path):
    one = Source.open(make(tmp_path / "one", {"a": b"1", "b": b"2"})).identity
    assert Source.open(make(tmp_path / "two", {"a": b"2", "b": b"1"})).identity != one


def test_links_and_pipes_are_named_and_not_followed(tmp_path):
    run = make(tmp_path / "run", {"a": b"1"})
    (run / "link").symlink_to(tmp_path)
    (run / "file").symlink_to(run / "a")
    os.mkfifo(run / "pipe")
    source = Source.open(run)
    assert [file.path for file in source.files] == ["a"]
    assert dict(source.skipped) == {
        "file": "a symbolic link",
        "link": "a symbolic link",
        "pipe": "not a regular file",
    }


def test_the_root_itself_may_be_a_link(tmp_path):
    run = make(tmp_path / "run", {"a": b"1"})
    (tmp_path / "link").symlink_to(run)
    assert Source.open(tmp_path / "link").identity == Source.open(run).identity


def test_a_single_file_is_a_source(tmp_path):
    source = Source.open(make(tmp_path, {"log.json": b"{}"}) / "log.json")
    assert [file.path for file in source.files] == ["log.json"]
    assert source.read(source.files[0]) == b"{}"


def test_a_name_that_is_not_utf8_keeps_its_bytes(tmp_path):
    try:
        (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"1")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    source = Source.open(tmp_path)
    assert os.fsencode(source.files[0].path) == b"\xff"
    assert source.read(source.files[0]) == b"1"


def test_a_file_that_changes_while_it_is_imported_is_refused(tmp_path):
    source = Source.open(make(tmp_path, {"a": b"1"}))
    (tmp_path / "a").write_bytes(b"2")
    with pytest.raises(UsageError, match="a changed while it was imported"):
        source.read(source.files[0])


def test_a_file_that_goes_away_is_named(tmp_path):
    source = Source.open(make(tmp_path, {"a": b"1"}))
    (tmp_path / "a").unlink()
    with pytest.raises(UsageError, match="a cannot be read"):
        source.read(source.files[0])


def test_nothing_is_named_as_nothing(tmp_path):
    with pytest.raises(UsageError, match="there is nothing at"):
        Source.open(tmp_path / "absent")


def test_a_pipe_is_named_as_what_it_is_not(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither a directory nor a regular file"):
        Source.open(tmp_path / "pipe")
