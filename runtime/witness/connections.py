"""The connections that a server holds open: not more than it can, none for longer than it must."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_MOMENT: Final = 1.0


class Connections:
    """At most `most` connections, each with `patience` seconds for a request from end to end.

    A timeout of a socket is of one read: a client that sends a byte now and then would stay for
    ever. So whoever serves calls `drop_overdue` again and again.
    """

    def __init__(
        self, most: int, patience: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        # Since when, the one that waits longest first; None for one that is shut and not yet left.
        self._since: dict[socket.socket, float | None] = {}

    def enter(self, connection: socket.socket) -> bool:
        """Take a connection in; False if there is no room for it.

        Where there is none, the one whose request began first is shut: whoever is slow makes way.
        """
        if not self._room.acquire(blocking=False):
            with self._lock:
                oldest = next((one for one, at in self._since.items() if at is not None), None)
                if oldest is not None:
                    self._shut(oldest)
            if not self._room.acquire(timeout=_MOMENT):
                return False
        with self._lock:
            self._since[connection] = self._clock()
        return True

    def renew(self, connection: socket.socket) -> None:
        """Say that a new request begins."""
        with self._lock:
            if self._since.get(connection) is not None:
                del self._since[connection]
                self._since[connection] = self._clock()

    def leave(self, connection: socket.socket) -> None:
        """Say that a connection is about to be closed, whether or not it was taken in."""
        with self._lock:
            known = connection in self._since
            self._since.pop(connection, None)
        if known:
            self._room.release()

    def drop_overdue(self) -> None:
        """Shut those whose time is over; who reads from one sees its end."""
        with self._lock:
            until = self._clock() - self._patience
            for connection, at in list(self._since.items()):
                if at is not None and at <= until:
                    self._shut(connection)

    def _shut(self, connection: socket.socket) -> None:
        self._since[connection] = None
        # The other end may have gone already.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
