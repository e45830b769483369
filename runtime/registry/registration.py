"""One run and its entries: a run that cannot be entered goes on, and says so."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ledger.errors import AclError, UsageError
from ledger.events import ExtensionRecorded, RegistryOpened, RunCreated
from ledger.note import Signer
from ledger.view import LedgerView
from runtime.gate import prune_event, redact_event
from runtime.redact import Redactor
from runtime.registry.owed import attempts_of, entries_of, seal_entry
from runtime.registry.places import find_results_dir, relative, request_digest
from runtime.registry.waiting import Word, leave_word
from runtime.registry.writing import Entered, Event, Registry

REGISTERED: Final = "acl.registered"
"""The extension event of a run that was entered: {registry, seq, size, root}.

`registry` is the id of that ledger, `seq` the number of the entry there, and `root` is that of its
first `size` events. So every run says what the registry was like when it began."""

UNREGISTERED: Final = "acl.unregistered"
"""The extension event of a run that was not entered before its first event: {reason}."""

# Whoever waited in vain once does not wait as long again.
_SECOND_WAIT: Final = 2.0
_FAILURES: Final = (AclError, OSError, sqlite3.Error)

_log = logging.getLogger(__name__)


class Registration:
    """The entries of the run in `directory` in `registry`.

    What cannot be entered is told, with the reason, by default to the log, and left to the next
    run.
    """

    def __init__(
        self,
        registry: Registry,
        directory: Path,
        ledger_id: bytes,
        *,
        tell: Callable[[str], object] = _log.error,
    ) -> None:
        self._registry = registry
        self._directory = directory.absolute()
        self._path = relative(registry.results_dir, directory)
        self._ledger_id = ledger_id.hex()
        self._say = tell
        # Nobody can have entered the run before.
        self._since = registry.about
        self._entered: Entered | None = None
        self.fault: str | None = None
        """Why the run is not entered; None once it is."""

    def open(self, created: RunCreated, redactor: Redactor, planned_tasks: int) -> None:
        """Enter the run before its first event, which will be `created`; sets `fault`."""
        # The digest is of what the ledger will hold.
        stored, _ = prune_event(redact_event(created, redactor))
        assert isinstance(stored, RunCreated)
        entry = RegistryOpened(
            run_id=stored.run_id,
            path=self._path,
            ledger_id=self._ledger_id,
            request_digest=request_digest(stored.request),
            planned_tasks=planned_tasks,
            k=attempts_of(stored.request),
        )
        self._enter("the run is not in the registry", [entry])

    def seal(self) -> None:
        """Enter the sealed run, with its opening if that is still to be done."""
        what = "the seal of the run is not in the registry"
        try:
            entries = self._entries()
        except _FAILURES as error:
            self._tell(what, error)
            return
        if entries:
            self._enter(what, entries)

    def wait(self, staged: Path) -> None:
        """Leave word of a run that is sealed and still in `staged`, in case this program dies."""
        try:
            entries = entries_of(staged, self._path)
        except _FAILURES as error:
            self._say(f"nobody will enter the run later: {error}")
            return
        self._leave(entries)

    def enter_whole(self) -> None:
        """Enter a run that appeared sealed: its opening and its seal at once."""
        what = "the run is not in the registry"
        try:
            entries = entries_of(self._directory, self._path)
        except _FAILURES as error:
            self._tell(what, error)
            return
        self._enter(what, entries)

    def _entries(self) -> list[Event]:
        if self.fault is not None:
            return list(entries_of(self._directory, self._path))
        with LedgerView.open(self._directory) as view:
            run = view.event(0).event
            assert isinstance(run, RunCreated)
            seal = seal_entry(view, run.run_id, self._path)
        return [] if seal is None else [seal]

    def _enter(self, what: str, entries: Sequence[Event]) -> None:
        wait = self._registry.wait if self.fault is None else _SECOND_WAIT
        try:
            wait = min(wait, self._registry.wait)
            self._entered = self._registry.enter(*entries, wait=wait, since=self._since)
        except _FAILURES as error:
            self._tell(what, error)
            self._leave(entries)
            return
        if self._entered is not None and self._entered.fault is not None:
            self._say(f"the registry has no new checkpoint: {self._entered.fault}")
        self.fault = None

    def _tell(self, what: str, error: Exception) -> None:
        why = error.message if isinstance(error, AclError) else str(error)
        self._say(f"{what}: {why}")
        self.fault = self.fault or why

    def _leave(self, entries: Sequence[Event]) -> None:
        """Leave word of what is to be entered by whoever reaches the registry next."""
        if not entries:
            return
        word = Word(since=self._since, entries=tuple(entries))
        why = leave_word(self._registry.results_dir, word, durable=True)
        if why is not None:
            self._say(f"nobody will enter the run later: {why}")

    def told(self) -> ExtensionRecorded:
        """The event with which a run says in its own ledger whether it was entered, and where."""
        if self._entered is None:
            return ExtensionRecorded(name=UNREGISTERED, payload={"reason": self.fault})
        fields = asdict(self._entered)
        names = {"registry": "ledger_id", "seq": "seq", "size": "size", "root": "root"}
        payload = {name: fields[field] for name, field in names.items()}
        return ExtensionRecorded(name=REGISTERED, payload=payload)

    def refusal(self) -> UsageError:
        """The error of a run that must be entered and is not."""
        return UsageError(
            f"the run is not in the registry: {self.fault}",
            hint="repair that, or run without --require-registry",
        )


def complete(run: Path, *, signers: Sequence[Signer] = (), tell: Callable[[str], object]) -> None:
    """Enter a run that was sealed later, where a registry is above it; tell if that fails."""
    results_dir = find_results_dir(run)
    if results_dir is None:
        return
    try:
        entries = entries_of(run, relative(results_dir, run))
        entered = Registry(results_dir, signers=signers).enter(*entries, since=0)
        why = None if entered is None else entered.fault
    except _FAILURES as error:
        why = str(error)
    if why is not None:
        tell(f"the registry of {results_dir} does not know of it: {why}")
