"""AgentCompass issues {severity, phase, code, message} as our errors and issues.

The status of an attempt follows from its issues there as well: `evaluate` issues are evaluation
errors, those of every other phase run errors, `fatal` ones invalidate the task, warnings neither.
"""

from collections.abc import Sequence
from typing import Any, Final

from ledger import events as ev

_FIELDS: Final = frozenset({"severity", "phase", "code", "message"})
_GRAVE: Final = ("fatal", "error")


def parse_issues(value: Any) -> tuple[ev.Issue, ...] | None:
    """The issues of a record; None if they are not what the program writes."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(_is_issue(item) for item in value):
        return None
    return tuple(ev.Issue(**item) for item in value)


def run_error(issues: Sequence[ev.Issue]) -> ev.ErrorInfo | None:
    """What kept the harness from its result, the fatal before the others."""
    return _gravest([issue for issue in issues if issue.phase != "evaluate"])


def evaluation_error(issues: Sequence[ev.Issue]) -> ev.ErrorInfo | None:
    """What kept the benchmark from its verdict."""
    return _gravest([issue for issue in issues if issue.phase == "evaluate"])


def decisive_error(issues: Sequence[ev.Issue]) -> ev.ErrorInfo | None:
    """The error of the attempt: fatal before others, run errors before evaluation errors."""
    errors = [error for error in (run_error(issues), evaluation_error(issues)) if error]
    return next((error for error in errors if error.fatal), errors[0] if errors else None)


def _gravest(issues: Sequence[ev.Issue]) -> ev.ErrorInfo | None:
    for severity in _GRAVE:
        for issue in issues:
            if issue.severity == severity:
                return ev.ErrorInfo(
                    code=issue.code,
                    message=issue.message,
                    phase=issue.phase,
                    fatal=severity == "fatal",
                )
    return None


def _is_issue(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == _FIELDS
        and all(isinstance(text, str) for text in value.values())
    )
