"""Files of an import as they go into the ledger: through the redaction gate, else byte for byte."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Final, Protocol

from ledger import events as ev
from ledger.canonical import Binary
from runtime.importers.lines import SUFFIXES
from runtime.importers.source import Source, SourceFile

MIN_DIGESTED: Final = 1024
"""Bytes from which on the digest of an original is told: one of less could be guessed."""

PART: Final = 4 * 1024 * 1024
"""Bytes from which on the file of JSON lines is kept in parts of whole lines."""


class Gate(Protocol):
    """The part of `runtime.redact.Redactor` that is used."""

    def redact(self, value: object) -> tuple[object, int]:
        """The value without secrets, and how many there were."""

    def redact_text(self, text: str) -> tuple[str, int]:
        """The text without secrets, and how many there were."""


def original_events(
    source: Source,
    file: SourceFile,
    gate: Gate | None,
    *,
    task: str | None = None,
    attempt: int | None = None,
) -> Iterator[ev.OriginalRecorded]:
    """The events that keep a file: one, or for many JSON lines one without content and its parts.

    The path of a part ends in `#bytes=FIRST-LAST`; the parts in order are the whole file.
    """
    if file.size < PART or not file.path.endswith(SUFFIXES):
        data = source.read(file)
        yield original(file.path, data, file.sha256, gate, task=task, attempt=attempt)
        return
    yield ev.OriginalRecorded(
        task=task, attempt=attempt, path=file.path, bytes=file.size, sha256=file.sha256.hex()
    )
    offset = 0
    for data in _parts(source, file):
        path = f"{file.path}#bytes={offset}-{offset + len(data) - 1}"
        digest = hashlib.sha256(data).digest()
        yield original(path, data, digest, gate, task=task, attempt=attempt, lines=True)
        offset += len(data)


def _parts(source: Source, file: SourceFile) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for line in source.lines(file):
        if lines and size + len(line) > PART:
            yield b"".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    yield b"".join(lines)


def original(
    path: str,
    data: bytes,
    digest: bytes,
    gate: Gate | None,
    *,
    task: str | None = None,
    attempt: int | None = None,
    lines: bool | None = None,
) -> ev.OriginalRecorded:
    """The event that keeps a file: its bytes, or what the gate left of its text.

    UTF-8 is held as text, which compresses beside the events that repeat it; all else as Binary.
    `gate` None keeps the bytes whatever they hold, as Binary, which no other gate looks into.
    `redactions` is set when something was replaced; `digest` is the SHA-256 of `data`. `lines`
    says that these are JSON lines; by default the name does.
    """
    kept, count = (data, 0) if gate is None else redact_bytes(path, data, gate, lines=lines)
    return ev.OriginalRecorded(
        task=task,
        attempt=attempt,
        path=path,
        bytes=len(data),
        sha256=digest.hex() if len(data) >= MIN_DIGESTED else None,
        content=Binary(kept) if gate is None else _text_or_binary(kept),
        redactions=count or None,
    )


def original_bytes(content: object) -> bytes:
    """The bytes that the content of an `original.recorded` stands for; it must be resolved."""
    if isinstance(content, Binary):
        return content.data
    assert isinstance(content, str), "an original is text or Binary"
    return content.encode("utf-8")


def _text_or_binary(data: bytes) -> str | Binary:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Binary(data)


def redact_bytes(
    path: str, data: bytes, gate: Gate, *, lines: bool | None = None
) -> tuple[bytes, int]:
    """The bytes without secrets, and how many there were; the same bytes if there were none.

    JSON is redacted value by value, since an escape in the text can hide a key, and is written
    again in the layout it had. Bytes that are not UTF-8 pass through unchanged around what is
    replaced.
    """
    if path.endswith(SUFFIXES) if lines is None else lines:
        return _by_line(data, gate)
    kept, count = _redact_part(memoryview(data), gate)
    return (kept, count) if isinstance(kept, bytes) else (data, 0)


def _by_line(data: bytes, gate: Gate) -> tuple[bytes, int]:
    total = 0
    kept: list[bytes | memoryview] = []
    view = memoryview(data)
    begin = 0
    while begin <= len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        line, count = _redact_part(view[begin:end], gate)
        total += count
        kept.append(line)
        begin = end + 1
    return (b"\n".join(kept), total) if total else (data, 0)


def _redact_part(data: memoryview, gate: Gate) -> tuple[bytes | memoryview, int]:
    """Some bytes without secrets; those that were given, and no copy, if there were none."""
    text = str(data, "utf-8", "surrogateescape")
    kept, count = _by_value(text, gate) or gate.redact_text(text)
    return (kept.encode("utf-8", "surrogateescape"), count) if count else (data, 0)


def _by_value(text: str, gate: Gate) -> tuple[str, int] | None:
    """Redact a JSON text in the layout of its writer; None if no known writer gives this text."""
    if not text.lstrip(" \t\r\n").startswith(("{", "[")):
        return None
    layouts = list(_layouts(text))
    if not layouts:
        return None
    try:
        value = json.loads(text)
        layout = next((one for one in layouts if one.gives(value, text)), None)
    except (ValueError, RecursionError):
        return None
    if layout is None:
        return None
    kept, count = gate.redact(value)
    return (layout.write(kept), count) if count else (text, 0)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The options of json.dump, and what stands behind the value."""

    indent: int | None
    ascii_only: bool
    end: str

    def write(self, value: object) -> str:
        """The text of a value in this layout."""
        if self.indent is None:
            return json.dumps(value, ensure_ascii=self.ascii_only) + self.end
        # Its many small pieces are never there at once, as they would be in json.dumps.
        text = StringIO()
        json.dump(value, text, indent=self.indent, ensure_ascii=self.ascii_only)
        text.write(self.end)
        return text.getvalue()

    def gives(self, value: object, text: str) -> bool:
        """Whether `text` is what `write` gives, found out piece by piece."""
        if self.indent is None:
            return self.write(value) == text
        at = 0
        encoder = json.JSONEncoder(indent=self.indent, ensure_ascii=self.ascii_only)
        for piece in encoder.iterencode(value):
            if not text.startswith(piece, at):
                return False
            at += len(piece)
        return text[at:] == self.end


def _layouts(text: str) -> Iterator[_Layout]:
    """The layouts that can have given a text.

    Lines of a JSON lines file come without their end.
    """
    indented = _INDENT.match(text)
    indent = None if indented is None else len(indented[1])
    end = "\n" if text.endswith("\n") else ""
    if indent is None and text.find("\n", 0, len(text) - len(end)) >= 0:
        # Without indent all is one line: no need to read it.
        return
    for ascii_only in (False, True) if text.isascii() else (False,):
        yield _Layout(indent, ascii_only, end)
        if "\\u" not in text:
            # Without escapes both ways are one.
            return


_INDENT: Final = re.compile(r"[\[{]\n( {2}| {4})[^ ]")
