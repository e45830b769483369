"""Attacks on bytes, and on the files of a run directory."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from ledger import sidefile
from ledger.schema import PAGE_SIZE
from tests.attacks.attack import Attack, Scene
from tests.attacks.forging import put_beside
from tests.attacks.on_recording import another_verdict
from tests.attacks.runs import record, story


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def _flip_stored(scene: Scene, table: str) -> None:
    """Flip a bit in the middle of the longest stored part, wherever in the files it stands."""
    with closing(sqlite3.connect(f"file:{scene.path}?mode=ro", uri=True)) as connection:
        (data,) = connection.execute(
            f"SELECT data FROM {table} ORDER BY length(data) DESC LIMIT 1"
        ).fetchone()
    needle = data[len(data) // 2 :][:12]
    for path in (scene.wal, scene.path):
        at = path.read_bytes().rfind(needle) if path.exists() else -1
        if at >= 0:
            _flip(path, at)
            return
    raise AssertionError(table)


def flip_event(scene: Scene) -> None:
    _flip_stored(scene, "segment")


def flip_blob(scene: Scene) -> None:
    _flip_stored(scene, "blobsegment")


def flip_free(scene: Scene) -> None:
    """The gap between the cell pointers and the cells of a page."""
    data = scene.path.read_bytes()
    for page in range(1, len(data) // 4096):
        head = data[page * 4096 : page * 4096 + 12]
        cells, start = int.from_bytes(head[3:5], "big"), int.from_bytes(head[5:7], "big")
        first_free = 8 + 2 * cells
        if head[0] == 13 and start - first_free > 200:
            _flip(scene.path, page * 4096 + first_free + 100)
            return
    raise AssertionError("no page has room")


def flip_page_header(scene: Scene) -> None:
    with closing(sqlite3.connect(f"file:{scene.path}?mode=ro", uri=True)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'event'")
    _flip(scene.path, (page - 1) * PAGE_SIZE)


def flip_magic(scene: Scene) -> None:
    _flip(scene.path, 3)


def flip_wal(scene: Scene) -> None:
    _flip(scene.wal, 32 + 24 + 2000)


def flip_wal_end(scene: Scene) -> None:
    _flip(scene.wal, scene.wal.stat().st_size - 2000)


def flip_side_root(scene: Scene) -> None:
    side = sidefile.paths(scene.path)[0]
    origin, size, _ = side.read_bytes().split(b"\n", 2)
    _flip(side, len(origin) + len(size) + 2 + 10)


def flip_side_signature(scene: Scene) -> None:
    side = sidefile.paths(scene.path)[0]
    _flip(side, side.stat().st_size - 30)


def truncate(scene: Scene) -> None:
    os.truncate(scene.path, scene.path.stat().st_size // 2 // 4096 * 4096)


def truncate_wal(scene: Scene) -> None:
    os.truncate(scene.wal, 32 + 3 * (24 + 4096))


def append_garbage(scene: Scene) -> None:
    with scene.path.open("ab") as file:
        file.write(b"\x5a" * 4096)


def remove_ledger(scene: Scene) -> None:
    scene.path.unlink()


def remove_everything(scene: Scene) -> None:
    shutil.rmtree(scene.run)


def remove_wal(scene: Scene) -> None:
    scene.wal.unlink()


def remove_wal_and_sides(scene: Scene) -> None:
    remove_wal(scene)
    remove_sides(scene)


def remove_sides(scene: Scene) -> None:
    put_beside(scene.path, None)


def foreign_wal(scene: Scene) -> None:
    """The commits of another run."""
    shutil.copyfile(scene.other / "ledger.sqlite-wal", scene.wal)


def plant_wal(scene: Scene) -> None:
    """The `-wal` of another history of this run, beside a ledger that needs none."""
    elsewhere = scene.other.with_name("planted")
    record(elsewhere, seal=False, events=another_verdict(story()))
    shutil.copyfile(elsewhere / "ledger.sqlite-wal", scene.wal)


def link_wal(scene: Scene) -> None:
    target = scene.run / "elsewhere"
    if scene.wal.exists():
        scene.wal.rename(target)
    else:
        target.write_bytes(b"")
    scene.wal.symlink_to(target)


def pipe_journal(scene: Scene) -> None:
    os.mkfifo(scene.run / "ledger.sqlite-journal")


def pipe_lock(scene: Scene) -> None:
    lock = scene.run / "ledger.lock"
    lock.unlink(missing_ok=True)
    os.mkfifo(lock)


def pipe_side(scene: Scene) -> None:
    side = sidefile.paths(scene.path)[0]
    side.unlink()
    os.mkfifo(side)


def link_ledger(scene: Scene) -> None:
    scene.path.rename(scene.run / "hidden.sqlite")
    scene.path.symlink_to(scene.run / "hidden.sqlite")


def empty_ledger(scene: Scene) -> None:
    scene.path.write_bytes(b"")


BYTES = "bytes and files"
_OVER = "where it is not sealed, the `-wal` holds the page too, and that one is read"
ATTACKS = [
    Attack(
        "flip-event",
        "flips a bit in the stored bytes of an event",
        flip_event,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "flip-blob",
        "flips a bit in the stored bytes of a blob",
        flip_blob,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "flip-free",
        "flips a bit in unused room of a page",
        flip_free,
        BYTES,
        "unseen",
        "unseen",
        "unseen",
        harmless=True,
    ),
    Attack(
        "flip-page",
        "flips a bit in the first byte of a page of SQLite's",
        flip_page_header,
        BYTES,
        ("broken", "unseen"),
        ("broken", "unseen"),
        ("broken", "unseen"),
        harmless=(False, True),
        note=_OVER,
    ),
    Attack(
        "flip-magic",
        "flips a bit in the first bytes of the file",
        flip_magic,
        BYTES,
        ("broken", "unseen"),
        ("broken", "unseen"),
        ("broken", "unseen"),
        harmless=(False, True),
        note=_OVER,
    ),
    Attack(
        "flip-wal",
        "flips a bit in the first commit of the `-wal`",
        flip_wal,
        BYTES,
        "broken",
        "broken",
        "broken",
        states=("unsealed",),
        codes=("wal_damaged",),
    ),
    Attack(
        "flip-wal-end",
        "flips a bit in the last commit of the `-wal`",
        flip_wal_end,
        BYTES,
        "broken",
        "broken",
        "broken",
        states=("unsealed",),
    ),
    Attack(
        "flip-side-root",
        "flips a bit of the root in `ledger.checkpoint`",
        flip_side_root,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "flip-side-signature",
        "flips a bit of the signature in `ledger.checkpoint`",
        flip_side_signature,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack("truncate", "cuts the file in half", truncate, BYTES, "broken", "broken", "broken"),
    Attack(
        "truncate-wal",
        "cuts the `-wal` behind its third frame",
        truncate_wal,
        BYTES,
        "broken",
        "broken",
        "broken",
        states=("unsealed",),
        codes=("rolled_back",),
    ),
    Attack(
        "append-garbage",
        "adds a page of garbage to the end of the file",
        append_garbage,
        BYTES,
        "unseen",
        "unseen",
        "unseen",
        harmless=True,
    ),
    Attack(
        "remove-ledger",
        "deletes the ledger file",
        remove_ledger,
        BYTES,
        "refused",
        "refused",
        "refused",
    ),
    Attack(
        "remove-run",
        "deletes the run directory",
        remove_everything,
        BYTES,
        "refused",
        "refused",
        "refused",
        note="who asks for this run sees that it is gone; nobody else without the registry",
    ),
    Attack(
        "remove-wal",
        "deletes the `-wal`",
        remove_wal,
        BYTES,
        "broken",
        "broken",
        "broken",
        states=("unsealed",),
        codes=("rolled_back",),
    ),
    Attack(
        "remove-wal-and-sides",
        "deletes the `-wal` and the checkpoint files",
        remove_wal_and_sides,
        BYTES,
        "unseen",
        "unseen",
        "broken",
        states=("unsealed",),
    ),
    Attack(
        "remove-sides",
        "deletes the checkpoint files beside the ledger",
        remove_sides,
        BYTES,
        "unseen",
        "unseen",
        "unseen",
        harmless=True,
    ),
    Attack(
        "foreign-wal",
        "puts the `-wal` of another run in the place of the own",
        foreign_wal,
        BYTES,
        "broken",
        "broken",
        "broken",
        states=("unsealed",),
    ),
    Attack(
        "plant-wal",
        "puts the `-wal` of another history of the run beside it",
        plant_wal,
        BYTES,
        "broken",
        "broken",
        "broken",
        states=("sealed",),
    ),
    Attack(
        "link-wal",
        "puts a symbolic link in the place of the `-wal`",
        link_wal,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "pipe-journal",
        "puts a pipe in the place of a `-journal`, to hang the reader",
        pipe_journal,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "pipe-lock",
        "puts a pipe in the place of the lock",
        pipe_lock,
        BYTES,
        "broken",
        "broken",
        "broken",
    ),
    Attack(
        "pipe-side",
        "puts a pipe in the place of `ledger.checkpoint`",
        pipe_side,
        BYTES,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint",),
    ),
    Attack(
        "link-ledger",
        "puts a symbolic link in the place of the ledger",
        link_ledger,
        BYTES,
        "refused",
        "refused",
        "refused",
    ),
    Attack(
        "empty-ledger", "empties the ledger file", empty_ledger, BYTES, "broken", "broken", "broken"
    ),
]
