"""Entering runs into a registry: one short turn at its lock for each entry."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ledger import resume
from ledger.errors import AclError, LedgerExists, LedgerRolledBack, NotALedger
from ledger.events import RegistryOpened, RegistrySealed
from ledger.note import Signer
from ledger.store import Ledger
from runtime.registry.owed import Owed, Unsealed, look, memo_of, read_memo
from runtime.registry.places import registry_file

LOCK_SECONDS: Final = 30.0
"""How long an entry waits for the lock."""

# More runs than this that never end are found again by reading the registry whole.
_MOST_UNSEALED: Final = 1000

Event = RegistryOpened | RegistrySealed


class Registry:
    """The registry of `results_dir`; it is opened for each entry and closed again.

    `signers` sign its checkpoints, one after each entry. `wait` is how many seconds an entry waits
    for the others.
    """

    def __init__(
        self, results_dir: Path, *, signers: Sequence[Signer] = (), wait: float = LOCK_SECONDS
    ) -> None:
        self.results_dir = results_dir.absolute()
        self.path = self.results_dir / "registry.sqlite"
        self._signers = tuple(signers)
        self._wait = wait

    def enter(self, *events: Event) -> str | None:
        """Enter `events`, and what other runs owe; return once all is on disk.

        Returns why the checkpoint behind them was not written, if it was not: they are entered.
        Raises what opening a ledger and appending to it raise, and OSError.
        """
        path = registry_file(self.results_dir)
        kept = resume.read(path)
        # Other runs are looked at before it is our turn, so that a turn is short.
        owed = look(self.results_dir, (kept and read_memo(kept.memo)) or ())
        with self._open(path) as ledger:
            unsealed = self._unsealed(ledger)
            entered = self._append(ledger, events, owed, unsealed)
            if not entered:
                return None
            why = None
            try:
                ledger.checkpoint(*self._signers)
            except AclError as error:
                why = str(error)
            ledger.keep(memo_of(_after(unsealed, entered, owed.looked)))
        for place, _ in owed.waiting:
            place.unlink(missing_ok=True)
        return why

    def _open(self, path: Path) -> Ledger:
        if not os.path.lexists(path):
            try:
                return Ledger.create(path, wait=self._wait)
            except LedgerExists:
                # Another run was faster; or it is gone, and what is left of it tells.
                if not os.path.lexists(path):
                    raise LedgerRolledBack(
                        f"there is no {path.name} in {path.parent}, but what was beside it",
                        hint="restore the registry",
                    ) from None
        try:
            return Ledger.open(path, wait=self._wait, resumes=True)
        except NotALedger as error:
            raise LedgerRolledBack(f"the registry is gone: {error.message}") from error

    def _unsealed(self, ledger: Ledger) -> list[Unsealed]:
        """The runs that are entered and not sealed, now that nobody else enters any."""
        kept = resume.read(ledger.path)
        known = read_memo(kept.memo) if kept is not None else None
        since = kept.tree.size if kept is not None and known is not None else 0
        if known is None or since > ledger.size:
            known, since = [], 0
        if since == ledger.size:
            return known
        with ledger.view() as view:
            news = [recorded.event for recorded in view.events(since=since)]
        return _after(known, [one for one in news if isinstance(one, Event)], set())

    def _append(
        self, ledger: Ledger, events: Sequence[Event], owed: Owed, unsealed: Sequence[Unsealed]
    ) -> list[Event]:
        """Store what is to be entered; return what was. Raises what kept `events` from it."""
        known = {run.ledger_id for run in unsealed}
        others = known - {event.ledger_id for event in events}
        seals = [[seal] for seal in owed.seals if seal.ledger_id in others]
        waiting = [entries for _, entries in owed.waiting]
        batches: list[list[Event]] = [
            [one for one in batch if isinstance(one, RegistrySealed) or one.ledger_id not in known]
            for batch in (events, *waiting, *seals)
        ]
        if not any(batches):
            return []
        outcomes = ledger.append_group(batches)
        if events and isinstance(outcomes[0], AclError):
            raise outcomes[0]
        return [
            event
            for batch, outcome in zip(batches, outcomes, strict=True)
            if not isinstance(outcome, AclError)
            for event in batch
        ]


def _after(
    unsealed: Sequence[Unsealed], events: Sequence[Event], looked: set[str]
) -> list[Unsealed]:
    """What is not sealed after `events`; those that were looked at come last the next time."""
    runs = {run.ledger_id: run for run in unsealed if run.ledger_id not in looked}
    runs |= {run.ledger_id: run for run in unsealed if run.ledger_id in looked}
    for event in events:
        if isinstance(event, RegistryOpened):
            runs.setdefault(event.ledger_id, Unsealed(event.run_id, event.path, event.ledger_id))
    for event in events:
        if isinstance(event, RegistrySealed):
            runs.pop(event.ledger_id, None)
    return list(runs.values())[-_MOST_UNSEALED:]
