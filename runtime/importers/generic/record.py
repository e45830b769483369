"""One line: whose it is and what it says of it, read strictly.

What decides on a number (task, attempt, verdict, error) must be what the form says, or the line
is no record. All else is kept where it does not fit, in `extra`, and told.
"""

from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ledger import events as ev
from ledger.codec import MAX_TASK
from runtime.importers.details.errors import error_of
from runtime.importers.generic.header import task_id_of
from runtime.importers.jsontext import NotARecord
from runtime.importers.numbers import is_number

_MOST_ATTEMPTS: Final = 2**32
_ERROR_WORDS: Final = ("code", "message", "phase", "fatal", "traceback")


@dataclass(frozen=True, slots=True)
class GenericRecord:
    """A line as far as it decides on numbers; `rest` holds its other fields as they stand.

    A `score` that is not finite is none, and `odd_score` holds it.
    """

    task_id: str
    numeric: bool
    attempt: int | None
    correct: bool | None
    score: float | int | None
    odd_score: float | None
    error: ev.ErrorInfo | None
    evaluation_error: ev.ErrorInfo | None
    rest: dict[str, Any]

    @property
    def judged(self) -> bool:
        """True if there is a verdict, or the judge failed."""
        told = (self.correct, self.score, self.evaluation_error)
        return any(one is not None for one in told)


def read_line(value: dict[str, Any]) -> GenericRecord:
    """Read a record; NotARecord names the field that is not what it must be."""
    rest = dict(value)
    given = rest.pop("task_id", None)
    score = _score(rest.pop("score", None))
    return GenericRecord(
        task_id=_task(given),
        numeric=not isinstance(given, str),
        attempt=_attempt(rest.pop("attempt", None)),
        correct=_correct(rest.pop("correct", None)),
        score=score if is_number(score) else None,
        odd_score=None if score is None or is_number(score) else score,
        error=_error(rest.pop("error", None), "error"),
        evaluation_error=_error(rest.pop("evaluation_error", None), "evaluation_error"),
        rest=rest,
    )


def task_of_damaged(value: dict[str, Any]) -> str | None:
    """The task that a line is about, though it is no record; None if it cannot be told."""
    task = task_id_of(value.get("task_id"))
    return task if task is not None and _fits(task) else None


def _task(value: Any) -> str:
    if value is None:
        raise NotARecord("it has no task_id")
    if value == "":
        raise NotARecord("its task_id is empty")
    task = task_id_of(value)
    if task is None:
        raise NotARecord("its task_id is neither a text nor a whole number")
    if not _fits(task):
        raise NotARecord(f"its task_id has more than {MAX_TASK} bytes")
    return task


def _fits(task: str) -> bool:
    return len(task.encode("utf-8", "surrogatepass")) <= MAX_TASK


def _attempt(value: Any) -> int | None:
    if value is None or (type(value) is int and 1 <= value < _MOST_ATTEMPTS):
        return value
    raise NotARecord(f"its attempt is {_told(value)}: attempts count from 1")


def _correct(value: Any) -> bool | None:
    if value is None or type(value) is bool:
        return value
    if type(value) in (int, float) and value in (0, 1):
        return bool(value)
    raise NotARecord(f"correct is {_told(value)}, which is no truth value")


def _score(value: Any) -> float | int | None:
    if value is None or type(value) in (int, float):
        number: float | int | None = value
        return number
    raise NotARecord(f"score is {_told(value)}, which is no number")


def _error(value: Any, name: str) -> ev.ErrorInfo | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return error_of(value, None)
    if isinstance(value, dict) and value.keys() <= {*_ERROR_WORDS}:
        try:
            return ev.ErrorInfo.model_validate({"code": "unknown", "message": "", **value})
        except ValidationError:
            pass
    raise NotARecord(f"{name} is neither a text nor an object of {', '.join(_ERROR_WORDS)}")


def _told(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
