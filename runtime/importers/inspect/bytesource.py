"""One file of a source, read in pieces: logs can be larger than memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ledger.errors import UsageError
from runtime.importers.source import Source, SourceFile

CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ByteSource:
    """A file that was hashed when its source was opened."""

    source: Source
    file: SourceFile

    @property
    def path(self) -> Path:
        """Where the file stands now."""
        root = self.source.root
        return root / self.file.path if root.is_dir() else root

    def open(self) -> BinaryIO:
        """The file, for reading; UsageError if it cannot be read any more."""
        try:
            return self.path.open("rb")
        except OSError as error:
            raise UsageError(f"{self.file.path} cannot be read: {error.strerror}") from None

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`; fewer where the file is shorter by now."""
        with self.open() as stream:
            stream.seek(start)
            return stream.read(end - start)

    def check(self) -> None:
        """UsageError if the file is another one than was hashed."""
        digest = hashlib.sha256()
        with self.open() as stream:
            for chunk in chunks(stream):
                digest.update(chunk)
        if digest.digest() != self.file.sha256:
            raise UsageError(
                f"{self.file.path} changed while it was imported",
                hint="import a log that nobody writes to",
            )


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The rest of the stream, piece by piece."""
    while chunk := stream.read(CHUNK):
        yield chunk
