"""One thread that records what one run does; nobody waits for it longer than is told here."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from queue import Full, Queue
from time import monotonic
from typing import Final

Job = Callable[[], object]

PATIENCE: Final = 5.0
"""Seconds that one call waits for its events to be on disk."""
BUDGET: Final = 60.0
"""Seconds that all calls of a run wait in vain."""
MOST: Final = 1000
"""Jobs that may wait to be done."""


class Desk:
    """Does the jobs of one run, one after another; its methods raise nothing.

    `say` is told, in one line and once each, that events come late and that nothing more is
    recorded; `give_up` is called in the second case. A job that raises is the last one.
    """

    def __init__(
        self,
        say: Callable[[str], object],
        give_up: Job,
        *,
        patience: float = PATIENCE,
        budget: float = BUDGET,
        most: int = MOST,
    ) -> None:
        self._say = say
        self._give_up = give_up
        self._patience = patience
        self._budget = budget
        self._jobs: Queue[tuple[Job, Future[None]] | None] = Queue(most)
        self._is_late = False
        self._is_over = False
        self._has_given_up = False  # of the desk's own thread
        self._lock = threading.Lock()
        # The log of the run finds its records by context, those of this thread too.
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(self._work,), name="acl-agentcompass", daemon=True
        ).start()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is recorded."""
        return self._is_over

    def put(self, job: Job) -> "Future[None]":
        """Queue a job; the future is done when its events are on disk, or never will be."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()
        if not self._is_over:
            try:
                self._jobs.put_nowait((job, done))
            except Full:
                self._end("its events wait for the disk too long")
            else:
                return done
        done.set_result(None)
        return done

    def wait(self, done: "Future[None]", patience: float | None = None) -> None:
        """Wait for a job, within bounds."""
        limit, begun = self._limit(patience), monotonic()
        try:
            done.result(limit)
        except LateError:
            self._late(monotonic() - begun)

    async def wait_async(self, done: "Future[None]") -> None:
        """`wait` for callers in an event loop, which goes on meanwhile."""
        limit, begun = self._limit(None), monotonic()
        await asyncio.wait([asyncio.wrap_future(done)], timeout=limit)
        if not done.done():
            self._late(monotonic() - begun)

    def finish(self) -> None:
        """Take no more jobs; those that wait are done."""
        try:
            self._jobs.put_nowait(None)
        except Full:
            self._end("its events wait for the disk too long")

    def _limit(self, patience: float | None) -> float:
        return max(0.0, min(self._patience if patience is None else patience, self._budget))

    def _late(self, waited: float) -> None:
        self._budget -= waited
        if not self._is_late and not self._is_over:
            self._is_late = True
            self._say("events come to disk later than they happen; the run does not wait")

    def _end(self, why: str) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._say(f"nothing more is recorded: {why}; the run goes on")

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            self._do(job)
            done.set_result(None)

    def _do(self, job: Job) -> None:
        try:
            if not self._is_over:
                job()
        except BaseException as error:  # noqa: BLE001 - the edge: the run must not feel it
            self._end(f"{type(error).__name__}: {error}")
        if self._is_over and not self._has_given_up:
            self._has_given_up = True
            self._quietly(self._give_up)

    @staticmethod
    def _quietly(job: Job) -> None:
        try:
            job()
        except BaseException:  # noqa: BLE001 - the reason was told before
            return
