import sqlite3
from collections.abc import Iterator

import pytest

from ledger import schema
from ledger.errors import LedgerDamaged, NotALedger, VersionUnsupported

TABLES = ("event", "segment", "blob", "blobsegment", "erasure", "checkpoint")
ROWS = {
    "event": "(0, 0, 0)",
    "segment": "(0, 1, 1, x'00')",
    "blob": "(0, x'00', 0, 0, 1)",
    "blobsegment": "(0, 1, 1, x'00')",
    "erasure": "(0, 0, 0, 0, 1, 0)",
    "checkpoint": "(0, 1, 5, 'note')",
}


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    yield connection
    connection.close()


def test_a_new_database_is_a_ledger_of_this_format(database: sqlite3.Connection) -> None:
    assert schema.check(database, "x") is False
    assert database.execute("PRAGMA application_id").fetchone() == (0x41434C31,)
    assert database.execute("PRAGMA user_version").fetchone() == (1,)
    assert database.execute("PRAGMA page_size").fetchone() == (1024,)


def test_the_index_of_the_seal_is_known(database: sqlite3.Connection) -> None:
    database.execute(schema.INDEX)
    assert schema.check(database, "x") is True


@pytest.mark.parametrize("table", TABLES)
def test_stored_rows_can_be_neither_changed_nor_removed(
    database: sqlite3.Connection, table: str
) -> None:
    database.execute("INSERT INTO event VALUES (0, 0, 0)") if table == "checkpoint" else None
    database.execute(f"INSERT INTO {table} VALUES {ROWS[table]}")
    column = (
        "seg"
        if table in ("event", "blob", "erasure")
        else "size"
        if table == "checkpoint"
        else "plain"
    )
    for statement in (
        f"UPDATE {table} SET {column} = 5",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} VALUES {ROWS[table]}",
        f"REPLACE INTO {table} VALUES {ROWS[table]}",
    ):
        with pytest.raises(sqlite3.IntegrityError, match=f"{table}: "):
            database.execute(statement)


@pytest.mark.parametrize("table", ["event", "blob", "erasure", "checkpoint"])
def test_only_the_next_number_can_be_added(database: sqlite3.Connection, table: str) -> None:
    database.execute("INSERT INTO event VALUES (0, 0, 0)") if table == "checkpoint" else None
    for wrong in ("1", "-1", "NULL"):
        row = f"({wrong}{ROWS[table][2:]}"
        with pytest.raises(sqlite3.IntegrityError, match=r"next|grow"):
            database.execute(f"INSERT INTO {table} VALUES {row}")
    database.execute(f"INSERT INTO {table} VALUES {ROWS[table]}")
    database.execute(f"INSERT INTO {table} VALUES (1{ROWS[table][2:]}")
    with pytest.raises(sqlite3.IntegrityError, match=r"next|grow"):
        database.execute(f"INSERT INTO {table} VALUES (3{ROWS[table][2:]}")


@pytest.mark.parametrize("table", ["segment", "blobsegment"])
def test_a_part_continues_its_segment_or_begins_the_next(
    database: sqlite3.Connection, table: str
) -> None:
    insert = f"INSERT INTO {table} VALUES (?, 1, 1, x'00')"
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(insert, (1,))
    for fine in (0, 1, 1 << 20, (1 << 20) + 1, 2 << 20):
        database.execute(insert, (fine,))
    for wrong in (1, 1 << 20, (2 << 20) + 2, 4 << 20):
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(insert, (wrong,))


def test_checkpoint_sizes_grow_and_never_pass_the_events(database: sqlite3.Connection) -> None:
    insert = "INSERT INTO checkpoint VALUES (?, ?, 5, 'note')"
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(insert, (0, 1))
    database.executemany("INSERT INTO event VALUES (?, 0, 0)", [(0,), (1,), (2,)])
    for wrong in (0, 4, -1):
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(insert, (0, wrong))
    database.execute(insert, (0, 2))
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(insert, (1, 1))
    database.execute(insert, (1, 2))  # the same size again, by another signer
    database.execute(insert, (2, 3))


def test_columns_take_no_other_type(database: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("INSERT INTO event VALUES (0, 'zero', 0)")
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("INSERT INTO segment VALUES (0, 1, 1, 'text')")


def test_another_application_is_not_a_ledger(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA application_id = 5")
    with pytest.raises(NotALedger):
        schema.check(database, "x")


def test_a_newer_format_is_refused_by_number_before_its_schema_is_looked_at(
    database: sqlite3.Connection,
) -> None:
    database.execute("PRAGMA user_version = 2")
    database.execute("CREATE TABLE of_tomorrow(x)")
    with pytest.raises(VersionUnsupported, match="format 2, this release reads 1"):
        schema.check(database, "x")


@pytest.mark.parametrize(
    "forgery",
    [
        "CREATE TABLE extra(x)",
        "CREATE VIEW v AS SELECT 1",
        "DROP TRIGGER event_update",
        "CREATE TRIGGER more AFTER INSERT ON event BEGIN SELECT 1; END",
        "CREATE INDEX other ON blob(seg)",
        "DROP TABLE erasure",
        "ALTER TABLE event RENAME COLUMN off TO place",
        "PRAGMA user_version = 0",
    ],
)
def test_any_other_schema_is_damage(database: sqlite3.Connection, forgery: str) -> None:
    database.execute(forgery)
    with pytest.raises(LedgerDamaged):
        schema.check(database, "x")


def test_a_table_that_became_a_view_is_named(database: sqlite3.Connection) -> None:
    database.execute("DROP TABLE event")
    database.execute("CREATE VIEW event(seq, seg, off) AS SELECT 0, 0, 0")
    with pytest.raises(LedgerDamaged, match=r"not a ledger's: view event and \d+ more"):
        schema.check(database, "x")


@pytest.mark.parametrize("indexed", [False, True])
def test_only_what_is_foreign_is_named_and_in_one_short_line(
    database: sqlite3.Connection, indexed: bool
) -> None:
    if indexed:
        database.execute(schema.INDEX)
    database.execute("CREATE INDEX x ON event(seg)")
    with pytest.raises(LedgerDamaged, match=r"not a ledger's: index x;"):
        schema.check(database, "x")
    database.execute(f'CREATE TABLE "a\n{"b" * 5000}"(c)')
    with pytest.raises(LedgerDamaged) as refusal:
        schema.check(database, "x")
    assert "\n" not in refusal.value.message
    assert len(refusal.value.message) < 200


def test_a_statement_that_lacks_is_named(database: sqlite3.Connection) -> None:
    database.execute("DROP TRIGGER event_update")
    with pytest.raises(LedgerDamaged, match=r"not a ledger's: trigger event_update;"):
        schema.check(database, "x")
