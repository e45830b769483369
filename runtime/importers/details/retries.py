"""One file of `retry_details/`: a try that was discarded, schema `agentcompass.retry.v1`."""

from dataclasses import dataclass
from typing import Any, Final

from ledger import events as ev
from runtime.importers.details.errors import UNKNOWN, error_of
from runtime.importers.details.reading import Document
from runtime.importers.jsontext import NotARecord
from runtime.importers.numbers import is_duration
from runtime.importers.source import SourceFile

MAX_NUMBER: Final = 999_999_999
_FIELDS: Final = frozenset(
    {
        "attempt",
        "category",
        "discarded_result",
        "error",
        "matched_pattern",
        "max_retries",
        "retry",
        "retry_delay_seconds",
        "schema",
        "schema_version",
        "scope",
        "stage",
        "task_id",
    }
)
_OF_RESULT: Final = ("final_answer", "trajectory", "artifacts", "telemetry", "meta", "extra")


@dataclass(frozen=True, slots=True)
class RetryFile:
    """Where a discarded try stands, and which it is; its content stays on disk."""

    file: SourceFile
    task: str
    attempt: int
    retry: int


def locate(file: SourceFile, document: Document) -> RetryFile:
    """Say whose try it is, and which; NotARecord if the file does not."""
    task = document.value.get("task_id")
    if not isinstance(task, str):
        raise NotARecord("it names no task")
    return RetryFile(file, task, _number(document, "attempt", 1), _number(document, "retry", 0))


def _number(document: Document, name: str, least: int) -> int:
    value = document.value.get(name)
    if type(value) is not int or not least <= value <= MAX_NUMBER:
        raise NotARecord(f"its {name} is {value!r}")
    return value


def unknown_fields(document: Document) -> list[str]:
    """Names that our event has no field for."""
    return sorted(document.value.keys() - _FIELDS)


def retried(document: Document, task: str, attempt: int, number: int) -> ev.AttemptRetried:
    """The event; `number` counts the retries that are there."""
    value = document.value
    delay: Any = value.get("retry_delay_seconds")
    budget = value.get("max_retries")
    stage, pattern = value.get("stage"), value.get("matched_pattern")
    unnamed = ev.ErrorInfo(code=UNKNOWN, message="the source names no error of this try")
    return ev.AttemptRetried(
        task=task,
        attempt=attempt,
        retry=number,
        max_retries=budget if type(budget) is int and budget >= 0 else number,
        retry_delay_seconds=float(delay) if is_duration(delay) else 0.0,
        stage=stage if isinstance(stage, str) else UNKNOWN,
        scope="evaluate" if value.get("scope") == "evaluate" else "attempt",
        matched_pattern=pattern if isinstance(pattern, str) else None,
        error=error_of(value.get("error"), document.words.get("error_info")) or unnamed,
        discarded_result=value.get("discarded_result"),
    )


def result_of_try(document: Document, task: str, attempt: int) -> ev.ResultRecorded:
    """The result that must have been there when its evaluation was discarded."""
    found: Any = document.value.get("discarded_result")
    given: dict[str, Any] = found if isinstance(found, dict) else {}
    kept = {name: given.get(name) for name in _OF_RESULT}
    return ev.ResultRecorded.model_validate(
        {"task": task, "attempt": attempt, "status": "completed", **kept}
    )
