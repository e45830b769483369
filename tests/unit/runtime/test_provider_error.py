"""What a provider's refusal is called, and whether to try again."""

import json
from typing import Any

import httpx
import pytest

from runtime.provider_error import ModelCallFailed, of_payload, of_response, of_transport
from runtime.retry import DEFAULT_RETRIED


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "provider_bad_request"),
        (401, "provider_authentication"),
        (402, "provider_quota_exhausted"),
        (403, "provider_permission"),
        (404, "provider_not_found"),
        (408, "provider_timeout"),
        (409, "provider_bad_request"),
        (422, "provider_bad_request"),
        (429, "provider_rate_limited"),
        (500, "provider_server_error"),
        (503, "provider_server_error"),
        (529, "provider_server_error"),
        (302, "provider_bad_request"),
    ],
)
def test_a_status_has_one_code(status: int, code: str) -> None:
    error = of_response(status, b'{"error": {"message": "because"}}')
    assert (error.code, error.status) == (code, status)
    assert error.message == f"HTTP {status}: because"


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "too long"},
        {"message": "This model's maximum context length is 4096 tokens, you asked for 5000."},
        {"type": "exceed_context_size_error", "message": "the request exceeds the context size"},
        {"message": "prompt is too long: 200001 tokens > 200000 maximum"},
        {"message": "The input token count (40000) exceeds the maximum number of tokens allowed"},
    ],
)
def test_a_full_context_window_is_told_from_other_bad_requests(error: dict[str, Any]) -> None:
    failed = of_response(400, json.dumps({"error": error}).encode())
    assert failed.code == "provider_context_window"
    assert not failed.retryable


def test_a_used_up_quota_is_no_rate_limit() -> None:
    body = b'{"error": {"code": "insufficient_quota", "message": "pay first"}}'
    assert of_response(429, body).code == "provider_quota_exhausted"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": "plain words"}', "plain words"),
        (b'{"detail": "plain words"}', "plain words"),
        (b'{"message": "plain words"}', "plain words"),
        (b'[{"error": {"message": "plain words", "status": "INVALID_ARGUMENT"}}]', "plain words"),
        (b"<html>\n plain   words</html>", "<html> plain words</html>"),
        (b'{"unknown": 1}', '{"unknown": 1}'),
        (b"", "Bad Request"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * 500),
    ],
)
def test_the_words_are_found_in_every_form_of_error(body: bytes, words: str) -> None:
    assert of_response(400, body).message == f"HTTP 400: {words}"


def test_very_long_words_are_cut() -> None:
    body = json.dumps({"error": {"message": "x" * 10_000}}).encode()
    assert len(of_response(500, body).message) == 2000


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "m", "code": 502}, "provider_server_error"),
        ({"message": "m", "code": 429}, "provider_rate_limited"),
        ({"message": "m", "code": 401}, "provider_authentication"),
        ({"message": "m", "type": "rate_limit_error"}, "provider_rate_limited"),
        ({"message": "m", "type": "overloaded_error"}, "provider_server_error"),
        ({"message": "maximum context length"}, "provider_context_window"),
        ("m", "provider_server_error"),
        (5, "provider_server_error"),
    ],
)
def test_an_error_in_the_midst_of_an_answer_has_a_code_too(error: Any, code: str) -> None:
    assert of_payload(error, 200).code == code


@pytest.mark.parametrize(
    ("error", "answering", "code"),
    [
        (httpx.ConnectError("refused"), False, "provider_connection"),
        (httpx.RemoteProtocolError("closed"), True, "provider_connection"),
        (httpx.ConnectTimeout(""), False, "provider_timeout"),
        (httpx.ReadTimeout(""), True, "provider_timeout"),
        (httpx.DecodingError("gzip"), True, "provider_invalid_response"),
    ],
)
def test_a_broken_connection_has_a_code(error: httpx.HTTPError, answering: bool, code: str) -> None:
    assert of_transport(error, answering=answering).code == code


def test_what_passes_by_itself_is_what_the_default_policy_retries() -> None:
    codes = {
        f"provider_{name}" for name in ("rate_limited", "server_error", "connection", "timeout")
    }
    assert {code for code in DEFAULT_RETRIED if code.startswith("provider_")} == codes
    assert all(ModelCallFailed(code, "m").retryable for code in codes)
    assert not ModelCallFailed("provider_authentication", "m").retryable
