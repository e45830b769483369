import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runtime.contracts import Task
from runtime.dispatch import Dispatcher, Line
from runtime.interrupt import StopSignal


class Floor:
    """Tasks that run until they are let go; `begun` tells their order."""

    def __init__(self, places: int) -> None:
        self.stop = StopSignal()
        self.dispatcher = Dispatcher(places, self.stop)
        self.begun: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}

    async def work(self, task: Task) -> None:
        self.begun.append(task.task_id)
        gate = self._gates[task.task_id] = asyncio.Event()
        await gate.wait()
        if task.task_id.startswith("bad"):
            raise RuntimeError(task.task_id)

    def line(self, *names: str, most: int = 99) -> Line:
        line = Line([Task(name) for name in names], self.work, most)
        self.dispatcher.join(line)
        return line

    async def let_go(self, name: str) -> None:
        self._gates[name].set()
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def floor(places: int, play: Callable[[Floor], Awaitable[None]]) -> None:
    async def main() -> None:
        made = Floor(places)
        await play(made)
        for gate in made._gates.values():
            gate.set()
        await settled()

    asyncio.run(main())


def test_tasks_are_begun_in_order_while_places_are_free() -> None:
    async def play(on: Floor) -> None:
        on.line("a", "b", "c")
        await settled()
        assert (on.begun, on.dispatcher.waiting) == (["a", "b"], 1)
        await on.let_go("b")
        assert on.begun == ["a", "b", "c"]

    floor(2, play)


def test_the_earliest_line_with_work_comes_first() -> None:
    async def play(on: Floor) -> None:
        on.line("a1", "a2")
        on.line("b1", "b2")
        on.line("c1")
        order = ["a1", "a2", "b1", "b2", "c1"]
        for number, name in enumerate(order):
            await settled()
            assert on.begun == order[: number + 1]
            await on.let_go(name)

    floor(1, play)


def test_a_line_at_its_own_limit_lets_later_ones_pass() -> None:
    async def play(on: Floor) -> None:
        on.line("a1", "a2", most=1)
        on.line("b1", "b2")
        await settled()
        assert on.begun == ["a1", "b1", "b2"]
        await on.let_go("a1")
        assert on.begun[3:] == ["a2"]

    floor(3, play)


def test_a_line_without_tasks_is_over_at_once() -> None:
    async def play(on: Floor) -> None:
        await asyncio.wait_for(on.line().over, 60)

    floor(1, play)


def test_a_line_is_over_when_its_last_task_is() -> None:
    async def play(on: Floor) -> None:
        line = on.line("a", "b")
        await settled()
        await on.let_go("a")
        assert not line.over.done()
        await on.let_go("b")
        assert line.over.done()

    floor(2, play)


def test_an_error_is_told_at_once_and_the_line_begins_nothing_more() -> None:
    async def play(on: Floor) -> None:
        line = on.line("bad", "slow", "never")
        other = on.line("other")
        await settled()
        await on.let_go("bad")
        with pytest.raises(RuntimeError, match="bad"):
            await line.over
        assert on.begun == ["bad", "slow", "other"]
        assert not other.over.done()

    floor(2, play)


def test_a_cancelled_task_gives_its_place_back() -> None:
    async def play(on: Floor) -> None:
        line = on.line("a")
        on.line("b")
        await settled()
        for running in line.running:
            running.cancel()
        await settled()
        assert on.begun == ["a", "b"]
        assert line.over.done()

    floor(1, play)


def test_after_a_stop_nothing_is_begun() -> None:
    async def play(on: Floor) -> None:
        line = on.line("a", "b")
        await settled()
        on.stop.request()
        await on.let_go("a")
        assert on.begun == ["a"]
        assert [task.task_id for task in on.dispatcher.leave(line)] == ["b"]
        assert line.over.done()

    floor(1, play)


def test_there_is_room_when_fewer_tasks_wait_than_there_are_places() -> None:
    async def play(on: Floor) -> None:
        line = on.line("a", "b", "c", "d")
        room = asyncio.ensure_future(on.dispatcher.room())
        await settled()
        assert not room.done()
        await on.let_go("a")
        assert room.done()
        assert on.dispatcher.waiting == 1
        on.dispatcher.leave(line)

    floor(2, play)


def test_tasks_that_leave_make_room() -> None:
    async def play(on: Floor) -> None:
        line = on.line("a", "b", "c")
        room = asyncio.ensure_future(on.dispatcher.room())
        await settled()
        assert not room.done()
        on.dispatcher.leave(line)
        await asyncio.wait_for(room, 60)

    floor(1, play)
