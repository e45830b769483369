"""What is closed when a `with` block is left, and what is taken away then."""

import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class Closing:
    """A context manager that gives itself and calls `close` at the end, whatever happened."""

    def close(self) -> None:
        """Let go of what is held; may be called again."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def discard(tree: str | Path, *, dir_fd: int | None = None) -> None:
    """Remove a directory with all that is in it, as far as the system lets us; raises no OSError.

    A name is one below the directory `dir_fd`, if that is given.
    """
    # Whatever it is to ignore, rmtree of Python 3.11 passes on what fstat is refused.
    with suppress(OSError):
        shutil.rmtree(tree, ignore_errors=True, dir_fd=dir_fd)
