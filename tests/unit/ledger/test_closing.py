import os
from pathlib import Path
from typing import Any

import pytest

from ledger.closing import discard


def test_what_is_discarded_is_gone_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "file").write_bytes(b"x")
    discard(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_a_name_is_one_below_the_directory_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        discard("tree", dir_fd=descriptor)
    finally:
        os.close(descriptor)
    assert not (tmp_path / "tree").exists()


def test_nothing_is_said_of_what_is_not_there(tmp_path: Path) -> None:
    discard(tmp_path / "nothing")


@pytest.mark.parametrize("call", ["fstat", "rmdir", "open"])
def test_what_the_system_refuses_meanwhile_is_left_and_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refused)
        discard(tmp_path / "tree")
    assert (tmp_path / "tree").exists()
