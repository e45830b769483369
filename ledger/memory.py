"""What keys on this machine have signed: the last size and root of each log, kept outside of it.

A ledger that was put back to an older copy and goes on would give two histories of one name, each
well signed. So before a checkpoint is signed, it must extend the last one that was; that is noted
here, durably, before the signature exists.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import platformdirs

from ledger import note, sidefile
from ledger.errors import ProofInvalid, SignatureRefused, UsageError

STATE_DIR: Final = "ACL_STATE_DIR"
_FOLDER: Final = "signed"

RootAt = Callable[[int], bytes]
"""Gives the root of a log's first so many leaves."""


def state_directory() -> Path:
    """Where this user's state is kept: $ACL_STATE_DIR, or the platform's place for it."""
    named = os.environ.get(STATE_DIR)
    return Path(named) if named else Path(platformdirs.user_state_path("acl"))


class Memory:
    """The last signed checkpoint of each origin, one file each, in `directory`/signed.

    Several processes may share it.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = (state_directory() if directory is None else directory) / _FOLDER

    def last(self, origin: str) -> note.Checkpoint | None:
        """Return what was last signed of a log, if anything was.

        Raises SignatureRefused if what stands there cannot be read: then it is not known.
        """
        path = self._path(origin)
        try:
            checkpoint = note.parse_checkpoint(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ProofInvalid) as error:
            raise SignatureRefused(
                f"what was last signed of {origin} cannot be read from {path} ({error})",
                hint="restore that file, or sign with a new key",
            ) from error
        if checkpoint.origin != origin:
            raise SignatureRefused(f"{path} is of another log: {checkpoint.origin}")
        return checkpoint

    def extend(self, checkpoint: note.Checkpoint, root_at: RootAt) -> None:
        """Note that `checkpoint` is about to be signed; return once that is durable.

        `root_at` is asked for the root of the log at the last signed size. Raises SignatureRefused
        if `checkpoint` is smaller, or its log has another root there.
        """
        with self._locked(checkpoint.origin):
            last = self.last(checkpoint.origin)
            if last == checkpoint:
                return
            if last is not None:
                _compare(last, checkpoint, root_at)
            sidefile.replace(self._path(checkpoint.origin), note.format_checkpoint(checkpoint))

    def sign(
        self, checkpoint: note.Checkpoint, signers: Iterable[note.Signer], root_at: RootAt
    ) -> bytes:
        """Return the note of a checkpoint that `signers` sign, once it extends what they signed.

        Raises what `extend` raises.
        """
        self.extend(checkpoint, root_at)
        return note.sign(checkpoint.text, signers)

    def _path(self, origin: str) -> Path:
        # An origin is no file name: it has slashes.
        return self._directory / hashlib.sha256(origin.encode()).hexdigest()

    @contextmanager
    def _locked(self, origin: str) -> Iterator[None]:
        path = self._path(origin).with_suffix(".lock")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise UsageError(
                f"what is signed cannot be remembered in {path.parent} ({error.strerror})",
                hint=f"name a directory that can be written in {STATE_DIR}",
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _compare(last: note.Checkpoint, new: note.Checkpoint, root_at: RootAt) -> None:
    if new.size < last.size:
        raise SignatureRefused(
            f"{new.origin}: {last.size} events were signed, now there are {new.size}"
        )
    root = new.root if new.size == last.size else root_at(last.size)
    if root != last.root:
        raise SignatureRefused(
            f"{new.origin}: of the first {last.size} events another history was signed"
        )
