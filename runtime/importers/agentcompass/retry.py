"""One file of `retries/`: a try that was discarded, schema `agentcompass.retry.v1`."""

from typing import Any, Final

from ledger import events as ev
from runtime.importers.agentcompass.issues import decisive_error, parse_issues
from runtime.importers.jsontext import NotARecord
from runtime.importers.numbers import is_duration

_FIELDS: Final = frozenset(
    (
        "schema_version",
        "task_id",
        "category",
        "attempt",
        "retry",
        "max_retries",
        "retry_delay_seconds",
        "stage",
        "scope",
        "matched_pattern",
        "issues",
        "discarded_result",
    )
)


def retry_number(record: dict[str, Any]) -> int:
    """Which retry of its attempt it is, from 1; NotARecord if it does not say."""
    number = record.get("retry")
    if type(number) is not int or number < 1:
        raise NotARecord(f"its retry is {number!r}")
    return number


def unknown_fields(record: dict[str, Any]) -> list[str]:
    """Names that our event has no field for."""
    return sorted(record.keys() - _FIELDS)


def retried(record: dict[str, Any], task: str, attempt: int, number: int) -> ev.AttemptRetried:
    """The event; `number` counts the retries that are there. NotARecord if it cannot be told."""
    issues = parse_issues(record.get("issues"))
    if issues is None:
        raise NotARecord("its issues are none that the program writes")
    delay: Any = record.get("retry_delay_seconds")
    budget = record.get("max_retries")
    stage, scope, pattern = (record.get(key) for key in ("stage", "scope", "matched_pattern"))
    return ev.AttemptRetried(
        task=task,
        attempt=attempt,
        retry=number,
        max_retries=budget if type(budget) is int and budget >= 0 else number,
        retry_delay_seconds=float(delay) if is_duration(delay) else 0.0,
        stage=stage if isinstance(stage, str) else "unknown",
        scope="evaluate" if scope == "evaluate" else "attempt",
        matched_pattern=pattern if isinstance(pattern, str) else None,
        error=decisive_error(issues) or _UNNAMED,
        discarded_result=record.get("discarded_result"),
    )


_UNNAMED: Final = ev.ErrorInfo(code="unknown", message="the source names no error of this try")
