"""What a sealed ledger holds, as plain bytes, and what parts of it take once compressed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import zstandard

from ledger import canonical
from ledger.codec import decode_event
from ledger.events import OriginalRecorded
from ledger.opening import Source
from ledger.records import Record, Records
from ledger.segment import RUNNING, Packing, SegmentWriter

_LONG: Final = 27


@dataclass(slots=True)
class Held:
    """The content of one ledger; `own` are the pieces that more than kept originals refer to."""

    packing: Packing = RUNNING
    records: list[Record] = field(default_factory=list)
    pieces: dict[bytes, bytes] = field(default_factory=dict)
    own: set[bytes] = field(default_factory=set)

    def payload(self) -> Iterator[bytes]:
        """Every body and every piece, once, as they were stored."""
        yield from self.pieces.values()
        for record in self.records:
            yield record.body or b""

    def compressed(self, *, heads: bool = True, originals: bool = True) -> int:
        """Bytes of both streams, compressed as the ledger does it, in commits of 256 events."""

        def shown(record: Record) -> bytes:
            return (record.head if heads else b"") + (record.body or b"")

        kept = [one for one in self.records if originals or not _is_original(one)]
        pieces = [one for digest, one in self.pieces.items() if originals or digest in self.own]
        return self._stream(map(shown, kept)) + self._stream(pieces)

    def _stream(self, records: Iterable[bytes]) -> int:
        writer, size = SegmentWriter(0, self.packing), 0
        for number, record in enumerate(records, 1):
            writer.write(record)
            if number % 256 == 0:
                size += sum(len(part.data) for part in writer.flush())
        return size + sum(len(part.data) for part in writer.flush())


def hold(path: Path, packing: Packing = RUNNING) -> Held:
    """Read a sealed ledger whole, which was written with this packing."""
    found = Held(packing)
    with closing(Source(path)) as source:
        records = Records(source.query, indexed=source.indexed)
        for digest in records.digests():
            found.pieces[digest] = records.blob(digest)
        for record in records.scan(0, records.size()):
            found.records.append(record)
            if not _is_original(record):
                found.own.update(_pieces_of(record, records.blob))
    return found


def solid(parts: Iterable[bytes]) -> int:
    """Bytes of all parts in one frame of `zstd -19 --long=27`: the smallest, and no way in."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, window_log=_LONG, enable_ldm=True
    )
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return sum(len(frame.compress(part)) for part in parts) + len(frame.flush())


def _is_original(record: Record) -> bool:
    return record.header.code == OriginalRecorded.code


def _pieces_of(record: Record, fetch: Callable[[bytes], bytes]) -> Iterator[bytes]:
    if record.body is not None and canonical.has_envelopes(record.body):
        event = decode_event(record.header, record.body)
        yield from canonical.reachable(dict(event), fetch)
