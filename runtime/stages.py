"""Calling plug-ins: with a time limit, with patience for their cleaning up, and contained.

A plug-in may raise anything and may ignore its cancellation; neither reaches the run.
"""

import asyncio
import logging
import re
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from ledger.errors import AclError
from ledger.events import ErrorInfo
from runtime.containment import awaited, named, words
from runtime.contracts import StageError

T = TypeVar("T")

_log = logging.getLogger(__name__)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Of a path the last two parts tell enough; the rest is about the machine.
_PATH: Final = re.compile(r'(File ")[^"]*?([^/"\\]+[/\\][^/"\\]+")')
_SHARES: Final = 3
_LONGEST: Final = 20_000


class StageTimeout(Exception):
    """A stage did not end within `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not finished after {seconds:g} s")
        self.seconds = seconds


async def stage(work: Callable[[], Awaitable[T]], *, timeout: float | None, grace: float) -> T:
    """Call `work`; return what it gives when it is awaited, or raise what it raises.

    What is no Exception is raised as a StageError; a CancelledError only where we are cancelled.
    Raises StageTimeout after `timeout` seconds. Then `work` is cancelled and given `grace` seconds
    to clean up; after that it is left to itself. When the caller is cancelled it is given a part of
    that: others wait for their share, and the whole run for its end.
    """
    task = asyncio.ensure_future(awaited(work))
    try:
        await asyncio.wait([task], timeout=timeout)
    except asyncio.CancelledError:
        await _stop(task, grace / _SHARES)
        raise
    if not task.done():
        assert timeout is not None
        await _stop(task, grace)
        raise StageTimeout(timeout)
    if task.cancelled():
        # Nobody cancelled us: to our caller this is an error like any other.
        raise StageError("CancelledError", "the plug-in cancelled itself")
    return task.result()


async def _stop(task: "asyncio.Task[Any]", grace: float) -> None:
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=grace)
    if not done:
        _log.warning("a stage ignored its cancellation for %g s and was left to itself", grace)
        task.add_done_callback(_look_at)
    else:
        _look_at(task)


def _look_at(task: "asyncio.Task[Any]") -> None:
    """Take the outcome of a task that nobody awaits any more, so that asyncio does not complain."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.info("a stage that was stopped ended with %s", named(error))


def explain(error: BaseException, phase: str | None, *, fatal: bool = False) -> ErrorInfo:
    """Say what `error` means for an attempt: its code, its words and where it was raised.

    A StageError brings its own code; other errors are named for their class.
    """
    if isinstance(error, StageError):
        code, message = error.code, _text(error.message)
        fatal = fatal or error.fatal is True
    elif isinstance(error, AclError):
        code, message = _CAMEL.sub("_", type(error).__name__).lower(), words(error)
    else:
        code, message = type(error).__name__, words(error)
    return ErrorInfo(
        code=_text(code),
        message=message or type(error).__name__,
        phase=phase,
        fatal=fatal,
        traceback=_trace(error),
    )


def _text(given: Any) -> str:
    """What a plug-in gave as a text, as one: its words are printed as those of an error are."""
    return str.__str__(given) if isinstance(given, str) else words(Exception(given))


def _trace(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(error)
    except BaseException:  # noqa: BLE001 - an exception of a plug-in may not even be printable
        return ""
    text = _PATH.sub(r"\1\2", "".join(lines))
    return text if len(text) <= _LONGEST else text[:1000] + "\n...\n" + text[1000 - _LONGEST :]
