"""Whether a run that others may have entered, too, is in a registry already.

A run that could not enter itself is entered by whoever comes next, and perhaps by itself later; who
enters it can die before the word that it waits is taken back. So the registry itself is asked: all
of it before the turn at its lock, and within the turn only what came since.
"""

from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

from ledger.events import RegistryOpened, RegistrySealed
from ledger.view import LedgerView
from runtime.registry.owed import Failure


class Doubts:
    """The ledgers `ids` that may be entered already, and which entries of them the registry has.

    The first `since` events are not looked at.
    """

    def __init__(self, ids: AbstractSet[str], since: int) -> None:
        self.ids = ids
        self._size = since
        self._entered: set[tuple[str, int]] = set()

    def look_up(self, registry: Path) -> None:
        """Read a registry before it is our turn; what cannot be read is left to the turn."""
        if self.ids and registry.exists():
            with suppress(*Failure), LedgerView.open(registry) as view:
                self.read(view)

    def read(self, view: LedgerView) -> None:
        """Read the events that were not read yet; raises what reading them raises."""
        if not self.ids:
            return
        for recorded in view.events(since=self._size):
            event = recorded.event
            if isinstance(event, RegistryOpened | RegistrySealed) and event.ledger_id in self.ids:
                self._entered.add((event.ledger_id, event.code))
            self._size = recorded.seq + 1

    def has(self, event: RegistryOpened | RegistrySealed) -> bool:
        """Tell whether an entry of this kind was found for its ledger."""
        return (event.ledger_id, event.code) in self._entered
