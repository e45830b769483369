import asyncio
import os
import signal
import subprocess
import sys
import threading

from runtime.interrupt import SIGNALS, StopSignal, listening


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
        await asyncio.wait_for(waiting, 60)
        await asyncio.wait_for(stop.wait(), 60)

    asyncio.run(wait())


def test_signals_arrive_and_the_second_leaves_at_once() -> None:
    left: list[int] = []
    told: list[str] = []

    async def run() -> StopSignal:
        stop = StopSignal()
        with listening(stop, left.append, grace_seconds=7, say=told.append):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stop.wait(), 60)
            assert left == []
            os.kill(os.getpid(), signal.SIGINT)
            while not left:
                await asyncio.sleep(0.001)
        return stop

    stop = asyncio.run(run())
    assert (stop.name, left) == ("SIGTERM", [130])
    assert told == ["stopping: running attempts get 7 s; once more to leave at once"]


def test_a_signal_wakes_a_loop_that_waits() -> None:
    async def run() -> None:
        stop = StopSignal()
        with listening(stop, lambda _: None, say=lambda _: None):
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
            timer.start()
            await asyncio.wait_for(stop.wait(), 60)

    asyncio.run(run())


def test_the_second_signal_ends_a_program_whose_loop_is_blocked() -> None:
    program = """
import asyncio, time
from runtime.interrupt import StopSignal, listening
async def main():
    with listening(StopSignal()):
        print("ready", flush=True)
        time.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        assert running.stderr.readline().startswith("acl: stopping: running attempts get 30 s")
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130


def test_a_signal_may_arrive_while_the_stop_is_asked_for() -> None:
    stop = StopSignal()
    with stop._lock:
        stop.request("SIGINT")
    assert stop.requested


def test_afterwards_signals_do_what_they_did_before() -> None:
    async def run() -> None:
        before = [signal.getsignal(number) for number in SIGNALS]
        with listening(StopSignal(), lambda _: None):
            assert [signal.getsignal(number) for number in SIGNALS] != before
        assert [signal.getsignal(number) for number in SIGNALS] == before

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
        await asyncio.wait_for(stop.wait(), 60)

    asyncio.run(wait())
