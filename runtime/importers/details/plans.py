"""Resolved plans: of a record's attempt, and of `run_info.json` for attempts without a record."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

from ledger import canonical
from ledger import events as ev
from runtime.importers.numbers import is_number

RECIPES: Final = "applied_recipes"
TIMEOUTS: Final = "timeouts"
NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
"""The number of an attempt, as a key."""


def is_plan(value: Any) -> bool:
    """True for what an export writes as a plan: an object that names its recipes."""
    return isinstance(value, dict) and is_texts(value.get(RECIPES))


def is_texts(value: Any) -> bool:
    """True for a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def resolved(plan: dict[str, Any], task: str, attempt: int) -> ev.PlanResolved:
    """The event that gives this view again; other programs may leave the recipes out."""
    rest = dict(plan)
    recipes = rest.pop(RECIPES) if is_texts(rest.get(RECIPES)) else ()
    timeouts = rest.pop(TIMEOUTS) if _are_timeouts(rest.get(TIMEOUTS)) else {}
    return ev.PlanResolved(
        task=task,
        attempt=attempt,
        plan=rest,
        plan_hash=hashlib.sha256(canonical.encode(rest, _drop)).hexdigest(),
        applied_recipes=tuple(recipes),
        timeouts=timeouts,
    )


def read_plans(value: Any) -> dict[str, dict[int, dict[str, Any]]]:
    """Take `resolved_execution_plans`: {task: {"attempts": {"1": plan}}}, by task and number."""
    plans: dict[str, dict[int, dict[str, Any]]] = {}
    for task, number, plan in _entries(value):
        plans.setdefault(task, {})[number] = plan
    return plans


def _entries(value: Any) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for task, entry in (value if isinstance(value, dict) else {}).items():
        attempts = entry.get("attempts") if isinstance(entry, dict) else None
        for number, plan in (attempts if isinstance(attempts, dict) else {}).items():
            if NUMBER.fullmatch(number) and isinstance(plan, dict):
                yield task, int(number), plan


def _are_timeouts(value: Any) -> bool:
    # An export leaves empty limits out, so an object without any is the plan's own.
    return isinstance(value, dict) and bool(value) and all(map(is_number, value.values()))


def _drop(*_: bytes) -> None:
    """Nothing is stored here."""
