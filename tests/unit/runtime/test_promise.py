"""Promises: kept from any thread, never cancelled, and heard before a cancellation is."""

import asyncio
import threading

import pytest

from runtime.promise import Told, hear, promise_to_thread, tell


async def told_later(promise: Told[int], outcome: int | BaseException) -> None:
    await asyncio.sleep(0.01)
    await asyncio.to_thread(tell, [(promise, outcome)])


def test_a_promise_kept_in_another_thread_is_heard() -> None:
    async def main() -> int:
        promise: Told[int] = Told()
        threading.Thread(target=tell, args=([(promise, 7)],)).start()
        return await hear(promise)

    assert asyncio.run(main()) == 7


@pytest.mark.parametrize("times", [1, 3])
def test_a_caller_that_is_cancelled_hears_first_what_became_of_it(times: int) -> None:
    heard: list[str] = []

    async def caller(promise: Told[int]) -> None:
        try:
            await hear(promise)
        except asyncio.CancelledError:
            heard.append("cancelled" if promise.done() else "too early")
            raise

    async def main() -> None:
        promise: Told[int] = Told()
        task = asyncio.create_task(caller(promise))
        await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        assert not heard
        await told_later(promise, 1)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert heard == ["cancelled"]


def test_an_error_that_is_told_goes_before_a_cancellation() -> None:
    async def main() -> None:
        promise: Told[int] = Told()
        task = asyncio.create_task(hear(promise))
        await asyncio.sleep(0)
        task.cancel()
        await told_later(promise, KeyError("x"))
        with pytest.raises(KeyError):
            await task

    asyncio.run(main())


def test_a_promise_is_kept_once() -> None:
    promise = promise_to_thread()
    tell([(promise, 1)])
    tell([(promise, ValueError())])
    assert promise.result() == 1


def test_a_loop_that_is_gone_hinders_nobody_else() -> None:
    async def make() -> Told[int]:
        return Told()

    gone = asyncio.run(make())
    waiting = promise_to_thread()
    tell([(gone, 1), (waiting, 2)])
    assert waiting.result() == 2
    assert not gone.done()


def test_many_promises_to_one_loop_wake_it_once() -> None:
    async def main() -> tuple[list[int], int]:
        loop = asyncio.get_running_loop()
        calls = 0
        wake = loop.call_soon_threadsafe

        def counting(*args: object) -> asyncio.Handle:
            nonlocal calls
            calls += 1
            return wake(*args)  # type: ignore[arg-type]

        loop.call_soon_threadsafe = counting  # type: ignore[method-assign]
        promises: list[Told[int]] = [Told() for _ in range(5)]
        threading.Thread(target=tell, args=(list(zip(promises, range(5), strict=True)),)).start()
        found = [await hear(promise) for promise in promises]
        return found, calls

    assert asyncio.run(main()) == ([0, 1, 2, 3, 4], 1)
