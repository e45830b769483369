"""What a witness saw last of each log: one file a log, replaced durably before it answers."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger import note, sidefile
from ledger.errors import LedgerDamaged, ProofInvalid, UsageError


class WitnessStore:
    """The latest checkpoint of each origin, with its signatures, in `directory`.

    Several processes may share one directory. UsageError if it cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            sidefile.sync_directory(directory)
        except OSError as error:
            raise UsageError(f"cannot write to {directory}: {error.strerror}") from error

    @contextmanager
    def locked(self, origin: str) -> Iterator["Slot"]:
        """Hold the slot of one log: nobody else reads or replaces it meanwhile."""
        path = self._directory / _name(origin)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(path.with_suffix(".lock"), flags, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield Slot(path)
        finally:
            os.close(file)

    def latest(self, name: str) -> bytes | None:
        """Return the latest checkpoint of the log whose origin has the SHA-256 `name`, in hex."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None


class Slot:
    """What is kept of one log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> note.Checkpoint | None:
        """Return the latest checkpoint, if there was any.

        LedgerDamaged if what is kept cannot be read: then nothing may be signed.
        """
        try:
            return note.parse_checkpoint(note.parse_note(self._path.read_bytes()).text)
        except FileNotFoundError:
            return None
        except ProofInvalid as error:
            raise LedgerDamaged(f"{self._path} holds no checkpoint: {error.message}") from error

    def replace(self, signed: bytes) -> None:
        """Keep this checkpoint as the latest; return once that is durable."""
        sidefile.replace(self._path, signed)


def _name(origin: str) -> str:
    return hashlib.sha256(origin.encode()).hexdigest()
