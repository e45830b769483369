"""Asking a run to stop: from a signal, or from any thread."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """A wish that a run stops; `name` is that of the first signal, `count` how many came.

    `request` may be called in any thread.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.count = 0
        self._lock = Lock()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def requested(self) -> bool:
        """True once somebody asked."""
        return self.name is not None

    @property
    def exit_code(self) -> int:
        """What the program exits with when it was stopped: 128 + the signal's number."""
        number = getattr(signal, self.name or "", signal.SIGTERM)
        return 128 + int(number)

    def request(self, name: str = "SIGTERM") -> None:
        """Ask the run to stop; `name` is the name of a signal."""
        with self._lock:
            self.name = self.name or name
            self.count += 1
            waiters = list(self._waiters)
        for loop, event in waiters:
            loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Return once somebody asked."""
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        with self._lock:
            self._waiters.append(waiter)
            if self.requested:
                event.set()
        try:
            await event.wait()
        finally:
            with self._lock:
                self._waiters.remove(waiter)


@contextmanager
def listening(stop: StopSignal, leave: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Hand SIGINT and SIGTERM to `stop` in the running loop; at the second signal leave at once.

    `leave` ends the program with the given exit code, without any cleaning up.
    """
    loop = asyncio.get_running_loop()

    def arrived(number: signal.Signals) -> None:
        stop.request(number.name)
        if stop.count > 1:
            leave(128 + int(number))

    for number in SIGNALS:
        loop.add_signal_handler(number, arrived, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
