"""From features to a diagnosis: eight axes, one primary cause, and a verdict on correctness.

Causes are asked in order, the earliest first: what kept the agent from beginning explains what
came later. The rules are those of the taxonomy `acl-1`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from exporters.job_analysis.actions import CONTEXT_WINDOW
from exporters.job_analysis.facts import Facts
from exporters.job_analysis.features import Found
from exporters.jobs.resolution import threshold
from ledger.events import ErrorInfo

AXES: Final = (
    "execution",
    "answer",
    "model_io",
    "tool_usage",
    "long_horizon",
    "localization",
    "diagnosis",
    "implementation",
)
NOT_APPLICABLE: Final = "not_applicable"
ERASED: Final = "erased"
_MOST_EVENTS: Final = 20
_AT_LIMIT: Final = 0.9
_SETUP: Final = frozenset({"plan", "start_harness"})
_HOUSE: Final = frozenset({"open_environment", "prepare_task"})
_TIMEOUTS: Final = frozenset({"run_timeout", "collect_timeout", "AgentTimeoutError", "timeout"})
_ENVIRONMENT: Final = ("environment_", "Environment", "Sandbox", "sandbox_")
_PROVIDER: Final = ("provider_", "Api", "API")
# Names under which other programs report failed model calls.
_PROVIDER_CODES: Final = CONTEXT_WINDOW | {
    "AgentAuthenticationError",
    "AuthenticationError",
    "BadRequestError",
    "InternalServerError",
    "ModelNotFoundError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ServiceUnavailableError",
    "call_cancelled",
}
_VERIFIER: Final = ("Verifier", "RewardFile")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found; `evidence` are the events that fired the rule of `primary`."""

    axes: dict[str, str]
    primary: str
    primary_failure: str | None
    secondary: tuple[str, ...]
    verdict: str
    evidence: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    fires: bool
    evidence: Iterable[int | None] = ()
    steps: Iterable[int] = ()


def diagnose(facts: Facts, found: Found) -> Diagnosis:
    """Say what became of one attempt, and why."""
    axes = dict(
        zip(
            AXES,
            (
                _execution(facts),
                answer_of(facts),
                _model_io(facts),
                _tool_usage(facts, found),
                _long_horizon(found),
                *_against_gold(facts, found),
            ),
            strict=True,
        )
    )
    rules = _ways(facts, found) if facts.resolved else _causes(facts, found, axes)
    fired = [rule for rule in rules if rule.fires]
    first = fired[0]
    later = () if facts.resolved else tuple(rule.name for rule in fired[1:-1])
    evidence = sorted({seq for seq in first.evidence if seq is not None})
    return Diagnosis(
        axes=axes,
        primary=first.name,
        primary_failure=None if facts.resolved else first.name,
        secondary=later,
        verdict=_verdict(facts, axes["answer"]),
        evidence=tuple(evidence[:_MOST_EVENTS]),
        steps=tuple(sorted(set(first.steps))[:_MOST_EVENTS]),
    )


# -- axes -----------------------------------------------------------------------------------------


def _execution(facts: Facts) -> str:
    return next(_faults(facts), "ok")


def _faults(facts: Facts) -> Iterator[str]:
    """What went wrong around the agent, the earliest first."""
    status = facts.attempt.status
    if status == "cancelled":
        yield "cancelled"
    if status in ("run_error", "run_error_or_eval_error"):
        yield "run_error" if facts.run_error is None else _kind(facts.run_error)
    if status in ("eval_error", "run_error_or_eval_error") and (
        status == "eval_error" or facts.evaluation_error is not None
    ):
        yield "eval_error"


def _kind(error: ErrorInfo) -> str:
    code = error.code
    if error.phase in _SETUP or code.startswith("AgentSetup"):
        return "setup_error"
    if error.phase in _HOUSE or code.startswith(_ENVIRONMENT):
        return "environment_error"
    if code.startswith(_PROVIDER) or code in _PROVIDER_CODES or _is_http_status(code):
        return "provider_error"
    if code in _TIMEOUTS:
        return "timeout"
    return "eval_error" if code.startswith(_VERIFIER) else "run_error"


def _is_http_status(code: str) -> bool:
    return len(code) == 3 and code.isdecimal() and code[0] in "45"


def answer_of(facts: Facts) -> str:
    """The axis `answer`: a partial score is no zero, and no verdict is no wrong answer."""
    attempt = facts.attempt
    if facts.resolved:
        return "correct"
    if not attempt.verdict:
        return ERASED if attempt.verdict_erased else "not_evaluated"
    if attempt.score is not None and 0 < attempt.score < threshold(facts.task):
        return "partial"
    return "empty" if facts.answered is False else "wrong"


def _model_io(facts: Facts) -> str:
    calls = facts.actions.calls
    if not calls:
        return NOT_APPLICABLE
    if calls[-1].failed:
        return "failed"
    return "degraded" if any(one.failed or one.call.lost for one in calls) else "ok"


def _tool_usage(facts: Facts, found: Found) -> str:
    if not facts.actions.tools:
        return NOT_APPLICABLE
    if found.values["tool_error_storm"]:
        return "poor"
    return "suboptimal" if found.values["loop_detected"] else "ok"


def _long_horizon(found: Found) -> str:
    if found.values["context_truncation"]:
        return "truncation"
    used = found.values["iterations_used_frac"]
    if used is None:
        return NOT_APPLICABLE
    if used >= 1:
        return "max_iter_reached"
    return "premature_stop" if found.values["premature_stop"] else "ok"


def _against_gold(facts: Facts, found: Found) -> tuple[str, str, str]:
    """Localization, diagnosis and implementation, beside the gold patch."""
    if facts.gold is None:
        return NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE
    values = found.values
    read, function = values["C1_file_read"], values["C2_func_read"]
    place = "hit" if read and function else "partial" if read else "miss"
    made = _implementation(facts, found)
    if facts.resolved or (place == "hit" and made == "wrong_logic"):
        return place, "correct", made
    return place, "wrong" if made in ("wrong_location", "no_edit") else "partial", made


def _implementation(facts: Facts, found: Found) -> str:
    files, functions = found.values["C3_file_alignment"], found.values["C4_func_alignment"]
    if facts.resolved:
        return "correct"
    if not files:
        return "no_edit" if facts.given is None else "wrong_location"
    whole = files >= 1 and (functions is None or functions >= 1)
    return "wrong_logic" if whole else "partial_fix"


# -- causes ---------------------------------------------------------------------------------------


def _causes(facts: Facts, found: Found, axes: dict[str, str]) -> Iterator[_Rule]:
    """Why an attempt was not resolved; the last rule always fires."""
    faults = set(_faults(facts))
    attempt = facts.attempt
    end = (*attempt.retries, attempt.finished)
    for name in ("cancelled", "setup_error", "environment_error"):
        yield _Rule(name, name in faults, end)
    failed = [one for one in facts.actions.calls if one.failed]
    calls = [one.call.index for one in failed]
    yield _Rule(
        "provider_error", "provider_error" in faults, [*(one.seq for one in failed), *end], calls
    )
    for name in ("timeout", "run_error"):
        yield _Rule(name, name in faults, (attempt.finished,))
    yield _Rule("eval_error", "eval_error" in faults, (attempt.evaluation, attempt.finished))
    truncated = axes["long_horizon"] == "truncation"
    steps = [one.call.index for one in facts.actions.counted if one.truncated]
    yield _Rule("context_truncation", truncated, found.truncated, steps)
    at_limit = axes["long_horizon"] == "max_iter_reached"
    yield _Rule("max_iterations", at_limit, _last_calls(facts))
    yield _Rule(ERASED, axes["answer"] == ERASED, (attempt.evaluation,))
    unjudged = axes["answer"] == "not_evaluated" and facts.answered is not True
    nothing = unjudged or axes["answer"] == "empty"
    yield _Rule("no_answer", nothing, (attempt.result, attempt.evaluation))
    judged = (attempt.result, attempt.evaluation)
    yield _Rule("localization", axes["localization"] in ("miss", "partial"), judged)
    yield _Rule("diagnosis", axes["diagnosis"] in ("wrong", "partial"), judged)
    made = axes["implementation"]
    yield _Rule("implementation", made not in ("correct", NOT_APPLICABLE), judged)
    yield _Rule("premature_stop", found.values["premature_stop"] is True, _last_calls(facts))
    yield _pathology("tool_error_storm", found, bool(found.values["tool_error_storm"]))
    yield _pathology("loop", found, bool(found.values["loop_detected"]))
    yield _Rule("partial_credit", axes["answer"] == "partial", (attempt.evaluation,))
    yield _Rule("wrong_answer", True, (attempt.evaluation, attempt.finished))


def _pathology(name: str, found: Found, fires: bool) -> _Rule:
    tools = found.loop if name == "loop" else found.storm
    return _Rule(name, fires, [tool.seq for tool in tools], [tool.step for tool in tools])


def _last_calls(facts: Facts) -> list[int]:
    return [one.seq for one in facts.actions.counted[-1:]] or [facts.attempt.finished or 0]


def _ways(facts: Facts, found: Found) -> Iterator[_Rule]:
    """How an attempt was resolved; the last rule always fires."""
    attempt = facts.attempt
    yield _Rule("later_attempt", attempt.number > 1, (attempt.started,))
    yield _Rule("after_retry", bool(attempt.retries), attempt.retries)
    failed = [one for one in facts.actions.calls if one.failed]
    yield _Rule(
        "after_provider_errors",
        bool(failed),
        [one.seq for one in failed],
        [one.call.index for one in failed],
    )
    wrong = [tool for tool in facts.actions.tools if tool.is_error]
    yield _Rule(
        "after_tool_errors",
        bool(found.values["tool_errors"]),
        [tool.seq for tool in wrong],
        [tool.step for tool in wrong],
    )
    yield _Rule("at_limit", _is_at_limit(facts, found), _last_calls(facts))
    yield _Rule("clean", True, (attempt.evaluation,))


def _is_at_limit(facts: Facts, found: Found) -> bool:
    used = found.values["iterations_used_frac"]
    if used is not None and used >= _AT_LIMIT:
        return True
    if facts.run_timeout is None or facts.run_seconds is None:
        return False
    return facts.run_seconds >= _AT_LIMIT * facts.run_timeout


def _verdict(facts: Facts, answer: str) -> str:
    """V1 resolved at once, V2 resolved, V3 in part, V4 wrong, V5 nothing to judge."""
    if facts.resolved:
        return "V1" if facts.attempt.number == 1 and not facts.attempt.retries else "V2"
    if answer == "partial":
        return "V3"
    return "V4" if answer == "wrong" else "V5"
