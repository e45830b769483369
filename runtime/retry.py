"""Which failed tries are made again, and after how long.

With patterns, an error is tried again if it is fatal or if a pattern is found in its code or
message. Without, exactly the errors of `DEFAULT_RETRIED` are, fatal or not: failures of provider
and sandbox that pass by themselves. Never tried again by default are wrong credentials, missing
models, bad requests, full context windows, refusals, time-outs of the agent, answers that the
verifier cannot read, and wrong answers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ledger.errors import UsageError
from ledger.events import ErrorInfo
from runtime.models import ExecutionSpec
from runtime.provider_error import AUTHENTICATION, NOT_FOUND, PERMISSION, QUOTA, RETRYABLE

DEFAULT_RETRIED: Final = RETRYABLE | {
    "environment_start_failed",
    "environment_network_failed",
    "sandbox_failed",
}
"""Codes of failures of provider (429, 5xx, connection) and sandbox, which pass by themselves."""

HOUSE_FAULTS: Final = DEFAULT_RETRIED | {AUTHENTICATION, PERMISSION, NOT_FOUND, QUOTA}
"""Codes of failures that say nothing about the agent: its empty answer is not judged wrong."""

_DOUBLINGS: Final = 64  # after that any cap is reached, and a float is not yet full

Uniform = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `delay` seconds; `pattern` is what matched, if a pattern did."""

    delay: float
    pattern: str | None = None


class RetryPolicy:
    """The rule of one request. Pure: chance comes in as `uniform(a, b)`."""

    def __init__(self, spec: ExecutionSpec, uniform: Uniform) -> None:
        self.max_retries = spec.max_retries
        self._patterns = None
        if spec.retry_pattern_list is not None:
            self._patterns = tuple(map(_compiled, spec.retry_pattern_list))
        self._least = spec.retry_min_delay_seconds
        self._most = spec.retry_max_delay_seconds
        self._uniform = uniform

    def decide(self, error: ErrorInfo, made: int) -> Retry | None:
        """Return how to try again after `error`, when `made` retries were made; None if not.

        The delay is uniform in [b/2, b] with b the least delay, doubled with every retry made and
        capped at the greatest.
        """
        if made >= self.max_retries:
            return None
        retried, pattern = self._matches(error)
        if not retried:
            return None
        bound = min(self._least * 2.0 ** min(made, _DOUBLINGS), self._most)
        return Retry(self._uniform(bound / 2, bound), pattern)

    def _matches(self, error: ErrorInfo) -> tuple[bool, str | None]:
        if self._patterns is None:
            return error.code in DEFAULT_RETRIED, None
        for pattern in self._patterns:
            if pattern.search(error.message) or pattern.search(error.code):
                return True, pattern.pattern
        return error.fatal, None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"the retry pattern {pattern!r} is malformed: {error}") from None
