"""Following a run: whoever watches gets its state again and again while it moves."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from ledger.errors import AclError
from ledger.events import ErrorInfo
from ledger.state import RunState
from ledger.tail import Clock
from ledger.view import Blobs
from runtime.progress import Progress, ProgressFiles, counting, measure
from runtime.promise import to_the_end
from runtime.recorder import Recorder
from runtime.stages import explain

Projector = Callable[[RunState, Blobs], object]
"""Brings files up to a state; it may read the state only during the call."""
ProjectorFor = Callable[[Path], Projector]
"""Makes the projector of the run in a directory."""
OnProgress = Callable[[Progress], object]

INTERVAL: Final = 0.5
"""Least seconds between two looks."""

_log = logging.getLogger(__name__)


class Publisher:
    """Calls the projectors, and tells progress, one look at a time and in a thread.

    After `close` no thread is left.
    """

    def __init__(
        self,
        recorder: Recorder,
        directory: Path,
        projectors: Sequence[ProjectorFor],
        on_progress: OnProgress | None,
        clock: Clock,
    ) -> None:
        self._recorder = recorder
        self._projectors = [make(directory) for make in projectors]
        self._on_progress = on_progress
        self._files = ProgressFiles(directory)
        self._tally = counting()
        self._clock = clock
        self._begun = clock()[1]
        self._moved = asyncio.Event()
        self._failed: dict[int, AclError | OSError] = {}
        self._task: asyncio.Task[None] | None = None
        # Always the same one: what a look takes for a moment grows with the tasks, and the C
        # library keeps that for each thread that ever took it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="look")

    @property
    def failure(self) -> tuple[ErrorInfo, int] | None:
        """What kept the last look from being complete, if anything, and its exit status."""
        error = next(iter(self._failed.values()), None)
        if error is None:
            return None
        status = error.exit_status if isinstance(error, AclError) else 1
        info = explain(error, "export")
        message = f"not all files of the run were written: {info.message}"
        return info.model_copy(update={"message": message}), status

    def start(self) -> None:
        """Begin to follow."""
        self._begun = self._clock()[1]
        self._task = asyncio.create_task(self._follow())
        self.moved()

    def moved(self) -> None:
        """Say that there is something new to see."""
        self._moved.set()

    async def stop(self) -> None:
        """End following, after the look that is being taken."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def last(self) -> None:
        """Take a last look; nothing moves any more."""
        await self._look(over=True)

    async def close(self) -> None:
        """End following for good: no look is taken after this; may be called again."""
        await self.stop()
        self._thread.shutdown(wait=False)

    async def _look(self, *, over: bool = False) -> None:
        look = partial(contextvars.copy_context().run, self.look, over=over)
        await asyncio.get_running_loop().run_in_executor(self._thread, look)

    async def _follow(self) -> None:
        while True:
            await self._moved.wait()
            self._moved.clear()
            try:
                await to_the_end(self._look())
            except Exception:  # noqa: BLE001 - whoever watches must not disturb the run
                _log.exception("the run cannot be followed")
            await asyncio.sleep(INTERVAL)

    def look(self, *, over: bool = False) -> None:
        """Show everybody the state as it is now; what goes wrong there does not touch the run."""
        with self._recorder.reading() as (state, view):
            self._recorder.cover()
            wall, monotonic = self._clock()
            elapsed = (monotonic - self._begun) / 1e9
            progress = measure(state, wall, elapsed, over=over, tally=self._tally)
            self._files.write(progress)
            if self._on_progress is not None:
                self._on_progress(progress)
            for number, projector in enumerate(self._projectors):
                self._project(number, projector, state, view)

    def _project(self, number: int, projector: Projector, state: RunState, view: Blobs) -> None:
        try:
            projector(state, view)
        except (AclError, OSError) as error:
            if number not in self._failed:
                _log.error("the files of the run cannot be written: %s", error)
            self._failed[number] = error
        else:
            self._failed.pop(number, None)
