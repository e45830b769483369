"""The latest checkpoint, kept in a file of its own beside the ledger.

`ledger.checkpoint` holds a signed note; `ledger.checkpoint.unsigned`, when there is no key, the
bare text of the checkpoint. Either is written after the commit that it covers, so a ledger with
fewer events than its side file names was rolled back, or copied without its -wal.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger import note
from ledger.errors import LedgerDamaged, ProofInvalid
from ledger.lock import NO_FILE
from ledger.refusals import told_as_failure

_MOST_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Claim:
    """A checkpoint and the note that it is the text of; `signed` is None if it stands alone."""

    checkpoint: note.Checkpoint
    signed: note.SignedNote | None

    def is_of(self, ledger_id: bytes) -> bool:
        """Tell whether the origin is that of this ledger, under the name of who signed."""
        if self.signed is None:
            return self.checkpoint.origin == note.unsigned_origin(ledger_id)
        names = {line.name for line in self.signed.signatures}
        return self.checkpoint.origin in {signed_origin(name, ledger_id) for name in names}


@dataclass(frozen=True, slots=True)
class Beside:
    """A checkpoint found beside a ledger."""

    path: Path
    data: bytes
    claim: Claim


def paths(ledger: Path) -> tuple[Path, Path]:
    """Where the side files of a ledger file are: the signed one, the unsigned one."""
    return ledger.with_suffix(".checkpoint"), ledger.with_suffix(".checkpoint.unsigned")


def signed_origin(name: str, ledger_id: bytes) -> str:
    """Return the origin of a ledger whose checkpoints the key `name` signs."""
    return f"acl/{name}/{ledger_id.hex()}"


def parse(data: bytes) -> Claim:
    """Read a signed note or the bare text of a checkpoint; ProofInvalid if it is neither."""
    signed = note.parse_note(data) if b"\n\n" in data else None
    return Claim(note.parse_checkpoint(data if signed is None else signed.text), signed)


def read(ledger: Path) -> list[Beside]:
    """Return the checkpoints beside a ledger file; LedgerDamaged for one that is none."""
    found = []
    for path in paths(ledger):
        if not os.path.lexists(path):
            continue
        data = content(path, _MOST_BYTES)
        try:
            found.append(Beside(path, data, parse(data)))
        except ProofInvalid as error:
            raise LedgerDamaged(f"{path} holds no checkpoint: {error.message}") from error
    return found


def content(path: Path, most: int) -> bytes:
    """Return a file's bytes, one more than `most` if there are more.

    Follows no link and waits for no pipe: LedgerDamaged for what is no file, StorageFailed for one
    that the system does not give.
    """
    with told_as_failure(path):
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            raise LedgerDamaged(f"{path} cannot be read as a file ({error.strerror})") from error
        try:
            # Of a directory no file object can be made.
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise LedgerDamaged(f"{path} is not a file")
            return os.read(file, most + 1)
        finally:
            os.close(file)


def write(ledger: Path, data: bytes, *, signed: bool) -> None:
    """Replace the side file by `data` at once and for good, or raise OSError."""
    replace(paths(ledger)[0 if signed else 1], data)


def replace(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file that only the holder of a lock writes, at once and for good.

    What is not `durable` may be lost, or empty, after a loss of power: a hint. Raises OSError; then
    the file is as it was.
    """
    new = path.with_name(path.name + ".new")
    # What a writer left that had no room, or somebody's link: only the holder of the lock is here.
    new.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, 0o644), "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        new.rename(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        # A full disk does not say what it had no room for.
        error.filename = error.filename or str(path)
        raise
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
