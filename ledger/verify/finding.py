"""What a verifier has to say."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["broken", "unproven", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found.

    `broken`: stored bytes contradict each other or what is known from elsewhere. `unproven`:
    nothing contradicts, and nothing proves. `note`: worth knowing. `seq` is the first event
    concerned.
    """

    code: str
    severity: Severity
    message: str
    seq: int | None = None
    task: str | None = None


def broken(code: str, message: str, seq: int | None = None, task: str | None = None) -> Finding:
    """A contradiction."""
    return Finding(code, "broken", message, seq, task)


def unproven(code: str, message: str, seq: int | None = None, task: str | None = None) -> Finding:
    """A gap in what can be proven."""
    return Finding(code, "unproven", message, seq, task)


def remark(code: str, message: str, seq: int | None = None, task: str | None = None) -> Finding:
    """Something worth knowing."""
    return Finding(code, "note", message, seq, task)
