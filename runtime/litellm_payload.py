"""What LiteLLM hands to a callback, as records of a call; nothing of LiteLLM is imported.

Of a start only the model, the messages and the parameters of the chat protocol are read, of an end
only `standard_logging_object`, of both `litellm_params.metadata.acl`. Headers, keys and the
caller's own metadata are never copied; keys are looked at to take them out where they were echoed.
Every field is optional to us: one that is missing or odd costs that field and not the record.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ledger.events import ErrorInfo, Usage
from runtime import provider_error as codes
from runtime.call_records import CallEnd, CallStart, Coordinates
from runtime.chat import parse_usage
from runtime.plain_json import Plain
from runtime.prices import SOURCE, UNKNOWN, cost
from runtime.secret_names import is_secret_name

METADATA_KEY: Final = "acl"
LITELLM_FAILED: Final = "litellm_error"
"""Code of a failure inside LiteLLM, or of one that it could not classify."""

INNER_RETRIES_UNKNOWN: Final = "inner_retries_unknown"
START_UNSEEN: Final = "start_unseen"
CACHE_HIT: Final = "cache_hit"
KEY_MASKED: Final = "key_masked"
VALUES_LEFT_OUT: Final = "values_left_out"
NO_DETAILS: Final = "no_details"
_NOTHING_TOLD: Final = "LiteLLM told nothing more"

TokenCount = Callable[[str, list[Any], str], tuple[int, int] | None]
"""LiteLLM's own count of a model's messages and answer, which it reports for want of another."""

_PARAMS: Final = frozenset(
    {"temperature", "top_p", "top_k", "n", "stream", "stream_options", "stop", "seed", "modalities"}
    | {"max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "logit_bias"}
    | {"logprobs", "top_logprobs", "response_format", "reasoning_effort", "thinking", "verbosity"}
    | {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "prediction"}
    | {"service_tier", "dimensions", "encoding_format"}
)
_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
_FROM_PROVIDER: Final = "llm_provider-"
# LiteLLM's classes of errors begin with an HTTP status; these say more than their status does.
_BY_CLASS: Final = {
    "400_CONTEXT_WINDOW_EXCEEDED": codes.CONTEXT_WINDOW,
    "429_BUDGET_EXCEEDED": codes.QUOTA,
    "500_PROVIDER_CONNECTION_ERROR": codes.CONNECTION,
    "500_INTERNAL_STATE_ERROR": LITELLM_FAILED,
    "500_UNSUPPORTED_OPERATION": LITELLM_FAILED,
}
_BY_STATUS: Final = {
    "400": codes.BAD_REQUEST,
    "401": codes.AUTHENTICATION,
    "403": codes.PERMISSION,
    "404": codes.NOT_FOUND,
    "408": codes.TIMEOUT,
    "429": codes.RATE_LIMITED,
    "500": codes.SERVER_ERROR,
    "503": codes.SERVER_ERROR,
}
# Errors of the HTTP client that LiteLLM does not classify.
_BY_NAME: Final = {
    "RemoteProtocolError": codes.CONNECTION,
    "ReadError": codes.CONNECTION,
    "ConnectError": codes.CONNECTION,
    "ReadTimeout": codes.TIMEOUT,
    "ConnectTimeout": codes.TIMEOUT,
}
# It reports an exhausted quota as a rate limit, in the provider's words.
_QUOTA: Final = re.compile(r"insufficient_quota|billing_hard_limit|exceeded your current quota")


@dataclass(frozen=True, slots=True)
class Began:
    """A call that LiteLLM is about to send. `secrets` are its keys, which no record may hold."""

    where: Coordinates | None
    start: CallStart
    secrets: tuple[str, ...] = field(repr=False)
    flags: frozenset[str] = frozenset()


def acl_metadata(where: Coordinates) -> dict[str, Any]:
    """The `metadata` argument by which a call says which attempt it belongs to."""
    told = {"run_id": where.run_id, "task_id": where.task, "attempt": where.attempt}
    return {METADATA_KEY: told}


def read_start(kwargs: Mapping[str, Any]) -> Began:
    """Read what the pre-call hook was given, or any other hook if that one was never called."""
    params = _object(kwargs.get("litellm_params"))
    secrets = _secrets(kwargs)
    plain = Plain(secrets)
    given = _object(kwargs.get("optional_params"))
    messages = plain.of(kwargs.get("messages"))
    start = CallStart(
        call_id=call_id_of(kwargs),
        call_index=0,
        provider=_text(kwargs.get("custom_llm_provider")),
        model=_text(kwargs.get("model")),
        params={name: plain.of(value) for name, value in given.items() if name in _PARAMS},
        messages=messages if isinstance(messages, list) else [messages],
    )
    flags = set(_flags_of(plain))
    # Any number but 0, and no number, lets a client behind LiteLLM send more than one request.
    if params.get("max_retries") != 0 or kwargs.get("num_retries") or params.get("num_retries"):
        flags.add(INNER_RETRIES_UNKNOWN)
    return Began(_coordinates(params), start, secrets, frozenset(flags))


def call_id_of(kwargs: Mapping[str, Any]) -> str:
    """LiteLLM's id of a call, the same in all its hooks; "" if it has none."""
    params = _object(kwargs.get("litellm_params"))
    return _text(kwargs.get("litellm_call_id")) or _text(params.get("litellm_call_id"))


def read_end(
    kwargs: Mapping[str, Any],
    began: Began,
    *,
    success: bool,
    version: str,
    count: TokenCount,
) -> CallEnd:
    """Read what a success or failure hook was given for the call that `began`.

    `version` is LiteLLM's, which its prices go by. What LiteLLM counts or prices for want of an
    answer is marked or left out: its cost of 0.0 means that it does not know.
    """
    told = _object(kwargs.get("standard_logging_object"))
    if not told:
        return bare_end(began, success=success)
    plain = Plain(began.secrets)
    response = plain.of(told.get("response"))
    error = None if success else _error(told, plain)
    usage = _usage(told, began.start, success, count)
    dollars, source = _cost(told, began.start.model, usage, version)
    begin, end = (_number(told.get(name)) for name in ("startTime", "endTime"))
    first = _number(told.get("completionStartTime"))
    streamed = began.start.params.get("stream") is True and success
    flags = began.flags | _flags_of(plain)
    if told.get("cache_hit") is True:
        flags |= {CACHE_HIT}
    return CallEnd(
        call_id=began.start.call_id,
        success=success,
        response=response if isinstance(response, dict) and response else None,
        usage=usage,
        cost_usd=dollars,
        cost_source=source,
        started_at=_iso(begin),
        finished_at=_iso(end),
        duration_ms=_millis(begin, end),
        ttft_ms=_millis(begin, first) if streamed else None,
        provider_request_id=_request_id(told),
        error=error,
        flags=tuple(sorted(flags)),
    )


def bare_end(began: Began, *, success: bool) -> CallEnd:
    """The end of a call of which nothing more could be read."""
    error = None if success else ErrorInfo(code=LITELLM_FAILED, message=_NOTHING_TOLD)
    return CallEnd(
        call_id=began.start.call_id,
        success=success,
        response=None,
        usage=None,
        cost_usd=None,
        cost_source=UNKNOWN,
        started_at=None,
        finished_at=None,
        duration_ms=None,
        ttft_ms=None,
        provider_request_id=None,
        error=error,
        flags=tuple(sorted(began.flags | {NO_DETAILS})),
    )


def _secrets(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The API key, and the headers that may hold one: known only so that they can be taken out."""
    params = _object(kwargs.get("litellm_params"))
    sent = _object(kwargs.get("additional_args"))
    given = _object(kwargs.get("optional_params"))
    body = _object(sent.get("complete_input_dict"))
    found = [_text(kwargs.get("api_key")), _text(params.get("api_key"))]
    for headers in (
        sent.get("headers"),
        *(of.get("extra_headers") for of in (params, given, body)),
    ):
        for name, value in _object(headers).items():
            if is_secret_name(str(name)) or "auth" in str(name).lower():
                found += [_text(value), _text(value).rpartition(" ")[2]]
    return tuple(dict.fromkeys(filter(None, found)))


def _coordinates(params: Mapping[str, Any]) -> Coordinates | None:
    for place in ("metadata", "litellm_metadata"):
        told = _object(_object(params.get(place)).get(METADATA_KEY))
        run_id, task, attempt = (told.get(name) for name in ("run_id", "task_id", "attempt"))
        if isinstance(run_id, str) and isinstance(task, str) and type(attempt) is int:
            return Coordinates(run_id, task, attempt)
    return None


def _usage(
    told: Mapping[str, Any], start: CallStart, success: bool, count: TokenCount
) -> Usage | None:
    counted = _object(_object(told.get("metadata")).get("usage_object"))
    usage = parse_usage(counted)
    # An answer without usage is reported as 0 tokens; no prompt has none.
    if usage is None or not usage.input_tokens:
        return None
    if not _is_estimated(told, counted, start, success, count):
        return usage
    return usage.model_copy(update={"estimated": True})


def _is_estimated(
    told: Mapping[str, Any],
    counted: Mapping[str, Any],
    start: CallStart,
    success: bool,
    count: TokenCount,
) -> bool:
    """Whether LiteLLM counted the tokens of a stream itself; it does not say so."""
    if start.params.get("stream") is not True:
        return False
    if not success:
        return True
    if counted.get("prompt_tokens_details"):
        return False
    if _object(start.params.get("stream_options")).get("include_usage") is not True:
        return True
    messages = told.get("messages")
    own = count(
        start.model, messages if isinstance(messages, list) else [], _said(told.get("response"))
    )
    return own == (counted.get("prompt_tokens"), counted.get("completion_tokens"))


def _said(response: Any) -> str:
    choices = _object(response).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _text(_object(_object(first).get("message")).get("content"))


def _cost(
    told: Mapping[str, Any], model: str, usage: Usage | None, version: str
) -> tuple[float | None, str]:
    dollars = _number(told.get("response_cost"))
    if usage is None or told.get("cache_hit") is True:
        return None, UNKNOWN
    if dollars is not None and dollars > 0:
        return dollars, f"{SOURCE}:litellm-{version}"
    if usage.estimated:
        return None, UNKNOWN
    return cost(model, usage)


def _error(told: Mapping[str, Any], plain: Plain) -> ErrorInfo:
    information = _object(told.get("error_information"))
    message = _text(information.get("error_message")) or _text(told.get("error_str"))
    kind = _text(information.get("normalized_error"))
    code = _BY_CLASS.get(kind) or _BY_STATUS.get(kind[:3])
    code = code or _BY_NAME.get(_text(information.get("error_class")), LITELLM_FAILED)
    if code == codes.RATE_LIMITED and _QUOTA.search(message):
        code = codes.QUOTA
    said = plain.of(message) or _NOTHING_TOLD
    return codes.ModelCallFailed(code, said).info()


def _request_id(told: Mapping[str, Any]) -> str | None:
    headers = _object(_object(told.get("hidden_params")).get("additional_headers"))
    names = (prefix + name for name in _REQUEST_IDS for prefix in (_FROM_PROVIDER, ""))
    return next((found for name in names if (found := _text(headers.get(name)))), None)


def _flags_of(plain: Plain) -> frozenset[str]:
    happened = ((plain.masked, KEY_MASKED), (plain.left_out, VALUES_LEFT_OUT))
    return frozenset(flag for did, flag in happened if did)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return str.__str__(value) if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _iso(seconds: float | None) -> str | None:
    if seconds is None or not 0 <= seconds < 1e11:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _millis(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(max(end - begin, 0.0) * 1000, 3)
