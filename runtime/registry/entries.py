"""What a registry says of each run: when it was entered, and how it was sealed."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from ledger.errors import AclError, IntegrityError, VersionUnsupported
from ledger.events import RegistryOpened, RegistrySealed
from ledger.tlog import Frontier
from ledger.view import LedgerView, Recorded


@dataclass(slots=True)
class Entry:
    """One run of a registry: a ledger at a path, by its first entry of each kind.

    `at` and `sealed_at` are when it was entered, `wall_ns` the former in nanoseconds since 1970.
    `opened` is None where only the seal was found, else `seq` is the number of that event. `more`
    counts entries of the same ledger at the same path that say something else.
    """

    ledger_id: str
    path: str
    run_id: str
    at: str
    wall_ns: int
    opened: RegistryOpened | None = None
    sealed: RegistrySealed | None = None
    sealed_at: str | None = None
    seq: int | None = None
    more: int = 0

    def take(self, event: RegistryOpened | RegistrySealed, at: str, seq: int) -> None:
        """Take in one more entry of the same ledger and path."""
        if isinstance(event, RegistryOpened):
            self.more += self.opened is not None and self.opened != event
            self.seq = seq if self.opened is None else self.seq
            self.opened = self.opened or event
        else:
            self.more += self.sealed is not None and self.sealed != event
            self.sealed, self.sealed_at = self.sealed or event, self.sealed_at or at


@dataclass(slots=True)
class Readings:
    """All that could be read of a registry; `faults` are the entries that could not.

    `entries` are in the order in which the runs were entered. `roots` are those of the trees of
    1, 2, 3 … events, as far as all events could be read.
    """

    entries: list[Entry] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    size: int = 0
    ledger_id: str = ""
    roots: list[bytes] = field(default_factory=list)

    def number_of(self, ledger_id: str) -> int | None:
        """The number of the first event with which a ledger was entered as opened."""
        numbers = (e.seq for e in self.entries if e.ledger_id == ledger_id and e.seq is not None)
        return min(numbers, default=None)


def read_entries(view: LedgerView) -> Readings:
    """Read a registry as far as it can be read: a damaged entry does not hide the others."""
    found = Readings()
    known: dict[tuple[str, str], Entry] = {}
    try:
        found.size = view.size
        found.ledger_id = view.ledger_id.hex()
    except AclError as error:
        found.faults.append(str(error))
    tree = Frontier()
    for recorded in _events(view, found):
        if recorded.seq == tree.size:
            tree.append(recorded.leaf)
            found.roots.append(tree.root())
        event = recorded.event
        if not isinstance(event, RegistryOpened | RegistrySealed):
            continue
        key = (event.ledger_id, event.path)
        if key not in known:
            known[key] = Entry(
                event.ledger_id, event.path, event.run_id, recorded.at, recorded.wall_ns
            )
        known[key].take(event, recorded.at, recorded.seq)
    found.entries = list(known.values())
    return found


def numbers_of(
    view: LedgerView, ledgers: AbstractSet[str], since: int
) -> dict[tuple[str, int], int]:
    """Return the numbers of what is entered of `ledgers` from event `since` on, by id and code.

    Raises what reading the events raises.
    """
    found: dict[tuple[str, int], int] = {}
    for recorded in view.events(since=since):
        event = recorded.event
        if isinstance(event, RegistryOpened | RegistrySealed) and event.ledger_id in ledgers:
            found.setdefault((event.ledger_id, event.code), recorded.seq)
    return found


def _events(view: LedgerView, found: Readings) -> Iterator[Recorded]:
    """Every event that can be read; once one cannot, the others are asked for one by one."""
    reached = 0
    try:
        for recorded in view.events(until=found.size):
            reached = recorded.seq + 1
            yield recorded
    except (IntegrityError, VersionUnsupported):
        for seq in range(reached, found.size):
            try:
                yield view.event(seq)
            except AclError as error:
                found.faults.append(error.message)
