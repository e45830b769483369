"""docs/format.md: its schema, its table of events and its example are what the code does."""

import hashlib
import json
import re
import sqlite3
import struct
from pathlib import Path

import pytest
import xxhash
import zstandard

from ledger import LedgerView, schema
from ledger import events as ev
from ledger.events.base import CUT
from ledger.segment import part_hash
from tests.docs.example_ledger import write_example
from tests.ledger_checks import check_ledger

FORMAT = (Path(__file__).resolve().parents[2] / "docs" / "format.md").read_text(encoding="utf-8")


def block(label: str) -> str:
    """The content of the code block with this label."""
    (content,) = re.findall(rf"^```{label}\n(.*?)^```$", FORMAT, re.MULTILINE | re.DOTALL)
    return str(content)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example") / "ledger.sqlite"
    write_example(path)
    return path


class Reader:
    """A reader written from the page alone, with nothing of the project's."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)

    def plain(self, table: str, segment: int) -> bytes:
        rows = self._database.execute(
            f"SELECT plain, hash, data FROM {table} WHERE id >> 20 = ? ORDER BY id", (segment,)
        ).fetchall()
        for _, checksum, data in rows:
            assert xxhash.xxh3_64_intdigest(data) == checksum % 2**64
        frame = zstandard.ZstdDecompressor().decompressobj()
        plain = frame.decompress(b"".join(data for _, _, data in rows))
        assert len(plain) == rows[-1][0]
        return plain

    def events(self) -> list[tuple[bytes, bytes]]:
        found = []
        for seq, segment, offset in self._database.execute("SELECT * FROM event ORDER BY seq"):
            plain = self.plain("segment", segment)[offset:]
            (task,) = struct.unpack_from(">H", plain, 96)
            head = plain[: 98 + (0 if task == 0xFFFF else task)]
            number, length = (
                *struct.unpack_from(">Q", head, 20),
                *struct.unpack_from(">Q", head, 56),
            )
            body = plain[len(head) : len(head) + length]
            assert (number, hashlib.sha256(body).digest()) == (seq, head[64:96])
            found.append((head, body))
        return found

    def piece(self, digest: str) -> bytes:
        segment, offset, length = self._database.execute(
            "SELECT seg, off, len FROM blob WHERE digest = ?", (bytes.fromhex(digest),)
        ).fetchone()
        data = self.plain("blobsegment", segment)[offset : offset + length]
        assert hashlib.sha256(data).hexdigest() == digest
        return data

    def close(self) -> None:
        self._database.close()


def root_of(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"\x01" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def test_a_reader_written_from_the_page_alone_reads_a_ledger(path: Path) -> None:
    reader = Reader(path)
    events = reader.events()
    envelope = json.loads(events[1][1])["payload"][1]["$acl"]
    leaves = [hashlib.sha256(b"\x00" + head).digest() for head, _ in events]
    assert envelope[0] == "text"
    assert "".join(reader.piece(d).decode() for d in envelope[1]) + envelope[2] == "a" * 4096 + "b"
    assert [leaf.hex() for leaf in leaves] == block("text leaves").split()
    assert root_of(leaves).hex() == block("text roots").split()[-1]
    reader.close()


@pytest.mark.parametrize("seq", [0, 1, 2])
def test_headers_and_bodies_of_the_example_are_those_of_the_ledger(path: Path, seq: int) -> None:
    with LedgerView.open(path) as view:
        head, body = view.raw(seq)
    assert bytes.fromhex(block(f"hex header {seq}")) == head
    assert block(f"json body {seq}") == body.decode() + "\n"
    if seq == 0:
        assert f"its body, {len(body)} bytes" in FORMAT.lower()


def test_tree_and_checkpoint_of_the_example_are_those_of_the_ledger(path: Path) -> None:
    with LedgerView.open(path) as view:
        assert block("text leaves").split() == [e.leaf.hex() for e in view.events()]
        assert block("text roots").split() == [view.root(size).hex() for size in (1, 2, 3)]
        ((size, text),) = view.checkpoints()
        rows = list(view.source.query("SELECT seq, seg, off FROM event"))
        blobs = list(view.source.query("SELECT id, seg, off, len FROM blob"))
    assert (size, text) == (3, block("text checkpoint"))
    assert path.with_name("ledger.checkpoint.unsigned").read_bytes() == text.encode()
    assert f"whose `hash` is {part_hash(text.encode())}" in FORMAT
    assert [tuple(map(int, line.split())) for line in block("text rows").splitlines()] == rows
    assert blobs == [(0, 0, 0, 4096)]
    check_ledger(path)


def test_the_schema_is_written_down_word_for_word() -> None:
    written = [" ".join(statement.split()) for statement in block("sql").split("\n\n")]
    spelled_out = [s for s in schema.STATEMENTS if s not in schema.CHANGE_TRIGGERS]
    spelled_out += [schema.INDEX, *schema.CHANGE_TRIGGERS[:2]]
    assert written == spelled_out
    others = [s.replace("event", table) for table in TABLES for s in schema.CHANGE_TRIGGERS[:2]]
    assert others == list(schema.CHANGE_TRIGGERS[2:])


TABLES = ("segment", "blob", "blobsegment", "erasure", "checkpoint")


def row_of(code: int) -> str:
    model = ev.BY_CODE[code]
    fields = [
        name + "?" * (not field.is_required()) + "*" * (CUT in field.metadata)
        for name, field in model.model_fields.items()
        if name not in ("type", "task", "attempt", "lease", "redactions")
    ]
    scope = "–"
    if issubclass(model, ev.TaskEvent):
        scope = "attempt" if issubclass(model, ev.AttemptEvent) else "task"
    return (
        f"| {code} | `{ev.TYPE_NAMES[code]}` | {model.v} | {scope} | {', '.join(fields) or '–'} |"
    )


@pytest.mark.parametrize("code", sorted(ev.BY_CODE))
def test_each_event_type_is_in_the_table_with_its_fields(code: int) -> None:
    assert row_of(code) in FORMAT.splitlines()


@pytest.mark.parametrize(
    "part",
    [
        ev.Claim,
        ev.ErrorInfo,
        ev.TaskRef,
        ev.Repo,
        ev.Unplaced,
        ev.ReducerUse,
        ev.Artifact,
        ev.Evaluator,
        ev.Issue,
        ev.Usage,
    ],
)
def test_each_object_inside_an_event_is_listed_with_its_fields(part: type[ev.Event]) -> None:
    # A field whose default is not None is always there.
    fields = ", ".join(
        name + "?" * (not field.is_required() and field.default is None)
        for name, field in part.model_fields.items()
    )
    assert f"{{{fields}}}" in FORMAT
