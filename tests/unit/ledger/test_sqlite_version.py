import sqlite3
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import VersionUnsupported
from ledger.sqlite_version import require, unfit
from ledger.store import Ledger
from tests import events_of as say


@pytest.mark.parametrize("version", [(3, 36, 0), (3, 37, 0), (3, 37, 1), (2, 8, 17)])
def test_a_version_without_strict_tables_or_with_the_savepoint_fault_is_refused(
    version: tuple[int, int, int],
) -> None:
    assert "too old" in (unfit(version, 3) or "")


@pytest.mark.parametrize(
    "version",
    [(3, 37, 2), (3, 40, 1), (3, 44, 6), (3, 50, 7), (3, 51, 2), (3, 51, 3), (3, 53, 0), (4, 0, 0)],
)
@pytest.mark.parametrize("threadsafety", [1, 3])
def test_other_versions_are_used_those_with_the_wal_reset_fault_too(
    version: tuple[int, int, int], threadsafety: int
) -> None:
    assert unfit(version, threadsafety) is None


@pytest.mark.parametrize("version", [(3, 51, 0), (3, 51, 1)])
def test_the_two_versions_that_hang_when_threads_close_are_refused(
    version: tuple[int, int, int],
) -> None:
    assert "hang" in (unfit(version, 3) or "")


def test_a_library_without_mutexes_is_refused() -> None:
    assert "threads" in (unfit((3, 53, 0), 0) or "")


def test_the_sqlite_of_this_python_is_fit() -> None:
    require()


def test_an_unfit_sqlite_makes_reads_and_writes_no_ledger_and_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    with Ledger.create(tmp_path / "there") as ledger:
        ledger.append(*say.opening("t"))
    before = {file.name: file.read_bytes() for file in (tmp_path / "there").iterdir()}
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    for attempt in (
        lambda: Ledger.create(tmp_path / "new.sqlite"),
        lambda: Ledger.open(tmp_path / "there"),
        lambda: LedgerView.open(tmp_path / "there"),
        lambda: LedgerView.open(tmp_path / "there", pristine=True),
    ):
        with pytest.raises(VersionUnsupported) as refused:
            attempt()
        assert refused.value.exit_status == 3
        assert "SQLite 3.34.1 is too old" in str(refused.value)
        assert "use a Python with SQLite 3.37.2 or later" in str(refused.value)
        assert "\n" not in str(refused.value)
    assert not (tmp_path / "new.sqlite").exists()
    after = {file.name: file.read_bytes() for file in (tmp_path / "there").iterdir()}
    assert after["ledger.sqlite"] == before["ledger.sqlite"]
