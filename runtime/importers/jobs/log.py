"""`job.log`: what is left of tries that Harbor discarded, whose directories it deletes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ledger import events as ev
from runtime.importers.foreign import ForeignRetry
from runtime.importers.jobs.failures import error_of

_FAILED: Final = re.compile(r"Trial (\S+) failed: (.*)")
_RETRYING: Final = re.compile(
    r"Trial (\S+) failed with exception (\S+)\. Retrying in ([0-9]+(?:\.[0-9]+)?) seconds\.\.\."
)


@dataclass(slots=True)
class Discarded:
    """The discarded tries of each trial, in order: (type of the exception, message, seconds)."""

    by_trial: dict[str, list[tuple[str, str, float]]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(map(len, self.by_trial.values()))

    def retries(self, trial: str, max_retries: int | None) -> tuple[ForeignRetry, ...]:
        """Those of one trial."""
        told = self.by_trial.get(trial, [])
        return tuple(
            ForeignRetry(
                error=_error(kind, message),
                max_retries=len(told) if max_retries is None else max_retries,
                delay_seconds=seconds,
            )
            for kind, message, seconds in told
        )


def read_log(data: bytes) -> Discarded:
    """Find the discarded tries in a log; lines that tell of none are passed over."""
    found = Discarded()
    said: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        retrying = _RETRYING.search(line)
        if retrying:
            trial, kind, seconds = retrying.groups()
            message = said.pop(trial, f"only the job's log tells of it: {line.strip()}")
            found.by_trial.setdefault(trial, []).append((kind, message, float(seconds)))
        elif failed := _FAILED.search(line):
            said[failed[1]] = failed[2]
    return found


def _error(kind: str, message: str) -> ev.ErrorInfo:
    info: Mapping[str, str] = {"exception_type": kind, "exception_message": message}
    return error_of(info, None)
