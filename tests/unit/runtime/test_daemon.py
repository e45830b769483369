import asyncio
import contextvars
import subprocess
import sys
import threading
import time

import pytest

from runtime.contracts import StageError
from runtime.daemon import Stopped, in_daemon, unless_stopped
from runtime.interrupt import StopSignal

CURRENT: contextvars.ContextVar[str] = contextvars.ContextVar("current", default="none")


def test_what_the_call_returns_and_raises_reaches_the_caller() -> None:
    def fail() -> None:
        raise ValueError("no")

    assert asyncio.run(in_daemon(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_daemon(fail))


def test_the_call_runs_elsewhere_in_the_context_of_its_caller() -> None:
    async def main() -> tuple[str, bool]:
        CURRENT.set("ours")
        here = threading.get_ident()
        return await in_daemon(lambda: (CURRENT.get(), threading.get_ident() != here))

    assert asyncio.run(main()) == ("ours", True)


def test_a_plugin_that_exits_is_an_error_and_does_not_end_the_program() -> None:
    with pytest.raises(StageError, match="SystemExit"):
        asyncio.run(in_daemon(sys.exit, 3))


def test_the_program_ends_without_waiting_for_the_call() -> None:
    program = """
import asyncio, threading
from runtime.daemon import Stopped, in_daemon, unless_stopped
from runtime.interrupt import StopSignal
async def main():
    stop = StopSignal()
    asyncio.get_running_loop().call_later(0.05, stop.expire)
    try:
        await unless_stopped(in_daemon(threading.Event().wait), stop, 0.0)
    except Stopped:
        print("stopped")
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "stopped\n"


def test_without_a_stop_it_is_waited_for() -> None:
    async def main() -> int:
        return await unless_stopped(asyncio.sleep(0.01, 7), StopSignal(), 0.0)

    assert asyncio.run(main()) == 7


def test_what_ends_within_the_grace_counts() -> None:
    stop = StopSignal()
    stop.request()
    assert asyncio.run(unless_stopped(asyncio.sleep(0.01, 7), stop, 60.0)) == 7


def test_what_goes_on_longer_is_cancelled() -> None:
    stop = StopSignal()
    cancelled: list[bool] = []

    async def work() -> None:
        stop.request()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main() -> None:
        with pytest.raises(Stopped):
            await unless_stopped(work(), stop, 0.01)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert cancelled == [True]


def test_an_error_of_an_abandoned_call_is_nobodys() -> None:
    stop = StopSignal()
    over = threading.Event()

    def late() -> None:
        stop.request()
        over.wait(60)
        raise ValueError("too late")

    async def main() -> None:
        with pytest.raises(Stopped):
            await unless_stopped(in_daemon(late), stop, 0.0)

    asyncio.run(main())
    over.set()
    while any(thread.name == "acl-daemon" for thread in threading.enumerate()):
        time.sleep(0.01)
