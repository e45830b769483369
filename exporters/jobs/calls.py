"""The physical model calls of an attempt, without their texts, in the order they were started."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from exporters.jobs.numbers import total
from exporters.reading import Reading
from ledger import events as ev
from ledger.state import AttemptState
from ledger.view import Blobs

# What is dropped of the events that are kept: their large values are fetched one at a time.
_NO_TEXT = {"messages": None, "params": None}
_NO_RESPONSE = {"response": None}


@dataclass(slots=True)
class Call:
    """One call: its start, and what was last told of its end.

    `start` is None where it was erased, `end` where the call was lost, its end was erased, or it
    is open. `retry` counts the tries of the attempt that were discarded before it. Times are
    those of recording, in nanoseconds and ISO-8601; `address` is that of the last body, in hex.
    `is_asked` is whether its request was recorded, which imports may not know.
    """

    start: ev.CallStarted | None
    start_seq: int | None
    start_ns: int | None
    retry: int
    address: str
    end: ev.CallFinished | None = None
    end_seq: int | None = None
    end_at: str | None = None
    end_ns: int | None = None
    lost: bool = False
    is_asked: bool = True

    @property
    def index(self) -> int:
        """The number of the call within the attempt; an erased start stands where it was."""
        return -1 if self.start is None else self.start.call_index

    @property
    def success(self) -> bool:
        """Whether an answer came."""
        return self.end is not None and self.end.success

    @property
    def usage(self) -> ev.Usage | None:
        """The tokens that were counted, if any were."""
        return None if self.end is None else self.end.usage


def calls_of(attempt: AttemptState, reading: Reading, blobs: Blobs) -> list[Call]:
    """All calls of the attempt, those of discarded tries too, by index; erased starts come first.

    A call that was given up and whose end came late is told by its end.
    """
    calls: list[Call] = []
    latest: dict[str, Call] = {}
    ends = set(attempt.call_ends)
    for seq in sorted([*attempt.calls, *ends]):
        if seq in ends:
            _end(seq, reading, blobs, calls, latest)
            continue
        start = reading.event(seq, ev.CallStarted)
        if start is not None:
            recorded = blobs.event(seq)
            retry = sum(discarded < seq for discarded in attempt.retries)
            call = Call(
                start=start.model_copy(update=_NO_TEXT),
                start_seq=seq,
                start_ns=recorded.wall_ns,
                retry=retry,
                address=recorded.address.hex(),
                is_asked=start.messages is not None,
            )
            calls.append(call)
            latest[start.call_id] = call
    return sorted(calls, key=lambda call: (call.index, call.start_seq or -1))


def _end(
    seq: int, reading: Reading, blobs: Blobs, calls: list[Call], latest: dict[str, Call]
) -> None:
    end = reading.either(seq, ev.CallFinished, ev.CallLost)
    if end is None:
        return
    recorded = blobs.event(seq)
    address = recorded.address.hex()
    call = latest.get(end.call_id)
    if call is None:  # its start was erased
        call = Call(start=None, start_seq=None, start_ns=None, retry=0, address=address)
        calls.append(call)
        latest[end.call_id] = call
    call.address = address
    if isinstance(end, ev.CallLost):
        call.lost = True
        return
    call.lost = False
    call.end = end.model_copy(update=_NO_RESPONSE)
    call.end_seq, call.end_at, call.end_ns = seq, recorded.at, recorded.wall_ns


def messages(call: Call, reading: Reading, blobs: Blobs) -> object:
    """The whole of what the model was sent; None where it is not there any more."""
    if call.start_seq is None:
        return None
    start = blobs.event(call.start_seq).event
    assert isinstance(start, ev.CallStarted)
    return reading.value(call.start_seq, start.messages)


def params(call: Call, reading: Reading, blobs: Blobs) -> dict[str, object]:
    """The parameters that the call was sent with."""
    if call.start_seq is None:
        return {}
    start = blobs.event(call.start_seq).event
    assert isinstance(start, ev.CallStarted)
    found = reading.value(call.start_seq, start.params)
    return found if isinstance(found, dict) else {}


def response(call: Call, reading: Reading, blobs: Blobs) -> dict[str, object] | None:
    """The whole answer, or what came of it; None without one."""
    if call.end_seq is None:
        return None
    end = blobs.event(call.end_seq).event
    assert isinstance(end, ev.CallFinished)
    found = reading.value(call.end_seq, end.response)
    return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and dollars of the calls that succeeded. None is unknown: no call told it.

    A cost is known only where that of every one of them is.
    """

    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None

    @classmethod
    def of(cls, calls: Sequence[Call]) -> "Spent":
        """What the calls took together."""
        ends = [call.end for call in calls if call.end is not None and call.end.success]
        usages = [end.usage for end in ends if end.usage is not None]
        costs = [end.cost_usd for end in ends if end.cost_usd is not None]
        return cls(
            input_tokens=total(usage.input_tokens for usage in usages),
            cached_tokens=total(usage.cached_tokens for usage in usages),
            output_tokens=total(usage.output_tokens for usage in usages),
            cost_usd=math.fsum(costs) if costs and len(costs) == len(ends) else None,
        )
