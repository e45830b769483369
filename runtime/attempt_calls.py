"""The model client's records of one attempt, as events."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import fields

from ledger import events as ev
from runtime.llm import CallEnd, CallStart


class AttemptCalls:
    """Records the model calls of one attempt; the `CallRecorder` of its context.

    `numbers` counts them over all tries and clients of the attempt.
    """

    def __init__(
        self,
        task: str,
        attempt: int,
        record: Callable[..., Awaitable[None]],
        numbers: Iterator[int],
    ) -> None:
        self._task = task
        self._attempt = attempt
        self._record = record
        self._numbers = numbers

    async def started(self, call: CallStart) -> None:
        """Return once the start is on disk; the request may be sent then."""
        await self._record(
            ev.CallStarted(
                task=self._task,
                attempt=self._attempt,
                call_id=call.call_id,
                call_index=next(self._numbers),
                provider=call.provider,
                model=call.model,
                params=call.params or None,
                messages=call.messages,
            )
        )

    async def finished(self, call: CallEnd) -> None:
        """Return once the end is on disk."""
        await self._record(
            ev.CallFinished(
                task=self._task,
                attempt=self._attempt,
                **{field.name: getattr(call, field.name) for field in fields(call)},
            )
        )
