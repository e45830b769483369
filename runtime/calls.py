"""Model calls of attempts: which are open, and how the client's records become events."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import events as ev
from ledger.events import AnyEvent

Key = tuple[str, int]

_HEADER: Final = frozenset({"type", "task", "attempt", "lease", "redactions"})


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
                case _:
                    pass
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


class AttemptCalls:
    """Records the model calls of one attempt; the `CallRecorder` of its context."""

    def __init__(self, task: str, attempt: int, record: Callable[..., Awaitable[None]]) -> None:
        self._task = task
        self._attempt = attempt
        self._record = record

    async def started(self, call: Any) -> None:
        """Return once the start is on disk; the request may be sent then."""
        await self._record(
            ev.CallStarted(task=self._task, attempt=self._attempt, **_fields(call, ev.CallStarted))
        )

    async def finished(self, call: Any) -> None:
        """Return once the end is on disk."""
        await self._record(
            ev.CallFinished(
                task=self._task, attempt=self._attempt, **_fields(call, ev.CallFinished)
            )
        )


def _fields(call: Any, event: type[ev.Event]) -> dict[str, Any]:
    """The fields of an event that `call` has, by the same names."""
    names = [name for name in event.model_fields if name not in _HEADER]
    found = {name: getattr(call, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}
