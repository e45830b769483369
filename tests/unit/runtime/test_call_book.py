import logging
import threading
from typing import Any

import pytest

from ledger.errors import NotStored
from runtime.call_book import CallBook
from runtime.call_records import CallEnd, CallStart, Coordinates, Unattributed
from runtime.litellm_payload import INNER_RETRIES_UNKNOWN, NO_DETAILS, START_UNSEEN, Began, bare_end

HERE, THERE = Coordinates("run", "t", 1), Coordinates("run", "t", 2)


class Sink:
    """Keeps what it is told; refuses the kinds in `refuses`."""

    def __init__(self, where: Coordinates = HERE, *refuses: str) -> None:
        self.coordinates = where
        self.told: list[tuple[str, Any]] = []
        self.refuses = set(refuses)

    def _keep(self, kind: str, call: Any) -> None:
        if kind in self.refuses:
            raise NotStored("no room")
        self.told.append((kind, call))

    def started_sync(self, call: CallStart) -> None:
        self._keep("started", call)

    def finished_sync(self, call: CallEnd) -> None:
        self._keep("finished", call)

    def unattributed_sync(self, call: Unattributed) -> None:
        self._keep("unattributed", call)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(kind, call.call_id) for kind, call in self.told]

    @property
    def flags(self) -> tuple[str, ...]:
        kind, call = self.told[-1]
        assert kind == "finished"
        return tuple(call.flags)


def began(call_id: str, where: Coordinates | None = HERE, **more: Any) -> Began:
    start = CallStart(call_id, 0, "p", "m", {}, [{"role": "user", "content": "hi"}])
    return Began(where, start, (), **more)


def good(known: Began) -> CallEnd:
    return bare_end(known, success=True)


def ends(book: CallBook, call_id: str, where: Coordinates | None = HERE) -> None:
    book.end(began(call_id, where), success=True, read=good)


def test_a_call_is_recorded_where_it_says_it_belongs() -> None:
    book, here, there = CallBook(), Sink(HERE), Sink(THERE)
    book.join(here)
    book.join(there)
    book.begin(began("a", THERE))
    book.begin(began("b", HERE))
    ends(book, "b", HERE)
    ends(book, "a", THERE)
    assert here.kinds == [("started", "b"), ("finished", "b")]
    assert there.kinds == [("started", "a"), ("finished", "a")]


def test_an_end_that_is_reported_twice_is_recorded_once() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink)
    book.begin(began("a"))
    threads = [threading.Thread(target=ends, args=(book, "a")) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends(book, "a")
    assert sink.kinds == [("started", "a"), ("finished", "a")]


def test_an_end_without_a_start_gets_one_now_and_is_marked() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink)
    ends(book, "a")
    assert sink.kinds == [("started", "a"), ("finished", "a")]
    assert START_UNSEEN in sink.flags


def test_the_end_of_a_call_whose_attempt_has_ended_still_goes_there() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink)
    book.begin(began("a"))
    book.leave(sink)
    assert book.open_calls(sink) == ["a"]
    ends(book, "a")
    assert sink.kinds[-1] == ("finished", "a")


def test_a_sink_that_joined_twice_stays_until_it_left_twice() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink)
    book.join(sink)
    book.leave(sink)
    book.begin(began("a"))
    book.leave(sink)
    book.begin(began("b"))
    assert sink.kinds == [("started", "a")]
    assert book.unattributed == 1


def test_a_call_without_coordinates_is_told_to_each_run_once_and_given_to_no_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    book = CallBook()
    sinks = [Sink(HERE), Sink(THERE), Sink(Coordinates("other", "t", 1))]
    for sink in sinks:
        book.join(sink)
    book.begin(began("a", None))
    ends(book, "a", None)
    ends(book, "a", None)
    assert sorted(len(sink.told) for sink in sinks) == [0, 1, 1]
    (note,) = {call for sink in sinks for _, call in sink.told}
    assert note == Unattributed("a", "p", "m", "it names no attempt")
    assert book.unattributed == 1
    assert "no attempt" in caplog.text


def test_a_call_of_an_attempt_that_is_not_open_is_not_given_to_another() -> None:
    book, sink = CallBook(), Sink(HERE)
    book.join(sink)
    book.begin(began("a", THERE))
    assert sink.kinds == [("unattributed", "a")]
    assert sink.told[0][1].reason == "its attempt is not open here"


def test_only_a_process_that_was_declared_whole_takes_calls_without_coordinates() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink, whole_process=True)
    book.begin(began("a", None))
    book.begin(began("b", THERE))
    book.leave(sink, whole_process=True)
    book.begin(began("c", None))
    assert sink.kinds == [("started", "a"), ("unattributed", "b")]


def test_a_call_that_is_sent_anew_inside_is_one_call_and_flagged() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink)
    book.begin(began("a"))
    book.begin(began("a"))
    ends(book, "a")
    assert sink.kinds == [("started", "a"), ("finished", "a")]
    assert INNER_RETRIES_UNKNOWN in sink.flags


def test_a_call_that_ended_and_is_sent_again_under_its_id_is_another_call() -> None:
    book, sink = CallBook(), Sink()
    book.join(sink)
    for _ in range(3):
        book.begin(began("a"))
        ends(book, "a")
    ids = ["a", "a#2", "a#3"]
    assert sink.kinds == [(kind, one) for one in ids for kind in ("started", "finished")]


def test_a_start_that_could_not_be_stored_is_stored_with_the_end() -> None:
    book, sink = CallBook(), Sink(HERE, "started")
    book.join(sink)
    book.begin(began("a"))
    assert (sink.told, book.failures) == ([], 1)
    sink.refuses.clear()
    ends(book, "a")
    assert sink.kinds == [("started", "a"), ("finished", "a")]
    assert sink.told[0][1].messages
    assert START_UNSEEN in sink.flags


def test_the_end_is_told_also_where_nobody_answered_that_the_start_is_stored() -> None:
    class Mute(Sink):
        def started_sync(self, call: CallStart) -> None:
            super().started_sync(call)
            self.refuses.add("started")
            raise NotStored("no answer")

    book, sink = CallBook(), Mute()
    book.join(sink)
    book.begin(began("a"))
    ends(book, "a")
    assert sink.kinds == [("started", "a"), ("finished", "a")]


def test_what_cannot_be_stored_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    book, sink = CallBook(), Sink(HERE, "finished")
    book.join(sink)
    book.begin(began("a"))
    with caplog.at_level(logging.ERROR):
        ends(book, "a")
    assert book.failures == 1
    assert "the end of model call a is not recorded: no room" in caplog.text
    assert book.open_calls(sink) == []


def test_a_report_that_cannot_be_read_still_ends_the_call() -> None:
    def broken(known: Began) -> CallEnd:
        raise KeyError("x")

    book, sink = CallBook(), Sink()
    book.join(sink)
    book.begin(began("a"))
    book.end(began("a"), success=False, read=broken)
    assert sink.kinds == [("started", "a"), ("finished", "a")]
    assert NO_DETAILS in sink.flags
    assert sink.told[-1][1].success is False


def test_waiting_ends_with_the_last_call_and_not_before_its_end_is_stored() -> None:
    book, release = CallBook(), threading.Event()

    class Slow(Sink):
        def finished_sync(self, call: CallEnd) -> None:
            release.wait(60)
            super().finished_sync(call)

    sink = Slow()
    book.join(sink)
    book.begin(began("a"))
    ending = threading.Thread(target=ends, args=(book, "a"))
    ending.start()
    assert not book.wait(sink, 0.05)
    release.set()
    assert book.wait(sink, 10)
    assert sink.kinds[-1] == ("finished", "a")
    ending.join()


def test_waiting_is_for_calls_of_the_asked_kind_and_sink() -> None:
    book, sink, other = CallBook(), Sink(HERE), Sink(THERE)
    book.join(sink)
    book.join(other)
    book.begin(began("a"), asynchronous=True)
    book.begin(began("b", THERE))
    assert book.wait(sink, 0, asynchronous=False)
    assert not book.wait(sink, 0)
    assert book.open_calls(sink, asynchronous=True) == ["a"]


def test_the_messages_of_a_stored_start_are_not_kept() -> None:
    book, sink, seen = CallBook(), Sink(), []
    book.join(sink)
    book.begin(began("a"))
    book.end(began("a"), success=True, read=lambda known: seen.append(known) or good(known))
    assert seen[0].start.messages == []
