"""A stub of an OpenAI-compatible endpoint: answers, streams, fails, hangs and dies on demand.

    with StubEndpoint("429", "answer") as stub:
        ...  # post to f"{stub.base_url}/chat/completions"; the first call fails, the rest succeed

Behaviours are taken from the script one by one; after the last, every call is answered. The same
request gets the same answer. Only the standard library is used, and only 127.0.0.1 is bound.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[[dict[str, Any]], str | dict[str, Any]]

# status, error code, message
FAILURES: dict[str, tuple[int, str | None, str]] = {
    "400": (400, "invalid_request_error", "temperature must be a number"),
    "401": (401, "invalid_api_key", "Incorrect API key provided: {key}."),
    "403": (403, "permission_denied", "no access to this model"),
    "404": (404, "model_not_found", "the model does not exist"),
    "408": (408, None, "the request took too long"),
    "context": (400, "context_length_exceeded", "maximum context length is 8 tokens"),
    "context_words": (400, None, "This model's maximum context length is 8 tokens."),
    "429": (429, "rate_limit_exceeded", "too many requests"),
    "quota": (429, "insufficient_quota", "you exceeded your current quota"),
    "500": (500, None, "internal error"),
    "503": (503, None, "overloaded"),
    "redirect": (302, None, "moved"),
}
ANSWERS = frozenset(
    {"answer", "no_usage", "no_done", "no_stream", "die_midway", "error_midway", "slow_end"}
)
OTHERS = frozenset({"not_json", "not_an_object", "no_choices", "error_in_200", "hang", "close"})


@dataclass(frozen=True)
class Received:
    """A request as it arrived; header names are lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def echo(body: dict[str, Any]) -> str:
    """The default answer: the last message, marked."""
    return f"echo: {body['messages'][-1].get('content')}"


class StubEndpoint:
    """The running stub; a context manager. `requests` holds what it was asked."""

    def __init__(self, *script: str, answer: Answer = echo) -> None:
        unknown = set(script) - set(FAILURES) - ANSWERS - OTHERS
        if unknown:
            raise ValueError(f"unknown behaviour {min(unknown)!r}")
        self.requests: list[Received] = []
        self.answer = answer
        self.closing = threading.Event()
        self._script = list(script)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, received: Received) -> tuple[int, str]:
        """Number of this call, from 1, and how it is to be treated."""
        with self._lock:
            self.requests.append(received)
            return len(self.requests), self._script.pop(0) if self._script else "answer"


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port on which nothing listens; nobody else gets it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def usage_of(body: dict[str, Any], text: str) -> dict[str, Any]:
    """The counts the stub reports: a word is a token; the first message counts as cached."""
    words = [len(str(message.get("content")).split()) for message in body["messages"]]
    output = len(text.split())
    return {
        "prompt_tokens": sum(words),
        "completion_tokens": output,
        "total_tokens": sum(words) + output,
        "prompt_tokens_details": {"cached_tokens": words[0] if len(words) > 1 else 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _handler_of(stub: StubEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        endpoint = stub

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: StubEndpoint

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.number, behaviour = self.endpoint.take(Received(self.path, headers, body))
        with suppress(ConnectionError):
            self._behave(behaviour, body)

    def _behave(self, behaviour: str, body: dict[str, Any]) -> None:
        if behaviour in FAILURES:
            self._fail(*FAILURES[behaviour])
        elif behaviour == "hang":
            self.endpoint.closing.wait(30)
            self.close_connection = True
        elif behaviour == "close":
            self._cut()
        elif behaviour == "not_json":
            self._send(200, b"<html>a page of some proxy</html>", "text/html")
        elif behaviour == "not_an_object":
            self._send(200, b"[1, 2]")
        elif behaviour == "no_choices":
            self._send(200, b'{"object": "chat.completion", "choices": []}')
        elif behaviour == "error_in_200":
            self._send(200, b'{"error": {"message": "upstream is down", "code": 502}}')
        else:
            self._answer(behaviour, body)

    def _fail(self, status: int, code: str | None, message: str) -> None:
        key = self.headers.get("authorization", "").removeprefix("Bearer ")
        error = {"message": message.format(key=key), "type": "stub", "code": code}
        self._send(status, json.dumps({"error": error}).encode())

    def _answer(self, behaviour: str, body: dict[str, Any]) -> None:
        answer = self.endpoint.answer(body)
        message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
        usage = usage_of(body, str(message.get("content")))
        if body.get("stream") and behaviour != "no_stream":
            self._stream(behaviour, body, message, usage)
            return
        completion = {
            **self._common(body, "chat.completion"),
            "choices": [{"index": 0, "finish_reason": _finish(message), "message": message}],
        }
        if behaviour != "no_usage":
            completion["usage"] = usage
        data = json.dumps(completion).encode()
        if behaviour == "die_midway":
            self._head(200, "application/json", ("content-length", str(len(data))))
            self.wfile.write(data[: len(data) // 2])
            self._cut()
        else:
            self._send(200, data)

    def _stream(
        self, behaviour: str, body: dict[str, Any], message: dict[str, Any], usage: dict[str, Any]
    ) -> None:
        self._head(200, "text/event-stream", ("transfer-encoding", "chunked"))
        self._chunk(b": keep-alive\n\n")
        deltas = list(_deltas(message))
        if behaviour in ("die_midway", "error_midway"):
            deltas = deltas[: max(2, len(deltas) // 2)]
        for delta in deltas:
            self._event(self._part(body, delta, None))
        if behaviour == "die_midway":
            self._cut()
            return
        if behaviour == "error_midway":
            self._event({"error": {"message": "the model crashed", "type": "server_error"}})
        else:
            self._event(self._part(body, {}, _finish(message)))
            self._end_of_stream(behaviour, body, usage)
        self.wfile.write(b"0\r\n\r\n")

    def _end_of_stream(self, behaviour: str, body: dict[str, Any], usage: dict[str, Any]) -> None:
        asked = (body.get("stream_options") or {}).get("include_usage")
        if asked and behaviour != "no_usage":
            self._event(
                {**self._common(body, "chat.completion.chunk"), "choices": [], "usage": usage}
            )
        if behaviour == "slow_end":
            self.endpoint.closing.wait(30)
        if behaviour != "no_done":
            self._chunk(b"data: [DONE]\n\n")

    def _part(self, body: dict[str, Any], delta: dict[str, Any], finish: str | None) -> Any:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._common(body, "chat.completion.chunk"), "choices": [choice]}

    def _common(self, body: dict[str, Any], kind: str) -> dict[str, Any]:
        number = f"chatcmpl-stub-{self.number}"
        return {"id": number, "object": kind, "created": 1, "model": body["model"]}

    def _event(self, value: Any) -> None:
        # Not escaped: a line separator inside a text must not end a line of the stream.
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if b"\xed" in data:
            data = json.dumps(value).encode()
        self._chunk(b"data: " + data + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self._head(status, kind, ("content-length", str(len(data))))
        self.wfile.write(data)

    def _head(self, status: int, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("x-request-id", f"req-{self.number}")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _cut(self) -> None:
        """End the connection without ending the response."""
        self.wfile.flush()
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _finish(message: dict[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The message in pieces of a few characters, as a streaming endpoint gives it."""
    yield {"role": "assistant", "content": ""}
    for name in ("reasoning_content", "content", "refusal"):
        for piece in _pieces(message.get(name) or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {"name": call["function"]["name"], "arguments": ""}
        head = {"index": index, "id": call["id"], "type": "function", "function": function}
        yield {"tool_calls": [head]}
        for piece in _pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str) -> list[str]:
    return [text[at : at + 5] for at in range(0, len(text), 5)]
