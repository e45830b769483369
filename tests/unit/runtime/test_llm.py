"""The model client against a stub endpoint: answers, failures, and the records of both."""

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from ledger.errors import NotStored, UsageError, ValueRefused
from ledger.events import CallFinished, CallStarted, Usage
from runtime.llm import (
    CallEnd,
    CallStart,
    ClientSurroundings,
    LLMClient,
    ModelCallFailed,
    ToolCall,
    resolve_api_key,
)
from runtime.models import EnvName, ModelSpec
from tests.stub_endpoint import StubEndpoint, refusing_port

QUESTION = [{"role": "system", "content": "Add up."}, {"role": "user", "content": "40+2?"}]
KEY = "a-key-of-no-known-shape"


@dataclass
class Records:
    """A recorder that keeps all in order, together with what the stub had seen by then."""

    stub: StubEndpoint | None = None
    all: list[CallStart | CallEnd] = field(default_factory=list)
    sent_before: list[int] = field(default_factory=list)

    async def started(self, call: CallStart) -> None:
        await asyncio.sleep(0)
        self.sent_before.append(len(self.stub.requests) if self.stub else 0)
        self.all.append(call)

    async def finished(self, call: CallEnd) -> None:
        await asyncio.sleep(0)
        self.all.append(call)

    @property
    def end(self) -> CallEnd:
        call = self.all[-1]
        assert isinstance(call, CallEnd)
        return call


def surroundings(**more: Any) -> ClientSurroundings:
    seconds = itertools.count()
    ids = itertools.count()
    return ClientSurroundings(
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        monotonic=lambda: float(next(seconds)),
        new_id=lambda: f"call-{next(ids)}",
        **{"environ": {}, **more},
    )


def spec(base_url: str, **more: Any) -> ModelSpec:
    return ModelSpec(**{"id": "stub-model", "base_url": base_url, **more})


def ask(
    stub: StubEndpoint,
    records: Records,
    *,
    spec_more: Any = None,
    client_more: Any = None,
    **params: Any,
) -> Any:
    async def call() -> Any:
        client = LLMClient(
            spec(stub.base_url, **(spec_more or {})),
            records,
            **{"around": surroundings(), "timeout_seconds": 20.0, **(client_more or {})},
        )
        async with client:
            return await client.chat(QUESTION, **params)

    return asyncio.run(call())


def test_an_answer_comes_with_its_usage_and_is_recorded() -> None:
    with StubEndpoint() as stub:
        records = Records(stub)
        completion = ask(stub, records, temperature=0)
    assert completion.text == "echo: 40+2?"
    assert completion.usage == Usage(
        input_tokens=3, output_tokens=2, total_tokens=5, cached_tokens=2, reasoning_tokens=0
    )
    assert stub.requests[0].path == "/v1/chat/completions"
    assert stub.requests[0].body == {"model": "stub-model", "messages": QUESTION, "temperature": 0}
    assert records.all == [
        CallStart("call-0", 0, "127.0.0.1", "stub-model", {"temperature": 0}, QUESTION),
        CallEnd(
            call_id="call-0",
            success=True,
            response=completion.response,
            usage=completion.usage,
            cost_usd=None,
            cost_source="unknown",
            started_at="2026-01-01T00:00:00.000000Z",
            finished_at="2026-01-01T00:00:00.000000Z",
            duration_ms=1000.0,
            ttft_ms=None,
            provider_request_id="req-1",
            error=None,
        ),
    ]


def test_the_start_is_recorded_before_the_request_is_sent() -> None:
    with StubEndpoint("answer", "500") as stub:
        records = Records(stub)
        ask(stub, records)
        with pytest.raises(ModelCallFailed):
            ask(stub, records)
    assert records.sent_before == [0, 1]


def test_a_streamed_answer_is_the_same_answer() -> None:
    with StubEndpoint() as stub:
        whole, streamed = Records(), Records()
        one = ask(stub, whole)
        two = ask(stub, streamed, stream=True)
    assert (two.text, two.usage, two.finish_reason) == (one.text, one.usage, one.finish_reason)
    assert two.message == one.message
    assert streamed.end.ttft_ms == 1000.0
    assert streamed.end.response == two.response
    assert stub.requests[1].body["stream_options"] == {"include_usage": True}


def test_usage_is_asked_for_whatever_other_stream_options_there_are() -> None:
    with StubEndpoint() as stub:
        ask(stub, Records(), stream=True, stream_options={"include_usage": False, "x": 1})
    assert stub.requests[0].body["stream_options"] == {"include_usage": True, "x": 1}


@pytest.mark.parametrize("stream", [False, True])
def test_usage_that_is_not_given_is_none_and_not_zero(stream: bool) -> None:
    with StubEndpoint("no_usage") as stub:
        records = Records()
        completion = ask(stub, records, stream=stream)
    assert completion.usage is None
    assert (records.end.usage, records.end.cost_usd) == (None, None)
    assert records.end.cost_source == "unknown"


def test_a_known_model_has_a_cost() -> None:
    with StubEndpoint() as stub:
        records = Records()
        ask(stub, records, spec_more={"id": "gpt-4o"})
    # 1 new token at 2.50, 2 cached at 1.25, 2 out at 10.00, per million
    assert records.end.cost_usd == pytest.approx(25e-6, abs=1e-12)
    assert records.end.cost_source == "price_table"


def test_what_the_provider_says_it_charged_goes_above_the_price_table() -> None:
    async def charged(request: httpx.Request) -> httpx.Response:
        message = {"role": "assistant", "content": "42"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.5}
        return httpx.Response(200, json={"choices": [{"message": message}], "usage": usage})

    async def call(records: Records) -> None:
        around = surroundings(transport=httpx.MockTransport(charged))
        async with LLMClient(spec("http://h/v1", id="gpt-4o"), records, around=around) as client:
            await client.chat(QUESTION)

    records = Records()
    asyncio.run(call(records))
    assert (records.end.cost_usd, records.end.cost_source) == (0.5, "provider")


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_come_back_whole(stream: bool) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"path": "é"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    with StubEndpoint(answer=lambda body: message) as stub:
        records = Records()
        completion = ask(stub, records, stream=stream, tools=tools)
    assert completion.tool_calls == (ToolCall("t1", "f", '{"path": "é"}'),)
    assert completion.finish_reason == "tool_calls"
    assert stub.requests[0].body["tools"] == tools
    start = records.all[0]
    assert isinstance(start, CallStart)
    assert start.params["tools"] == tools


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", ["a\u2028b\u0085c", "NUL \x00", "half \ud835 of", "😀é", ""])
def test_any_text_comes_and_goes_unchanged(stream: bool, text: str) -> None:
    messages = [{"role": "user", "content": text}]
    with StubEndpoint(answer=lambda body: text) as stub:

        async def call() -> Any:
            async with LLMClient(spec(stub.base_url), Records()) as client:
                return await client.chat(messages, stream=stream)

        assert asyncio.run(call()).text == text
    assert stub.requests[0].body["messages"] == messages


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("behaviour", "code", "status", "retryable"),
    [
        ("400", "provider_bad_request", 400, False),
        ("401", "provider_authentication", 401, False),
        ("403", "provider_permission", 403, False),
        ("404", "provider_not_found", 404, False),
        ("context", "provider_context_window", 400, False),
        ("context_words", "provider_context_window", 400, False),
        ("quota", "provider_quota_exhausted", 429, False),
        ("429", "provider_rate_limited", 429, True),
        ("500", "provider_server_error", 500, True),
        ("503", "provider_server_error", 503, True),
        ("408", "provider_timeout", 408, True),
        ("redirect", "provider_bad_request", 302, False),
        ("not_json", "provider_invalid_response", 200, False),
        ("not_an_object", "provider_invalid_response", 200, False),
        ("no_choices", "provider_invalid_response", 200, False),
        ("error_in_200", "provider_server_error", 200, True),
        ("close", "provider_connection", None, True),
        ("die_midway", "provider_connection", None, True),
    ],
)
def test_a_failure_has_a_class_and_is_recorded_once(
    behaviour: str, code: str, status: int | None, retryable: bool, stream: bool
) -> None:
    with StubEndpoint(behaviour) as stub:
        records = Records()
        with pytest.raises(ModelCallFailed) as caught:
            ask(stub, records, stream=stream)
    error = caught.value
    assert (error.code, error.retryable) == (code, retryable)
    assert status is None or error.status == status
    assert len(stub.requests) == 1
    assert len(records.all) == 2
    assert not records.end.success
    assert records.end.error is not None
    assert (records.end.error.code, records.end.error.message) == (code, error.message)
    assert (records.end.usage, records.end.cost_usd) == (None, None)


def test_of_a_stream_that_breaks_what_came_is_recorded() -> None:
    with StubEndpoint("die_midway", answer=lambda body: "forty-two") as stub:
        records = Records()
        with pytest.raises(ModelCallFailed):
            ask(stub, records, stream=True)
    assert records.end.response is not None
    said = records.end.response["choices"][0]["message"]["content"]
    assert said
    assert "forty-two".startswith(said)
    assert records.end.ttft_ms is not None


def test_an_error_in_the_midst_of_a_stream_is_an_error() -> None:
    with StubEndpoint("error_midway") as stub, pytest.raises(ModelCallFailed) as caught:
        ask(stub, Records(), stream=True)
    assert (caught.value.code, caught.value.message) == (
        "provider_server_error",
        "the model crashed",
    )


def test_a_stream_that_ends_without_its_last_word_is_whole_if_it_gave_a_reason() -> None:
    with StubEndpoint("no_done") as stub:
        assert ask(stub, Records(), stream=True).text == "echo: 40+2?"


def test_a_server_that_does_not_stream_when_asked_to_is_understood() -> None:
    with StubEndpoint("no_stream") as stub:
        assert ask(stub, Records(), stream=True).text == "echo: 40+2?"


@pytest.mark.parametrize("behaviour", ["hang", "slow_end"])
def test_a_call_that_takes_too_long_is_ended_and_recorded(behaviour: str) -> None:
    with StubEndpoint(behaviour) as stub:
        records = Records()
        with pytest.raises(ModelCallFailed) as caught:
            ask(stub, records, stream=True, client_more={"timeout_seconds": 0.3})
    assert caught.value.code == "provider_timeout"
    assert not records.end.success


def test_no_proxy_stands_before_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing_port() as port, StubEndpoint() as stub:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        assert ask(stub, Records()).text == "echo: 40+2?"


def test_a_port_without_a_server_is_a_lost_connection() -> None:
    records = Records()

    async def call() -> None:
        async with LLMClient(spec(f"http://127.0.0.1:{port}/v1"), records) as client:
            await client.chat(QUESTION)

    with refusing_port() as port, pytest.raises(ModelCallFailed) as caught:
        asyncio.run(call())
    assert caught.value.code == "provider_connection"
    assert caught.value.status is None
    assert not records.end.success


# -- keys -----------------------------------------------------------------------------------------


def test_a_key_by_name_is_looked_up_at_each_call() -> None:
    environ = {"STUB_KEY": "first-value"}
    with StubEndpoint() as stub:

        async def calls() -> None:
            client = LLMClient(
                spec(stub.base_url, api_key=EnvName(env="STUB_KEY")),
                Records(),
                around=surroundings(environ=environ),
            )
            async with client:
                await client.chat(QUESTION)
                environ["STUB_KEY"] = "second-value"
                await client.chat(QUESTION)

        asyncio.run(calls())
    sent = [request.headers["authorization"] for request in stub.requests]
    assert sent == ["Bearer first-value", "Bearer second-value"]


@pytest.mark.parametrize(
    ("api_key", "environ", "key"),
    [
        (None, {}, None),
        ("", {}, None),
        ("abc", {}, "abc"),
        ({"env": "K"}, {"K": "abc\n"}, "abc"),
        (EnvName(env="K"), {"K": "abc"}, "abc"),
    ],
)
def test_a_key_is_a_text_or_the_name_of_a_variable(
    api_key: Any, environ: dict[str, str], key: str | None
) -> None:
    assert resolve_api_key(api_key, environ) == key


def test_a_variable_without_a_key_is_named_and_nothing_is_recorded() -> None:
    with StubEndpoint() as stub:
        records = Records()
        with pytest.raises(UsageError, match="NO_SUCH_KEY"):
            ask(stub, records, client_more={"api_key": {"env": "NO_SUCH_KEY"}})
    assert (records.all, stub.requests) == ([], [])


def test_without_a_key_no_authorization_is_sent() -> None:
    with StubEndpoint() as stub:
        ask(stub, Records())
    assert "authorization" not in stub.requests[0].headers


def test_the_key_is_in_no_record_and_no_error_even_if_the_provider_repeats_it() -> None:
    with StubEndpoint("401") as stub:
        records = Records()
        with pytest.raises(ModelCallFailed) as caught:
            ask(stub, records, client_more={"api_key": KEY})
    assert stub.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "Incorrect API key provided: ********." in caught.value.message
    assert KEY not in repr(records.all)
    assert caught.value.__cause__ is None


# -- what cannot be sent --------------------------------------------------------------------------


def test_another_protocol_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="anthropic-messages"):
        LLMClient(spec("http://h/v1", api_protocol="anthropic-messages"), Records())


@pytest.mark.parametrize("base_url", ["", "no url", "ftp://h/v1", "http://", "http://h:port/"])
def test_a_base_url_that_cannot_be_called_is_refused(base_url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        LLMClient(spec(base_url), Records())


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/openai/v1/chat/completions", "/openai/v1/chat/completions"),
    ],
)
def test_the_path_is_added_to_the_base_url_once(base_url: str, path: str) -> None:
    with StubEndpoint() as stub:

        async def call() -> None:
            url = stub.base_url.removesuffix("/v1") + base_url
            async with LLMClient(spec(url), Records()) as client:
                await client.chat(QUESTION)

        asyncio.run(call())
    assert stub.requests[0].path == path


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes", object()])
def test_a_request_that_json_cannot_hold_is_refused_before_anything_is_recorded(value: Any) -> None:
    with StubEndpoint() as stub:
        records = Records()
        with pytest.raises(ValueRefused):
            ask(stub, records, temperature=value)
    assert (records.all, stub.requests) == ([], [])


@pytest.mark.parametrize("name", ["model", "messages"])
def test_parameters_of_the_model_cannot_replace_what_is_recorded(name: str) -> None:
    with StubEndpoint() as stub, pytest.raises(UsageError, match=name):
        ask(stub, Records(), spec_more={"params": {name: "x"}})


def test_parameters_of_the_call_go_above_those_of_the_model() -> None:
    with StubEndpoint() as stub:
        ask(stub, Records(), spec_more={"params": {"temperature": 1, "seed": 7}}, temperature=0)
    assert stub.requests[0].body["temperature"] == 0
    assert stub.requests[0].body["seed"] == 7


# -- recording ------------------------------------------------------------------------------------


def test_calls_are_numbered_in_their_order() -> None:
    with StubEndpoint("answer", "500") as stub:
        records = Records()

        async def calls() -> None:
            async with LLMClient(spec(stub.base_url), records, around=surroundings()) as client:
                await client.chat(QUESTION)
                with pytest.raises(ModelCallFailed):
                    await client.chat(QUESTION)
                await asyncio.gather(client.chat(QUESTION), client.chat(QUESTION))

        asyncio.run(calls())
    starts = [call for call in records.all if isinstance(call, CallStart)]
    assert [(call.call_index, call.call_id) for call in starts] == [
        (index, f"call-{index}") for index in range(4)
    ]


class Refusing(Records):
    async def started(self, call: CallStart) -> None:
        raise NotStored("the disk is full")


def test_what_cannot_be_recorded_is_not_sent() -> None:
    with StubEndpoint() as stub:
        records = Refusing()
        with pytest.raises(NotStored):
            ask(stub, records)
    assert (stub.requests, records.all) == ([], [])


def cancel_when(
    stub: StubEndpoint, records: Records, due: Callable[[], bool], **params: Any
) -> None:
    async def cancelled() -> None:
        client = LLMClient(spec(stub.base_url), records, around=surroundings())
        async with client:
            call = asyncio.ensure_future(client.chat(QUESTION, **params))
            while not due():
                await asyncio.sleep(0.005)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(cancelled())


@pytest.mark.parametrize("stream", [False, True])
def test_a_cancelled_call_is_recorded_as_cancelled(stream: bool) -> None:
    with StubEndpoint("hang") as stub:
        records = Records()
        cancel_when(stub, records, lambda: bool(stub.requests), stream=stream)
    assert len(records.all) == 2
    assert records.end.error is not None
    assert records.end.error.code == "call_cancelled"


@dataclass
class Slow(Records):
    """Takes its time with the start, or with the end."""

    slow: str = "started"
    waiting: bool = False

    async def started(self, call: CallStart) -> None:
        await self._wait("started")
        await super().started(call)

    async def finished(self, call: CallEnd) -> None:
        await self._wait("finished")
        await super().finished(call)

    async def _wait(self, name: str) -> None:
        if self.slow == name:
            self.waiting = True
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("slow", "sent", "success"), [("started", 0, False), ("finished", 1, True)]
)
def test_a_call_cancelled_while_it_is_being_recorded_has_a_start_and_an_end(
    slow: str, sent: int, success: bool
) -> None:
    with StubEndpoint() as stub:
        records = Slow(slow=slow)
        cancel_when(stub, records, lambda: records.waiting)
    assert [type(call) for call in records.all] == [CallStart, CallEnd]
    assert records.end.success is success
    assert len(stub.requests) == sent


def test_records_fit_the_events_of_the_ledger() -> None:
    with StubEndpoint("answer", "500") as stub:
        records = Records()
        ask(stub, records, stream=True)
        with pytest.raises(ModelCallFailed):
            ask(stub, records)
    for call in records.all:
        kind = CallStarted if isinstance(call, CallStart) else CallFinished
        event = kind(
            task="t", attempt=1, **{name: getattr(call, name) for name in call.__dataclass_fields__}
        )
        assert event.call_id == call.call_id


def test_the_same_surroundings_give_the_same_records() -> None:
    with StubEndpoint() as stub:
        first, second = Records(), Records()
        ask(stub, first, stream=True)
        stub.requests.clear()
        ask(stub, second, stream=True)
    assert first.all == second.all


def test_no_connection_is_left_open() -> None:
    with StubEndpoint("answer", "die_midway", "hang") as stub:
        ask(stub, Records(), stream=True)
        for more in ({}, {"timeout_seconds": 0.2}):
            with pytest.raises(ModelCallFailed):
                ask(stub, Records(), stream=True, client_more=more)
    gc.collect()  # a ResourceWarning would be an error


class _Trickle(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b": keep-alive\n\n"


async def _trickling(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Trickle())


def test_a_stream_that_closes_in_peace_before_its_end_is_a_broken_one() -> None:
    async def closing(request: httpx.Request) -> httpx.Response:
        said = 'data: {"choices": [{"index": 0, "delta": {"content": "forty"}}]}\n\n'
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=said)

    async def call(records: Records) -> None:
        around = surroundings(transport=httpx.MockTransport(closing))
        async with LLMClient(spec("http://h/v1"), records, around=around) as client:
            await client.chat(QUESTION, stream=True)

    records = Records()
    with pytest.raises(ModelCallFailed) as caught:
        asyncio.run(call(records))
    assert caught.value.code == "provider_connection"
    assert records.end.response is not None
    assert records.end.response["choices"][0]["message"]["content"] == "forty"


def test_a_stream_of_keep_alives_alone_does_not_go_on_for_ever() -> None:
    async def call() -> None:
        around = surroundings(transport=httpx.MockTransport(_trickling))
        client = LLMClient(spec("http://h/v1"), Records(), timeout_seconds=0.2, around=around)
        async with client:
            await client.chat(QUESTION, stream=True)

    with pytest.raises(ModelCallFailed) as caught:
        asyncio.run(call())
    assert caught.value.code == "provider_timeout"


def test_well_known_hosts_have_their_providers_name() -> None:
    async def provider(base_url: str) -> str:
        async with LLMClient(spec(base_url), Records()) as client:
            return client.provider

    assert asyncio.run(provider("https://api.openai.com/v1")) == "openai"
    assert asyncio.run(provider("http://model.example:8000/v1")) == "model.example"
