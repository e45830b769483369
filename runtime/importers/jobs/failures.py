"""Harbor's exceptions as our errors: what went wrong, in which phase, and whose fault it was.

Harbor classifies by the name of the exception's type alone (harbor 0.25.0,
`models/trial/error_policy`); the table is the other way round of `exporters.jobs.failures`. A type
that is not in it keeps its name as its code, and is judged by how far the trial had come.
"""

from collections.abc import Mapping
from typing import Any, Final

from ledger import events as ev

CANCELLED: Final = "CancelledError"

_RUN: Final = "run_harness"
_JUDGE: Final = "evaluate"
_OPEN: Final = "open_environment"

_KNOWN: Final[dict[str, tuple[str, str]]] = {
    # the sandbox
    "EnvironmentStartTimeoutError": ("timeout", _OPEN),
    "SandboxBuildFailedError": ("environment_start_failed", _OPEN),
    "NetworkConnectionError": ("environment_network_failed", _RUN),
    "HealthcheckError": ("sandbox_failed", _OPEN),
    "SandboxLikelyOutOfMemoryError": ("SandboxLikelyOutOfMemoryError", _RUN),
    "MemoryLimitExceededError": ("MemoryLimitExceededError", _RUN),
    # the agent
    "AgentSetupTimeoutError": ("timeout", "start_harness"),
    "AgentTimeoutError": ("run_timeout", _RUN),
    # the model's provider
    "AgentAuthenticationError": ("provider_authentication", _RUN),
    "AuthenticationError": ("provider_authentication", _RUN),
    "PermissionDeniedError": ("provider_permission", _RUN),
    "ModelNotFoundError": ("provider_not_found", _RUN),
    "NotFoundError": ("provider_not_found", _RUN),
    "BadRequestError": ("provider_bad_request", _RUN),
    "ContextWindowExceededError": ("provider_context_window", _RUN),
    "ContextLengthExceededError": ("provider_context_window", _RUN),
    "ApiRateLimitError": ("provider_rate_limited", _RUN),
    "RateLimitError": ("provider_rate_limited", _RUN),
    "ApiUsageLimitError": ("provider_quota_exhausted", _RUN),
    "ApiInternalServerError": ("provider_server_error", _RUN),
    "InternalServerError": ("provider_server_error", _RUN),
    "ApiOverloadedError": ("provider_server_error", _RUN),
    "ServiceUnavailableError": ("provider_server_error", _RUN),
    "ApiConnectionClosedError": ("provider_connection", _RUN),
    "APIConnectionError": ("provider_connection", _RUN),
    "ApiConnectionError": ("provider_connection", _RUN),
    "ApiResponseStalledError": ("provider_timeout", _RUN),
    "Timeout": ("provider_timeout", _RUN),
    "APIResponseValidationError": ("provider_invalid_response", _RUN),
    # the verifier
    "VerifierTimeoutError": ("evaluation_timeout", _JUDGE),
    "RewardFileNotFoundError": ("RewardFileNotFoundError", _JUDGE),
    "RewardFileEmptyError": ("no_verdict", _JUDGE),
    "VerifierOutputParseError": ("bad_evaluation", _JUDGE),
    "AddTestsDirError": ("AddTestsDirError", _JUDGE),
    "DownloadVerifierDirError": ("DownloadVerifierDirError", _JUDGE),
}
_HOUSE: Final = frozenset(
    {
        "EnvironmentStartTimeoutError",
        "SandboxBuildFailedError",
        "AgentSetupTimeoutError",
        "HealthcheckError",
        "SandboxLikelyOutOfMemoryError",
        "SSHAccessError",
        "GKEExecStreamClosedError",
        "GKEPodNotFoundError",
        "RuntimeRequestError",
        "AddTestsDirError",
        "DownloadVerifierDirError",
        "ServiceOperationsUnsupportedError",
        "VercelScopeError",
        "DspyImportError",
        "MissingExtraError",
        "RegradeError",
    }
)
"""Failures of the sandbox or of Harbor: neither the agent's nor the verifier's."""

_PARTS: Final = (
    ("verifier", _JUDGE),
    ("agent_execution", _RUN),
    ("agent_setup", "start_harness"),
    ("environment_setup", _OPEN),
)
"""The parts of a trial, the last first, and the phases of ours that they stand for."""


def error_of(info: Mapping[str, Any], reached: str | None) -> ev.ErrorInfo:
    """The error that an `exception_info` tells; `reached` is the phase that the trial had come to.

    The phase is `evaluate` exactly where the verdict failed, not the agent.
    """
    kind = info.get("exception_type")
    name = kind if isinstance(kind, str) and kind else "unknown"
    code, phase = _KNOWN.get(name, (name, reached or "unknown"))
    traceback = info.get("exception_traceback")
    message = info.get("exception_message")
    return ev.ErrorInfo(
        code=code,
        message=message if isinstance(message, str) else "",
        phase=phase,
        fatal=name in _HOUSE,
        traceback=traceback if isinstance(traceback, str) and traceback else None,
    )


def is_of_verdict(error: ev.ErrorInfo) -> bool:
    """Whether the verifier is to blame, and not the run of the agent."""
    return error.phase == _JUDGE


def reached(result: Mapping[str, Any]) -> str | None:
    """The phase that a trial had come to: its last part that began. None if none did."""
    for part, phase in _PARTS:
        span = result.get(part)
        if isinstance(span, dict) and span.get("started_at") is not None:
            return phase
    return None


def code_of(name: str) -> str:
    """Our code for the name of an exception's type; the name itself where we have none."""
    return _KNOWN.get(name, (name, ""))[0]
