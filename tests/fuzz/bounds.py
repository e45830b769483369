"""What one execution may take and where it may write; whoever goes beyond that is found out."""

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CPU_SECONDS = 5.0
"""Of a process, its threads included."""
WAITING_SECONDS = 30.0
"""Of one thread that neither computes nor could, if it had a processor."""
MEMORY = 1 << 30
"""More address space than the process had when it began."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "shutil.rmtree": (0,),
}


class BeyondBounds(BaseException):
    """No `except Exception` of the product catches it."""


def limit_memory() -> None:
    """Let this process take so much more memory, and no core dump."""
    with Path("/proc/self/statm").open() as statm:
        held = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that needs no disk, where there is one."""
    shared = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None, prefix="fuzz-")


@contextmanager
def bounded_time() -> Iterator[None]:
    """Raise BeyondBounds in what takes too long, or waits for what never comes."""
    until = _idle() + WAITING_SECONDS

    def too_long(number: int, frame: object) -> None:
        if number == signal.SIGPROF:
            raise BeyondBounds("computes too long")
        left = until - _idle()
        if left <= 0:
            raise BeyondBounds("waits too long")
        # Less than a microsecond would be none, and stop the timer.
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, too_long) for number in timers}
    try:
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, WAITING_SECONDS)
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def _idle() -> float:
    """A clock that stands still while this thread computes, or others have all processors."""
    return time.monotonic() - time.thread_time() - _kept_waiting()


def _kept_waiting() -> float:
    """How long this thread could have computed and was not let, as far as the system tells."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


class Fence:
    """Nothing is written outside `home`, and nothing in `home/victim`; only while it is `up`.

    SQLite opens files by itself, and paths below an open directory are taken to be below it.
    """

    def __init__(self) -> None:
        self.home: Path | None = None
        sys.addaudithook(self._audit)

    @contextmanager
    def up(self, home: Path) -> Iterator[None]:
        """Watch, with `home` as the current directory."""
        before = Path.cwd()
        os.chdir(home)
        self.home = home
        try:
            yield
        finally:
            self.home = None
            os.chdir(before)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.home is None:
            return
        if event == "open" and isinstance(args[2], int) and args[2] & _WRITING:
            self._check(event, args[0])
        for index in _CHANGES.get(event, ()):
            self._check(event, args[index])

    def _check(self, event: str, place: object) -> None:
        if isinstance(place, int) or self.home is None:
            return
        path = os.fsdecode(place)  # type: ignore[arg-type]
        real = Path(os.path.realpath(Path(path).parent)) / Path(path).name
        inside = real.is_relative_to(self.home) and not real.is_relative_to(self.home / "victim")
        if ".." in Path(path).parts or not (inside or path == os.devnull):
            self.home, home = None, self.home
            try:
                raise BeyondBounds(f"{event} of {path}")
            finally:
                self.home = home
