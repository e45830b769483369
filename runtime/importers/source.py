"""The files of a foreign run: found, hashed and read, and never written.

Links and special files below the root are named and left alone: what they lead to is no part of
the run, and opening a pipe would wait for ever.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import UsageError

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One regular file: `path` is relative, with slashes.

    A name that is not UTF-8 keeps its bytes as lone surrogates.
    """

    path: str
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a file that were read once, to be read again: `sha256` is of these bytes."""

    offset: int
    size: int
    sha256: bytes

    @classmethod
    def of(cls, offset: int, data: bytes) -> "Part":
        """The part that `data` is."""
        return cls(offset, len(data), hashlib.sha256(data).digest())


@dataclass(frozen=True, slots=True)
class Source:
    """A directory (or one file) at the time it was hashed; only `open` makes one.

    `files` are sorted by the bytes of their paths, `skipped` names what is not a regular file.
    """

    root: Path
    files: tuple[SourceFile, ...]
    skipped: tuple[tuple[str, str], ...]

    @classmethod
    def open(cls, root: Path) -> "Source":
        """Find and hash every file; UsageError if there is nothing to read."""
        try:
            found = sorted(_walk(root), key=lambda entry: os.fsencode(entry[0]))
            files = [_hashed(root, name) for name, why in found if not why]
        except OSError as error:
            raise UsageError(f"{error.filename or root} cannot be read: {error.strerror}") from None
        skipped = [(name, why) for name, why in found if why]
        return cls(root, tuple(files), tuple(skipped))

    @property
    def identity(self) -> str:
        """SHA-256 in hex over the sorted (relative path, SHA-256 of the bytes) of all files.

        Each adds its path, a NUL and 32 bytes. The name of the directory itself is no part of it,
        nor is that of a source that is one file: its path below itself is empty.
        """
        digest = hashlib.sha256()
        is_directory = self.root.is_dir()
        for file in self.files:
            path = os.fsencode(file.path) if is_directory else b""
            digest.update(path + b"\0" + file.sha256)
        return digest.hexdigest()

    def lines(self, file: SourceFile) -> Iterator[bytes]:
        """The lines of a file with their ends, one after another.

        UsageError, once all were given, if they are not the bytes that were hashed.
        """
        digest = hashlib.sha256()
        try:
            with _place(self.root, file.path).open("rb") as stream:
                for line in stream:
                    digest.update(line)
                    yield line
        except OSError as error:
            raise UsageError(f"{file.path} cannot be read: {error.strerror}") from None
        if digest.digest() != file.sha256:
            raise _changed(file)

    def read_part(self, file: SourceFile, part: "Part") -> bytes:
        """Some bytes of a file; UsageError if they are others by now."""
        try:
            with _place(self.root, file.path).open("rb") as stream:
                stream.seek(part.offset)
                data = stream.read(part.size)
        except OSError as error:
            raise UsageError(f"{file.path} cannot be read: {error.strerror}") from None
        if hashlib.sha256(data).digest() != part.sha256:
            raise _changed(file)
        return data

    def read(self, file: SourceFile) -> bytes:
        """The bytes that were hashed; UsageError if the file is another one by now."""
        try:
            data = _place(self.root, file.path).read_bytes()
        except OSError as error:
            raise UsageError(f"{file.path} cannot be read: {error.strerror}") from None
        if hashlib.sha256(data).digest() != file.sha256:
            raise _changed(file)
        return data


def _changed(file: SourceFile) -> UsageError:
    return UsageError(
        f"{file.path} changed while it was imported", hint="import a run that has stopped"
    )


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Every file below `root` as (relative path, why it is left alone or nothing)."""
    if not root.is_dir():
        if not root.is_file():
            hint = "name the directory of a run"
            if root.exists():
                raise UsageError(f"{root} is neither a directory nor a regular file", hint=hint)
            raise UsageError(f"there is nothing at {root}", hint=hint)
        yield root.name, ""
        return
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(_place(root, prefix)) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                else:
                    yield path, _why_skipped(entry)


def _why_skipped(entry: os.DirEntry[str]) -> str:
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISREG(mode):
        return ""
    return "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"


def _hashed(root: Path, path: str) -> SourceFile:
    digest = hashlib.sha256()
    size = 0
    with _place(root, path).open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return SourceFile(path, size, digest.digest())


def _place(root: Path, path: str) -> Path:
    return root / path if root.is_dir() else root
