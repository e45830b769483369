"""What a caller of the recorder waits for, in a thread or in an event loop.

Nobody can cancel it: what is under way is done, and told.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Told(asyncio.Future[T]):
    """A promise to an event loop; kept by `tell`."""

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ARG002 - as asyncio names it
        """Refuse: the caller's cancellation follows once it was told, see `hear`."""
        return False


Promise = Told[T] | Future[T]


def promise_to_thread() -> "Future[Any]":
    """Make a promise to a thread that waits for `result`."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


async def hear(promise: Told[T]) -> T:
    """Wait until `promise` is kept; return what was told, or raise it.

    A caller that is cancelled meanwhile gets its CancelledError then, unless an error was told.
    """
    try:
        return await promise
    except asyncio.CancelledError:
        promise.result()
        raise


def tell(outcomes: Iterable[tuple[Promise[T], T | BaseException]]) -> None:
    """Keep promises, in any thread: each is told its result or error, every loop woken once."""
    loops: defaultdict[asyncio.AbstractEventLoop, list[tuple[Told[T], T | BaseException]]]
    loops = defaultdict(list)
    for promise, outcome in outcomes:
        if isinstance(promise, Told):
            loops[promise.get_loop()].append((promise, outcome))
        else:
            _keep(promise, outcome)
    for loop, told in loops.items():
        # Nobody waits in a loop that is closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_keep_all, told)


def _keep_all(told: list[tuple[Told[T], T | BaseException]]) -> None:
    for promise, outcome in told:
        _keep(promise, outcome)


def _keep(promise: Promise[T], outcome: T | BaseException) -> None:
    if promise.done():
        return
    if isinstance(outcome, BaseException):
        promise.set_exception(outcome)
    else:
        promise.set_result(outcome)


async def to_the_end(work: Awaitable[T]) -> T:
    """Await `work` to its end even if the caller is cancelled; the cancellation follows then."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result
