"""What the verifier of a trial said: its rewards, its output, and whether its files agree."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ledger import events as ev
from ledger.canonical import Binary
from runtime.importers.atif.counting import number
from runtime.importers.foreign import ForeignVerdict
from runtime.importers.jobs.layout import TrialFiles
from runtime.importers.jobs.rewards import in_file, main_reward, measures, rewards_of
from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.plan import Remark
from runtime.importers.source import Source

EVALUATOR: Final = "harbor"
OURS: Final = "import:jobs"

_REWARDS: Final = ("verifier/reward.txt", "verifier/reward.json")
_REPORT: Final = "verifier/report.json"
_PATCH: Final = ("patch_is_None", "patch_exists", "patch_successfully_applied")


def verdict_of(
    source: Source,
    files: TrialFiles,
    result: Mapping[str, Any],
    *,
    binary: bool,
    version: str,
    error: ev.ErrorInfo | None,
) -> ForeignVerdict | None:
    """The verdict; None where nobody gave one. With `error` the verifier failed.

    `binary` says that rewards are verdicts of right and wrong. An export of ours tells itself
    whether the answer was correct.
    """
    rewards, odd = rewards_of(result.get("verifier_result"))
    if rewards is None and error is None:
        return None
    ours = result.get("acl")
    report = _report(source, files)
    told: dict[str, Any] = {
        "evaluator": ev.Evaluator(id=EVALUATOR, version=version),
        "error": error if rewards is None else None,
        "metrics": measures(rewards or {}),
        "tests_status": report.get("tests_status"),
        "reason": report["reason"] if isinstance(report.get("reason"), str) else None,
        "stdout": _printed(source, files, "stdout"),
        "stderr": _printed(source, files, "stderr"),
        "extra": {**odd, **{name: report[name] for name in _PATCH if name in report}} or None,
    }
    score = None if rewards is None else main_reward(rewards)
    if isinstance(ours, dict) and "correct" in ours:
        evaluator = ev.Evaluator(id=OURS, version="1")
        correct = ours["correct"] if isinstance(ours["correct"], bool) else None
        told |= {"evaluator": evaluator, "correct": correct, "score": number(ours.get("score"))}
    elif score is not None:
        told |= {"score": score, "correct": score == 1 if binary else None}
    return ForeignVerdict(**told)


def check_rewards(
    source: Source, files: TrialFiles, result: Mapping[str, Any] | None
) -> Iterator[Remark]:
    """Where the verifier's own files do not say what the result of the trial says."""
    said = None if result is None else result.get("verifier_result")
    rewards = said.get("rewards") if isinstance(said, dict) else None
    told = rewards if isinstance(rewards, dict) else None
    for name in _REWARDS:
        file = files.files.get(name)
        if file is None:
            continue
        try:
            found = in_file(name, source.read(file))
        except NotARecord as fault:
            if told is not None:  # else the trial has an error that says so
                yield Remark(file.path, f"no reward: {fault}", placed=True)
            continue
        if told is None:
            if result is not None:
                reason = f"it tells of {_words(found)}; the trial's result has no reward"
                yield Remark(file.path, reason, placed=True)
        elif not _agrees(name, found, told):
            reason = f"it tells of {_words(found)}; the trial's result of {_words(told)}"
            yield Remark(file.path, reason, placed=True, damage=True)


def _agrees(name: str, found: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    # Beside reward.json, reward.txt is but the main one of several.
    if name.endswith(".txt"):
        return len(told) > 1 or _is(next(iter(found.values())), main_reward(told))
    return found.keys() == told.keys() and all(_is(found[key], told[key]) for key in told)


def _is(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 - NaN is itself


def _words(rewards: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in sorted(rewards.items())) or "no reward"


def _report(source: Source, files: TrialFiles) -> dict[str, Any]:
    """The only entry of `report.json`, as SWE-bench and we write it; empty for anything else."""
    file = files.files.get(_REPORT)
    if file is None:
        return {}
    try:
        value = read_record(source.read(file)).value
    except NotARecord:
        return {}
    only = next(iter(value.values())) if len(value) == 1 else None
    return only if isinstance(only, dict) else {}


def _printed(source: Source, files: TrialFiles, name: str) -> Any:
    file = files.files.get(f"verifier/test-{name}.txt")
    if file is None or not file.size:
        return None
    data = source.read(file)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Binary(data)
