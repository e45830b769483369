"""`run.log`: what the program logged while it worked on one run, without secrets."""

import contextvars
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Final

from runtime.containment import named
from runtime.redact import Redactor

_current: contextvars.ContextVar[Path | None] = contextvars.ContextVar("acl_run_log", default=None)
# Our own steps are worth a line each; of libraries only what they warn of.
_OURS: Final = "runtime"


class _Masked(logging.Formatter):
    """One UTC line a record; secrets are masked in all of it, tracebacks included."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redactor = redactor

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - the name is logging's
        """ISO-8601, UTC, milliseconds."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def format(self, record: logging.LogRecord) -> str:
        text, _ = self._redactor.redact_text(super().format(record))
        return text


class _Quiet(logging.FileHandler):
    """Loses a line where it cannot be written: the log must not disturb the run."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line if that is possible."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Say nothing."""


class _Alarm(logging.Handler):
    """Tells at once, in one line, of our own errors: the log may be on the disk that is full."""

    def __init__(self, tell: Callable[[str], object], redactor: Redactor) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell
        self._redactor = redactor
        self.addFilter(logging.Filter(_OURS))

    def emit(self, record: logging.LogRecord) -> None:
        """Tell what went wrong, without its traceback."""
        said = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            said = f"{said}: {named(record.exc_info[1])}"
        text, _ = self._redactor.redact_text(said)
        with suppress(OSError, ValueError):
            self._tell(text)


@contextmanager
def run_log(
    path: Path, redactor: Redactor, alarm: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Write to `path` what is logged in this context and in the tasks and threads begun in it.

    Several runs of one process each have their own log. `alarm` is told of errors besides.
    """
    handler = _Quiet(path, delay=True, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_Masked(redactor))
    handlers: list[logging.Handler] = [handler]
    if alarm is not None:
        handlers.append(_Alarm(alarm, redactor))
    for one in handlers:
        one.addFilter(lambda _: _current.get() == path)
    token = _current.set(path)
    _attach(handlers)
    try:
        yield
    finally:
        _detach(handlers)
        with suppress(OSError):
            handler.close()
        _current.reset(token)


class _Level:
    """The level of our loggers while there are logs, and what it was before."""

    lock = Lock()
    logs = 0
    before = logging.NOTSET


def _attach(handlers: Sequence[logging.Handler]) -> None:
    ours = logging.getLogger(_OURS)
    with _Level.lock:
        if not _Level.logs:
            _Level.before = ours.level
            if ours.getEffectiveLevel() > logging.INFO:
                ours.setLevel(logging.INFO)
        _Level.logs += 1
        for handler in handlers:
            logging.getLogger().addHandler(handler)


def _detach(handlers: Sequence[logging.Handler]) -> None:
    with _Level.lock:
        for handler in handlers:
            logging.getLogger().removeHandler(handler)
        _Level.logs -= 1
        if not _Level.logs:
            logging.getLogger(_OURS).setLevel(_Level.before)
