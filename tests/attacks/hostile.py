"""Ledgers that are made to cost their reader time, memory, or more: each in a directory of its own."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import zstandard

from ledger import canonical
from ledger import events as ev
from ledger.codec import Header, encode_body
from ledger.segment import part_hash
from tests import events_of as say
from tests.attacks.forging import Record, records, replace_events, replace_pieces, stored
from tests.attacks.runs import record
from tests.ledger_checks import forge

SALT = '"salt":"' + "07" * 16 + '"'


def begun(run: Path) -> tuple[Path, Record, Header]:
    """A ledger of one event, its record, and that one's header."""
    record(run, seal=False, events=[say.created()])
    path = run / "ledger.sqlite"
    forge(path, "DELETE FROM checkpoint")
    (first,) = records_without_sides(run)
    return path, first, Header.decode(first[0])


def records_without_sides(run: Path) -> list[Record]:
    for beside in run.glob("*.checkpoint*"):
        beside.unlink()
    return records(run / "ledger.sqlite")


def part_row(row_id: int, data: bytes, plain: int) -> str:
    return f"({row_id}, {plain}, {part_hash(data)}, x'{data.hex()}')"


def zeros(size: int) -> bytes:
    """A frame of zeros."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(bytes(size))


def bomb(run: Path) -> None:
    """A part of 32 kB that decompresses to 1 GB, with a right check and a modest claim."""
    path, _, _ = begun(run)
    steps = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    data = b"".join(steps.compress(bytes(1 << 20)) for _ in range(1024)) + steps.flush()
    forge(path, "DELETE FROM segment", f"INSERT INTO segment VALUES {part_row(0, data, 400)}")


def large_segments(run: Path) -> None:
    """Ten segments of 100 MB each, whose blobs follow each other by the rules."""
    path, _, _ = begun(run)
    size = 100_000_000
    data, digest = zeros(size), sha256(bytes(size)).hexdigest()
    forge(
        path,
        *(f"INSERT INTO blobsegment VALUES {part_row(n << 20, data, size)}" for n in range(10)),
        *(f"INSERT INTO blob VALUES ({n}, x'{digest}', {n}, 0, {size})" for n in range(10)),
    )


def overlapping_blobs(run: Path) -> None:
    """A hundred thousand rows that each claim the same 100 MB."""
    path, _, _ = begun(run)
    size = 100_000_000
    forge(
        path,
        f"INSERT INTO blobsegment VALUES {part_row(0, zeros(size), size)}",
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 99999)"
        f" INSERT INTO blob SELECT x, zeroblob(32), 0, 0, {size} FROM n",
    )


def segments_in_turn(run: Path) -> None:
    """Rows that stand in one of twelve segments of 50 MB after the other, again and again."""
    path, _, _ = begun(run)
    size = 50_000_000
    data = zeros(size)
    forge(
        path,
        *(f"INSERT INTO blobsegment VALUES {part_row(n << 20, data, size)}" for n in range(12)),
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 49999)"
        " INSERT INTO blob SELECT x, zeroblob(32), x % 12, x, 1 FROM n",
    )


def events_in_turn(run: Path) -> None:
    """The same with events."""
    path, _, _ = begun(run)
    size = 50_000_000
    data = zeros(size)
    forge(
        path,
        "DELETE FROM event",
        *(f"INSERT INTO segment VALUES {part_row(n << 20, data, size)}" for n in range(1, 12)),
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 49999)"
        " INSERT INTO event SELECT x, x % 12, x FROM n",
    )


def overlapping_events(run: Path) -> None:
    """Fifty thousand events that each claim the same body of 100 MB."""
    path, first, header = begun(run)
    size = 100_000_000
    head, _ = stored(header, 1, 81, b"")
    head = head[:56] + size.to_bytes(8, "big") + head[64:]
    plain = first[0] + first[1] + head + bytes(size)
    data = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    forge(
        path,
        "DELETE FROM event",
        "DELETE FROM segment",
        f"INSERT INTO segment VALUES {part_row(0, data, len(plain))}",
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 49999)"
        f" INSERT INTO event SELECT x, 0, {len(first[0] + first[1])} FROM n",
    )


def many_checkpoints(run: Path) -> None:
    """A hundred thousand rows of checkpoints of one event."""
    path, _, _ = begun(run)
    text = f"acl/unsigned/{'00' * 16}\n1\n{'A' * 43}=\n"
    forge(
        path,
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 99999)"
        f" INSERT INTO checkpoint SELECT x, 1, {part_hash(text.encode())}, '{text}' FROM n",
    )


def many_rows(run: Path) -> None:
    """Twenty thousand rows that name the first event once more."""
    path, _, _ = begun(run)
    forge(
        path,
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000)"
        " INSERT INTO event SELECT x, 0, 0 FROM n",
    )


def many_erasures(run: Path) -> None:
    """Bodies that are gone, and rows of erasures, both by the ten thousands."""
    path, first, header = begun(run)
    empty = [stored(header, seq, 81, b"x") for seq in range(1, 10_000)]
    replace_events(
        path,
        [first, *((head, b"y") for head, _ in empty)],
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 199999)"
        " INSERT INTO erasure SELECT x, 0, 9, x, 1, 0 FROM n",
    )


def far_keys(run: Path) -> None:
    """Rows whose numbers are near 2^62, in every table."""
    path, _, _ = begun(run)
    far = 1 << 62
    forge(
        path,
        f"INSERT INTO event VALUES ({far}, 0, 0)",
        f"INSERT INTO segment VALUES ({far}, 1, 0, x'00')",
        f"INSERT INTO blob VALUES ({far}, zeroblob(32), 0, 0, 1)",
        f"INSERT INTO blobsegment VALUES ({far}, 1, 0, x'00')",
        f"INSERT INTO checkpoint VALUES ({far}, 1, 0, 'x')",
        f"INSERT INTO erasure VALUES ({far}, 0, 0, 0, 0, 0)",
    )


def far_damage(run: Path) -> None:
    """The same, and cells of another type than their columns at numbers near 2^61."""
    far_keys(run)
    path = run / "ledger.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        for name, _ in rows:
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '') WHERE name = ?",
                (name,),
            )
        connection.execute("PRAGMA writable_schema = RESET")
    near = 1 << 61
    forge(
        path,
        f"INSERT INTO event VALUES ({near}, 'x', 'x')",
        f"INSERT INTO segment VALUES ({near}, 'x', 'x', 'x')",
        f"INSERT INTO blob VALUES ({near}, 'x', 'x', 'x', 'x')",
        f"INSERT INTO blobsegment VALUES ({near}, 'x', 'x', 'x')",
        f"INSERT INTO checkpoint VALUES ({near}, 'x', 'x', 1.5)",
        f"INSERT INTO erasure VALUES ({near}, 'x', 'x', 'x', 'x', 'x')",
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for name, sql in rows:
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))
        connection.execute("PRAGMA writable_schema = RESET")


def deep(run: Path) -> None:
    """Bodies that nest a million lists, or objects."""
    path, first, header = begun(run)
    bodies = [
        b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"," + SALT.encode() + b',"v":1}',
        b'{"a":' + b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000 + b"," + SALT.encode() + b"}",
        b"[" * 5_000_000,
        b'{"name":"a.b","payload":' + b"[" * 250 + b"]" * 250 + b"," + SALT.encode() + b',"v":1}',
    ]
    more = [stored(header, seq, 83, body) for seq, body in enumerate(bodies, 1)]
    replace_events(path, [first, *more])


def endless_lists(run: Path) -> None:
    """Fifty pieces of lists, each of which refers a hundred times to the one before it."""
    path, first, header = begun(run)
    piece = canonical.encode(["x" * 4100])
    held = [piece]
    for _ in range(50):
        digest = sha256(held[-1]).hexdigest()
        reference = f'{{"$acl":["list",["{digest}"],[]]}}'
        held.append(("[" + ",".join([reference] * 100) + "]").encode())
    replace_pieces(path, held)
    last = sha256(held[-1]).hexdigest()
    body = f'{{"name":"a.b","payload":{{"$acl":["list",["{last}"],[]]}},{SALT},"v":1}}'.encode()
    result = encode_body(say.result("t"), b"\7" * 16, lambda digest, piece: None)
    result = result.replace(
        b'"metrics":', f'"final_answer":{{"$acl":["list",["{last}"],[]]}},"metrics":'.encode()
    )
    task = {"task": "t", "attempt": 1}
    events = [*say.opening("t")[1:], ev.TaskStarted(task="t"), ev.AttemptStarted(**task)]
    more = [
        stored(
            header,
            seq,
            event.code,
            encode_body(event, b"\7" * 16, lambda digest, piece: None),
            task=event.task,
            attempt=event.attempt,
        )
        for seq, event in enumerate(events, 1)
    ]
    size = len(more) + 1
    more.append(stored(header, size, 35, result, **task))
    more.append(stored(header, size + 1, 83, body))
    replace_events(path, [first, *more])


def long_names(run: Path) -> None:
    """Three thousand events of tasks whose ids have 60,000 bytes: hardly anything on disk."""
    path, first, header = begun(run)
    body = f'{{"reason":"r",{SALT},"v":1}}'.encode()
    made = (
        stored(header, seq, 19, body, task=f"{seq:05}" + "n" * 59_995) for seq in range(1, 3_001)
    )
    replace_events_in_parts(path, first, made)


def replace_events_in_parts(path: Path, first: Record, more: object) -> None:
    """Store events segment by segment, of 100 MB each."""
    rows, segments = ["(0, 0, 0)"], []
    plain = bytearray(first[0] + first[1])
    for seq, (head, body) in enumerate(more, 1):  # type: ignore[arg-type,var-annotated]
        if len(plain) > 100_000_000:
            segments.append(bytes(plain))
            plain.clear()
        rows.append(f"({seq}, {len(segments)}, {len(plain)})")
        plain += head + body
    segments.append(bytes(plain))
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    forge(
        path,
        "DELETE FROM event",
        "DELETE FROM segment",
        *(f"INSERT INTO event VALUES {row}" for row in rows),
        *(
            f"INSERT INTO segment VALUES {part_row(n << 20, compressor.compress(one), len(one))}"
            for n, one in enumerate(segments)
        ),
    )


HOSTILE = [
    bomb,
    large_segments,
    overlapping_blobs,
    segments_in_turn,
    events_in_turn,
    overlapping_events,
    many_checkpoints,
    many_rows,
    many_erasures,
    far_keys,
    far_damage,
    deep,
    endless_lists,
    long_names,
]
