"""Which model calls of which attempts are open: what is left of them when a try ends is lost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ledger import events as ev
from ledger.events import AnyEvent

Key = tuple[str, int]
# Looked up first: pydantic makes a question for the class of an event a slow one.
_OF_CALLS: Final = frozenset(
    {ev.CallStarted, ev.CallFinished, ev.CallLost, ev.AttemptFinished, ev.AttemptRetried}
)


@dataclass(slots=True)
class Moves:
    """What one batch did to the open calls, to be undone if it is not stored."""

    opened: list[tuple[Key, str]] = field(default_factory=list)
    closed: list[tuple[Key, str]] = field(default_factory=list)


class OpenCalls:
    """The calls of each attempt that were started and of which no end was told.

    Only `follow` and `undo` move them.
    """

    def __init__(self) -> None:
        self._open: dict[Key, dict[str, None]] = {}

    def follow(self, events: Iterable[AnyEvent], moves: Moves) -> Iterable[AnyEvent]:
        """Yield `events`; before a try ends, a call.lost for each of its calls that is open."""
        for event in events:
            if type(event) in _OF_CALLS:
                yield from self._follow(event, moves)
            else:
                yield event

    def _follow(self, event: AnyEvent, moves: Moves) -> Iterator[AnyEvent]:
        match event:
            case ev.CallStarted():
                self._begin((event.task, event.attempt), event.call_id, moves)
            case ev.CallFinished() | ev.CallLost():
                self._end((event.task, event.attempt), event.call_id, moves)
            case ev.AttemptFinished() | ev.AttemptRetried():
                key = (event.task, event.attempt)
                for call_id in list(self._open.get(key, ())):
                    yield ev.CallLost(task=event.task, attempt=event.attempt, call_id=call_id)
                    self._end(key, call_id, moves)
        yield event

    def undo(self, moves: Moves) -> None:
        """Take back what a batch did that was not stored."""
        for key, call_id in moves.closed:
            self._open.setdefault(key, {})[call_id] = None
        for key, call_id in moves.opened:
            self._discard(key, call_id)

    def _begin(self, key: Key, call_id: str, moves: Moves) -> None:
        self._open.setdefault(key, {})[call_id] = None
        moves.opened.append((key, call_id))

    def _end(self, key: Key, call_id: str, moves: Moves) -> None:
        # The end of a call that was given up before may still be told: it is not open any more.
        if call_id in self._open.get(key, ()):
            self._discard(key, call_id)
            moves.closed.append((key, call_id))

    def _discard(self, key: Key, call_id: str) -> None:
        calls = self._open.get(key, {})
        calls.pop(call_id, None)
        if not calls:
            self._open.pop(key, None)
