"""Ledgers as recipes: edits of their rows, parts, headers and bodies, with all that proves them.

What a careless edit would break is put right, unless the recipe breaks it by another edit: parts
get the check that they have, bodies their address, so that what lies behind is reached.
"""

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import zstandard

from ledger import canonical, tlog
from ledger.codec import Header
from ledger.errors import AclError
from ledger.segment import part_hash
from tests.attacks import forging
from tests.attacks.runs import LAB, record
from tests.compat.freeze import LEDGERS
from tests.fuzz import texts, trees
from tests.fuzz.bounds import memory_folder
from tests.fuzz.trees import Edit, Tree

SIDES = ("ledger.checkpoint", "ledger.checkpoint.unsigned")
FILE = "ledger.sqlite"
_TABLES = ("event", "segment", "blob", "blobsegment", "erasure", "checkpoint")
# Why an edit cannot be made, mostly since another one was.
_IMPOSSIBLE = (
    AclError,
    ArithmeticError,
    LookupError,
    ValueError,
    sqlite3.Error,
    struct.error,
    zstandard.ZstdError,
)
_LOGICAL = frozenset({"cell", "delete", "again", "plain", "body", "head", "events", "certify"})
_SHOWN = frozenset({"body", "head", "events"})
_CERTIFIED = 0.5
_CELLS = (0, 1, 2, 3, -1, 1 << 20, (1 << 20) - 1, 1 << 31, 1 << 62, 2**63 - 1, -(2**63))
_ODD_CELLS: tuple[Any, ...] = (None, "x", "", 1.5, {"hex": ""}, {"hex": "00" * 32})
_FIELDS = (0, 1, 2, 4, 20, 28, 36, 44, 48, 52, 56, 64, 96, 98)


def bases() -> Mapping[str, Tree]:
    """The frozen ledgers, and one that a killed writer left: the larger part is in its -wal."""
    found: dict[str, Tree] = {
        path.stem.partition("-")[2]: {FILE: path.read_bytes()} for path in LEDGERS.glob("*.sqlite")
    }
    with memory_folder() as folder:
        for name, seal in (("sealed", True), ("killed", False)):
            run = Path(folder) / name
            record(run, seal=seal)
            found[name] = _read(run)
    return dict(sorted(found.items()))


def _read(run: Path) -> Tree:
    names = (FILE, f"{FILE}-wal", *SIDES)
    return {name: (run / name).read_bytes() for name in names if (run / name).is_file()}


class LedgerRecipes(trees.Recipes):
    """Recipes of whole run directories."""

    def __init__(self) -> None:
        super().__init__(bases)

    def apply(self, tree: Tree, edit: Edit) -> Tree:
        """Make one edit."""
        if edit[0] == "frame":
            return _edit_frame(tree, *edit[1:])
        if edit[0] not in _LOGICAL:
            return super().apply(tree, edit)
        if not isinstance(tree.get(FILE), bytes):
            return tree
        with memory_folder() as folder:
            run = Path(folder)
            trees.write(tree, run)
            try:
                _VERBS[edit[0]](run, *edit[1:])
            except _IMPOSSIBLE:
                return tree
            new = _read(run)
        return {**{name: data for name, data in tree.items() if name not in new}, **new}

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        """One edit more, or less; what checkpoints would show at once is often certified, too."""
        base, edits = trees.decode(super().mutate(data, others, random))
        if edits and edits[-1][0] in _SHOWN and random.random() < _CERTIFIED:
            edits.append(["certify"])
        return trees.encode(base, edits)

    def draw(self, tree: Tree, random: Random) -> Edit:
        """Draw one edit."""
        match random.randrange(20):
            case 0 | 1 | 2:
                odd = random.random() < 0.15
                value = random.choice(_ODD_CELLS if odd else _CELLS)
                column = random.randrange(5)
                return ["cell", random.choice(_TABLES), random.randrange(40), column, value]
            case 3:
                return ["delete", random.choice(_TABLES), random.randrange(40)]
            case 4:
                row = random.choice((*_CELLS, random.randrange(60)))
                return ["again", random.choice(_TABLES), random.randrange(40), row]
            case 5 | 6:
                return self._draw_plain(tree, random)
            case 7 | 8 | 9 | 10 | 11:
                return self._draw_body(tree, random)
            case 12 | 13:
                value = random.choice(("00", "01", "ff", "0000", "ffff", "80", "7f", "ff" * 8))
                return ["head", random.randrange(60), random.choice(_FIELDS), value]
            case 14:
                how = random.choice(("drop", "double", "swap"))
                return ["events", how, random.randrange(60)]
            case 15:
                return ["certify"]
            case 16:
                return [
                    "frame",
                    random.randrange(30),
                    random.randrange(4200),
                    random.choice("\0\1\xff"),
                ]
        return super().draw(tree, random)

    def _draw_plain(self, tree: Tree, random: Random) -> Edit:
        table = random.choice(("segment", "blobsegment"))
        offset = random.randrange(4000)
        return ["plain", table, offset, *texts.byte_edit(b"\0" * 4000, random)[1:]]

    def _draw_body(self, tree: Tree, random: Random) -> Edit:
        held = _bodies(tree.get(FILE), tree.get(f"{FILE}-wal"))
        if not held:
            return ["certify"]
        seq = random.randrange(len(held))
        edit = texts.json_edit(held[seq], random)
        return ["certify"] if edit is None else ["body", seq, *edit]


@cache
def _bodies(data: Any, wal: Any) -> tuple[bytes, ...]:
    if not isinstance(data, bytes):
        return ()
    with memory_folder() as folder:
        trees.write({FILE: data} | ({f"{FILE}-wal": wal} if wal else {}), Path(folder))
        try:
            return tuple(body for _, body in forging.records(Path(folder) / FILE))
        except (AclError, sqlite3.Error, OSError, ValueError):
            return ()


# -- edits, each of the ledger in a run directory -------------------------------------------------


def _loose(path: Path, statement: str, values: tuple[Any, ...]) -> None:
    """Run a statement that no schema stands in the way of; the schema reads as before."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        schema = connection.execute("SELECT rowid, sql FROM sqlite_schema").fetchall()
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        dropped = triggers.fetchall()
        for name, _ in dropped:
            connection.execute(f"DROP TRIGGER {name}")
        odd = any(not isinstance(one, int) for one in values)
        if odd:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(replace(sql, ' STRICT', ''), ' NOT NULL', '')"
                " WHERE type = 'table'"
            )
            connection.execute("COMMIT")
            connection.execute("PRAGMA writable_schema = RESET")
            connection.execute("BEGIN")
        connection.execute(statement, values)
        for _, sql in dropped:
            connection.execute(sql)
        connection.execute("COMMIT")
        if odd:
            connection.execute("PRAGMA writable_schema = ON")
            for rowid, sql in schema:
                kind = "UPDATE sqlite_schema SET sql = ? WHERE rowid = ? AND type = 'table'"
                connection.execute(kind, (sql, rowid))
            connection.execute("PRAGMA writable_schema = RESET")


def _rows(path: Path, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1")
        return [column[0] for column in cursor.description], cursor.fetchall()


def _cell(run: Path, table: str, row: int, column: int, value: Any) -> None:
    names, rows = _rows(run / FILE, table)
    key, name = rows[row % len(rows)][0], names[column % len(names)]
    if isinstance(value, dict):
        value = bytes.fromhex(value["hex"])
    _loose(run / FILE, f"UPDATE {table} SET {name} = ? WHERE {names[0]} = ?", (value, key))


def _delete(run: Path, table: str, row: int) -> None:
    names, rows = _rows(run / FILE, table)
    key = rows[row % len(rows)][0]
    _loose(run / FILE, f"DELETE FROM {table} WHERE {names[0]} = ?", (key,))


def _again(run: Path, table: str, row: int, key: int) -> None:
    names, rows = _rows(run / FILE, table)
    old = rows[row % len(rows)][0]
    others = ", ".join(names[1:])
    statement = f"INSERT INTO {table} SELECT ?, {others} FROM {table} WHERE {names[0]} = ?"
    _loose(run / FILE, statement, (key, old))


def _plain(run: Path, table: str, offset: int, removed: int, text: str) -> None:
    """Change the plain bytes of the first segment, which becomes one part."""
    _, rows = _rows(run / FILE, table)
    first = [row for row in rows if row[0] < 1 << 20]
    frame = b"".join(row[3] for row in first)
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(frame)
    new = texts.splice(plain, offset % (len(plain) + 1), removed, text)
    made = zstandard.ZstdCompressor().compress(new)
    for row in first[1:]:
        _loose(run / FILE, f"DELETE FROM {table} WHERE id = ?", (row[0],))
    statement = f"UPDATE {table} SET plain = ?, hash = ?, data = x'{made.hex()}' WHERE id = ?"
    _loose(run / FILE, statement, (len(new), part_hash(made), first[0][0]))


def _body(run: Path, seq: int, *edit: Any) -> None:
    """Change a body, spell it canonically if it can be, and bind it to its header."""
    held = forging.records_of_rows(run / FILE)
    head, body = held[seq]
    new = texts.edit_json(body, *edit)
    with suppress(AclError):
        new = canonical.encode(canonical.decode(new))
    held[seq] = (head, new)
    forging.replace_events(run / FILE, _linked(held))


def _head(run: Path, seq: int, offset: int, value: str) -> None:
    held = forging.records_of_rows(run / FILE)
    head, body = held[seq % len(held)]
    data = bytes.fromhex(value)
    held[seq % len(held)] = (head[:offset] + data + head[offset + len(data) :], body)
    forging.replace_events(run / FILE, held)


def _events(run: Path, how: str, seq: int) -> None:
    held = forging.records_of_rows(run / FILE)
    at = seq % len(held)
    if how == "swap":
        held[at], held[at - 1] = held[at - 1], held[at]
    else:
        held[at : at + 1] = [] if how == "drop" else [held[at], held[at]]
    forging.replace_events(run / FILE, _linked(held))


def _linked(held: list[forging.Record]) -> list[forging.Record]:
    try:
        return forging.relink(held)
    except ValueError:
        # Metrics that name no root.
        return [(forging._relinked(head, body, seq), body) for seq, (head, body) in enumerate(held)]


def _certify(run: Path) -> None:
    forging.certify(run / FILE, LAB)


_VERBS: dict[str, Any] = {
    "cell": _cell,
    "delete": _delete,
    "again": _again,
    "plain": _plain,
    "body": _body,
    "head": _head,
    "events": _events,
    "certify": _certify,
}


def _edit_frame(tree: Tree, frame: int, offset: int, text: str) -> Tree:
    """Change a byte of a frame of the -wal, and every checksum from there on."""
    data = tree.get(f"{FILE}-wal")
    if not isinstance(data, bytes) or len(data) < 32 + 24:
        return tree
    size = 24 + int.from_bytes(data[8:12], "big")
    if size < 24 + 512 or size > 24 + 65536:
        return tree
    frames = [bytearray(data[at : at + size]) for at in range(32, len(data), size)]
    frames = [one for one in frames if len(one) == size]
    if not frames:
        return tree
    frames[frame % len(frames)][offset % size] = ord(text)
    order = "big" if data[3] & 1 else "little"
    running = (int.from_bytes(data[24:28], "big"), int.from_bytes(data[28:32], "big"))
    for one in frames:
        running = _sum(bytes(one[:8] + one[24:]), running, order)
        one[16:24] = running[0].to_bytes(4, "big") + running[1].to_bytes(4, "big")
    return {**tree, f"{FILE}-wal": data[:32] + b"".join(frames)}


def _sum(content: bytes, before: tuple[int, int], order: Any) -> tuple[int, int]:
    first, second = before
    for at in range(0, len(content) - 7, 8):
        first = (first + int.from_bytes(content[at : at + 4], order) + second) & 0xFFFFFFFF
        second = (second + int.from_bytes(content[at + 4 : at + 8], order) + first) & 0xFFFFFFFF
    return first, second


def original_leaves(recipes: LedgerRecipes, recipe: bytes) -> tuple[bytes, bytes]:
    """The leaves of the base of a recipe, and a checkpoint over them that somebody kept."""
    return _leaves(recipes, trees.decode(recipe)[0])


@cache
def _leaves(recipes: LedgerRecipes, base: str) -> tuple[bytes, bytes]:
    with memory_folder() as folder:
        trees.write(recipes.bases[base], Path(folder))
        held = forging.records_of_rows(Path(folder) / FILE)
    leaves = b"".join(tlog.leaf_hash(head) for head, _ in held)
    ledger_id = Header.decode(held[0][0]).ledger_id
    return leaves, forging.checkpoint(ledger_id, len(held), tlog.root_of(leaves), LAB)
