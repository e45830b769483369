import threading

import pytest

from runtime.inbox import Inbox


def test_everything_that_waits_is_taken_in_order() -> None:
    inbox: Inbox[int] = Inbox(10)
    for number in range(3):
        inbox.put(number)
    assert inbox.take(None) == [0, 1, 2]
    assert inbox.take(0) == []


def test_a_full_inbox_takes_nothing_until_there_is_room() -> None:
    inbox: Inbox[int] = Inbox(2)
    assert inbox.offer(1)
    assert inbox.offer(2)
    assert not inbox.offer(3)
    putting = threading.Thread(target=inbox.put, args=(3,))
    putting.start()
    assert inbox.take(None) == [1, 2]
    putting.join(10)
    assert inbox.take(None) == [3]


def test_a_closed_inbox_gives_what_it_holds_and_takes_no_more() -> None:
    inbox: Inbox[int] = Inbox(2)
    inbox.put(1)
    inbox.close(KeyError("first"))
    inbox.close(KeyError("second"))
    assert inbox.take(None) == [1]
    assert inbox.take(None) is None
    with pytest.raises(KeyError, match="first"):
        inbox.put(2)


def test_closing_wakes_whoever_waits_for_room_or_for_an_item() -> None:
    full: Inbox[int] = Inbox(1)
    full.put(1)
    outcomes: list[object] = []

    def put() -> None:
        with pytest.raises(KeyError):
            full.put(2)
        outcomes.append("put")

    empty: Inbox[int] = Inbox(1)
    threads = [
        threading.Thread(target=put),
        threading.Thread(target=lambda: outcomes.append(empty.take(None))),
    ]
    for thread in threads:
        thread.start()
    full.close(KeyError())
    empty.close(KeyError())
    for thread in threads:
        thread.join(10)
    assert sorted(map(str, outcomes)) == ["None", "put"]
