"""A directory that exports are written to; below it no link is ever followed.

Every path is walked from the open directory with `O_NOFOLLOW`, so that nobody who can plant a link
in it gets a file written or removed elsewhere.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Self

from exporters import OutFile
from exporters.paths import TEMPORARY, checked_path
from exporters.syncing import Syncing
from ledger.closing import Closing, discard
from ledger.errors import ExportRefused

LOCK_WAIT: Final = 30.0
"""Seconds to wait for another exporter."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_POLL: Final = 0.05
_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """A written file: its path, the SHA-256 of its bytes in hex, and how many there are."""

    path: str
    sha256: str
    size: int


class Folder(Closing):
    """An open directory; a context manager. Raises ExportRefused for what a system call refuses."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._touched: set[str] = set()
        self._syncing = Syncing(self._failed)
        # Where a file was created last, path and descriptor: the next one mostly goes there too.
        self._place: tuple[str, int] | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing directory; raises FileNotFoundError where there is nothing."""
        try:
            return cls(path, os.open(path, _DIRECTORY))
        except NotADirectoryError:
            raise ExportRefused(f"{path} is not a directory") from None
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ExportRefused(f"{path} cannot be opened: {error.strerror}") from error

    def close(self) -> None:
        """Close the directory, and with it the lock; what was not synced is not waited for."""
        self._syncing.close()
        self._leave()
        os.close(self._descriptor)

    @contextmanager
    def locked(self, wait: float = LOCK_WAIT) -> Iterator[None]:
        """Keep other exporters out; the lock is on the directory itself and dies with the process.

        Raises ExportRefused after `wait` seconds. Where the file system has no such locks, nobody
        is kept out: a tree that two exporters mixed does not match its manifest.
        """
        until = time.monotonic() + wait
        while not self.try_lock():
            if time.monotonic() >= until:
                raise ExportRefused(
                    f"another export is being written to {self.path}", hint="wait for it to end"
                )
            time.sleep(_POLL)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def try_lock(self) -> bool:
        """Take the lock if nobody has it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no locks here
        return True

    def is_current(self) -> bool:
        """Whether this is still the directory that stands at its path."""
        try:
            with self._refused(""):
                return os.path.samestat(self.path.lstat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def mark(self) -> tuple[int, int, int]:
        """What changes when another directory takes its place, or a name in it is made or goes."""
        with self._refused(""):
            found = os.fstat(self._descriptor)
        return found.st_dev, found.st_ino, found.st_mtime_ns

    def mode(self) -> int:
        """The permission bits of the directory."""
        with self._refused(""):
            return stat.S_IMODE(os.fstat(self._descriptor).st_mode)

    # -- reading --------------------------------------------------------------------------------

    def files(self) -> Iterator[str]:
        """The paths of everything below that is no directory, sorted; temporary names left out."""
        with self._refused(""):
            yield from self._files(self._descriptor, "")

    def _files(self, directory: int, prefix: str) -> Iterator[str]:
        with os.scandir(directory) as found:
            entries = sorted((e.name, e.is_dir(follow_symlinks=False)) for e in found)
        for name, is_directory in entries:
            if name.startswith(TEMPORARY):
                continue
            if not is_directory:
                yield prefix + name
                continue
            below = os.open(name, _DIRECTORY, dir_fd=directory)
            try:
                yield from self._files(below, f"{prefix}{name}/")
            finally:
                os.close(below)

    def names(self) -> frozenset[str]:
        """What stands in the directory itself, directories too."""
        with self._refused(""), os.scandir(self._descriptor) as found:
            return frozenset(entry.name for entry in found)

    def clear_temporaries(self) -> None:
        """Remove what killed exporters left behind; the lock must be held."""
        with self._refused(""):
            self._clear(self._descriptor)

    def _clear(self, directory: int) -> None:
        with os.scandir(directory) as found:
            entries = [(e.name, e.is_dir(follow_symlinks=False)) for e in found]
        for name, is_directory in entries:
            if name.startswith(TEMPORARY):
                if is_directory:
                    discard(name, dir_fd=directory)
                else:
                    os.unlink(name, dir_fd=directory)
            elif is_directory:
                below = os.open(name, _DIRECTORY, dir_fd=directory)
                try:
                    self._clear(below)
                finally:
                    os.close(below)

    @contextmanager
    def reading(self, path: str) -> Iterator[BinaryIO]:
        """Open a regular file; raises FileNotFoundError, and ExportRefused for a link."""
        directory = self._walk(path, make=False)
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            descriptor = self._open(path, flags, directory)
        finally:
            os.close(directory)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ExportRefused(f"{self.path / path} is not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def _open(self, path: str, flags: int, directory: int) -> int:
        try:
            return os.open(path.rpartition("/")[2], flags, 0o666, dir_fd=directory)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._failed(path, error) from error

    def holds(self, path: str) -> bool:
        """Whether something stands at a path."""
        try:
            directory = self._walk(path, make=False)
        except FileNotFoundError:
            return False
        try:
            with self._refused(path):
                os.stat(path.rpartition("/")[2], dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        finally:
            os.close(directory)
        return True

    def digest(self, path: str) -> Entry:
        """Read a file and tell its digest and size."""
        with self.reading(path) as file:
            digest, size = hashlib.sha256(), 0
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        return Entry(path, digest.hexdigest(), size)

    # -- writing --------------------------------------------------------------------------------

    def create(self, file: OutFile) -> Entry:
        """Write a new file; both it and its name are on disk once `sync` has returned.

        Raises ExportRefused where there is one already, and where it cannot be written: then
        nothing of the file is left. That an earlier one cannot be synced is told here or by `sync`.
        """
        path = checked_path(file.path)
        directory = self._enter(path)
        entry, descriptor = self._made(file, path.rpartition("/")[2], directory)
        self._syncing.add(path, descriptor)
        return entry

    def replace(self, file: OutFile, *, durable: bool = True) -> Entry:
        """Put a file in the place of another, or of none, at once.

        Its bytes are on disk, unless `durable` is false: then whoever writes many sees to that.
        """
        path = checked_path(file.path)
        directory = self._touch(path)
        temporary = f"{TEMPORARY}{secrets.token_hex(8)}.tmp"
        try:
            entry, descriptor = self._made(file, temporary, directory)
            try:
                try:
                    if durable:
                        os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                name = path.rpartition("/")[2]
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError as error:
                os.unlink(temporary, dir_fd=directory)
                raise self._failed(path, error) from error
            return entry
        finally:
            os.close(directory)

    def _made(self, file: OutFile, name: str, directory: int) -> tuple[Entry, int]:
        """Write a new file that is left open, or nothing."""
        digest, size = hashlib.sha256(), 0
        chunks = (file.data,) if isinstance(file.data, bytes) else file.data
        try:
            descriptor = os.open(name, _NEW, 0o666, dir_fd=directory)
        except OSError as error:
            raise self._failed(file.path, error) from error
        whole = False
        try:
            for chunk in chunks:
                _write(descriptor, chunk)
                digest.update(chunk)
                size += len(chunk)
            whole = True
        except OSError as error:
            raise self._failed(file.path, error) from error
        finally:
            if not whole:
                os.close(descriptor)
                os.unlink(name, dir_fd=directory)
        return Entry(file.path, digest.hexdigest(), size), descriptor

    def take(self, other: "Folder", path: str) -> None:
        """Move a file here from another folder of the same file system, in place of an old one.

        A directory is moved with all below it, where there is none yet.
        """
        other._leave()
        source = other._walk(checked_path(path), make=False)
        try:
            directory = self._touch(path)
            try:
                name = path.rpartition("/")[2]
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=directory)
            except OSError as error:
                raise self._failed(path, error) from error
            finally:
                os.close(directory)
        finally:
            os.close(source)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens where there is none."""
        try:
            directory = self._walk(checked_path(path), make=False)
        except FileNotFoundError:
            return
        try:
            with suppress(FileNotFoundError):
                os.unlink(path.rpartition("/")[2], dir_fd=directory)
                self._touched.add(path.rpartition("/")[0])
        except OSError as error:
            raise self._failed(path, error) from error
        finally:
            os.close(directory)

    def remove_tree(self, name: str) -> None:
        """Remove a directory that stands in this one, with all below it."""
        self._leave()
        try:
            shutil.rmtree(checked_path(name), dir_fd=self._descriptor)
            self._touched.add("")
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed(name, error) from error

    def sync(self) -> None:
        """Have all that was created, and every name that was made, moved or removed, on disk."""
        self._leave()
        self._syncing.settle()
        for parent in sorted(self._touched):
            self._syncing.add(parent, self._walk(f"{parent}/." if parent else ".", make=False))
        self._syncing.settle()
        self._touched.clear()

    def sync_self(self) -> None:
        """Have the names in the directory itself on disk."""
        self._touched.add("")
        self.sync()

    def _enter(self, path: str) -> int:
        """The directory of a file that is about to be created, making it; it is left open."""
        parent = path.rpartition("/")[0]
        if self._place is None or self._place[0] != parent:
            self._leave()
            self._place = parent, self._walk(path, make=True)
        self._touched.add(parent)
        return self._place[1]

    def _leave(self) -> None:
        if self._place is not None:
            os.close(self._place[1])
            self._place = None

    def _touch(self, path: str) -> int:
        """Open the directory of a file that is about to be written, making it."""
        directory = self._walk(path, make=True)
        self._touched.add(path.rpartition("/")[0])
        return directory

    def _walk(self, path: str, *, make: bool) -> int:
        """Open the directory that `path` stands in."""
        *parts, _ = path.split("/")
        with self._refused(path):
            directory = os.dup(self._descriptor)
        try:
            for position, part in enumerate(parts):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=directory)
                        self._touched.add("/".join(parts[:position]))
                below = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = below
        except FileNotFoundError:
            os.close(directory)
            raise
        except OSError as error:
            os.close(directory)
            raise self._failed(path, error) from error
        return directory

    @contextmanager
    def _refused(self, path: str) -> Iterator[None]:
        """Raise ExportRefused for what the system refuses meanwhile, unless there is nothing."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._failed(path, error) from error

    def _failed(self, path: str, error: OSError) -> ExportRefused:
        return ExportRefused(
            f"{self.path / path}: {error.strerror}",
            hint="what stood there before is intact; make room, or name another directory",
        )


def _write(descriptor: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[os.write(descriptor, left) :]
