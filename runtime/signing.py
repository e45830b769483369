"""The keys that sign a run's checkpoints, from files or the environment; never from a ledger."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from ledger.errors import KeyRefused, UsageError
from ledger.keys import SIGNING_PREFIX, CosigningKey, SigningKey

SIGNING_KEY: Final = "ACL_SIGNING_KEY"
_MOST_BYTES: Final = 4096

AnyKey = TypeVar("AnyKey", SigningKey, CosigningKey)


def read_signing_key(given: str, kind: type[AnyKey]) -> AnyKey:
    """Read a key of `kind` from its text, or from the file of that name.

    Raises KeyRefused, also for a file that others than its owner may read; its content is never
    quoted.
    """
    if given.strip().startswith(SIGNING_PREFIX):
        return kind.parse(given)
    path = Path(given)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read the signing key {path}: {reason}") from error
    try:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise KeyRefused(f"{path} is not a file")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyRefused(
                f"{path} can be read by others than its owner", hint=f"chmod 600 {path}"
            )
        data = os.read(file, _MOST_BYTES)
    finally:
        os.close(file)
    try:
        return kind.parse(data.decode("utf-8", "replace"))
    except KeyRefused as error:
        raise KeyRefused(f"{path}: {error.message}") from error


def signers_of(given: Sequence[str], environ: Mapping[str, str]) -> tuple[SigningKey, ...]:
    """Read the keys that are `given`, or else the one that ACL_SIGNING_KEY names, if it does.

    Raises KeyRefused, also where one key or name is given twice.
    """
    named = list(given) or [value for value in [environ.get(SIGNING_KEY, "")] if value]
    keys = tuple(read_signing_key(value, SigningKey) for value in named)
    if len({key.name for key in keys}) < len(keys) or len({key.seed for key in keys}) < len(keys):
        raise KeyRefused("a signing key is given twice", hint="give each key once")
    return keys
