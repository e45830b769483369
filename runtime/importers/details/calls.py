"""Model calls as `acl` tells them of an attempt: when, how many tokens, what they cost."""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from ledger import events as ev

_OF_START: Final = frozenset({"call_id", "call_index", "provider", "model"})
_OURS: Final = frozenset({"retry", "lost"})


def calls_of(
    rows: Any, task: str, attempt: int, tries: int
) -> tuple[list[list[ev.AnyEvent]], list[str]]:
    """The events of the calls of each try, and what is odd about the rows.

    `tries` is how many tries there are; a row's `retry` says how many came before it.
    """
    found: list[list[ev.AnyEvent]] = [[] for _ in range(tries)]
    faults: list[str] = []
    busy: set[str] = set()
    for row in rows if isinstance(rows, list) else []:
        try:
            events = list(_events(row, task, attempt))
        except (ValidationError, TypeError, AttributeError):
            faults.append("a model call cannot be read")
            continue
        if row["call_id"] in busy:
            faults.append(f"two model calls are {row['call_id']!r}")
            continue
        if not isinstance(events[-1], ev.CallFinished):
            busy.add(row["call_id"])
        retry = row.get("retry", 0)
        found[min(retry, tries - 1) if type(retry) is int and retry > 0 else 0] += events
    return found, faults


def _events(row: Any, task: str, attempt: int) -> Iterator[ev.AnyEvent]:
    start = {name: row[name] for name in row if name in _OF_START}
    end = {name: row[name] for name in row if name not in _OF_START and name not in _OURS}
    yield ev.CallStarted(task=task, attempt=attempt, **start)
    if row.get("lost") is True:
        yield ev.CallLost(task=task, attempt=attempt, call_id=row["call_id"])
    elif end:
        yield ev.CallFinished.model_validate(
            {"task": task, "attempt": attempt, "call_id": row["call_id"], **end}
        )
