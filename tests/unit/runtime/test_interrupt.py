import asyncio
import os
import signal
import threading

from runtime.interrupt import StopSignal, listening


def test_nobody_asked_yet() -> None:
    stop = StopSignal()
    assert not stop.requested
    assert stop.count == 0


def test_the_first_signal_names_the_stop_and_all_are_counted() -> None:
    stop = StopSignal()
    stop.request("SIGINT")
    stop.request("SIGTERM")
    assert (stop.name, stop.count, stop.exit_code) == ("SIGINT", 2, 130)


def test_the_exit_code_is_128_and_the_number_of_the_signal() -> None:
    stop = StopSignal()
    stop.request("SIGTERM")
    assert stop.exit_code == 143


def test_whoever_waits_is_woken_from_another_thread() -> None:
    stop = StopSignal()

    async def wait() -> None:
        waiting = asyncio.create_task(stop.wait())
        await asyncio.sleep(0)
        threading.Thread(target=stop.request).start()
        await asyncio.wait_for(waiting, 10)
        await asyncio.wait_for(stop.wait(), 10)

    asyncio.run(wait())


def test_signals_arrive_and_the_second_leaves_at_once() -> None:
    left: list[int] = []

    async def run() -> StopSignal:
        stop = StopSignal()
        with listening(stop, left.append):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stop.wait(), 10)
            assert left == []
            os.kill(os.getpid(), signal.SIGINT)
            while not left:
                await asyncio.sleep(0.001)
        return stop

    stop = asyncio.run(run())
    assert (stop.name, left) == ("SIGTERM", [130])


def test_afterwards_signals_do_what_they_did_before() -> None:
    async def run() -> None:
        with listening(StopSignal(), lambda _: None):
            pass

    asyncio.run(run())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_end_of_the_time_is_a_wish_to_stop_too() -> None:
    stop = StopSignal()
    assert stop.status == "cancelled"
    stop.expire()
    assert stop.requested
    assert (stop.name, stop.status, stop.exit_code) == (None, "timed_out", 1)
    assert stop.reason == "the time was over"


def test_of_a_signal_and_the_end_of_the_time_the_first_counts() -> None:
    signalled = StopSignal()
    signalled.request("SIGINT")
    signalled.expire()
    assert (signalled.status, signalled.exit_code) == ("cancelled", 130)
    assert signalled.reason == "stopped by SIGINT"
    timed_out = StopSignal()
    timed_out.expire()
    timed_out.request("SIGINT")
    timed_out.expire()
    assert (timed_out.status, timed_out.exit_code, timed_out.count) == ("timed_out", 1, 1)


def test_whoever_waits_is_woken_by_the_end_of_the_time() -> None:
    async def wait() -> None:
        stop = StopSignal()
        asyncio.get_running_loop().call_soon(stop.expire)
        await asyncio.wait_for(stop.wait(), 10)

    asyncio.run(wait())
