"""The one check to call after each step that a test makes with a ledger."""

import hashlib
import sqlite3
from pathlib import Path

import zstandard

from ledger import LedgerView, schema, tlog
from ledger import events as ev
from ledger.errors import RunNotFound
from ledger.segment import part_hash
from ledger.verify import Finding, verify


def check_ledger(path: Path) -> list[Finding]:
    """Re-derive everything in a ledger that must be healthy; return what verify said."""
    findings = list(verify(path))
    assert [f for f in findings if f.severity == "broken"] == []
    if any(f.code == "empty" for f in findings):
        return findings
    with LedgerView.open(path) as view:
        leaves = view.leaves()
        size = len(leaves) // 32
        assert tlog.root_of(leaves) == view.root(size)
        erased = {one for seq in range(size) for one in _erased_by(view.event(seq).event)}
        for recorded in view.events(until=size):
            seq = recorded.seq
            assert (
                hashlib.sha256(b"\x00" + recorded.header.encode()).digest()
                == (leaves[32 * seq : 32 * seq + 32])
            )
            assert not recorded.erased or seq in erased
            if recorded.event is not None:
                _check_event(view, seq, leaves)
                _resolve(view, recorded.event, may_lack=seq in erased)
        for seq in {0, size // 2, size - 1} if size else set():
            proof = view.prove(seq, size)
            tlog.check_inclusion(
                leaves[32 * seq : 32 * seq + 32], seq, size, proof.path, view.root(size)
            )
        for held, _ in view.checkpoints():
            path_to = view.prove_prefix(held, size).path
            tlog.check_consistency(held, size, path_to, view.root(held), view.root(size))
    return findings


def _erased_by(event: ev.AnyEvent | None) -> tuple[int, ...]:
    return event.sequence if isinstance(event, ev.PayloadErased) else ()


def _resolve(view: LedgerView, event: ev.AnyEvent, *, may_lack: bool) -> None:
    for _, value in event:
        try:
            view.resolve(value)
        except RunNotFound:
            assert may_lack


def _check_event(view: LedgerView, seq: int, leaves: bytes) -> None:
    head, body = view.raw(seq)
    assert hashlib.sha256(b"\x00" + head).digest() == leaves[32 * seq : 32 * seq + 32]
    assert hashlib.sha256(body).digest() == head[64:96]


def broken(path: Path, **how: object) -> list[Finding]:
    """Return what verify finds broken in a ledger, by path."""
    return [f for f in verify(path, **how) if f.severity == "broken"]


def forge(path: Path, *statements: str) -> None:
    """Change a ledger as no program of ours would, and put the schema back as it was."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for statement in schema.STATEMENTS:
        if statement.startswith("CREATE TRIGGER"):
            connection.execute(statement)
    connection.commit()
    connection.close()


def plain_events(path: Path) -> bytes:
    """Return the plain bytes of the events of a ledger that has one segment of them."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT data FROM segment WHERE id < 1 << 20 ORDER BY id")
        frame = b"".join(data for (data,) in rows)
    connection.close()
    return zstandard.ZstdDecompressor().decompressobj().decompress(frame)


def store_plain(path: Path, plain: bytes, *more: str) -> None:
    """Put other plain bytes of events in their place, as a forger would who knows the format."""
    frame = zstandard.ZstdCompressor().compress(plain)
    row = f"(0, {len(plain)}, {part_hash(frame)}, x'{frame.hex()}')"
    forge(path, "DELETE FROM segment", f"INSERT INTO segment VALUES {row}", *more)
