"""JSON lines of a source: where each stands, and which can be what a crash left."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.source import Part, Source, SourceFile

SUFFIXES: Final = (".jsonl", ".ndjson")
BOM: Final = b"\xef\xbb\xbf"

_LETTER: Final = 3
"""Bytes that the front of a letter has at most in UTF-8."""


@dataclass(frozen=True, slots=True)
class Line:
    """Where a line stands, without its end; the number counts from 1."""

    file: SourceFile
    number: int
    part: Part

    @property
    def place(self) -> str:
        """Its file and number, as remarks name it."""
        return f"{self.file.path}:{self.number}"


def lines_of(source: Source, file: SourceFile) -> Iterator[tuple[Line, bytes]]:
    """The lines that are not blank, with the end of line that each has."""
    offset = 0
    for number, line in enumerate(source.lines(file), 1):
        data = line.removeprefix(BOM) if number == 1 else line
        start = offset + len(line) - len(data)
        offset += len(line)
        if data.strip():
            yield Line(file, number, Part.of(start, data.rstrip(b"\r\n"))), data


def why_no_record(data: bytes, fault: NotARecord) -> tuple[str, bool]:
    """What to tell of a line that holds no object, and whether that is damage.

    A crash leaves the front of an object at the end of a file, be it cut within a letter, or
    blocks that were never written. Anything else it cannot leave.
    """
    if not data.endswith(b"\n") and _can_be_torn(data, fault):
        return f"the last line is torn: {fault}", False
    return f"no record: {fault}", True


def _can_be_torn(data: bytes, fault: NotARecord) -> bool:
    if fault.cut and data.lstrip().startswith(b"{"):
        return True
    written = data.rstrip(b"\0")
    if not written.strip():
        return True
    whole = written.decode("utf-8", "ignore").encode()
    lost = len(written) - len(whole)
    if whole == data or not 0 <= lost <= _LETTER or not written.startswith(whole):
        return False
    try:
        read_record(whole)
    except NotARecord as again:
        return again.cut and whole.lstrip().startswith(b"{")
    return False


def few(numbers: list[int], listed: int = 5) -> str:
    """The numbers of lines in words, however many there are."""
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    if len(numbers) <= listed:
        return f"lines {', '.join(map(str, numbers))}"
    return f"{len(numbers)} lines from {numbers[0]} on"
