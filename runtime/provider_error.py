"""Why a model call failed: one code for each kind, and whether another try can help."""

import json
import re
from typing import Any, Final

import httpx

from ledger.events import ErrorInfo
from runtime.contracts import StageError

AUTHENTICATION: Final = "provider_authentication"
PERMISSION: Final = "provider_permission"
NOT_FOUND: Final = "provider_not_found"
BAD_REQUEST: Final = "provider_bad_request"
CONTEXT_WINDOW: Final = "provider_context_window"
RATE_LIMITED: Final = "provider_rate_limited"
QUOTA: Final = "provider_quota_exhausted"
SERVER_ERROR: Final = "provider_server_error"
CONNECTION: Final = "provider_connection"
TIMEOUT: Final = "provider_timeout"
INVALID_RESPONSE: Final = "provider_invalid_response"
CANCELLED: Final = "call_cancelled"

RETRYABLE: Final = frozenset({RATE_LIMITED, SERVER_ERROR, CONNECTION, TIMEOUT})

_BY_STATUS: Final = {
    401: AUTHENTICATION,
    402: QUOTA,
    403: PERMISSION,
    404: NOT_FOUND,
    408: TIMEOUT,
    429: RATE_LIMITED,
}
# How providers say it: OpenAI, vLLM, llama.cpp, Anthropic, Gemini.
_CONTEXT: Final = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|prompt is too long|input token count",
    re.IGNORECASE,
)
_MAY_BE_CONTEXT: Final = frozenset({400, 413, 422, 500})
_QUOTA_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_LONGEST_MESSAGE: Final = 2000


class ModelCallFailed(StageError):
    """A physical model call that gave no answer; `status` is the HTTP status, if there was one."""

    def __init__(self, code: str, message: str, *, status: int | None = None) -> None:
        super().__init__(code, message[:_LONGEST_MESSAGE])
        self.status = status

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed later: limits, server faults, lost connections."""
        return self.code in RETRYABLE

    def info(self) -> ErrorInfo:
        """The error as it is recorded."""
        return ErrorInfo(code=self.code, message=self.message)


def of_response(status: int, body: bytes) -> ModelCallFailed:
    """The error that a response with a status other than 200 stands for."""
    code, message = _told(body)
    text = f"HTTP {status}: {message or httpx.codes.get_reason_phrase(status) or 'no reason given'}"
    return ModelCallFailed(_classify(status, code, message), text, status=status)


def of_payload(error: Any, status: int) -> ModelCallFailed:
    """The error that stands in the body of a response, or in the midst of a stream."""
    code, message = _told_by(error)
    told = error.get("code") if isinstance(error, dict) else None
    if isinstance(told, int) and not isinstance(told, bool) and 400 <= told < 600:
        kind = _classify(told, code, message)
    elif "rate_limit" in code:
        kind = RATE_LIMITED
    else:
        kind = CONTEXT_WINDOW if _CONTEXT.search(f"{code} {message}") else SERVER_ERROR
    return ModelCallFailed(kind, message or "the provider reported an error", status=status)


def of_transport(error: httpx.HTTPError, *, answering: bool) -> ModelCallFailed:
    """The error for a connection that could not be made, or broke; `answering`: midway."""
    what = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return ModelCallFailed(TIMEOUT, f"the provider did not answer in time ({what})")
    if isinstance(error, httpx.DecodingError):
        return ModelCallFailed(INVALID_RESPONSE, f"the response cannot be decoded: {what}")
    if answering:
        return ModelCallFailed(CONNECTION, f"the connection broke midway: {what}")
    return ModelCallFailed(CONNECTION, f"no connection to the provider: {what}")


def _classify(status: int, code: str, message: str) -> str:
    if status in _MAY_BE_CONTEXT and _CONTEXT.search(f"{code} {message}"):
        return CONTEXT_WINDOW
    if status == 429 and not _QUOTA_CODES.isdisjoint(code.split()):
        return QUOTA
    if status >= 500:
        return SERVER_ERROR
    return _BY_STATUS.get(status, BAD_REQUEST)


def _told(body: bytes) -> tuple[str, str]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return "", " ".join(body[:500].decode("utf-8", "replace").split())
    if isinstance(value, list) and value:  # Gemini wraps its error in a list
        value = value[0]
    if isinstance(value, dict):
        value = value.get("error") or value.get("detail") or value
    return _told_by(value)


def _told_by(error: Any) -> tuple[str, str]:
    """Code and message of an error object, or of an error that is text alone."""
    if isinstance(error, str):
        return "", error
    if not isinstance(error, dict):
        return "", json.dumps(error)[:_LONGEST_MESSAGE]
    codes = (error.get("code"), error.get("type"), error.get("status"))
    code = " ".join(part for part in codes if isinstance(part, str))
    message = error.get("message")
    return code, message if isinstance(message, str) else json.dumps(error)[:_LONGEST_MESSAGE]
