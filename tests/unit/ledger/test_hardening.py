import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger.errors import LedgerDamaged
from ledger.hardening import require_sound


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of many pages, one of which holds a table's middle."""
    made = tmp_path / "some.sqlite"
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE event(seq INTEGER PRIMARY KEY, data BLOB)")
        connection.executemany("INSERT INTO event(data) VALUES (?)", [(bytes(900),)] * 100)
    return made


def test_a_sound_file_passes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        require_sound(connection, path)


def test_what_sqlite_finds_wrong_is_told_in_one_line_with_the_path(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 16] = bytes(16)
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection, pytest.raises(LedgerDamaged) as caught:
        require_sound(connection, path)
    message = caught.value.message
    assert message.startswith(f"{path}: ")
    assert "page" in message.lower()
    assert "\n" not in message
