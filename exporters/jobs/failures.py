"""Errors by the names of Harbor's exception types, so that its policies apply to our trials.

Harbor classifies a failure by the type's name alone (harbor 0.25.0, `models/trial/error_policy`).
"""

import re
from typing import Final

from ledger.events import ErrorInfo

CANCELLED: Final = "CancelledError"

_BY_CODE: Final = {
    # the model's provider
    "provider_authentication": "AgentAuthenticationError",
    "provider_permission": "PermissionDeniedError",
    "provider_not_found": "ModelNotFoundError",
    "provider_bad_request": "BadRequestError",
    "provider_context_window": "ContextWindowExceededError",
    "provider_rate_limited": "ApiRateLimitError",
    "provider_quota_exhausted": "ApiUsageLimitError",
    "provider_server_error": "ApiInternalServerError",
    "provider_connection": "ApiConnectionClosedError",
    "provider_timeout": "ApiResponseStalledError",
    "provider_invalid_response": "APIResponseValidationError",
    "call_cancelled": CANCELLED,
    # the agent
    "run_timeout": "AgentTimeoutError",
    "collect_timeout": "AgentTimeoutError",
    # the verifier
    "evaluation_timeout": "VerifierTimeoutError",
    "no_verdict": "RewardFileEmptyError",
    "bad_evaluation": "VerifierOutputParseError",
    # the sandbox
    "environment_start_failed": "SandboxBuildFailedError",
    "environment_network_failed": "NetworkConnectionError",
    "sandbox_failed": "HealthcheckError",
}
_TIMEOUTS: Final = {
    "open_environment": "EnvironmentStartTimeoutError",
    "prepare_task": "EnvironmentStartTimeoutError",
    "start_harness": "AgentSetupTimeoutError",
    "run_harness": "AgentTimeoutError",
    "run_task": "AgentTimeoutError",
    "evaluate": "VerifierTimeoutError",
}
_TIMEOUT_CODES: Final = frozenset({"TimeoutError", "StageTimeout", "timeout"})
_RETRYABLE: Final = frozenset(
    {
        "provider_rate_limited",
        "provider_server_error",
        "provider_connection",
        "provider_timeout",
    }
)
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_STATUS: Final = re.compile(r"HTTP ([1-5][0-9]{2})\b")


def exception_type(error: ErrorInfo) -> str:
    """The name that Harbor has for an error; its own class name, or its code as one, if none.

    An error that passed through unclassified keeps the name of its class.
    """
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.code in _TIMEOUT_CODES and error.phase in _TIMEOUTS:
        return _TIMEOUTS[error.phase]
    if _CLASS.fullmatch(error.code):
        return error.code
    words = "".join(word[0].upper() + word[1:] for word in _WORD.findall(error.code))
    return words if words.endswith("Error") else f"{words}Error"


def is_retryable(error: ErrorInfo) -> bool:
    """Whether the same model call may succeed later."""
    return error.code in _RETRYABLE


def status_code(error: ErrorInfo) -> int | None:
    """The HTTP status that a failed call tells of, if any."""
    found = _STATUS.match(error.message)
    return int(found[1]) if found else None
