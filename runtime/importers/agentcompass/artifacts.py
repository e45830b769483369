"""The files that an attempt left: one event for all of them, within a bound of memory."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ledger import events as ev
from ledger.canonical import Binary
from runtime.importers.originals import MIN_DIGESTED
from runtime.importers.plan import Item, Original
from runtime.importers.source import Source, SourceFile

MAX_BYTES: Final = 64 * 1024 * 1024
"""Content in one event; files beyond it are kept one by one, as originals."""
_DIRECTORY: Final = "/artifacts/"


def collected(
    source: Source, task: str, attempt: int, files: Sequence[SourceFile]
) -> Iterator[Item]:
    """`artifacts.collected` with as many contents as fit, and every file as an original."""
    contents: dict[str, Any] = {}
    inside: set[str] = set()
    room = MAX_BYTES
    for file in files:
        if file.size <= room:
            room -= file.size
            inside.add(file.path)
            contents[_inner(file)] = _content(source.read(file))
    yield ev.ArtifactsCollected(
        task=task,
        attempt=attempt,
        artifacts=tuple(
            ev.Artifact(
                path=_inner(file),
                bytes=file.size,
                sha256=file.sha256.hex() if file.size >= MIN_DIGESTED else None,
            )
            for file in files
        ),
        contents=contents,
        truncated=len(inside) < len(files),
    )
    for file in files:
        yield Original(file, task, attempt, repeated=file.path in inside)


def _inner(file: SourceFile) -> str:
    return file.path.partition(_DIRECTORY)[2]


def _content(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Binary(data)
