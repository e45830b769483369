"""Files of an import as they go into the ledger: through the redaction gate, else byte for byte."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
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
    text = data.decode("utf-8", "surrogateescape")
    if path.endswith(SUFFIXES) if lines is None else lines:
        kept, count = _by_line(text, gate)
    else:
        kept, count = _by_value(text, gate) or gate.redact_text(text)
    return (kept.encode("utf-8", "surrogateescape"), count) if count else (data, 0)


def _by_line(text: str, gate: Gate) -> tuple[str, int]:
    total = 0
    kept = []
    for line in text.split("\n"):
        line_kept, count = _by_value(line, gate) or gate.redact_text(line)
        total += count
        kept.append(line_kept)
    return "\n".join(kept), total


def _by_value(text: str, gate: Gate) -> tuple[str, int] | None:
    """Redact a JSON text in the layout of its writer; None if no known writer gives this text."""
    if not text.lstrip(" \t\r\n").startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
        writer = next((write for write in _writers(text) if write(value) == text), None)
    except (ValueError, RecursionError):
        return None
    if writer is None:
        return None
    kept, count = gate.redact(value)
    return (writer(kept), count) if count else (text, 0)


def _writers(text: str) -> Iterator[Callable[[object], str]]:
    """The options of json.dump that can have given a text, as functions that write with them.

    Lines of a JSON lines file come without their end.
    """
    indented = _INDENT.match(text)
    indent = None if indented is None else len(indented[1])
    end = "\n" if text.endswith("\n") else ""
    for ascii_only in (False, True) if text.isascii() else (False,):
        yield partial(_write, indent=indent, ascii_only=ascii_only, end=end)
        if "\\u" not in text:
            # Without escapes both ways are one.
            return


def _write(value: object, *, indent: int | None, ascii_only: bool, end: str) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only) + end


_INDENT: Final = re.compile(r"[\[{]\n( {2}| {4})[^ ]")
