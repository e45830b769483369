"""A bounded queue between many callers and one thread, which takes whatever waits."""

from collections import deque
from threading import Condition
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """Holds at most `limit` items; `put` waits for room, `take` for an item."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[T] = deque()
        self._changed = Condition()
        self._closed: Exception | None = None

    def offer(self, item: T) -> bool:
        """Put `item` in if there is room; tell whether there was. Raises what `close` was given."""
        with self._changed:
            return self._put(item)

    def put(self, item: T) -> None:
        """Put `item` in as soon as there is room. Raises what `close` was given."""
        with self._changed:
            while not self._put(item):
                self._changed.wait()

    def _put(self, item: T) -> bool:
        if self._closed is not None:
            raise self._closed
        if len(self._items) >= self._limit:
            return False
        self._items.append(item)
        if len(self._items) == 1:
            # Only an empty inbox is waited for by its taker.
            self._changed.notify_all()
        return True

    def take(self, timeout: float | None) -> list[T] | None:
        """Return all that waits, after at most `timeout` seconds; None once closed and empty."""
        with self._changed:
            if not self._items and self._closed is None:
                self._changed.wait(timeout)
            if not self._items and self._closed is not None:
                return None
            items = list(self._items)
            self._items.clear()
            if len(items) >= self._limit:
                self._changed.notify_all()
            return items

    def close(self, error: Exception) -> None:
        """Take nothing in any more: `put` and `offer` raise `error` from now on."""
        with self._changed:
            self._closed = self._closed or error
            self._changed.notify_all()
