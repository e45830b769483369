import asyncio
from typing import Any

from runtime.dispatch import Dispatcher
from runtime.interrupt import StopSignal
from runtime.limits import Limits
from runtime.models import ExecutionSpec
from runtime.sharing import Share, alone, limits_of
from runtime.surroundings import Surroundings


def executions(*fields: dict[str, Any]) -> list[ExecutionSpec]:
    return [ExecutionSpec.model_validate(one) for one in fields]


async def most_at_once(limits: Limits, kind: str, callers: int = 9) -> int:
    now, most = 0, 0

    async def one() -> None:
        nonlocal now, most
        async with limits.place(kind):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*(one() for _ in range(callers)))
    return most


def test_of_several_limits_the_strictest_counts() -> None:
    wanted = executions(
        {"provider_limits": {"docker": 3, "vm": 2}}, {}, {"provider_limits": {"docker": 2}}
    )

    async def main() -> list[int]:
        limits = limits_of(wanted, 9, Surroundings())
        return [await most_at_once(limits, kind) for kind in ("docker", "vm", "local")]

    assert asyncio.run(main()) == [2, 2, 9]


def test_of_several_rates_the_slowest_counts_and_zero_is_none() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(round(seconds, 6))

    async def main() -> None:
        around = Surroundings(clock=lambda: (0, 0), sleep=sleep)
        wanted = executions({"env_open_qps": 4.0}, {}, {"env_open_qps": 2.0})
        limits = limits_of(wanted, 9, around)
        await most_at_once(limits, "local", 2)

    asyncio.run(main())
    assert pauses == [0.5]


def test_a_turn_comes_when_all_earlier_ones_have_ended() -> None:
    async def main() -> None:
        around, stop = Surroundings(), StopSignal()
        limits, dispatcher = limits_of([], 1, around), Dispatcher(1, stop)
        first, second = Share(limits, dispatcher), Share(limits, dispatcher)
        third = Share(limits, dispatcher, [first, second])
        turn = asyncio.ensure_future(third.turn())
        second.ended.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not turn.done()
        first.ended.set()
        await asyncio.wait_for(turn, 60)

    asyncio.run(main())


def test_alone_it_is_always_its_turn() -> None:
    async def main() -> None:
        share = alone(ExecutionSpec(), Surroundings(), StopSignal())
        await asyncio.wait_for(share.turn(), 60)

    asyncio.run(main())
