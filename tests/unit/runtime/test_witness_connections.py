"""Which connections of a server are shut, and when."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from runtime.witness.connections import Connections

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    """Ours and that of the client, which does not wait."""
    with ExitStack() as stack:
        made = [socket.socketpair() for _ in range(3)]
        for pair in made:
            pair[1].setblocking(False)
            for one in pair:
                stack.enter_context(one)
        yield made


def is_shut(pair: Pair) -> bool:
    try:
        return pair[1].recv(1) == b""
    except BlockingIOError:
        return False


def test_those_whose_time_is_over_are_shut_and_no_others(pairs: list[Pair]) -> None:
    now = 0.0
    held = Connections(3, 30.0, lambda: now)
    assert held.enter(pairs[0][0])
    now = 1.0
    assert held.enter(pairs[1][0])
    now = 20.0
    assert held.enter(pairs[2][0])
    now = 29.0
    held.drop_overdue()
    assert [is_shut(pair) for pair in pairs] == [False, False, False]
    held.renew(pairs[0][0])
    now = 31.0
    held.drop_overdue()
    assert [is_shut(pair) for pair in pairs] == [False, True, False]
    now = 59.0
    held.drop_overdue()
    assert [is_shut(pair) for pair in pairs] == [True, True, True]


def test_one_that_is_shut_holds_its_room_until_it_has_left(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.witness.connections._MOMENT", 0.01)
    first, second, third = pairs
    held = Connections(1, 30.0)
    assert held.enter(first[0])
    assert not held.enter(second[0])
    assert is_shut(first)
    held.leave(second[0])
    assert not held.enter(third[0])
    held.leave(first[0])
    assert held.enter(third[0])
    assert not is_shut(third)


def test_what_begins_a_new_request_is_not_the_oldest_any_more(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.witness.connections._MOMENT", 0.01)
    held = Connections(2, 30.0)
    assert held.enter(pairs[0][0])
    assert held.enter(pairs[1][0])
    held.renew(pairs[0][0])
    held.enter(pairs[2][0])
    assert [is_shut(pair) for pair in pairs[:2]] == [False, True]
