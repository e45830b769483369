"""What plug-ins hand over becomes events: what no ledger holds is left out and named.

Whoever gave a value that is refused is at fault: the harness's values make a run error, the
verifier's an evaluation error.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from ledger import canonical
from ledger import events as ev
from ledger.errors import ValueRefused
from runtime.contracts import Task
from runtime.results import ErrorInfo, Evaluation, RunResult

VALUE_REFUSED: Final = "value_refused"
_SHOWN: Final = 10
_KNOWN: Final = frozenset(get_args(ev.AttemptStatus))
_STATUSES: Final[dict[tuple[bool, bool], ev.AttemptStatus]] = {
    (False, False): "completed",
    (True, False): "run_error",
    (False, True): "eval_error",
    (True, True): "run_error_or_eval_error",
}


@dataclass(slots=True)
class Sieve:
    """Keeps what can be held, and remembers what could not."""

    refusals: list[ValueRefused] = field(default_factory=list)

    def value(self, name: str, value: Any) -> Any:
        """A copy of `value` without what is refused."""
        kept, refused = canonical.prune(value)
        self.refusals += [ValueRefused(f"$.{name}{one.path[1:]}", one.why) for one in refused]
        return kept

    def mapping(self, name: str, value: Any) -> dict[str, Any] | None:
        """An object; None for an empty one."""
        kept = self.value(name, value)
        if kept is not None and not isinstance(kept, dict):
            self.refuse(name, f"{type(value).__name__} is no object")
            return None
        return kept or None

    def measures(self, name: str, value: Any) -> dict[str, bool | int | float]:
        """The finite numbers and truth values of an object by name."""
        if not isinstance(value, Mapping):
            if value is not None:
                self.refuse(name, f"{type(value).__name__} is no object")
            return {}
        kept: dict[str, bool | int | float] = {}
        for key, number in value.items():
            if type(key) is not str:
                self.refuse(name, f"a key is {type(key).__name__}, not text")
            elif self._is_number(f"{name}.{key}", number):
                kept[key] = number
        return kept

    def number(self, name: str, value: Any) -> int | float | None:
        """A finite number or None; a truth value counts as 1 or 0."""
        if value is None or not self._is_number(name, value):
            return None
        return int(value) if isinstance(value, bool) else value

    def text(self, name: str, value: Any) -> str | None:
        """A text or None."""
        if value is None or isinstance(value, str):
            return None if value is None else _plain(value)
        self.refuse(name, f"{type(value).__name__} is not text")
        return None

    def refuse(self, name: str, why: str) -> None:
        """Note that the value called `name` is left out."""
        self.refusals.append(ValueRefused(f"$.{name}", why))

    def _is_number(self, name: str, value: Any) -> bool:
        if type(value) not in (bool, int, float):
            self.refuse(name, f"{type(value).__module__}.{type(value).__qualname__} is no number")
        elif isinstance(value, float) and not math.isfinite(value):
            self.refuse(name, f"{value} is not a finite number")
        else:
            return True
        return False


def refused_error(refusals: list[ValueRefused], phase: ev.Phase) -> ErrorInfo | None:
    """The error that these refusals are, or None if there are none."""
    if not refusals:
        return None
    words = [one.message for one in refusals[:_SHOWN]]
    if len(refusals) > _SHOWN:
        words.append(f"and {len(refusals) - _SHOWN} more")
    return ErrorInfo(code=VALUE_REFUSED, message="; ".join(words), phase=phase)


def kept_result(task: Task, given: Any) -> tuple[RunResult, ErrorInfo | None]:
    """Return a copy of what a harness gave with only what a ledger holds, and its error, if any.

    What the harness says about correctness is no verdict: it goes to `extra`.
    """
    if not isinstance(given, RunResult):
        what = f"the harness gave {type(given).__name__} instead of a RunResult"
        return RunResult(task.task_id), ErrorInfo(code="bad_result", message=what)
    sieve = Sieve()
    extra = sieve.mapping("extra", given.extra) or {}
    claims = {
        "correct": given.correct,
        "score": given.score,
        "analysis_result": given.analysis_result,
        "task_id": None if given.task_id == task.task_id else given.task_id,
    }
    for name, claim in claims.items():
        if claim is not None:
            extra.setdefault(f"harness_{name}", sieve.value(name, claim))
    kept = RunResult(
        task_id=task.task_id,
        category=task.category,
        final_answer=sieve.value("final_answer", given.final_answer),
        ground_truth=(
            expected(task)
            if given.ground_truth is None
            else sieve.value("ground_truth", given.ground_truth)
        ),
        trajectory=sieve.value("trajectory", given.trajectory),
        artifacts=sieve.value("artifacts", given.artifacts),
        metrics=sieve.measures("metrics", given.metrics),
        telemetry=sieve.value("telemetry", given.telemetry),
        meta=sieve.mapping("meta", given.meta) or {},
        extra=extra,
    )
    error = _own_error(given) or refused_error(sieve.refusals, "collect_result")
    if given.status == "skipped" and error is None:
        kept.status = "skipped"
    return kept, error


def attempt_status(
    run_error: ErrorInfo | None, evaluation_error: ErrorInfo | None
) -> ev.AttemptStatus:
    """The status of an attempt with these errors; a wrong answer is none."""
    return _STATUSES[run_error is not None, evaluation_error is not None]


def expected(task: Task) -> Any:
    """The task's ground truth, as far as it can be held; `evaluation_event` names the rest."""
    return canonical.prune(task.ground_truth)[0]


def _own_error(given: RunResult) -> ErrorInfo | None:
    if given.error is not None:
        return _error_info(given.error)
    if given.status in ("completed", "skipped", "eval_error"):
        return None
    if type(given.status) is str and given.status in _KNOWN:
        return ErrorInfo(code=given.status, message=f"the harness reported {given.status}")
    return ErrorInfo(code="bad_result", message=f"the harness gave the status {given.status!r}")


def _error_info(given: Any) -> ErrorInfo:
    if isinstance(given, ErrorInfo):
        # Built anew: a subclass of str in it is a value that no ledger holds.
        return ErrorInfo(
            code=_plain(given.code),
            message=_plain(given.message),
            phase=None if given.phase is None else _plain(given.phase),
            fatal=given.fatal,
            traceback=None if given.traceback is None else _plain(given.traceback),
        )
    return ErrorInfo(code="harness_error", message=repr(given))


def _plain(text: str) -> str:
    return str.__str__(text)


def result_event(
    task: str, attempt: int, result: RunResult, error: ErrorInfo | None
) -> ev.ResultRecorded:
    """The event of a result that `kept_result` gave."""
    return ev.ResultRecorded(
        task=task,
        attempt=attempt,
        status="run_error" if error is not None else result.status,
        final_answer=result.final_answer,
        ground_truth=result.ground_truth,
        trajectory=result.trajectory,
        artifacts=result.artifacts,
        metrics=result.metrics,
        telemetry=result.telemetry,
        error=error,
        meta=result.meta or None,
        extra=result.extra or None,
    )


def discarded(result: RunResult | None) -> dict[str, Any] | None:
    """What is kept of the result of a try that is made again."""
    if result is None:
        return None
    names = ("final_answer", "trajectory", "artifacts", "metrics", "telemetry", "meta", "extra")
    found = {name: getattr(result, name) for name in names}
    return {name: value for name, value in found.items() if value not in (None, {})} or None


def evaluation_event(
    task: Task, attempt: int, given: Any, default: ev.Evaluator
) -> ev.EvaluationFinished:
    """The event of what a benchmark gave; without a verdict or with a refused value an error."""
    if not isinstance(given, Evaluation):
        what = f"the benchmark gave {type(given).__name__} instead of an Evaluation"
        error = ErrorInfo(code="bad_evaluation", message=what, phase="evaluate")
        return failed_evaluation(task.task_id, attempt, error, default)
    sieve = Sieve()
    sieve.value("ground_truth", task.ground_truth)
    correct = given.correct if given.correct is None or type(given.correct) is bool else None
    if correct is not given.correct:
        sieve.refuse("correct", f"{type(given.correct).__name__} is no truth value")
    score = sieve.number("score", given.score)
    fields = {
        "metrics": sieve.measures("metrics", given.metrics),
        "reason": sieve.text("reason", given.reason),
        "tests_status": sieve.value("tests_status", given.tests_status),
        "stdout": sieve.value("stdout", given.stdout),
        "stderr": sieve.value("stderr", given.stderr),
        "ground_truth": sieve.value("ground_truth", given.ground_truth),
        "extra": sieve.mapping("extra", given.extra),
    }
    error_given = None if given.error is None else _error_info(given.error)
    error_found = error_given or refused_error(sieve.refusals, "evaluate")
    if error_found is None and correct is None and score is None:
        error_found = ErrorInfo(
            code="no_verdict", message="the benchmark gave no verdict", phase="evaluate"
        )
    return ev.EvaluationFinished(
        task=task.task_id,
        attempt=attempt,
        correct=correct,
        score=score,
        evaluation_error=error_found,
        evaluator=_evaluator(given.evaluator, default),
        **fields,
    )


def _evaluator(given: Any, default: ev.Evaluator) -> ev.Evaluator:
    if not isinstance(given, ev.Evaluator):
        return default
    return ev.Evaluator(id=_plain(given.id), version=_plain(given.version), sha256=given.sha256)


def failed_evaluation(
    task: str, attempt: int, error: ErrorInfo, evaluator: ev.Evaluator
) -> ev.EvaluationFinished:
    """The event of an evaluation that gave nothing but an error."""
    return ev.EvaluationFinished(
        task=task, attempt=attempt, evaluation_error=error, evaluator=evaluator
    )
