"""The resolved plans of `run_info.json`: many attempts, few different plans."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import canonical
from ledger import events as ev
from runtime.importers.numbers import is_number

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_TIMEOUTS: Final = (
    "run_timeout_seconds",
    "evaluation_timeout_seconds",
    "artifact_collect_timeout_seconds",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One plan and the SHA-256 of its canonical form, in hex."""

    value: dict[str, Any]
    digest: str

    def resolved(self, task: str, attempt: int) -> ev.PlanResolved:
        """The event."""
        recipes = self.value.get("applied_recipes")
        fits = isinstance(recipes, list) and all(isinstance(recipe, str) for recipe in recipes)
        return ev.PlanResolved(
            task=task,
            attempt=attempt,
            plan=self.value,
            plan_hash=self.digest,
            applied_recipes=tuple(recipes) if fits and recipes else (),
            timeouts={
                name: self.value[name] for name in _TIMEOUTS if is_number(self.value.get(name))
            },
        )


@dataclass(slots=True)
class Plans:
    """Plans by task and attempt; equal ones are held once."""

    by_task: dict[str, dict[int, Plan]] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Any) -> "Plans":
        """Take `resolved_execution_plans`: {task: {"attempts": {"1": plan}}}."""
        plans = cls()
        known: dict[str, Plan] = {}
        for task, number, plan in _entries(value):
            data = canonical.encode(plan, _drop)
            digest = hashlib.sha256(data).hexdigest()
            plans.by_task.setdefault(task, {})[number] = known.setdefault(
                digest, Plan(plan, digest)
            )
        return plans

    def of(self, task: str, attempt: int) -> Plan | None:
        """The plan of an attempt, if the source tells it."""
        return self.by_task.get(task, {}).get(attempt)


def _entries(value: Any) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for task, entry in (value if isinstance(value, dict) else {}).items():
        attempts = entry.get("attempts") if isinstance(entry, dict) else None
        for number, plan in (attempts if isinstance(attempts, dict) else {}).items():
            if _NUMBER.fullmatch(number) and isinstance(plan, dict):
                yield task, int(number), plan


def _drop(*_: bytes) -> None:
    """Nothing is stored here."""
