"""What is to be entered of a run, read from its ledger; also for runs that died before they did.

Runs that are entered and not yet sealed are in the memo beside the registry. It is a hint: what is
entered is read from the ledger of the run.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledger import lock, sidefile, wal
from ledger.errors import AclError, ProofInvalid
from ledger.events import (
    AnnotationAdded,
    LedgerSealed,
    PayloadErased,
    RegistryOpened,
    RegistrySealed,
    RunCreated,
    TasksSelected,
)
from ledger.view import LedgerView
from runtime.registry.places import ledger_in, locate, request_digest

_AFTER_A_SEAL: Final = frozenset({AnnotationAdded.code, PayloadErased.code})
_MOST_LOOKS: Final = 16
# A ledger that was left in the middle is copied to be looked at, once.
_MOST_COPIED: Final = 64 * 1024 * 1024
# A plan stands near the beginning, before the first attempt.
_OPENING_EVENTS: Final = 1000

Failure: Final = (AclError, OSError, ValueError, sqlite3.Error)
"""What reading the ledger of another run may raise: it is somebody else's."""


@dataclass(frozen=True, slots=True)
class Unsealed:
    """A run that is entered, and of whose seal nothing is known yet.

    `seen` is the state of its files when they were last looked at, and it was not sealed.
    """

    run_id: str
    path: str
    ledger_id: str
    seen: str = ""


@dataclass(slots=True)
class Owed:
    """What to enter for runs that died; `looked` has the state of the files that were looked at."""

    seals: list[RegistrySealed] = field(default_factory=list)
    looked: dict[str, str] = field(default_factory=dict)


def memo_of(runs: Sequence[Unsealed]) -> Any:
    """The memo to be kept beside the registry."""
    return {"unsealed": [[run.run_id, run.path, run.ledger_id, run.seen] for run in runs]}


def read_memo(memo: Any) -> list[Unsealed] | None:
    """Read a memo; None if it is none."""
    try:
        rows = [Unsealed(*map(_text, row)) for row in memo["unsealed"]]
    except (TypeError, KeyError, ValueError):
        return None
    return rows


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def look(results_dir: Path, unsealed: Sequence[Unsealed]) -> Owed:
    """Look at a few runs that may have been sealed meanwhile."""
    owed = Owed()
    for run in unsealed[:_MOST_LOOKS]:
        owed.looked[run.ledger_id] = run.seen
        with suppress(*Failure):
            seal = _look(results_dir, run, owed)
            owed.seals += [] if seal is None else [seal]
    return owed


def _look(results_dir: Path, run: Unsealed, owed: Owed) -> RegistrySealed | None:
    """Return the seal of a run that was sealed since; nothing of its files changes."""
    directory = locate(results_dir, run.path)
    if directory is None:
        return None
    ledger = ledger_in(directory)
    size, seen = _state(ledger)
    # Whoever still has its lock enters it.
    if seen == run.seen or size > _MOST_COPIED or lock.holder(ledger) is not None:
        return None
    owed.looked[run.ledger_id] = seen
    with LedgerView.open(directory, pristine=True) as view:
        if view.ledger_id.hex() != run.ledger_id:
            return None
        return seal_entry(view, run.run_id, run.path)


def _state(ledger: Path) -> tuple[int, str]:
    """How much would be copied to look at a ledger, and what changes when it does."""
    found = ledger.lstat()
    behind = wal.state(ledger)
    folded = not found.st_mode & 0o222
    size = 0 if folded else found.st_size + (behind[0] if behind else 0)
    return size, f"{found.st_size} {found.st_mtime_ns} {found.st_mode} {behind}"


def seal_entry(view: LedgerView, run_id: str, path: str) -> RegistrySealed | None:
    """Return the entry of a sealed run, with the checkpoint of its seal; None if there is none."""
    size = _sealed_size(view)
    notes = [note for held, note in view.checkpoints() if held == size]
    if size is None or not notes:
        return None
    try:
        checkpoint = sidefile.parse(notes[-1].encode()).checkpoint
    except ProofInvalid:
        return None
    return RegistrySealed(
        run_id=run_id,
        path=path,
        ledger_id=view.ledger_id.hex(),
        size=size,
        root=checkpoint.root.hex(),
        checkpoint=notes[-1],
    )


def _sealed_size(view: LedgerView) -> int | None:
    for seq in range(view.size - 1, -1, -1):
        code = view.event(seq).header.code
        if code not in _AFTER_A_SEAL:
            return seq + 1 if code == LedgerSealed.code else None
    return None


def opened_entry(view: LedgerView, path: str) -> RegistryOpened | None:
    """Return the entry of a run that says of itself what it was asked; None if it is no run."""
    created: RunCreated | None = None
    planned = 0
    for recorded in view.events(until=_OPENING_EVENTS):
        event = recorded.event
        if isinstance(event, RunCreated):
            created = event
        elif isinstance(event, TasksSelected):
            planned += len(event.tasks)
        if recorded.attempt is not None:
            break
    if created is None:
        return None
    return RegistryOpened(
        run_id=created.run_id,
        path=path,
        ledger_id=view.ledger_id.hex(),
        request_digest=request_digest(created.request),
        planned_tasks=planned,
        k=attempts_of(created.request),
    )


def attempts_of(request: Any) -> int:
    """Return the attempts that a request plans for each task; 1 where it says nothing."""
    execution = request.get("execution") if isinstance(request, dict) else None
    k = execution.get("k") if isinstance(execution, dict) else None
    return k if isinstance(k, int) and not isinstance(k, bool) and k > 0 else 1


def entries_of(directory: Path, path: str) -> list[RegistryOpened | RegistrySealed]:
    """Return what is to be entered for a run on disk; raises what opening it raises."""
    with LedgerView.open(directory, pristine=True) as view:
        opened = opened_entry(view, path)
        if opened is None:
            return []
        seal = seal_entry(view, opened.run_id, path)
        return [opened] if seal is None else [opened, seal]
