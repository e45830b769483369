"""How commands speak: documents and tables on stdout, messages and progress on stderr."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

DASH = "-"
Json = Annotated[bool, typer.Option("--json", help="One JSON document (or JSON lines) on stdout.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run directory or a ledger file.")]


class _Reader:
    """Who reads our stdout; once they went away, what is written is dropped.

    The command goes on: what it found out, and so its exit status, does not depend on who reads.
    """

    gone = False

    def write(self, text: str) -> None:
        if self.gone or sys.stdout is None:
            return
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            self.leave()

    def leave(self) -> None:
        self.gone = True
        # What is buffered would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_reader = _Reader()


def flush() -> None:
    """Hand everything written to the reader."""
    if sys.stdout is not None and not _reader.gone:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _reader.leave()


def unread() -> bool:
    """True once nobody reads any more, so that an endless list can end."""
    return _reader.gone


def document(value: Any) -> None:
    """Print one JSON document on one line; what a terminal could take for a command is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not text.isprintable():
        # Such characters, lone surrogates among them, stand within strings only.
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    _reader.write(text + "\n")


def line(text: str = "") -> None:
    """Print one line of text on stdout; control characters of data are shown escaped."""
    _reader.write(printable(text) + "\n")


def raw(data: bytes) -> None:
    """Hand bytes to stdout as they are."""
    flush()
    if sys.stdout is not None and not _reader.gone:
        try:
            sys.stdout.buffer.write(data)
        except BrokenPipeError:
            _reader.leave()


def message(text: str) -> None:
    """Say something on stderr, out of the way of the data."""
    if sys.stderr is not None:
        sys.stderr.write(printable(text) + "\n")


def alarm(text: str) -> None:
    """Say at once that something keeps a run from being recorded; may be called in any thread."""
    message(f"acl: {text}")


def printable(text: str) -> str:
    """`text` with whatever a terminal could take for a command shown as an escape."""
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headers in columns as wide as they need."""
    cells = [[printable("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(headers), *cells]) for i in range(len(headers))]
    for row in [list(headers), *cells]:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _reader.write("  ".join(padded).rstrip() + "\n")


def number(value: float | None) -> str:
    """A metric for people: up to four decimals, a dash for none."""
    if value is None:
        return DASH
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def on_terminal() -> bool:
    """True if progress may be drawn: stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()
