"""Entering runs into a registry: whoever has its lock enters all who wait, in one short turn."""

import os
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, compress
from pathlib import Path
from typing import Final

from ledger import resume, sidefile
from ledger.errors import (
    AclError,
    LedgerDamaged,
    LedgerExists,
    LedgerLocked,
    LedgerRolledBack,
    NotALedger,
)
from ledger.events import RegistryOpened, RegistrySealed
from ledger.lock import pause
from ledger.memory import Memory
from ledger.note import Signer
from ledger.sidefile import signed_origin
from ledger.store import Ledger, system_clock
from ledger.tail import Clock, Entropy
from ledger.view import LedgerView
from runtime.registry.entries import numbers_of
from runtime.registry.owed import Failure, Owed, Unsealed, look, memo_of, read_memo
from runtime.registry.places import REGISTRY_NAME, registry_file
from runtime.registry.waiting import Word, leave_word, take_back, waits, words

LOCK_SECONDS: Final = 30.0
"""How long an entry waits for the lock."""

# More runs than this that never end are found again by reading the registry whole.
_MOST_UNSEALED: Final = 1000

Event = RegistryOpened | RegistrySealed


@dataclass(frozen=True, slots=True)
class Entered:
    """Where an entry stands: as event `seq` of the registry with the id `ledger_id`.

    `root` is that of its first `size` events, the entry among them. `fault` says why no checkpoint
    covers it, if none does.
    """

    ledger_id: str
    seq: int
    size: int
    root: str
    fault: str | None


class Registry:
    """The registry of `results_dir`; it is opened for each turn and closed again.

    `signers` sign a checkpoint over each entry. `wait` is how many seconds an entry waits for the
    others.
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

    def enter(self, *entries: Event, wait: float | None = None, since: int = 0) -> Entered | None:
        """Enter `entries` of one run, and what other runs owe; return once all is on disk.

        None of `entries` is among the first `since` events; behind these others may have entered
        some, which are not entered again. Who finds the lock taken leaves word, so that whoever
        has it next enters all who wait in one turn. Returns where the first of `entries` stands;
        None if there are none. Raises what opening a ledger and appending to it raise, and OSError.
        """
        if not entries:
            return None
        deadline = time.monotonic() + (self.wait if wait is None else wait)
        path, word = registry_file(self.results_dir), Word(since=since, entries=entries)
        # Other runs are looked at before it is our turn, so that a turn is short.
        kept = resume.read(path)
        owed = look(self.results_dir, (kept and read_memo(kept.memo)) or ())
        is_left = False
        while True:
            try:
                with self._open(path) as ledger:
                    return self._take_turn(ledger, word, owed)
            except LedgerLocked:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
            is_left = (is_left and waits(self.results_dir, word)) or not leave_word(
                self.results_dir, word, durable=False
            )
            time.sleep(pause(left))
            if is_left and not waits(self.results_dir, word):
                found = self._found(word)
                if found is not None:
                    return found

    def _found(self, word: Word) -> Entered | None:
        """Where somebody else has entered all of a word; None if nobody has."""
        with suppress(*Failure), LedgerView.open(registry_file(self.results_dir)) as view:
            numbers = numbers_of(view, {word.ledger_id}, word.since)
            if all(key in numbers for key in word.keys):
                return self._covered(view.ledger_id, [numbers[key] for key in word.keys])
        return None

    def _covered(self, ledger_id: bytes, numbers: Sequence[int]) -> Entered | None:
        """Where these events stand, if a checkpoint that our keys signed covers all of them."""
        ours = {(signer.name, signer.key_id) for signer in self._signers}
        for beside in sidefile.read(registry_file(self.results_dir)):
            checkpoint, signed = beside.claim.checkpoint, beside.claim.signed
            lines = () if signed is None else signed.signatures
            if max(numbers) < checkpoint.size and ours <= {(one.name, one.key_id) for one in lines}:
                size, root = checkpoint.size, checkpoint.root.hex()
                return Entered(ledger_id.hex(), numbers[0], size, root, None)
        return None

    def _take_turn(self, ledger: Ledger, own: Word, owed: Owed) -> Entered:
        """Enter `own` and what others owe, and cover it by a checkpoint."""
        self._refuse_older(ledger)
        before, unsealed = ledger.size, self._unsealed(ledger)
        known = {run.ledger_id for run in unsealed}
        waiting = {name: word for name, word in words(self.results_dir) if name != own.ledger_id}
        asked = [own, *(word for word in waiting.values() if word is not None)]
        wanted = {key for word in asked for key in word.keys}
        asked += [
            Word(since=before, entries=(seal,))
            for seal in owed.seals
            if seal.ledger_id in known and (seal.ledger_id, seal.code) not in wanted
        ]
        numbers = self._numbers(ledger, asked, known)
        batches = [_news(word, known, numbers) for word in asked]
        outcomes = ledger.append_group(batches)
        if isinstance(outcomes[0], AclError):
            raise outcomes[0]
        stored = [not isinstance(outcome, AclError) for outcome in outcomes]
        entered = [*chain.from_iterable(compress(batches, stored))]
        stands = [numbers.get(key, before) for key in own.keys]
        found = None if entered else self._covered(ledger.ledger_id, stands)
        if found is None:
            fault = self._checkpoint(ledger)
            ledger.keep(memo_of(_after(unsealed, entered, owed.looked)))
            size, root = ledger.size, ledger.root().hex()
            found = Entered(ledger.ledger_id.hex(), stands[0], size, root, fault)
        void = [name for name, word in waiting.items() if word is None]
        for name in [*void, *(word.ledger_id for word in compress(asked, stored))]:
            take_back(self.results_dir, name)
        return found

    def _numbers(
        self, ledger: Ledger, asked: Sequence[Word], known: AbstractSet[str]
    ) -> dict[tuple[str, int], int]:
        """What may have been entered already of what is asked for, and where it stands.

        Who entered it can have died before the word was taken back. Of a run that is `known` not
        to be sealed no seal is entered.
        """
        doubtful = [
            word
            for word in asked
            if word.ledger_id not in known or isinstance(word.entries[0], RegistryOpened)
        ]
        size = ledger.size
        # A registry that was begun anew can be shorter than the one that a size was of.
        since = min((word.since if word.since <= size else 0 for word in doubtful), default=size)
        if since == size:
            return {}
        with ledger.view() as view:
            return numbers_of(view, {word.ledger_id for word in doubtful}, since)

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

    def _open(self, path: Path) -> Ledger:
        """Open the registry, or make it; LedgerLocked at once if somebody else has its lock."""
        if not os.path.lexists(path):
            try:
                return Ledger.create(path, clock=self._clock, entropy=self._entropy, wait=0.0)
            except LedgerExists:
                # Another run was faster; or it is gone, and what is left of it tells.
                if not os.path.lexists(path):
                    raise LedgerRolledBack(
                        f"there is no {path.name} in {path.parent}, but what was beside it",
                        hint="restore the registry",
                    ) from None
        try:
            return Ledger.open(
                path, clock=self._clock, entropy=self._entropy, wait=0.0, resumes=True
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


def _news(
    word: Word, known: AbstractSet[str], numbers: Mapping[tuple[str, int], int]
) -> list[Event]:
    """What of a word is not entered yet; a seal is entered only behind the opening."""
    there = {code for _, code in word.keys if (word.ledger_id, code) in numbers}
    there |= {RegistryOpened.code} if word.ledger_id in known else set()
    news: list[Event] = []
    for entry in word.entries:
        may_be = isinstance(entry, RegistryOpened) or RegistryOpened.code in there
        if may_be and entry.code not in there:
            news.append(entry)
            there.add(entry.code)
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
