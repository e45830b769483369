"""Our errors as AgentCompass issues {severity, phase, code, message}; the worst tells the state."""

from collections.abc import Iterable, Iterator
from typing import Final

from ledger.events import AttemptFinished, ErrorInfo, EvaluationFinished, Issue, ResultRecorded

Told = dict[str, str]

_PHASES: Final = {
    "open_environment": "setup",
    "prepare_task": "setup",
    "start_harness": "setup",
    "run_harness": "run",
    "run_task": "run",
    "collect_result": "collect",
    "collect_artifacts": "collect",
    "evaluate": "evaluate",
    "setup": "setup",
    "run": "run",
    "collect": "collect",
    "cleanup": "cleanup",
}
_SEVERITIES: Final = frozenset({"fatal", "error", "warning"})


def attempt_issues(
    end: AttemptFinished | None,
    result: ResultRecorded | None,
    verdict: EvaluationFinished | None,
) -> list[Told]:
    """What went wrong in an attempt: each error once, then what is told beside the errors."""
    errors: list[tuple[ErrorInfo, str]] = []
    if result is not None and result.error is not None:
        errors.append((result.error, "run"))
    if verdict is not None and verdict.evaluation_error is not None:
        errors.append((verdict.evaluation_error, "evaluate"))
    if end is not None and end.error is not None:
        errors.append((end.error, "evaluate" if end.status == "eval_error" else "run"))
    found = [*_of_errors(errors), *_of_issues(end.issues if end is not None else ())]
    unique: dict[tuple[str, str, str], Told] = {}
    for issue in found:
        unique.setdefault((issue["phase"], issue["code"], issue["message"]), issue)
    return list(unique.values())


def error_issue(error: ErrorInfo, phase: str = "run") -> Told:
    """One error; `phase` stands for one that it does not tell."""
    severity = "fatal" if error.fatal else "error"
    return _issue(severity, error.phase or phase, error.code, error.message, other=phase)


def severities(issues: Iterable[Told]) -> set[str]:
    """The severities that occur."""
    return {issue["severity"] for issue in issues}


def _of_errors(errors: Iterable[tuple[ErrorInfo, str]]) -> Iterator[Told]:
    for error, phase in errors:
        yield error_issue(error, phase)


def _of_issues(issues: Iterable[Issue]) -> Iterator[Told]:
    for issue in issues:
        severity = issue.severity if issue.severity in _SEVERITIES else "warning"
        yield _issue(severity, issue.phase or "run", issue.code, issue.message, other="run")


def _issue(severity: str, phase: str, code: str, message: str, *, other: str) -> Told:
    # Neither code nor message may be blank there.
    named = code.strip() or "unknown"
    return {
        "severity": severity,
        "phase": _PHASES.get(phase, other),
        "code": named,
        "message": message if message.strip() else named,
    }
