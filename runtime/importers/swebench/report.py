"""The report of one instance, and what its own tests say of its verdict."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.importers.jsontext import NotARecord, read_record

_DECIDE: Final = ("FAIL_TO_PASS", "PASS_TO_PASS")
_KNOWN: Final = (
    "patch_is_None",
    "patch_exists",
    "patch_successfully_applied",
    "resolved",
    "tests_status",
    "infra_failure",
    "infra_failure_reason",
)


@dataclass(frozen=True, slots=True)
class Report:
    """What is told of an instance; None where nothing is.

    `by_tests` is the verdict that follows from the tests: resolved if none failed of those that
    the patch must make pass, or must leave passing.
    """

    resolved: bool | None
    applied: bool | None
    empty: bool
    tests: Any = None
    by_tests: bool | None = None
    counted: str | None = None
    infra: str | None = None
    rest: dict[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def read_report(data: bytes, instance_id: str) -> Report:
    """Read a report; NotARecord if it is none, or tells of another instance."""
    value = read_record(data).value
    if instance_id not in value:
        named = ", ".join(map(repr, value)) or "none"
        raise NotARecord(f"it tells of {named}, not of {instance_id!r}")
    told = value[instance_id]
    if not isinstance(told, dict):
        raise NotARecord("what it tells of its instance is no object")
    resolved = told.get("resolved")
    if resolved is not None and type(resolved) is not bool:
        raise NotARecord(f"resolved is {resolved!r}, which is no truth value")
    tests = told.get("tests_status")
    counts = _counts(tests)
    passed = None if counts is None else all(failed == 0 for _, failed in counts.values())
    others = [name for name in value if name != instance_id]
    applied = told.get("patch_successfully_applied")
    infra = told.get("infra_failure_reason") or "not told"
    return Report(
        resolved=resolved,
        applied=applied if type(applied) is bool else None,
        empty=told.get("patch_is_None") is True or told.get("patch_exists") is False,
        tests=tests,
        by_tests=passed,
        counted=None if counts is None else _words(counts),
        infra=str(infra) if told.get("infra_failure") is True else None,
        rest={name: item for name, item in told.items() if name not in _KNOWN},
        faults=tuple(_faults(resolved, passed, others)),
    )


def _faults(resolved: bool | None, passed: bool | None, others: list[str]) -> Iterator[str]:
    if None not in (resolved, passed) and resolved is not passed:
        yield f"it says resolved: {_word(resolved)}, and its own tests say {_word(passed)}"
    if others:
        yield f"it tells of {', '.join(others)} besides: kept in the original only"


def _counts(tests: Any) -> dict[str, tuple[int, int]] | None:
    """How many tests succeeded and failed, of the two kinds that decide; None if not told."""
    found = {}
    for name in _DECIDE:
        told = tests.get(name) if isinstance(tests, dict) else None
        lists = [told.get(key) for key in ("success", "failure")] if isinstance(told, dict) else []
        if len(lists) != 2 or not all(isinstance(one, list) for one in lists):
            return None
        found[name] = (len(lists[0] or ()), len(lists[1] or ()))
    return found


def _words(counts: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {good}/{good + bad}" for name, (good, bad) in counts.items())


def _word(value: bool | None) -> str:
    return "true" if value else "false"
