"""Counts of what an import placed, to be compared with those that the source tells."""

from dataclasses import dataclass
from typing import Any, Final

from runtime.importers.details.tasks import TaskReader

_NAMES: Final = (
    "total",
    "evaluated",
    "error",
    "skipped",
    "missing",
    "correct",
    "incorrect",
    "reused",
    "attempts",
    "retries",
)


@dataclass(slots=True)
class Tally:
    """How many tasks, attempts and discarded tries were placed, by the rules of the layout."""

    total: int = 0
    evaluated: int = 0
    error: int = 0
    skipped: int = 0
    missing: int = 0
    correct: int = 0
    incorrect: int = 0
    reused: int = 0
    attempts: int = 0
    retries: int = 0
    redactions: int = 0

    def add(self, task: TaskReader) -> None:
        """Count one task, all of whose items were made."""
        readers = task.readers
        self.total += 1
        name = _bin(task)
        setattr(self, name, getattr(self, name) + 1)
        verdicts = [reader.correct for reader in readers if reader.correct is not None]
        self.correct += any(verdicts)
        self.incorrect += bool(verdicts) and not any(verdicts)
        self.reused += task.claimed
        self.attempts += len(readers)
        self.retries += sum(reader.made for reader in readers)
        self.redactions += sum(reader.redactions for reader in readers)

    def differing(self, told: dict[str, Any]) -> list[str]:
        """What the source counts otherwise, in words."""
        return [
            f"{name} {told[name]!r}, not {getattr(self, name)}"
            for name in _NAMES
            if name in told and told[name] != getattr(self, name)
        ]


def _bin(task: TaskReader) -> str:
    readers = task.readers
    if any(reader.judged for reader in readers):
        return "evaluated"
    if any(reader.error for reader in readers):
        return "error"
    if readers and all(reader.status == "skipped" for reader in readers):
        return "skipped"
    return "missing"
