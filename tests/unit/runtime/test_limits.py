import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from runtime.limits import Limits


class Clock:
    """Time passes only in sleep."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def limits(
    slots: int = 9,
    places: dict[str, int] | None = None,
    rate: float = 0.0,
    clock: Clock | None = None,
) -> Limits:
    clock = clock or Clock()
    return Limits(slots, places or {}, rate, monotonic=clock.monotonic, sleep=clock.sleep)


def most_at_once(enter: Callable[[], AbstractAsyncContextManager[None]], callers: int) -> int:
    held: list[int] = []
    now = 0

    async def one() -> None:
        nonlocal now
        async with enter():
            now += 1
            held.append(now)
            await asyncio.sleep(0)
            now -= 1

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(callers)))

    asyncio.run(all_of_them())
    return max(held)


def test_no_more_slots_are_held_than_there_are() -> None:
    found = limits(3)
    assert most_at_once(found.slot, 10) == 3


def test_no_more_environments_of_a_kind_are_open_than_allowed() -> None:
    found = limits(places={"docker": 2})
    assert most_at_once(lambda: found.place("docker"), 10) == 2
    assert most_at_once(lambda: found.place("local"), 10) == 10


def test_environments_are_opened_at_a_rate() -> None:
    clock = Clock()
    found = limits(rate=4.0, clock=clock)

    async def open_three() -> None:
        for _ in range(3):
            async with found.place("local"):
                pass

    asyncio.run(open_three())
    assert clock.slept == [0.25, 0.25]


def test_after_a_pause_the_next_is_opened_at_once() -> None:
    clock = Clock()
    found = limits(rate=4.0, clock=clock)

    async def open_two() -> None:
        async with found.place("local"):
            clock.now += 10
        async with found.place("local"):
            pass

    asyncio.run(open_two())
    assert clock.slept == []
