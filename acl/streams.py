"""Stdout is for our document: whatever plug-ins print while they run goes to stderr."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_STDOUT, _STDERR = 1, 2


class _Lent:
    """A stream that whoever it is lent to can use but not close."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def close(self) -> None:
        """Stay open: others write here, too."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def stdout_kept() -> Iterator[None]:
    """Send what is printed within, by us or by programs that we start, to stderr.

    Neither stream can be closed by those who print.
    """
    lent: Any = _Lent(sys.stderr)
    with _descriptor_kept(), contextlib.redirect_stdout(lent), contextlib.redirect_stderr(lent):
        yield


@contextmanager
def _descriptor_kept() -> Iterator[None]:
    sys.stdout.flush()
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # we were started without one
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(_STDERR, _STDOUT)
        yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)
