"""Which task is begun next: that of the earliest request that has one, while places are free."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from runtime.contracts import Task
from runtime.interrupt import StopSignal

DoTask = Callable[[Task], Coroutine[Any, Any, None]]


class Line:
    """The tasks of one request: `waiting` in order, and `running`, `most` of them at once.

    `over` is done when no task waits or runs any more, or as soon as one raises something; then it
    raises that too. Only the dispatcher begins tasks.
    """

    def __init__(self, tasks: Iterable[Task], work: DoTask, most: int) -> None:
        self.waiting = deque(tasks)
        self.running: set[asyncio.Task[None]] = set()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._work = work
        self._most = most
        # A task is begun when another request's task ends: its log must not become that one's.
        self._context = contextvars.copy_context()

    @property
    def has_work(self) -> bool:
        """True if a task waits and may be begun."""
        return bool(self.waiting) and len(self.running) < self._most and not self.over.done()

    def begin(self, ended: Callable[[], None]) -> None:
        """Begin the next task; call `ended` when it is over."""
        running = asyncio.create_task(
            self._work(self.waiting.popleft()), context=self._context.copy()
        )
        self.running.add(running)

        def end(running: "asyncio.Task[None]") -> None:
            self.running.discard(running)
            error = None if running.cancelled() else running.exception()
            if error is not None and not self.over.done():
                self.over.set_exception(error)
            ended()
            self.settle()

        running.add_done_callback(end)

    def settle(self) -> None:
        """Say that all is over, if it is."""
        if not self.waiting and not self.running and not self.over.done():
            self.over.set_result(None)


class Dispatcher:
    """Gives `places` to the tasks of all lines; once `stop` is asked for it begins none."""

    def __init__(self, places: int, stop: StopSignal) -> None:
        self._places = places
        self._free = places
        self._stop = stop
        self._lines: list[Line] = []
        self._moved = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many tasks wait for a place."""
        return sum(len(line.waiting) for line in self._lines)

    def join(self, line: Line) -> None:
        """Let the tasks of `line` come after those of the lines that joined before."""
        self._lines.append(line)
        line.settle()
        self._fill()

    def leave(self, line: Line) -> list[Task]:
        """Begin no more tasks of `line`; return those that waited."""
        left = list(line.waiting)
        line.waiting.clear()
        if line in self._lines:
            self._lines.remove(line)
        line.settle()
        self._moved.set()
        return left

    async def room(self) -> None:
        """Return when fewer tasks wait than there are places."""
        while self.waiting >= self._places:
            self._moved.clear()
            await self._moved.wait()

    def _fill(self) -> None:
        while self._free and not self._stop.requested and (line := self._next()) is not None:
            self._free -= 1
            line.begin(self._ended)
        self._moved.set()

    def _next(self) -> Line | None:
        return next((line for line in self._lines if line.has_work), None)

    def _ended(self) -> None:
        self._free += 1
        self._fill()
