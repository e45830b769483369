"""The analyzer `bad-case`: attempts that went wrong in a way worth looking at, by fixed rules."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import asyncio
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from runtime.analyzers.trajectory import longest_repetition, read_trajectory
from runtime.contracts import Analysis, BaseAnalyzer, Task
from runtime.provider_error import CONTEXT_WINDOW
from runtime.results import Evaluation, RunResult

NO_ANSWER: Final = "no_answer"
ERROR_ANSWER: Final = "error_answer"
STOPPED_BY_LIMIT: Final = "stopped_by_limit"
REPEATED_ACTIONS: Final = "repeated_actions"
RUN_ERROR: Final = "run_error"

REPETITIONS: Final = 3
"""So often the same in a row is a repetition."""

_LIMITS: Final = frozenset({"run_timeout", "collect_timeout", CONTEXT_WINDOW})
_STOPS: Final = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "content_length", "model_length"),
        *("max_turns", "max_steps", "max_iterations", "timeout", "time_limit", "token_limit"),
        *("limit", "context_window_exceeded"),
    }
)
_REASONS: Final = ("finish_reason", "stop_reason", "exit_reason", "terminated_by")
_ERROR_TEXT: Final = re.compile(
    r"\s*(?:traceback \(most recent call last\)|[\w.]*(?:error|exception)\s*:|http [45]\d\d\b)",
    re.IGNORECASE,
)
_LOOKED_AT: Final = 200
_TELEMETRY_DEPTH: Final = 3


class BadCase(BaseAnalyzer):
    """Flags attempts; one with any flag is a bad case. A wrong answer alone is no flag.

    - `no_answer`: not right, and the answer is missing or empty.
    - `error_answer`: not right, and the answer begins like an error message or traceback.
    - `stopped_by_limit`: the attempt ran out of time or context, or the harness tells that the
      model or the agent was stopped at a limit (`finish_reason: length`, `max_turns`, ...).
    - `repeated_actions`: the agent did the very same three or more times in a row.
    - `run_error`: the run ended in another error and was judged all the same.

    `details` has the `flags`, what was repeated and how often, and declares the flags of an attempt
    together as the value `flags`.
    """

    id: ClassVar[str] = "bad-case"
    base_analyzer: ClassVar[str] = "bad-case"

    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        """Apply the rules, in a thread: trajectories can be long."""
        return await asyncio.to_thread(_analysis, result, evaluation)


def _analysis(result: RunResult, evaluation: Evaluation) -> Analysis:
    longest, action = 0, None
    if result.trajectory is not None:
        longest, action = longest_repetition(read_trajectory(result.trajectory).actions())
    flags = list(_flags(result, evaluation, longest))
    details: dict[str, Any] = {
        "flags": flags,
        "value_counts": {"flags": " + ".join(flags) or "none"},
    }
    if REPEATED_ACTIONS in flags and action is not None:
        details["repeated"] = {"times": longest, "tool": action.tool}
    return Analysis(is_badcase=bool(flags), details=details)


def _flags(result: RunResult, evaluation: Evaluation, longest: int) -> Iterator[str]:
    error = result.error
    limited = (error is not None and error.code in _LIMITS) or any(_stops(result.telemetry))
    right = evaluation.correct if evaluation.correct is not None else bool(evaluation.score)
    if not right and _is_empty(result.final_answer):
        yield NO_ANSWER
    if not right and _is_error(result.final_answer):
        yield ERROR_ANSWER
    if limited:
        yield STOPPED_BY_LIMIT
    if longest >= REPETITIONS:
        yield REPEATED_ACTIONS
    if error is not None and not limited:
        yield RUN_ERROR


def _is_empty(answer: Any) -> bool:
    return answer is None or answer in ({}, []) or (isinstance(answer, str) and not answer.strip())


def _is_error(answer: Any) -> bool:
    return isinstance(answer, str) and _ERROR_TEXT.match(answer[:_LOOKED_AT]) is not None


def _stops(telemetry: Any, depth: int = 0) -> Iterator[str]:
    """The reasons to stop that name a limit, at the top of what the harness measured or close."""
    if depth == _TELEMETRY_DEPTH or not isinstance(telemetry, dict):
        return
    for name, value in telemetry.items():
        if name in _REASONS and isinstance(value, str) and value.lower() in _STOPS:
            yield value
        yield from _stops(value, depth + 1)
