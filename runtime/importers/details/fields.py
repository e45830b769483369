"""One attempt of a record taken apart into what the events of an attempt hold.

An export puts what several events said into one object. Here each field goes back to where the
export finds it again: a field that does not fit there stays in `extra`, so nothing is lost and
exporting again gives the same object.
"""

from dataclasses import dataclass, field
from typing import Any, Final, cast, get_args

from pydantic import ValidationError

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES
from runtime.importers.details.errors import UNKNOWN, error_of, known_error
from runtime.importers.details.measures import (
    analyses_of,
    collected_of,
    is_told_as,
)
from runtime.importers.details.plans import is_plan
from runtime.importers.numbers import is_number, split_measures

EVALUATOR: Final = "import:details"

STATUSES: Final = frozenset(get_args(ev.AttemptStatus))
_KNOWN: Final = frozenset(
    {
        "acl",
        "analysis_result",
        "artifacts",
        "correct",
        "error",
        "evaluation_error",
        "extra",
        "final_answer",
        "ground_truth",
        "meta",
        "metrics",
        "score",
        "status",
        "trajectory",
    }
)
_RUN_STATUS: Final = {"eval_error": "completed", "run_error_or_eval_error": "run_error"}
_PLAN: Final = "resolved_execution_plan"
_FAILED: Final = ("error", "fail", "timeout", "timed_out", "crash")


@dataclass(slots=True)
class Parts:
    """An attempt taken apart; `result` and `verdict` are fields of their events, None for none.

    `status` None says that the attempt never ended. `oddities` are told of the record.
    """

    status: ev.AttemptStatus | None
    result: dict[str, Any] | None
    verdict: dict[str, Any] | None
    error: ev.ErrorInfo | None
    issues: tuple[ev.Issue, ...]
    artifacts: ev.ArtifactsCollected | None
    analyses: list[ev.AnalysisFinished]
    plan: dict[str, Any] | None
    oddities: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Attempt:
    """An attempt as a file tells it: its fields, its part of `acl`, and what was erased of it.

    `words` is empty where another program wrote the file. `told` says that its record does,
    `planned` whether `run_info.json` has a plan of it, None where it is older than the record.
    """

    task: str
    number: int
    fields: dict[str, Any]
    words: dict[str, Any]
    erased: frozenset[str] = frozenset()
    told: bool = True
    planned: bool | None = None

    @property
    def ours(self) -> bool:
        """True if `acl` tells which events there were."""
        return bool(self.words)

    def had(self, name: str, kind: str) -> bool:
        """True if `acl` tells of an event of this kind that is not erased."""
        return self.words.get(name) is not None and kind not in self.erased


def take_apart(attempt: Attempt, version: str) -> Parts:
    """Say what each event of the attempt held; `version` is that of verdicts without a judge."""
    return _Taking(attempt, version).parts()


class _Taking:
    """One attempt at work: `extra` shrinks as fields of it find their place."""

    def __init__(self, attempt: Attempt, version: str) -> None:
        self.attempt = attempt
        self.fields = attempt.fields
        self.version = version
        self.oddities: list[str] = []
        self.extra = self._extra()
        self.correct = self._verdict_value("correct", lambda value: type(value) is bool)
        self.score = self._verdict_value("score", is_number)
        self.run_error = self._error("error")
        self.eval_error = self._error("evaluation_error")
        self.has_verdict = self._had_verdict()

    def _extra(self) -> dict[str, Any]:
        given = self.fields.get("extra")
        extra = dict(given) if isinstance(given, dict) else {}
        if given is not None and not isinstance(given, dict):
            extra["extra"] = given
        for name in self.fields.keys() - _KNOWN:
            self._keep(extra, name, self.fields[name])
        return extra

    def _keep(self, extra: dict[str, Any], name: str, value: Any) -> None:
        while name in extra:
            name = f"source.{name}"
        extra[name] = value

    def _odd(self, name: str, value: Any, why: str) -> None:
        self.oddities.append(f"{name} {why}; kept in extra")
        self._keep(self.extra, name, value)

    def _verdict_value(self, name: str, fits: Any) -> Any:
        value = self.fields.get(name)
        if value is None or fits(value):
            return value
        self._odd(name, value, f"is {value!r}")
        return None

    # -- errors and status ----------------------------------------------------------------------

    def _error(self, name: str) -> ev.ErrorInfo | None:
        text, info = self.fields.get(name), f"{name}_info"
        if text is not None and known_error(text, self.extra.get(info)) is not None:
            return error_of(text, self.extra.pop(info))
        return error_of(text, None)

    def _error_beside(self, status: str | None) -> ev.ErrorInfo | None:
        """The attempt's own error, told apart where its place is taken by another."""
        taken = self.eval_error if status == "eval_error" else self.run_error
        error = known_error(self.extra.get("attempt_error"), self.extra.get("attempt_error_info"))
        if error is None or taken is None or error in (self.run_error, self.eval_error):
            return None
        del self.extra["attempt_error"], self.extra["attempt_error_info"]
        return error

    def _had_verdict(self) -> bool:
        if self.correct is not None or self.score is not None:
            return True
        if self.attempt.ours:
            return self.attempt.had("evaluation", "evaluation.finished")
        return self.eval_error is not None

    def _status(self) -> ev.AttemptStatus | None:
        given = self.fields.get("status")
        if isinstance(given, str) and given in STATUSES:
            return cast("ev.AttemptStatus", given)
        if given is None and self.attempt.ours and not self.attempt.told:
            return None
        derived = self._derived_status(given)
        if given is not None:
            self._odd("status", given, f"is {given!r}, told as {derived}")
        elif self.attempt.ours:
            self.oddities.append(f"its end was erased; told as {derived}")
        return derived

    def _derived_status(self, given: Any) -> ev.AttemptStatus:
        word = given.lower() if isinstance(given, str) else ""
        if self.run_error is None and any(mark in word for mark in _FAILED):
            message = f"the source gives the status {given!r}"
            if "eval" not in word:
                self.run_error = ev.ErrorInfo(code=UNKNOWN, message=message)
            elif self.eval_error is None:
                self.eval_error, self.has_verdict = (
                    ev.ErrorInfo(code=UNKNOWN, message=message),
                    True,
                )
        match self.run_error is not None, self.eval_error is not None:
            case True, True:
                return "run_error_or_eval_error"
            case True, False:
                return "run_error"
            case False, True:
                return "eval_error"
            case _:
                return "completed"

    # -- the parts ------------------------------------------------------------------------------

    def parts(self) -> Parts:
        task, number = self.attempt.task, self.attempt.number
        status = self._status()
        self.other_error = self._error_beside(status)
        meta, plan = self._meta()
        artifacts, collected = self._artifacts()
        analyses, rest = analyses_of(self.fields.get("analysis_result"), task, number)
        if rest:
            self._odd("analysis_result", rest, "holds what is no analysis")
        measures, rest = split_measures(self.fields.get("metrics"))
        if rest:
            self._odd("metrics", rest, "holds what is no measure")
        issues = self._issues(status)
        judged, own = self._split(measures)
        verdict = self._verdict(judged) if self.has_verdict else None
        given = {
            "final_answer": self.fields.get("final_answer"),
            "trajectory": self.fields.get("trajectory"),
            "artifacts": artifacts,
            "metrics": own,
            "meta": meta,
        }
        result = self._result(status, given, verdict)
        return Parts(
            status=status,
            result=result,
            verdict=verdict,
            error=self._end_error(status, result is not None),
            issues=issues,
            artifacts=collected,
            analyses=analyses,
            plan=plan,
            oddities=self.oddities,
        )

    def _result(
        self, status: str | None, given: dict[str, Any], verdict: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        """The result, which there must be where anything needs one."""
        truth = self.fields.get("ground_truth")
        needed = (
            self.attempt.had("result", "result.recorded")
            or status == "completed"
            or verdict is not None
            or truth is not None
            or any(value not in (None, {}) for value in given.values())
            or (not self.attempt.ours and status not in ("skipped", "cancelled"))
        )
        telemetry = self._pop_told("telemetry") if needed else None
        own_truth = self.extra.get("harness_ground_truth")
        if verdict is not None and None not in (truth, own_truth) and own_truth != truth:
            verdict["ground_truth"] = truth
            truth = self.extra.pop("harness_ground_truth")
        if not needed and not self.extra:
            return None
        if status is None:
            status = "completed" if self.run_error is None else "run_error"
        return {
            "status": _RUN_STATUS.get(status, status),
            **given,
            "ground_truth": truth,
            "telemetry": telemetry,
            "error": self.run_error,
            "extra": self.extra or None,
        }

    def _verdict(self, measured: dict[str, Any]) -> dict[str, Any]:
        reason = self.extra.pop("reason") if isinstance(self.extra.get("reason"), str) else None
        return {
            "correct": self.correct,
            "score": self.score,
            "metrics": measured,
            "reason": reason,
            "evaluation_error": self.eval_error,
            "evaluator": self._evaluator(),
            **{name: self._pop_told(name) for name in ("tests_status", "stdout", "stderr")},
        }

    def _pop_told(self, name: str) -> Any:
        """A value that an event may have held; one of nothing is what `extra` holds itself."""
        return self.extra.pop(name) if self.extra.get(name) not in (None, {}) else None

    def _evaluator(self) -> ev.Evaluator:
        try:
            evaluator = ev.Evaluator.model_validate(self.extra.get("evaluator"))
        except ValidationError:
            return ev.Evaluator(id=EVALUATOR, version=self.version)
        del self.extra["evaluator"]
        return evaluator

    def _split(self, measures: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the evaluation measured, and what the harness did."""
        named = self.attempt.words.get("measured")
        names = set(map(str, named)) if isinstance(named, list) and self.has_verdict else set()
        judged = {name: value for name, value in measures.items() if name in names}
        own = {name: value for name, value in measures.items() if name not in names}
        beside, rest = split_measures(self.extra.get("harness_metrics"))
        differ = all(name in judged and judged[name] != value for name, value in beside.items())
        if beside and not rest and differ:
            del self.extra["harness_metrics"]
            own |= beside
        return judged, own

    def _meta(self) -> tuple[Any, dict[str, Any] | None]:
        meta = self.fields.get("meta")
        if not isinstance(meta, dict):
            return meta, None
        plan = meta.get(_PLAN)
        if not isinstance(plan, dict) or not self._is_of_the_house(plan):
            return meta or None, None
        return {name: value for name, value in meta.items() if name != _PLAN} or None, plan

    def _is_of_the_house(self, plan: dict[str, Any]) -> bool:
        """Whether it is the plan of the attempt, and not something of the harness by its name."""
        if not self.attempt.ours:
            return True
        return is_plan(plan) if self.attempt.planned is None else self.attempt.planned

    def _artifacts(self) -> tuple[Any, ev.ArtifactsCollected | None]:
        """What the harness gave, and what was taken from its environment."""
        task, number = self.attempt.task, self.attempt.number
        given = self.fields.get("artifacts")
        beside = collected_of(self.extra.get("collected_artifacts"), task, number)
        if beside is not None and given is not None:
            del self.extra["collected_artifacts"]
            return given, beside
        collected = collected_of(given, task, number)
        return (given, None) if collected is None else (None, collected)

    def _issues(self, status: str | None) -> tuple[ev.Issue, ...]:
        given = self.extra.get("issues")
        if status is None or not isinstance(given, list) or not given:
            return ()
        try:
            issues = tuple(ev.Issue.model_validate(item) for item in given)
        except ValidationError:
            return ()
        if not all(map(is_told_as, given, issues)):
            return ()
        del self.extra["issues"]
        return issues

    def _end_error(self, status: str | None, has_result: bool) -> ev.ErrorInfo | None:
        """The error of the attempt as a whole, as an export finds it again."""
        if self.other_error is not None:
            return self.other_error
        if self.run_error is not None and not has_result:
            return self.run_error
        if self.eval_error is not None and not self.has_verdict:
            return self.eval_error
        errors = [error for error in (self.run_error, self.eval_error) if error is not None]
        if self.attempt.ours:
            fatal = self.attempt.words.get("fatal") is True
            errors = [error for error in errors if error.fatal is fatal]
            return errors[0] if errors and (fatal or status in ERROR_STATUSES) else None
        return errors[0] if errors and status in ERROR_STATUSES else None
