import random
from collections.abc import Iterable, Iterator

import pytest
import xxhash
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import LedgerDamaged
from ledger.segment import (
    AT_REST,
    RUNNING,
    Packing,
    Part,
    SegmentReader,
    SegmentWriter,
    decompress,
    part_hash,
)

PACKINGS = pytest.mark.parametrize("packing", [RUNNING, AT_REST], ids=["running", "at-rest"])
LIMIT = RUNNING.segment_bytes


class Table:
    """A segment table in memory, with the number of queries that it saw."""

    def __init__(self) -> None:
        self.rows: dict[int, Part] = {}
        self.queries = 0

    def store(self, parts: Iterable[Part]) -> None:
        self.rows |= {part.id: part for part in parts}

    def query(self, sql: str, args: tuple[int, ...]) -> list[tuple[object, ...]]:
        self.queries += 1
        first, last = args
        return [tuple(self.rows[key]) for key in sorted(self.rows) if first <= key <= last]

    def reader(self) -> SegmentReader:
        return SegmentReader(self.query, "segment")


@given(st.lists(st.lists(st.binary(min_size=1, max_size=3000), max_size=5), max_size=20))
@settings(max_examples=50, deadline=None)
def test_records_of_all_commits_come_back_from_where_they_were_put(
    commits: list[list[bytes]],
) -> None:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    places = []
    for records in commits:
        places += [(record, writer.write(record)) for record in records]
        table.store(writer.flush())
    reader = table.reader()
    for record, (segment, offset) in places:
        assert reader.read(segment, offset, len(record)) == record


@PACKINGS
def test_records_stand_end_to_end_and_never_cross_a_segment(packing: Packing) -> None:
    writer, limit = SegmentWriter(7, packing), packing.segment_bytes
    expected = (7, 0)
    for size in [1000, limit - 2000, 1000, 1, 500, limit, 3 * limit, 10]:
        segment, offset = writer.write(bytes(size))
        assert (segment, offset) in (expected, (expected[0] + 1, 0))
        assert offset + size <= limit or offset == 0
        expected = (segment, offset + size)


@PACKINGS
def test_a_segment_is_full_at_its_limit_and_a_larger_record_has_its_own(packing: Packing) -> None:
    writer, limit = SegmentWriter(0, packing), packing.segment_bytes
    assert writer.write(bytes(limit - 1)) == (0, 0)
    assert writer.write(bytes(1)) == (0, limit - 1)
    assert writer.write(bytes(2 * limit)) == (1, 0)
    assert writer.write(bytes(1)) == (2, 0)


def test_a_commit_adds_one_part_to_the_open_frame() -> None:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    for n in range(3):
        writer.write(b"record %d" % n)
        table.store(writer.flush())
    assert sorted(table.rows) == [0, 1, 2]
    assert [row.plain for row in table.rows.values()] == [8, 16, 24]
    assert writer.flush() == []


@PACKINGS
def test_a_finished_segment_is_one_whole_zstd_frame(packing: Packing) -> None:
    table, writer, limit = Table(), SegmentWriter(0, packing), packing.segment_bytes
    records = [random.Random(n).randbytes(1000) * 4 for n in range(limit // 2500)]
    for record in records:
        writer.write(record)
        table.store(writer.flush())
    frame = b"".join(row.data for key, row in sorted(table.rows.items()) if key >> 20 == 0)
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(frame)
    assert b"".join(records).startswith(plain)
    assert limit - 4000 < len(plain) <= limit
    params = zstandard.get_frame_parameters(frame)
    assert params.window_size <= 8 * 1024 * 1024


def test_what_is_alike_in_different_commits_is_stored_once() -> None:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    record = random.Random(1).randbytes(4000)
    for _ in range(20):
        writer.write(record)
        table.store(writer.flush())
    assert sum(len(row.data) for row in table.rows.values()) < 2 * len(record)


def test_a_reader_sees_what_was_committed_after_it_first_read() -> None:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    reader = table.reader()
    writer.write(b"first")
    table.store(writer.flush())
    assert reader.read(0, 0, 5) == b"first"
    with pytest.raises(LedgerDamaged):
        reader.read(0, 5, 6)
    writer.write(b"second")
    table.store(writer.flush())
    assert reader.read(0, 5, 6) == b"second"


def test_a_segment_is_loaded_once_for_many_records() -> None:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    for n in range(100):
        writer.write(b"%3d" % n)
    table.store(writer.flush())
    reader = table.reader()
    assert [reader.read(0, 3 * n, 3) for n in range(100)] == [b"%3d" % n for n in range(100)]
    assert table.queries == 1


def test_cached_segments_are_bounded() -> None:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    for _ in range(100):
        writer.write(bytes(LIMIT))
    table.store(writer.flush())
    reader = table.reader()
    for segment in range(100):
        reader.read(segment, 0, 1)
    assert reader._cached == sum(len(one.plain) for one in reader._cache.values())
    assert reader._cached <= 16 * 1024 * 1024


def test_the_read_check_is_xxh3_as_a_signed_integer() -> None:
    for data in (b"", b"a", b"abc", bytes(100)):
        assert part_hash(data) % 2**64 == xxhash.xxh3_64(data).intdigest()
        assert -(2**63) <= part_hash(data) < 2**63


@pytest.fixture
def three_parts() -> Table:
    table, writer = Table(), SegmentWriter(0, RUNNING)
    for n in range(3):
        writer.write(b"record %d" % n)
        table.store(writer.flush())
    return table


def test_each_flipped_bit_of_a_part_is_noticed(three_parts: Table) -> None:
    for key, row in list(three_parts.rows.items()):
        for place in range(8 * len(row.data)):
            data = bytearray(row.data)
            data[place // 8] ^= 1 << place % 8
            three_parts.rows[key] = row._replace(data=bytes(data))
            reader = three_parts.reader()
            for n in range(3):
                if n < key:
                    assert reader.read(0, 8 * n, 8) == b"record %d" % n
                else:
                    with pytest.raises(LedgerDamaged, match=f"part {key} fails its check"):
                        reader.read(0, 8 * n, 8)
        three_parts.rows[key] = row


def test_a_missing_part_is_noticed(three_parts: Table) -> None:
    del three_parts.rows[1]
    assert three_parts.reader().read(0, 0, 8) == b"record 0"
    with pytest.raises(LedgerDamaged, match="out of order"):
        three_parts.reader().read(0, 8, 8)


def test_a_wrong_count_of_plain_bytes_is_noticed(three_parts: Table) -> None:
    for wrong in (16, 23, 25, 1 << 40, -1):
        rows = dict(three_parts.rows)
        rows[2] = rows[2]._replace(plain=wrong)
        table = Table()
        table.store(rows.values())
        assert table.reader().read(0, 8, 8) == b"record 1"
        with pytest.raises(LedgerDamaged):
            table.reader().read(0, 16, 8)


@pytest.mark.parametrize("parts", [1, 2, 3, 50])
def test_a_part_that_passes_its_check_and_cannot_be_decompressed_hides_only_what_follows(
    parts: int,
) -> None:
    for damaged in {0, parts // 2, parts - 1}:
        table, writer = Table(), SegmentWriter(0, RUNNING)
        for n in range(parts):
            writer.write(b"record%2d" % n)
            table.store(writer.flush())
        garbage = b"\xff" * len(table.rows[damaged].data)
        table.rows[damaged] = table.rows[damaged]._replace(data=garbage, hash=part_hash(garbage))
        reader = table.reader()
        for n in range(parts):
            if n < damaged:
                assert reader.read(0, 8 * n, 8) == b"record%2d" % n
            else:
                with pytest.raises(LedgerDamaged):
                    reader.read(0, 8 * n, 8)


def test_a_row_that_cannot_be_read_hides_only_what_follows(three_parts: Table) -> None:
    def query(sql: str, args: tuple[int, ...]) -> Iterator[tuple[object, ...]]:
        yield from three_parts.query(sql, args)[:2]
        raise LedgerDamaged("the page is malformed")

    reader = SegmentReader(query, "segment")
    assert reader.read(0, 8, 8) == b"record 1"
    with pytest.raises(LedgerDamaged, match="the page is malformed"):
        reader.read(0, 16, 8)


def test_more_stored_bytes_than_a_segment_can_need_are_not_joined() -> None:
    table = Table()
    data = bytes(100_000)
    table.store([Part(0, 10, part_hash(data), data)])
    with pytest.raises(LedgerDamaged, match="holds more than it says"):
        table.reader().read(0, 0, 8)


def test_a_bomb_gives_no_more_than_it_said_it_would() -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(300_000_000))
    with pytest.raises(LedgerDamaged, match="more than its 1000 bytes"):
        decompress(bomb, 1000, "x")


def test_a_frame_that_wants_a_huge_window_is_refused() -> None:
    params = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    frame = zstandard.ZstdCompressor(compression_params=params).compressobj()
    data = frame.compress(random.Random(0).randbytes(100_000)) + frame.flush()
    assert zstandard.get_frame_parameters(data).window_size == 1 << 27
    with pytest.raises(LedgerDamaged, match="cannot be decompressed"):
        decompress(data, 100_000, "x")


@pytest.mark.parametrize(
    "place", [(-1, 0, 1), (0, -1, 4), (0, 0, 25), (0, 5, -1), (1 << 43, 0, 1), (9, 0, 1)]
)
def test_places_outside_are_damage(three_parts: Table, place: tuple[int, int, int]) -> None:
    with pytest.raises(LedgerDamaged):
        three_parts.reader().read(*place)
