"""`verifier/`: the verdict on a trial, its rewards, and what the verifier printed."""

import hashlib
from collections.abc import Iterator
from typing import Final

from exporters import OutFile
from exporters.jobs.numbers import rounded
from exporters.jobs.rewards import REWARD, rewards_of
from exporters.jobs.trial import Trial
from exporters.jsontext import json_bytes
from exporters.reading import Reading, error_text
from ledger import events as ev
from ledger.canonical import Binary
from ledger.view import Blobs

MAX_OUTPUT: Final = 200_000
"""Characters of the verifier's output that are kept."""

_OF_PATCH: Final = ("patch_is_None", "patch_exists", "patch_successfully_applied")
_NOT_EVALUATED: Final = "not_evaluated"
_ERASED: Final = "erased"


def verifier_files(trial: Trial, blobs: Blobs) -> Iterator[OutFile]:
    """The files; of a trial without a verdict the report alone, which says why there is none."""
    reading = Reading(trial.state, blobs)
    verdict = reading.event(trial.attempt.evaluation, ev.EvaluationFinished)
    rewards = rewards_of(trial.attempt)
    report = _unevaluated(trial, reading) if verdict is None else _report(trial, verdict, reading)
    yield OutFile(
        trial.path("verifier/report.json"), json_bytes({trial.task.id: report}, unicode=True)
    )
    if rewards is not None:
        text = f"{rewards[REWARD]!r}\n"
        yield OutFile(trial.path("verifier/reward.txt"), text.encode())
        yield OutFile(trial.path("verifier/reward.json"), json_bytes(rewards, unicode=True))
    if verdict is None or trial.attempt.evaluation is None:
        return
    for name, value in (("stdout", verdict.stdout), ("stderr", verdict.stderr)):
        printed = reading.value(trial.attempt.evaluation, value)
        if printed is not None:
            yield OutFile(trial.path(f"verifier/test-{name}.txt"), _output(printed))


def _report(trial: Trial, verdict: ev.EvaluationFinished, reading: Reading) -> dict[str, object]:
    attempt = trial.attempt
    assert attempt.evaluation is not None
    extra = reading.value(attempt.evaluation, verdict.extra)
    tests = reading.value(attempt.evaluation, verdict.tests_status)
    report: dict[str, object] = {"resolved": trial.resolved}
    if isinstance(extra, dict):
        report |= {name: extra[name] for name in _OF_PATCH if isinstance(extra.get(name), bool)}
    if tests is not None:
        report["tests_status"] = tests
    report["score"] = rounded(attempt.score)
    report["metrics"] = {name: rounded(value) for name, value in sorted(attempt.metrics.items())}
    report["reason"] = verdict.reason
    if verdict.evaluation_error is not None:
        report["error"] = error_text(verdict.evaluation_error)
    return report


def _unevaluated(trial: Trial, reading: Reading) -> dict[str, object]:
    end = reading.event(trial.attempt.finished, ev.AttemptFinished)
    error = None if end is None or end.error is None else error_text(end.error)
    reason = _ERASED if trial.attempt.verdict_erased else _NOT_EVALUATED
    return {"resolved": trial.resolved, "reason": reason, "error": error}


def _output(printed: object) -> bytes:
    """What was printed, cut at `MAX_OUTPUT` characters with a line that says so."""
    text = _text(printed)
    data = text.encode("utf-8", "backslashreplace")
    if len(text) <= MAX_OUTPUT:
        return data
    dropped, digest = len(text) - MAX_OUTPUT, hashlib.sha256(data).hexdigest()
    marker = f"... [truncated {dropped} chars, sha256 {digest}] ..."
    kept = text[:MAX_OUTPUT].encode("utf-8", "backslashreplace")
    return b"%s\n%s\n" % (kept, marker.encode())


def _text(printed: object) -> str:
    if isinstance(printed, str):
        return printed
    if isinstance(printed, Binary):
        return printed.data.decode("utf-8", "replace")
    return json_bytes(printed).decode("utf-8")
