"""Files that the user names: small ones that are read, and new ones that are made.

Nothing is ever replaced: what stands there may be evidence.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="A new file.")]


MOST_BYTES = 1_000_000
"""Of keys, policies and checkpoints; no good one is as large."""


def read(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a file of at most `most` bytes that the user names; UsageError if that cannot be."""
    from ledger.errors import UsageError

    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read {path}: {reason}") from error
    if len(data) > most:
        raise UsageError(f"{path} is larger than any file of this kind")
    return data


def refuse_existing(path: Path) -> None:
    """Raise UsageError before any work is done for a file that could not be made after it."""
    from ledger.errors import UsageError

    if os.path.lexists(path):
        raise UsageError(f"{path} is there already", hint="nothing is ever replaced; name another")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: {path.parent} is not a directory")


def write_new(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Make a file whole and durable, or not at all.

    Raises UsageError where something stands or nothing can be made, AclError where there is no
    room.
    """
    from ledger.errors import AclError, UsageError
    from ledger.sidefile import sync_directory

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags, mode)
    except FileExistsError as error:
        raise UsageError(
            f"{path} is there already", hint="nothing is ever replaced; name another"
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot write {path}: {reason}") from error
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(file)
        sync_directory(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise AclError(
            f"{path} was not written: {error.strerror}", hint="make room and try again"
        ) from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
