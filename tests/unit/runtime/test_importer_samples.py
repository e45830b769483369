import tarfile

import pytest

from runtime.importers import Source
from runtime.importers.samples import ARCHIVE, unpack_sample


def test_the_sample_is_one_real_run(tmp_path):
    directory = unpack_sample(tmp_path / "run")
    source = Source.open(directory)
    assert len(source.files) == 94
    assert (directory / "run_info.json").is_file()


def test_no_file_is_ever_replaced(tmp_path):
    (tmp_path / "params.json").write_text("mine")
    with pytest.raises(FileExistsError):
        unpack_sample(tmp_path)
    assert (tmp_path / "params.json").read_text() == "mine"


def test_the_archive_is_small_and_holds_plain_files_only():
    assert ARCHIVE.stat().st_size < 150_000
    with tarfile.open(ARCHIVE) as tar:
        assert all(member.isfile() and member.mtime == 0 for member in tar)
