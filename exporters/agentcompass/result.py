"""`result.json` of an attempt that this program ran."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from exporters.agentcompass.issues import Told, attempt_issues
from exporters.agentcompass.scoring import Scoring
from exporters.paths import checked_path
from exporters.reading import Reading, error_fields
from ledger import events as ev
from ledger.canonical import Binary
from ledger.errors import ExportRefused
from ledger.state import AttemptState

_Fields = dict[str, object]
_OF_RESULT: Final = ("final_answer", "trajectory", "artifacts", "telemetry", "meta", "extra")
_OF_VERDICT: Final = ("tests_status", "stdout", "stderr", "extra")


@dataclass(frozen=True, slots=True)
class AttemptTold:
    """One attempt as its files tell it; `contents` are those below `artifacts/`, by their path."""

    document: _Fields
    ground_truth: object
    contents: dict[str, bytes]


def tell_attempt(
    attempt: AttemptState, scoring: Scoring, reading: Reading, directory: str
) -> AttemptTold:
    """Read an attempt that ended. `directory` is where its files stand.

    AgentCompass knows eight fields; whatever else there is goes to `meta.benchmark` (what judged)
    and `meta.harness` (what ran).
    """
    for seq in attempt.erased:
        reading.note(seq)
    result = reading.event(attempt.result, ev.ResultRecorded)
    verdict = reading.event(attempt.evaluation, ev.EvaluationFinished)
    given = _whole(reading, attempt.result, result, _OF_RESULT)
    files = _Files.of(attempt, reading, directory)
    document: _Fields = {
        "status": attempt.status or "cancelled",
        "metrics": scoring.measures(attempt),
        "final_answer": given.get("final_answer"),
        "trajectory": _trajectory(given.get("trajectory")),
        "issues": issues_of(attempt, reading),
        "artifacts": _beside(_object(given.get("artifacts")), "collected", files.told),
        "analysis_result": _analyses(attempt, reading),
        "meta": {
            "benchmark": _benchmark(attempt, verdict, scoring, reading),
            "harness": _harness(result, given),
        },
        "retry_count": len(attempt.retries),
    }
    return AttemptTold(document, ground_truth(attempt, reading), files.contents)


def ground_truth(attempt: AttemptState, reading: Reading) -> object:
    """What the answer was compared with: as the judge says, else as the harness was told."""
    for seq in (attempt.evaluation, attempt.result):
        if seq is None:
            continue
        event = reading.either(seq, ev.EvaluationFinished, ev.ResultRecorded)
        if event is not None and event.ground_truth is not None:
            return reading.value(seq, event.ground_truth)
    return None


def issues_of(attempt: AttemptState, reading: Reading) -> list[Told]:
    """What went wrong in an attempt, without any of its large values."""
    return attempt_issues(
        reading.event(attempt.finished, ev.AttemptFinished),
        reading.event(attempt.result, ev.ResultRecorded),
        reading.event(attempt.evaluation, ev.EvaluationFinished),
    )


def _whole(
    reading: Reading, seq: int | None, event: ev.Event | None, names: Iterable[str]
) -> _Fields:
    if seq is None or event is None:
        return {}
    found = {name: reading.value(seq, getattr(event, name)) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _trajectory(value: object) -> _Fields:
    """There it is an object, whose `steps` are what a viewer shows."""
    if isinstance(value, list):
        return {"steps": value}
    return _object(value)


def _object(value: object) -> _Fields:
    if value is None:
        return {}
    return dict(value) if isinstance(value, dict) else {"value": value}


def _beside(fields: _Fields, name: str, value: object) -> _Fields:
    """The fields and one more, under a name that is free."""
    if not value:
        return fields
    while name in fields:
        name = f"{name}_"
    return {**fields, name: value}


def _present(fields: Mapping[str, object]) -> _Fields:
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}


def _benchmark(
    attempt: AttemptState,
    verdict: ev.EvaluationFinished | None,
    scoring: Scoring,
    reading: Reading,
) -> _Fields:
    told = scoring.beside(attempt)
    if verdict is None:
        return told
    told |= {"reason": verdict.reason, "evaluator": verdict.evaluator.model_dump(exclude_none=True)}
    if verdict.evaluation_error is not None:
        told["evaluation_error"] = error_fields(verdict.evaluation_error)
    return _present(told | _whole(reading, attempt.evaluation, verdict, _OF_VERDICT))


def _harness(result: ev.ResultRecorded | None, given: _Fields) -> _Fields:
    told: _Fields = {
        "telemetry": _object(given.get("telemetry")),
        "meta": given.get("meta"),
        "extra": given.get("extra"),
    }
    if result is not None and result.error is not None:
        told["error"] = error_fields(result.error)
    return _present(told)


def _analyses(attempt: AttemptState, reading: Reading) -> _Fields:
    found: _Fields = {}
    for seq in attempt.analyses:
        event = reading.event(seq, ev.AnalysisFinished)
        if event is None:
            continue
        told: _Fields = {
            "is_badcase": event.is_badcase,
            "score": event.score,
            "details": _object(reading.value(seq, event.details)),
        }
        if event.error is not None:
            told["error"] = event.error.message or event.error.code
        found[event.analyzer] = told
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class _Files:
    """What was collected: how `result.json` tells it, and the contents that become files."""

    told: _Fields
    contents: dict[str, bytes]

    @classmethod
    def of(cls, attempt: AttemptState, reading: Reading, directory: str) -> "_Files":
        event = reading.event(attempt.artifacts, ev.ArtifactsCollected)
        if event is None or attempt.artifacts is None:
            return cls({}, {})
        held = _object(reading.value(attempt.artifacts, event.contents))
        contents: dict[str, bytes] = {}
        rows: list[_Fields] = []
        for artifact in event.artifacts:
            row: _Fields = artifact.model_dump(exclude_none=True)
            data = _bytes(held.get(artifact.path))
            if data is not None and _is_path(f"{directory}/artifacts/{artifact.path}"):
                contents[artifact.path] = data
            elif artifact.path in held:
                row["content"] = held[artifact.path]
            rows.append(row)
        return cls({"files": rows, "truncated": event.truncated}, contents)


def _bytes(content: object) -> bytes | None:
    if isinstance(content, Binary):
        return content.data
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else None


def _is_path(path: str) -> bool:
    try:
        checked_path(path)
    except ExportRefused:
        return False
    return True
