"""Attacks on the rows, the columns and the schema of the database."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial

import zstandard

from ledger.segment import part_hash
from tests.attacks.attack import Attack, Scene
from tests.ledger_checks import forge

ROWS = "rows and schema"


def statements(*sql: str) -> Callable[[Scene], None]:
    """An attack that runs SQL and puts the triggers back."""
    return lambda scene: forge(scene.path, *sql)


def swap_rows(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.path)) as connection:
        (four, five) = connection.execute(
            "SELECT seg, off FROM event WHERE seq IN (4, 5)"
        ).fetchall()
    forge(
        scene.path,
        f"UPDATE event SET seg = {five[0]}, off = {five[1]} WHERE seq = 4",
        f"UPDATE event SET seg = {four[0]}, off = {four[1]} WHERE seq = 5",
    )


def schema(*sql: str) -> Callable[[Scene], None]:
    """An attack that leaves another schema."""

    def act(scene: Scene) -> None:
        with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
            for one in sql:
                connection.execute(one)

    return act


def writable_schema(change: str, *more: str) -> Callable[[Scene], None]:
    """An attack that writes SQLite's own table of tables."""

    def act(scene: Scene) -> None:
        with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(change)
            connection.execute("PRAGMA writable_schema = RESET")
        for one in more:
            forge(scene.path, one)

    return act


def stale_index(scene: Scene) -> None:
    """Hide the index while the table is changed, so that they disagree, then show it again."""
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        row = connection.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema"
            " WHERE name = 'blob_digest'"
        ).fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'blob_digest'")
        connection.execute("PRAGMA writable_schema = RESET")
    forge(scene.path, "UPDATE blob SET digest = zeroblob(32) WHERE id = 0")
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
        connection.execute("PRAGMA writable_schema = RESET")


def forged_types(scene: Scene) -> None:
    """Make a column of text in a table that says STRICT."""
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        ((sql,),) = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'checkpoint' AND type = 'table'"
        ).fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '')"
            " WHERE name = 'checkpoint' AND type = 'table'"
        )
        connection.execute("PRAGMA writable_schema = RESET")
    forge(scene.path, "UPDATE checkpoint SET size = 'many' WHERE id = 0")
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = 'checkpoint' AND type = 'table'", (sql,)
        )
        connection.execute("PRAGMA writable_schema = RESET")


def endless_view(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE event")
        connection.execute(
            "CREATE VIEW event(seq, seg, off) AS WITH RECURSIVE n(x) AS"
            " (SELECT 0 UNION ALL SELECT x + 1 FROM n) SELECT x, 0, 0 FROM n"
        )


def bomb(scene: Scene) -> None:
    """A part whose check is right and that would decompress to 300 MB."""
    data = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(300_000_000))
    row = f"(0, 793, {part_hash(data)}, x'{data.hex()}')"
    forge(scene.path, "DELETE FROM segment", f"INSERT INTO segment VALUES {row}")


def long_note(scene: Scene) -> None:
    """A checkpoint of 20 MB."""
    forge(
        scene.path,
        "UPDATE checkpoint SET note = note || replace(hex(zeroblob(10000000)), '00', 'aa')"
        " WHERE id = 0",
    )


def replace_row(scene: Scene) -> None:
    """INSERT OR REPLACE, which fires no trigger on deletion, past the trigger on insertion."""
    forge(scene.path, "INSERT OR REPLACE INTO event SELECT 5, seg, off FROM event WHERE seq = 4")


def _forged(name: str, does: str, *sql: str, codes: tuple[str, ...] = ()) -> Attack:
    return Attack(name, does, statements(*sql), ROWS, "broken", "broken", "broken", codes=codes)


def _column(table: str, column: str, change: str, where: str) -> Attack:
    return _forged(
        f"edit-{table}-{column}",
        f"changes `{column}` of a row of `{table}`",
        f"UPDATE {table} SET {column} = {change} WHERE {where}",
    )


_refused = partial(
    Attack, group=ROWS, alone="broken", key="broken", checkpoint="broken", codes=("schema",)
)
ATTACKS = [
    _forged(
        "drop-row",
        "deletes the row of an event in the middle",
        "DELETE FROM event WHERE seq = 5",
        codes=("event_missing",),
    ),
    _forged(
        "drop-last-row",
        "deletes the row of the last event",
        "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)",
        codes=("rolled_back",),
    ),
    _forged(
        "insert-row",
        "adds a row that names an event once more",
        "INSERT INTO event SELECT (SELECT max(seq) + 1 FROM event), seg, off FROM event"
        " WHERE seq = 5",
        codes=("event_place",),
    ),
    Attack(
        "replace-row",
        "`INSERT OR REPLACE` of a row of `event`",
        replace_row,
        ROWS,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "swap-rows",
        "swaps where two events are said to stand",
        swap_rows,
        ROWS,
        "broken",
        "broken",
        "broken",
        codes=("event_misplaced",),
    ),
    _column("event", "off", "off + 1", "seq = 5"),
    _column("event", "seg", "seg + 1", "seq = 5"),
    _column("event", "seq", "-1", "seq = 0"),
    _column("segment", "plain", "plain + 1", "id = 0"),
    _column("segment", "hash", "hash + 1", "id = 0"),
    _column("segment", "data", "zeroblob(length(data))", "id = 0"),
    _column("blob", "digest", "zeroblob(32)", "id = 0"),
    _column("blob", "seg", "seg + 1", "id = 0"),
    _column("blob", "off", "off + 1", "id = 0"),
    _column("blob", "len", "len - 1", "id = 0"),
    _column("blobsegment", "plain", "plain - 1", "id = 0"),
    _column("blobsegment", "hash", "hash + 1", "id = 0"),
    _column("blobsegment", "data", "zeroblob(length(data))", "id = 0"),
    _column("checkpoint", "size", "size - 1", "id = 0"),
    _column("checkpoint", "hash", "hash + 1", "id = 0"),
    _column("checkpoint", "note", "note || x'0a'", "id = 0"),
    _forged(
        "long-length",
        "claims that the last blob goes on behind what is stored",
        "UPDATE blob SET len = len + 256 WHERE id = (SELECT max(id) FROM blob)",
        codes=("blob_altered",),
    ),
    _forged("huge-length", "claims a blob of 2^62 bytes", "UPDATE blob SET len = 1 << 62"),
    _forged(
        "huge-plain",
        "claims a segment of 2^62 bytes",
        "UPDATE segment SET plain = 1 << 62 WHERE id = 0",
    ),
    _forged(
        "huge-offset",
        "claims that an event stands at 2^63 - 1",
        "UPDATE event SET off = 9223372036854775807 WHERE seq = 5",
    ),
    Attack(
        "long-note", "stores a checkpoint of 20 MB", long_note, ROWS, "broken", "broken", "broken"
    ),
    Attack(
        "bomb",
        "stores a part that decompresses to 300 MB, with a right check",
        bomb,
        ROWS,
        "broken",
        "broken",
        "broken",
        codes=("segment",),
    ),
    Attack(
        "stale-index",
        "makes table and index disagree through `writable_schema`",
        stale_index,
        ROWS,
        "broken",
        "broken",
        "broken",
        states=("sealed",),
        codes=("sqlite",),
    ),
    Attack(
        "forged-types",
        "stores a text in a column of integers of a STRICT table",
        forged_types,
        ROWS,
        "broken",
        "broken",
        "broken",
    ),
    _refused("add-view", "adds a view", schema("CREATE VIEW v AS SELECT 1")),
    _refused("add-table", "adds a table", schema("CREATE TABLE more(x)")),
    _refused(
        "add-trigger",
        "adds a trigger",
        schema("CREATE TRIGGER t AFTER INSERT ON event BEGIN SELECT 1; END"),
    ),
    _refused("drop-trigger", "drops a trigger", schema("DROP TRIGGER event_delete")),
    _refused("add-index", "adds an index", schema("CREATE INDEX more ON event(off)")),
    _refused("endless-view", "puts an endless view in the place of a table", endless_view),
    _refused(
        "edit-schema",
        "changes the text of a table's schema",
        writable_schema(
            "UPDATE sqlite_schema SET sql = replace(sql, 'off', 'OFF') WHERE name = 'event'"
        ),
    ),
    Attack(
        "shared-pages",
        "lets two tables stand in the same pages",
        writable_schema(
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema"
            " WHERE name = 'segment') WHERE name = 'blobsegment'"
        ),
        ROWS,
        "broken",
        "broken",
        "broken",
        codes=("sqlite",),
    ),
    Attack(
        "application-id",
        "takes away what says that the file is a ledger",
        schema("PRAGMA application_id = 0"),
        ROWS,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "newer-version",
        "claims a newer version of the format",
        schema("PRAGMA user_version = 2"),
        ROWS,
        "refused",
        "refused",
        "refused",
    ),
]
