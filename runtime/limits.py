"""What bounds how much goes on at once: slots, places per environment, and an opening rate."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

Sleep = Callable[[float], Awaitable[None]]


class Limits:
    """How many attempts run and how many environments of a kind are open at once; for one loop.

    `opens_per_second` bounds how fast environments are opened; 0 is no bound.
    """

    def __init__(
        self,
        slots: int,
        places: Mapping[str, int],
        opens_per_second: float,
        *,
        monotonic: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._slots: Final = asyncio.Semaphore(slots)
        self._places: Final = {kind: asyncio.Semaphore(most) for kind, most in places.items()}
        self._interval = 1 / opens_per_second if opens_per_second else 0.0
        self._next_open = 0.0
        self._monotonic = monotonic
        self._sleep = sleep

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the slots."""
        async with self._slots:
            yield

    @asynccontextmanager
    async def place(self, kind: str) -> AsyncIterator[None]:
        """Hold a place for an open environment of this kind, and wait for its turn to open."""
        semaphore = self._places.get(kind)
        if semaphore is None:
            await self._turn()
            yield
            return
        async with semaphore:
            await self._turn()
            yield

    async def _turn(self) -> None:
        if not self._interval:
            return
        now = self._monotonic()
        turn = max(now, self._next_open)
        self._next_open = turn + self._interval
        if turn > now:
            await self._sleep(turn - now)
