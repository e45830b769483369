"""Many files brought to disk side by side, so that they share the commits of the file system.

One `fsync` waits for a commit of the journal, some milliseconds; a single commit serves all that
wait at that moment. A file stays open until it is synced: an error of writing it back, which the
system tells to whoever has the file open, is not missed.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

WORKERS: Final = 8
_MOST_OPEN: Final = 64


class Syncing:
    """Syncs descriptors that it is given, and closes them; a single one without a thread.

    `failed` makes the error that tells of a path. After `settle`, `close` or an error no thread is
    left, and nothing is open.
    """

    def __init__(self, failed: Callable[[str, OSError], Exception]) -> None:
        self._failed = failed
        self._alone: tuple[str, int] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[str, Future[None]]] = deque()

    def add(self, path: str, descriptor: int) -> None:
        """Take over an open file; waits while many are open. Raises what an earlier one met."""
        if self._pool is None:
            if self._alone is None:
                self._alone = path, descriptor
                return
            self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="sync")
            self._submit(*self._alone)
            self._alone = None
        self._submit(path, descriptor)
        while len(self._waiting) >= _MOST_OPEN or (self._waiting and self._waiting[0][1].done()):
            self._next()

    def settle(self) -> None:
        """Return once all are on disk; raises the first error, in the order they were added."""
        if self._alone is not None:
            (path, descriptor), self._alone = self._alone, None
            try:
                _sync(descriptor)
            except OSError as error:
                raise self._failed(path, error) from error
        while self._waiting:
            self._next()
        self.close()

    def close(self) -> None:
        """Close all, synced or not; may be called again."""
        if self._alone is not None:
            os.close(self._alone[1])
            self._alone = None
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self._waiting.clear()

    def _submit(self, path: str, descriptor: int) -> None:
        assert self._pool is not None
        self._waiting.append((path, self._pool.submit(_sync, descriptor)))

    def _next(self) -> None:
        path, outcome = self._waiting.popleft()
        try:
            outcome.result()
        except OSError as error:
            self.close()
            raise self._failed(path, error) from error


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
