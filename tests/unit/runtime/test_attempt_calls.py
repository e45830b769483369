import asyncio
from itertools import count

from ledger import events as ev
from ledger.events import ErrorInfo, Usage
from runtime.attempt_calls import AttemptCalls
from runtime.call_records import CallEnd, CallStart, Coordinates


def test_the_clients_records_become_events_of_the_attempt() -> None:
    recorded: list[ev.AnyEvent] = []

    async def record(event: ev.AnyEvent) -> None:
        recorded.append(event)

    calls = AttemptCalls(Coordinates("r", "t", 2), record, recorded.append, count(5))
    messages = [{"role": "user", "content": "hi"}]
    start = CallStart("c", 0, "openai", "gpt", {"temperature": 0}, messages)
    end = CallEnd(
        call_id="c",
        success=False,
        response=None,
        usage=Usage(input_tokens=3, output_tokens=0),
        cost_usd=None,
        cost_source="unknown",
        started_at="2026-01-01T00:00:00.000000Z",
        finished_at="2026-01-01T00:00:01.000000Z",
        duration_ms=1000.0,
        ttft_ms=None,
        provider_request_id="req-1",
        error=ErrorInfo(code="provider_timeout", message="late"),
    )

    async def both() -> None:
        await calls.started(start)
        await calls.finished(end)

    asyncio.run(both())
    begun, ended = recorded
    assert begun == ev.CallStarted(
        task="t",
        attempt=2,
        call_id="c",
        call_index=5,
        provider="openai",
        model="gpt",
        params={"temperature": 0},
        messages=messages,
    )
    assert isinstance(ended, ev.CallFinished)
    assert ended.usage == Usage(input_tokens=3, output_tokens=0)
    assert ended.error == ErrorInfo(code="provider_timeout", message="late")
    assert (ended.duration_ms, ended.provider_request_id) == (1000.0, "req-1")
