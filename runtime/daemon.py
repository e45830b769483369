"""Calls of plug-ins that may never return: in a thread that nobody has to wait for."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from runtime.containment import contained
from runtime.interrupt import StopSignal

P = ParamSpec("P")
T = TypeVar("T")


class Stopped(Exception):
    """The run was told to stop, and something that it waited for did not end in time."""


async def in_daemon(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `call` returns, in a thread that does not keep the program from ending.

    What it raises that is no Exception is raised as a StageError.
    Like `asyncio.to_thread`, the threads of which are waited for at the end of the event loop.
    """
    outcome: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            with contained():
                found = context.run(call, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the edge of the thread: its caller is told
            outcome.set_exception(error)
        else:
            outcome.set_result(found)

    threading.Thread(target=work, name="acl-daemon", daemon=True).start()
    return await asyncio.wrap_future(outcome)


async def unless_stopped(work: Awaitable[T], stop: StopSignal, grace: float) -> T:
    """Return what `work` returns; raise Stopped if it goes on `grace` seconds after a stop.

    `work` is cancelled then.
    """
    working = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await asyncio.wait([working], timeout=grace)
        if not working.done():
            raise Stopped
        return working.result()
    finally:
        stopped.cancel()
        working.cancel()
