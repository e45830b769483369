"""Asking a run to stop: from a signal, from any thread, or because its time is over."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from types import FrameType
from typing import Final, Literal

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """A wish that a run stops; `name` is that of the first signal, `count` how many came.

    `timed_out` tells that not a signal was first but the end of its time. `request` and `expire`
    may be called in any thread.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.count = 0
        self.timed_out = False
        # Not a plain lock: a signal arrives in the thread that may just hold it.
        self._lock = RLock()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def requested(self) -> bool:
        """True once somebody asked."""
        return self.timed_out or self.name is not None

    @property
    def status(self) -> Literal["timed_out", "cancelled"]:
        """How a run ends that is stopped."""
        return "timed_out" if self.timed_out else "cancelled"

    @property
    def reason(self) -> str:
        """Why a run is stopped, in a few words."""
        return "the time was over" if self.timed_out else f"stopped by {self.name}"

    @property
    def exit_code(self) -> int:
        """What the program exits with: 128 + the signal's number, or 1 if the time was over."""
        if self.timed_out:
            return 1
        number = getattr(signal, self.name or "", signal.SIGTERM)
        return 128 + int(number)

    def request(self, name: str = "SIGTERM") -> None:
        """Ask the run to stop; `name` is the name of a signal."""
        with self._lock:
            self.name = self.name or name
            self.count += 1
        self._wake()

    def expire(self) -> None:
        """Ask the run to stop because its time is over; a signal that came before goes first."""
        with self._lock:
            self.timed_out = self.timed_out or self.name is None
        self._wake()

    def _wake(self) -> None:
        with self._lock:
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
def listening(
    stop: StopSignal,
    leave: Callable[[int], object] = os._exit,
    *,
    grace_seconds: float = 30.0,
    say: Callable[[str], object] | None = None,
) -> Iterator[None]:
    """Hand SIGINT and SIGTERM to `stop`; say so at the first signal, at the second leave at once.

    Works also while plug-ins keep the event loop from running; only in the main thread. `leave`
    ends the program with the given exit code, without any cleaning up; `say` is given one line,
    and by default writes it to stderr.
    """
    tell = say or _to_stderr

    def arrived(number: int, _: FrameType | None) -> None:
        # The event loop is not asked to call us: it may be busy for long. So this may interrupt
        # anything, and must not use what it may have interrupted.
        stop.request(signal.Signals(number).name)
        if stop.count > 1:
            leave(128 + number)
        else:
            tell(f"stopping: running attempts get {grace_seconds:g} s; once more to leave at once")

    before = {number: signal.signal(number, arrived) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _to_stderr(line: str) -> None:
    # Not by sys.stderr: its buffer may be what was interrupted.
    with suppress(OSError):
        os.write(2, f"acl: {line}\n".encode())
