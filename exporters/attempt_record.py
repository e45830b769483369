"""One attempt in a task's record.

Its fields are those of AgentCompass's results layout; whatever else a harness or a benchmark gave
goes to `extra`, so that nothing is dropped. Where two of them give one name, the benchmark's
measures and ground truth stand, and the harness's go to `extra` as well.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from exporters.reading import Reading, error_fields, error_text
from ledger import events as ev
from ledger.state import AttemptState

_OF_RESULT: Final = (
    "final_answer",
    "ground_truth",
    "trajectory",
    "artifacts",
    "telemetry",
    "meta",
    "extra",
)
# An empty object says something as one of these, and nothing as any other.
_VALUES: Final = frozenset({"final_answer", "ground_truth", "harness_ground_truth", "trajectory"})
_OF_VERDICT: Final = ("ground_truth", "tests_status", "stdout", "stderr", "extra")
_ERRORS: Final = ("error", "evaluation_error")
_OF_BRIEF_EXTRA: Final = frozenset(
    {
        "attempt_error",
        "attempt_error_info",
        "error_info",
        "evaluation_error_info",
        "evaluator",
        "harness_metrics",
        "issues",
    }
)
_Fields = dict[str, object]


def attempt_record(attempt: AttemptState, reading: Reading, *, brief: bool = False) -> _Fields:
    """The attempt as the record tells it; absent values are left out but for the verdict's.

    `brief` leaves out all that may be large but the answer: what stays is what counts and metrics
    are made of.
    """
    for seq in attempt.erased:
        reading.note(seq)
    result = reading.event(attempt.result, ev.ResultRecorded)
    verdict = reading.event(attempt.evaluation, ev.EvaluationFinished)
    given = _whole(reading, attempt.result, result, _OF_RESULT[:1] if brief else _OF_RESULT)
    judged = _whole(reading, attempt.evaluation, verdict, () if brief else _OF_VERDICT)
    beside = _errors(reading.event(attempt.finished, ev.AttemptFinished), result, verdict)
    errors = {name: beside.pop(name, None) for name in _ERRORS}
    beside |= _beside_verdict(verdict) | {"telemetry": given.pop("telemetry", None)}
    beside |= {name: judged.get(name) for name in ("tests_status", "stdout", "stderr")}
    metrics = attempt.measures | attempt.metrics
    beside["harness_metrics"] = {n: v for n, v in attempt.measures.items() if metrics[n] != v}
    truth = judged.get("ground_truth", given.get("ground_truth"))
    own_truth = given.get("ground_truth", truth)
    if own_truth is not truth and own_truth != truth:
        beside["harness_ground_truth"] = own_truth
    collected = None if brief else _collected(attempt, reading)
    artifacts = given.get("artifacts", collected)
    beside["collected_artifacts"] = None if artifacts is collected else collected
    extra = _merged(
        ("", _present(beside)),
        ("harness", _object(given.get("extra"))),
        ("benchmark", _object(judged.get("extra"))),
    )
    if brief:
        extra = {name: value for name, value in extra.items() if name in _OF_BRIEF_EXTRA}
    optional = {
        "final_answer": given.get("final_answer"),
        "ground_truth": truth,
        "trajectory": given.get("trajectory"),
        "artifacts": artifacts,
        "metrics": dict(sorted(metrics.items())),
        **errors,
        "analysis_result": _analyses(attempt, reading),
        "meta": {} if brief else _meta(attempt, reading, _object(given.get("meta"))),
        "extra": extra,
    }
    told: _Fields = {
        "status": attempt.status,
        "correct": attempt.correct,
        "score": attempt.score,
    }
    told.update((n, v) for n, v in optional.items() if v is not None and (v or n not in _MAPS))
    return told


# Fields that say nothing when they are empty; an empty answer or trajectory says something.
_MAPS: Final = frozenset({"metrics", "analysis_result", "meta", "extra"})


def plan_view(attempt: AttemptState, reading: Reading) -> _Fields | None:
    """The allowlisted view of the plan of the counted try, with the recipes that made it."""
    plan = reading.event(attempt.plan, ev.PlanResolved)
    if plan is None:
        return None
    more: _Fields = {"applied_recipes": list(plan.applied_recipes)}
    if plan.timeouts:
        more["timeouts"] = plan.timeouts
    return dict(sorted((more | plan.plan).items()))


def _whole(
    reading: Reading, seq: int | None, event: ev.Event | None, names: Iterable[str]
) -> _Fields:
    if seq is None or event is None:
        return {}
    found = {name: reading.value(seq, getattr(event, name)) for name in names}
    return _present(found)


def _present(fields: Mapping[str, object]) -> _Fields:
    return {n: v for n, v in fields.items() if v is not None and (v != {} or n in _VALUES)}


def _object(value: object) -> _Fields:
    """What a plug-in gave as an object, or something else under the name `value`."""
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"value": value}


def _merged(*sources: tuple[str, _Fields]) -> _Fields:
    """All fields of all sources, sorted; a name that is taken is told with its origin before it."""
    found: _Fields = {}
    for origin, fields in sources:
        for name, value in fields.items():
            free = name
            while free in found:
                free = f"{origin}.{free}"
            found[free] = value
    return dict(sorted(found.items()))


def _errors(
    end: ev.AttemptFinished | None,
    result: ev.ResultRecorded | None,
    verdict: ev.EvaluationFinished | None,
) -> _Fields:
    """The texts of both errors, and beside them all that is known of each."""
    found = {
        "error": result.error if result else None,
        "evaluation_error": verdict.evaluation_error if verdict else None,
    }
    if end is not None and end.error not in found.values():
        # An attempt can fail without a result, and a verifier without an evaluation.
        place = "evaluation_error" if end.status == "eval_error" else "error"
        found["attempt_error" if found[place] else place] = end.error
    told: _Fields = {}
    for name, error in found.items():
        if error is not None:
            told[name] = error_text(error)
            told[f"{name}_info"] = error_fields(error)
    if end is not None and end.issues:
        told["issues"] = [issue.model_dump(exclude_none=True) for issue in end.issues]
    return told


def _beside_verdict(verdict: ev.EvaluationFinished | None) -> _Fields:
    if verdict is None:
        return {}
    return {
        "reason": verdict.reason,
        "evaluator": verdict.evaluator.model_dump(exclude_none=True),
    }


def _collected(attempt: AttemptState, reading: Reading) -> _Fields | None:
    """The files taken from the environment, each with its content."""
    event = reading.event(attempt.artifacts, ev.ArtifactsCollected)
    if event is None or attempt.artifacts is None:
        return None
    contents = _object(reading.value(attempt.artifacts, event.contents))
    files = []
    for artifact in event.artifacts:
        told: _Fields = artifact.model_dump(exclude_none=True)
        if artifact.path in contents:
            told["content"] = contents[artifact.path]
        files.append(told)
    return {"files": files, "truncated": event.truncated}


def _analyses(attempt: AttemptState, reading: Reading) -> _Fields:
    found: _Fields = {}
    for seq in attempt.analyses:
        event = reading.event(seq, ev.AnalysisFinished)
        if event is None:
            continue
        told: _Fields = {
            "family": event.family,
            "is_badcase": event.is_badcase,
            "score": event.score,
        }
        details = reading.value(seq, event.details)
        if details is not None:
            told["details"] = details
        if event.error is not None:
            told["error"] = error_text(event.error)
            told["error_info"] = error_fields(event.error)
        found[event.analyzer] = told
    return dict(sorted(found.items()))


def _meta(attempt: AttemptState, reading: Reading, given: _Fields) -> _Fields:
    plan = plan_view(attempt, reading)
    ours: _Fields = {} if plan is None else {"resolved_execution_plan": plan}
    return _merged(("", ours), ("harness", given))
