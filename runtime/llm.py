"""The model client: one physical call to an OpenAI-compatible endpoint is one record.

The start of a call is durable before its request is sent, and its end before `chat` returns, also
when the call fails or its caller is cancelled. There are no retries inside: a failed call is an
error of the attempt, whose policy decides. Usage and cost that nobody gave are None, never 0.
"""

import asyncio
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Protocol, Self

import httpx

from ledger.errors import UsageError, ValueRefused
from runtime.call_records import CallEnd, CallStart
from runtime.chat import Completion, StreamAssembler, ToolCall, parse_completion, stream_data
from runtime.models import EnvName, ModelSpec
from runtime.prices import UNKNOWN, cost
from runtime.promise import to_the_end
from runtime.provider_error import (
    CANCELLED,
    CONNECTION,
    TIMEOUT,
    ModelCallFailed,
    of_response,
    of_transport,
)
from runtime.proxies import may_be_proxied
from runtime.secret_names import MIN_VARIABLE_LENGTH
from runtime.secret_text import MASK

__all__ = [
    "CallEnd",
    "CallRecorder",
    "CallStart",
    "ClientSurroundings",
    "Completion",
    "LLMClient",
    "ModelCallFailed",
    "ToolCall",
    "resolve_api_key",
]

ApiKey = str | EnvName | Mapping[str, str] | None

PROTOCOL: Final = "openai-chat"
DEFAULT_TIMEOUT_SECONDS: Final = 600.0
_NOT_PARAMS: Final = frozenset({"model", "messages"})
_CONNECT_SECONDS: Final = 30.0
_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
# Names by the OpenTelemetry list of generative AI providers, where it has one.
_PROVIDERS: Final = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "openrouter.ai": "openrouter",
}


class CallRecorder(Protocol):
    """Where calls are recorded."""

    async def started(self, call: CallStart) -> None:
        """Return once the start is durable; the request is sent only then."""

    async def finished(self, call: CallEnd) -> None:
        """Return once the end is durable."""


@dataclass(slots=True)
class _Watch:
    """What is known of a call while it runs; None where nothing came yet."""

    started_at: str
    began: float
    first_token: float | None = None
    request_id: str | None = None
    stream: StreamAssembler | None = None


@dataclass(frozen=True, slots=True)
class ClientSurroundings:
    """What a client takes from outside; the same surroundings give the same records.

    `environ` is where an API key given by name is looked up, `transport` replaces the network.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    transport: httpx.AsyncBaseTransport | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())


class LLMClient:
    """Calls the model of `spec` and records every call with `calls`; an async context manager.

    Raises UsageError for what can never be called. An `api_key` given by name is looked up anew at
    each call; the key is in no record and in no error.
    """

    def __init__(
        self,
        spec: ModelSpec,
        calls: CallRecorder,
        *,
        api_key: ApiKey = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        around: ClientSurroundings | None = None,
    ) -> None:
        if spec.api_protocol not in ("", PROTOCOL):
            raise UsageError(
                f"API protocol {spec.api_protocol!r} is not supported", hint=f"use {PROTOCOL!r}"
            )
        self._url = _chat_url(spec.base_url)
        self._spec = spec
        self._calls = calls
        self._api_key = spec.api_key if api_key is None else api_key
        self._timeout_seconds = timeout_seconds
        self._around = around or ClientSurroundings()
        self._next_index = 0
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout_seconds, connect=min(_CONNECT_SECONDS, timeout_seconds)),
            transport=self._around.transport,
            trust_env=may_be_proxied(self._url.host),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    @property
    def provider(self) -> str:
        """Who answers: a well-known name, else the host."""
        return _PROVIDERS.get(self._url.host, self._url.host)

    async def chat(self, messages: Sequence[Mapping[str, Any]], **params: Any) -> Completion:
        """Send `messages` once and return the answer.

        `params` go into the request's body, above those of the spec: `stream=True`, `tools=[…]`,
        `temperature=0`. Raises ModelCallFailed, recorded before it is raised; ValueRefused or
        UsageError, with nothing recorded or sent, for a request that cannot be made.
        """
        body = self._body(messages, params)
        data = _encoded(body)
        key = resolve_api_key(self._api_key, self._around.environ)
        start = self._start(body)
        begun = asyncio.Event()
        watch = self._watch()
        try:
            await to_the_end(self._begin(start, begun))
            watch = self._watch()
            completion = await self._exchange(data, key, watch)
        except ModelCallFailed as error:
            failed = _without_key(error, key)
            await self._end(start.call_id, watch, error=failed)
            raise failed from None
        except asyncio.CancelledError:
            if begun.is_set():
                cancelled = ModelCallFailed(CANCELLED, "the call was cancelled")
                await self._end(start.call_id, watch, error=cancelled)
            raise
        await self._end(start.call_id, watch, completion=completion)
        return completion

    def _start(self, body: dict[str, Any]) -> CallStart:
        start = CallStart(
            call_id=self._around.new_id(),
            call_index=self._next_index,
            provider=self.provider,
            model=self._spec.id,
            params={name: value for name, value in body.items() if name not in _NOT_PARAMS},
            messages=body["messages"],
        )
        self._next_index += 1
        return start

    def _watch(self) -> _Watch:
        return _Watch(_iso(self._around.now()), self._around.monotonic())

    async def _begin(self, start: CallStart, begun: asyncio.Event) -> None:
        await self._calls.started(start)
        begun.set()

    async def _end(
        self,
        call_id: str,
        watch: _Watch,
        *,
        completion: Completion | None = None,
        error: ModelCallFailed | None = None,
    ) -> None:
        """Record the end, also while the caller is being cancelled."""
        finished = self._around.monotonic()
        dollars, source = self._cost(completion)
        partial = watch.stream.response() if watch.stream is not None else None
        first = watch.first_token
        end = CallEnd(
            call_id=call_id,
            success=completion is not None,
            response=completion.response if completion is not None else partial,
            usage=completion.usage if completion is not None else None,
            cost_usd=dollars,
            cost_source=source,
            started_at=watch.started_at,
            finished_at=_iso(self._around.now()),
            duration_ms=_millis(finished - watch.began),
            ttft_ms=None if first is None else _millis(first - watch.began),
            provider_request_id=watch.request_id,
            error=None if error is None else error.info(),
        )
        await to_the_end(self._calls.finished(end))

    def _cost(self, completion: Completion | None) -> tuple[float | None, str]:
        if completion is None:
            return None, UNKNOWN
        if completion.cost_usd is not None:
            return completion.cost_usd, "provider"
        return cost(self._spec.id, completion.usage)

    def _body(
        self, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
    ) -> dict[str, Any]:
        body = {**self._spec.params, **params}
        taken = _NOT_PARAMS & body.keys()
        if taken:
            raise UsageError(f"{min(taken)!r} cannot be set by a parameter of the model")
        if body.get("stream"):
            options = body.get("stream_options") or {}
            body["stream_options"] = {**options, "include_usage": True}
        return {"model": self._spec.id, "messages": [dict(one) for one in messages], **body}

    async def _exchange(self, data: bytes, key: str | None, watch: _Watch) -> Completion:
        headers = {"content-type": "application/json"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        answering = False
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                self._http.stream("POST", self._url, content=data, headers=headers) as response,
            ):
                answering = True
                watch.request_id = _request_id(response.headers)
                if response.status_code != httpx.codes.OK:
                    raise of_response(response.status_code, await response.aread())
                if "event-stream" in response.headers.get("content-type", ""):
                    return await self._streamed(response, watch)
                return parse_completion(await response.aread())
        except httpx.HTTPError as error:
            raise of_transport(error, answering=answering) from None
        except TimeoutError:
            message = f"the call took more than {self._timeout_seconds:g} s"
            raise ModelCallFailed(TIMEOUT, message) from None

    async def _streamed(self, response: httpx.Response, watch: _Watch) -> Completion:
        stream = watch.stream = StreamAssembler()
        async for data in stream_data(response.aiter_bytes()):
            if stream.add(data) and watch.first_token is None:
                watch.first_token = self._around.monotonic()
        if not stream.ended:
            raise ModelCallFailed(CONNECTION, "the stream ended midway", status=200)
        return stream.completion()


def resolve_api_key(api_key: ApiKey, environ: Mapping[str, str]) -> str | None:
    """The key itself; None if there is none. Raises UsageError naming an empty variable."""
    if isinstance(api_key, Mapping):
        api_key = EnvName.model_validate(api_key)
    if not isinstance(api_key, EnvName):
        return api_key or None
    value = environ.get(api_key.env, "").strip()
    if not value:
        raise UsageError(f"the environment variable {api_key.env} holds no API key")
    return value


def _chat_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/"))
    except httpx.InvalidURL as error:
        raise UsageError(f"the base URL is malformed: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(
            "the model needs a base URL", hint="for example --base-url http://127.0.0.1:8080/v1"
        )
    path = url.path.rstrip("/")
    return (
        url
        if path.endswith("/chat/completions")
        else url.copy_with(path=path + "/chat/completions")
    )


def _encoded(body: dict[str, Any]) -> bytes:
    # Escaped, so that a lone surrogate is sent as it was received: as an escape.
    try:
        return json.dumps(body, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRefused("$.messages or $.params", str(error)) from None


def _request_id(headers: httpx.Headers) -> str | None:
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None)


def _without_key(error: ModelCallFailed, key: str | None) -> ModelCallFailed:
    """The error, without the key that a provider may have repeated in its words."""
    if not key or len(key) < MIN_VARIABLE_LENGTH or key not in error.message:
        return error
    return ModelCallFailed(error.code, error.message.replace(key, MASK), status=error.status)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _millis(seconds: float) -> float:
    return round(max(seconds, 0.0) * 1000, 3)
