"""`run.log`: what the program logged while it worked on one run, without secrets."""

import contextvars
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

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

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Say nothing."""


@contextmanager
def run_log(path: Path, redactor: Redactor) -> Iterator[None]:
    """Write to `path` what is logged in this context and in the tasks and threads begun in it.

    Several runs of one process each have their own log.
    """
    handler = _Quiet(path, delay=True, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_Masked(redactor))
    handler.addFilter(lambda _: _current.get() == path)
    ours, root = logging.getLogger(_OURS), logging.getLogger()
    level = ours.level
    token = _current.set(path)
    root.addHandler(handler)
    if ours.getEffectiveLevel() > logging.INFO:
        ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(level)
        root.removeHandler(handler)
        handler.close()
        _current.reset(token)
