"""Entering runs into a registry: one short turn at its lock for each entry."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ledger import resume
from ledger.errors import AclError, LedgerDamaged, LedgerExists, LedgerRolledBack, NotALedger
from ledger.events import RegistryOpened, RegistrySealed
from ledger.memory import Memory
from ledger.note import Signer
from ledger.sidefile import signed_origin
from ledger.store import Ledger, system_clock
from ledger.tail import Clock, Entropy
from runtime.registry.doubts import Doubts
from runtime.registry.owed import Owed, Unsealed, look, memo_of, read_memo, serving
from runtime.registry.places import REGISTRY_NAME, registry_file

LOCK_SECONDS: Final = 30.0
"""How long an entry waits for the lock."""

# More runs than this that never end are found again by reading the registry whole.
_MOST_UNSEALED: Final = 1000

Event = RegistryOpened | RegistrySealed


@dataclass(frozen=True, slots=True)
class Entered:
    """Where an entry stands: as event `seq` of the registry with the id `ledger_id`.

    `root` is that of its first `size` events, the entry among them. `fault` says why the checkpoint
    behind it was not written, if it was not.
    """

    ledger_id: str
    seq: int
    size: int
    root: str
    fault: str | None


class Registry:
    """The registry of `results_dir`; it is opened for each entry and closed again.

    `signers` sign its checkpoints, one after each entry. `wait` is how many seconds an entry waits
    for the others.
    """

    def __init__(
        self,
        results_dir: Path,
        *,
        signers: Sequence[Signer] = (),
        wait: float = LOCK_SECONDS,
        clock: Clock = system_clock,
        entropy: Entropy = os.urandom,
    ) -> None:
        self.results_dir = results_dir.absolute()
        self.wait = wait
        self._signers = tuple(signers)
        self._clock = clock
        self._entropy = entropy

    @property
    def about(self) -> int:
        """How many events there are at least, as the hint beside the registry says."""
        kept = resume.read(self.results_dir / REGISTRY_NAME)
        return 0 if kept is None else kept.tree.size

    def enter(
        self, *events: Event, wait: float | None = None, since: int | None = None
    ) -> Entered | None:
        """Enter `events`, and what other runs owe; return once all is on disk.

        With `since` somebody else may have entered `events` behind the first so many; then they are
        not entered again. Returns where the first new one stands; None if there was nothing to
        enter. Raises what opening a ledger and appending to it raise, and OSError.
        """
        path = registry_file(self.results_dir)
        with serving(self.results_dir) as serves:
            kept = resume.read(path)
            # Other runs are looked at before it is our turn, so that a turn is short.
            known = (kept and read_memo(kept.memo)) or ()
            owed = look(self.results_dir, known, waiting=serves)
            doubts = self._doubts(() if since is None else events, owed, since or 0)
            with self._open(path, self.wait if wait is None else wait) as ledger:
                return self._take_turn(ledger, events, owed, doubts)

    def _doubts(self, events: Sequence[Event], owed: Owed, since: int) -> Doubts:
        """Look up what others may have entered: `events` behind event `since`, and who waits."""
        own = {event.ledger_id for event in events}
        waiting = {event.ledger_id for _, news in owed.waiting for event in news}
        doubts = Doubts(own | waiting, 0 if waiting - own else since)
        doubts.look_up(registry_file(self.results_dir))
        return doubts

    def _take_turn(
        self, ledger: Ledger, events: Sequence[Event], owed: Owed, doubts: Doubts
    ) -> Entered | None:
        self._refuse_older(ledger)
        before = ledger.size
        unsealed = self._unsealed(ledger)
        if doubts.ids and before:
            with ledger.view() as view:
                doubts.read(view)
        entered = self._append(ledger, events, owed, unsealed, doubts)
        found = None
        if entered:
            fault = self._checkpoint(ledger)
            ledger.keep(memo_of(_after(unsealed, entered, owed.looked)))
            size, root = ledger.size, ledger.root().hex()
            found = Entered(ledger.ledger_id.hex(), before, size, root, fault)
        for place, _ in owed.waiting:
            with suppress(OSError):
                place.unlink(missing_ok=True)
        return found

    def _refuse_older(self, ledger: Ledger) -> None:
        """Raise LedgerRolledBack if our key has signed more of the registry than there is."""
        if not self._signers or not ledger.size:
            return
        last = Memory().last(signed_origin(self._signers[0].name, ledger.ledger_id))
        if last is None or last.size < ledger.size:
            return
        if (last.size, last.root) != (ledger.size, ledger.root()):
            raise LedgerRolledBack(
                f"{ledger.path} has {ledger.size} events, of {last.size} another tree was signed",
                hint="restore the registry that was signed",
            )

    def _checkpoint(self, ledger: Ledger) -> str | None:
        """Cover what was entered; return why that failed, if it did."""
        try:
            ledger.checkpoint(*self._signers)
        except AclError as error:
            return str(error)
        return None

    def _open(self, path: Path, wait: float) -> Ledger:
        if not os.path.lexists(path):
            try:
                return Ledger.create(path, clock=self._clock, entropy=self._entropy, wait=wait)
            except LedgerExists:
                # Another run was faster; or it is gone, and what is left of it tells.
                if not os.path.lexists(path):
                    raise LedgerRolledBack(
                        f"there is no {path.name} in {path.parent}, but what was beside it",
                        hint="restore the registry",
                    ) from None
        try:
            return Ledger.open(
                path, clock=self._clock, entropy=self._entropy, wait=wait, resumes=True
            )
        except NotALedger as error:
            raise LedgerDamaged(f"there is no registry: {error.message}") from error

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
        return _after(known, [one for one in news if isinstance(one, Event)], {})

    def _append(
        self,
        ledger: Ledger,
        events: Sequence[Event],
        owed: Owed,
        unsealed: Sequence[Unsealed],
        doubts: Doubts,
    ) -> list[Event]:
        """Store what is to be entered; return what was. Raises what kept `events` from it."""
        known = {run.ledger_id for run in unsealed}
        own = {event.ledger_id for event in events}
        waiting = [[one for one in news if one.ledger_id not in own] for _, news in owed.waiting]
        # A run that waits to be entered may have been looked at as one that is not sealed, too.
        sealed = {
            one.ledger_id for news in waiting for one in news if isinstance(one, RegistrySealed)
        }
        seals = [[seal] for seal in owed.seals if seal.ledger_id in known - own - sealed]
        lists_all = len(unsealed) < _MOST_UNSEALED
        batches = [
            _news(batch, known, doubts, lists_all=lists_all) for batch in (events, *waiting, *seals)
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


def _news(
    batch: Sequence[Event], known: set[str], doubts: Doubts, *, lists_all: bool
) -> list[Event]:
    """What of a batch was not entered before, `known` being the runs that are not sealed."""
    news: list[Event] = []
    for event in batch:
        if event.ledger_id in doubts.ids:
            is_new = not doubts.has(event)
        elif isinstance(event, RegistryOpened):
            is_new = event.ledger_id not in known
        else:
            opens = any(other.ledger_id == event.ledger_id for other in news)
            # Another run may have entered the seal already.
            is_new = opens or event.ledger_id in known or not lists_all
        news += [event] if is_new else []
    return news


def _after(
    unsealed: Sequence[Unsealed], events: Sequence[Event], looked: Mapping[str, str]
) -> list[Unsealed]:
    """What is not sealed after `events`; those that were looked at come last the next time."""
    runs = {run.ledger_id: run for run in unsealed if run.ledger_id not in looked}
    for run in unsealed:
        if run.ledger_id in looked:
            runs[run.ledger_id] = replace(run, seen=looked[run.ledger_id])
    for event in events:
        if isinstance(event, RegistryOpened):
            runs.setdefault(event.ledger_id, Unsealed(event.run_id, event.path, event.ledger_id))
    for event in events:
        if isinstance(event, RegistrySealed):
            runs.pop(event.ledger_id, None)
    return list(runs.values())[-_MOST_UNSEALED:]
