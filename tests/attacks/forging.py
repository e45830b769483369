"""What a forger does who knows the format and needs none of our programs."""

import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import zstandard

from ledger import LedgerView, note, sidefile, tlog
from ledger.codec import Header
from ledger.events import MetricsComputed
from ledger.keys import SigningKey
from ledger.segment import part_hash
from tests.ledger_checks import forge

Record = tuple[bytes, bytes]
_METRICS = MetricsComputed.code.to_bytes(2, "big")


def records(path: Path) -> list[Record]:
    """The header and body of each event."""
    with LedgerView.open(path) as view:
        return [view.raw(seq) for seq in range(view.size)]


def pieces(path: Path) -> list[bytes]:
    """The content of each blob row."""
    with LedgerView.open(path) as view:
        digests = list(view.source.query("SELECT digest FROM blob ORDER BY id"))
        return [view.blob(digest) for (digest,) in digests]


def replace_events(path: Path, new: list[Record], *more: str) -> None:
    """Store other events in the place of all, in one segment; headers as they are given."""
    rows, offset = [], 0
    for seq, (head, body) in enumerate(new):
        rows.append(f"({seq}, 0, {offset})")
        offset += len(head) + len(body)
    plain = b"".join(head + body for head, body in new)
    forge(
        path,
        "DELETE FROM event",
        "DELETE FROM segment",
        *([f"INSERT INTO event VALUES {', '.join(rows)}"] if rows else []),
        f"INSERT INTO segment VALUES {part(plain)}",
        *more,
    )


def replace_pieces(path: Path, new: list[bytes], *more: str, keep_digests: bool = False) -> None:
    """Store other blobs in the place of all, in one segment."""
    with closing(sqlite3.connect(path)) as connection:
        old = [row[0] for row in connection.execute("SELECT digest FROM blob ORDER BY id")]
    rows, offset = [], 0
    for row_id, data in enumerate(new):
        digest = old[row_id] if keep_digests else sha256(data).digest()
        rows.append(f"({row_id}, x'{digest.hex()}', 0, {offset}, {len(data)})")
        offset += len(data)
    forge(
        path,
        "DELETE FROM blob",
        "DELETE FROM blobsegment",
        *(f"INSERT INTO blob VALUES {row}" for row in rows),
        f"INSERT INTO blobsegment VALUES {part(b''.join(new))}",
        *more,
    )


def part(plain: bytes) -> str:
    """The values of a row that stores a whole segment."""
    frame = zstandard.ZstdCompressor().compress(plain)
    return f"(0, {len(plain)}, {part_hash(frame)}, x'{frame.hex()}')"


def relink(new: list[Record]) -> list[Record]:
    """Give each event the number of its place, and the length and address of its body.

    The root that recorded metrics name is put right, too.
    """
    linked: list[Record] = []
    tree = tlog.Frontier()
    for seq, (head, body) in enumerate(new):
        if head[2:4] == _METRICS:
            (old,) = re.findall(rb'"root":"([0-9a-f]{64})"', body)
            body = body.replace(old, tree.root().hex().encode())  # noqa: PLW2901
        linked.append((_relinked(head, body, seq), body))
        tree.append(tlog.leaf_hash(linked[-1][0]))
    return linked


def _relinked(head: bytes, body: bytes, seq: int) -> bytes:
    bound = len(body).to_bytes(8, "big") + sha256(body).digest()
    return head[:20] + seq.to_bytes(8, "big") + head[28:56] + bound + head[96:]


def notes(path: Path) -> list[bytes]:
    """The checkpoints that a ledger holds, oldest first."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT note FROM checkpoint ORDER BY id").fetchall()
    return [text.encode() for (text,) in rows]


def replace_notes(path: Path, new: list[bytes]) -> None:
    """Store other checkpoints in the place of all, their rows as the notes say, their checks right."""
    rows = []
    for row_id, data in enumerate(new):
        size = sidefile.parse(data).checkpoint.size
        rows.append(f"({row_id}, {size}, {part_hash(data)}, CAST(x'{data.hex()}' AS TEXT))")
    forge(
        path,
        "DELETE FROM checkpoint",
        *(f"INSERT INTO checkpoint VALUES {row}" for row in rows),
    )


def put_beside(path: Path, data: bytes | None) -> None:
    """Replace the checkpoint files beside a ledger by one, or by none."""
    for beside in sidefile.paths(path):
        beside.unlink(missing_ok=True)
    if data is not None:
        signed = b"\n\n" in data
        sidefile.write(path, data, signed=signed)


def certify(path: Path, key: SigningKey | None) -> None:
    """Make every checkpoint fit the events that are stored now, signed by `key` or by nobody."""
    leaves = [tlog.leaf_hash(head) for head, _ in records_of_rows(path)]
    ledger_id = Header.decode(records_of_rows(path)[0][0]).ledger_id
    held = {sidefile.parse(data).checkpoint.size for data in notes(path)}
    sizes = sorted({size for size in held if size < len(leaves)} | {len(leaves)})
    new = [checkpoint(ledger_id, size, tlog.Frontier(leaves[:size]).root(), key) for size in sizes]
    replace_notes(path, new)
    put_beside(path, new[-1])


def checkpoint(ledger_id: bytes, size: int, root: bytes, key: SigningKey | None) -> bytes:
    """A checkpoint of a ledger, signed by `key` or by nobody."""
    if key is None:
        return note.Checkpoint(note.unsigned_origin(ledger_id), size, root).text
    text = note.Checkpoint(sidefile.signed_origin(key.name, ledger_id), size, root).text
    return note.sign(text, [key])


def records_of_rows(path: Path) -> list[Record]:
    """The events of a ledger beside which anything may stand."""
    hidden = [(side, side.read_bytes()) for side in sidefile.paths(path) if side.exists()]
    put_beside(path, None)
    try:
        return records(path)
    finally:
        for side, data in hidden:
            side.write_bytes(data)


def edit(new: list[Record], old: bytes, fresh: bytes) -> list[Record]:
    """Change the one body that holds `old`."""
    assert sum(body.count(old) for _, body in new) == 1, old
    return [(head, body.replace(old, fresh)) for head, body in new]


def stored(first: Header, seq: int, code: int, body: bytes, **fields: object) -> Record:
    """An event with any body as a writer would store it in the ledger of header `first`."""
    header = first._replace(
        seq=seq,
        code=code,
        wall_ns=first.wall_ns + seq,
        mono_ns=first.mono_ns + seq,
        body_length=len(body),
        address=sha256(body).digest(),
        **fields,
    )
    return header.encode(), body
