"""The model calls of one attempt, as events; for callers with an event loop and without."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, fields
from typing import Final, Self

from ledger import events as ev
from runtime.call_records import CallEnd, CallStart, Coordinates, Unattributed
from runtime.recorder import Recorder

UNATTRIBUTED: Final = "acl.unattributed-call"
"""Name of the event that tells of a call which belongs to no attempt that is known."""


class AttemptCalls:
    """Records the model calls of one attempt; the `CallRecorder` of its context.

    `numbers` counts them over all tries and clients of the attempt.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        record: Callable[..., Awaitable[object]],
        record_sync: Callable[..., object],
        numbers: Iterator[int],
    ) -> None:
        self._coordinates = coordinates
        self._record = record
        self._record_sync = record_sync
        self._numbers = numbers

    @classmethod
    def of(cls, recorder: Recorder, task: str, attempt: int, numbers: Iterator[int]) -> Self:
        """The calls of an attempt of the run that `recorder` records."""
        run_id = recorder.ledger.path.parent.name
        coordinates = Coordinates(run_id, task, attempt)
        return cls(coordinates, recorder.record, recorder.record_sync, numbers)

    @property
    def coordinates(self) -> Coordinates:
        """The attempt whose calls these are."""
        return self._coordinates

    async def started(self, call: CallStart) -> None:
        """Return once the start is on disk; the request may be sent then."""
        await self._record(self._start(call))

    async def finished(self, call: CallEnd) -> None:
        """Return once the end is on disk."""
        await self._record(self._end(call))

    def started_sync(self, call: CallStart) -> None:
        """`started` for callers without an event loop."""
        self._record_sync(self._start(call))

    def finished_sync(self, call: CallEnd) -> None:
        """`finished` for callers without an event loop."""
        self._record_sync(self._end(call))

    def unattributed_sync(self, call: Unattributed) -> None:
        """Record in the run that a call was made which belongs to no attempt that is known."""
        self._record_sync(ev.ExtensionRecorded(name=UNATTRIBUTED, payload=asdict(call)))

    def _start(self, call: CallStart) -> ev.CallStarted:
        return ev.CallStarted(
            task=self._coordinates.task,
            attempt=self._coordinates.attempt,
            call_id=call.call_id,
            call_index=next(self._numbers),
            provider=call.provider,
            model=call.model,
            params=call.params or None,
            messages=call.messages,
        )

    def _end(self, call: CallEnd) -> ev.CallFinished:
        return ev.CallFinished(
            task=self._coordinates.task,
            attempt=self._coordinates.attempt,
            **{field.name: getattr(call, field.name) for field in fields(call)},
        )
