import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from ledger.errors import ExportRefused
from ledger.state import RunState
from ledger.store import Ledger
from ledger.view import Blobs
from runtime.publishing import Publisher
from runtime.recorder import Recorder
from runtime.redact import Redactor
from tests import events_of as say


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(Ledger.create(tmp_path), Redactor({}))
    made.record_sync(*say.opening("t"))
    yield made
    made.close()


class Projector:
    """Fails while it is told to."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.failing = False

    def __call__(self, state: RunState, blobs: Blobs) -> None:
        if self.failing:
            raise ExportRefused("occupied")
        self.sizes.append(state.size)


class Publishing(Protocol):
    def __call__(self, *projectors: Any, tell: Any = None) -> Publisher: ...


@pytest.fixture
def publisher(recorder: Recorder, tmp_path: Path) -> Iterator[Publishing]:
    """Makes a publisher, and closes it after the test."""
    with ExitStack() as made:

        def publishing(*projectors: Any, tell: Any = None) -> Publisher:
            makers = [lambda _, one=one: one for one in projectors]
            found = Publisher(recorder, tmp_path, makers, tell, lambda: (0, 0))
            made.callback(lambda: asyncio.run(found.close()))
            return found

        yield publishing


def test_a_look_shows_everybody_the_same_state(publisher: Publishing) -> None:
    one, two = Projector(), Projector()
    told: list[int] = []
    found = publisher(one, two, tell=lambda p: told.append(p.total))
    found.look()
    assert (one.sizes, two.sizes, told) == ([3], [3], [1])


def test_one_that_fails_does_not_keep_the_others_from_seeing(
    publisher: Publishing, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = Projector(), Projector()
    bad.failing = True
    found = publisher(bad, good)
    found.look()
    found.look()
    assert good.sizes == [3, 3]
    assert found.failure is not None
    assert (found.failure[0].code, found.failure[1]) == ("export_refused", 5)
    assert found.failure[0].message.startswith("not all files of the run were written: occupied")
    assert caplog.text.count("cannot be written") == 1


def test_a_later_look_makes_up_for_one_that_failed(publisher: Publishing) -> None:
    projector = Projector()
    projector.failing = True
    found = publisher(projector)
    found.look()
    projector.failing = False
    found.look()
    assert found.failure is None


def test_following_looks_at_the_start_and_stops_after_a_look(
    publisher: Publishing,
) -> None:
    projector = Projector()

    async def follow() -> None:
        found = publisher(projector)
        found.start()
        while not projector.sizes:
            await asyncio.sleep(0.001)
        await found.stop()
        await found.stop()
        await found.last()

    asyncio.run(follow())
    assert projector.sizes == [3, 3]


def test_a_watcher_that_breaks_does_not_end_the_following(
    publisher: Publishing, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Any) -> None:
        raise KeyError("a bug of the watcher")

    async def follow() -> None:
        found = publisher(tell=broken)
        found.start()
        while "cannot be followed" not in caplog.text:
            await asyncio.sleep(0.001)
        await found.stop()

    asyncio.run(follow())


def test_one_thread_takes_all_looks(publisher: Publishing) -> None:
    threads: set[int] = set()
    looks: list[int] = []

    def project(state: RunState, blobs: Blobs) -> None:
        threads.add(threading.get_ident())
        looks.append(state.size)

    async def follow() -> None:
        found = publisher(project)
        for _ in range(5):
            # Others work in the threads of the loop meanwhile.
            await asyncio.gather(found.last(), *(asyncio.to_thread(sum, ()) for _ in range(8)))

    asyncio.run(follow())
    assert len(looks) == 5
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_no_thread_is_left_when_it_is_closed(publisher: Publishing) -> None:
    threads: list[threading.Thread] = []
    found = publisher(lambda *_: threads.append(threading.current_thread()))

    async def closed_twice() -> None:
        await found.last()
        await found.close()
        await found.close()

    asyncio.run(closed_twice())
    (thread,) = threads
    thread.join(60)
    assert not thread.is_alive()
