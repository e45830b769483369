"""Where events of a ledger stand besides: in runs that copied them, and where they came from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ledger.errors import AclError
from ledger.events import AttemptReused, ReuseFrozen, TaskReused, TasksSelected
from ledger.opening import LEDGER_NAME
from ledger.view import LedgerView, Recorded

MOST_LEDGERS: Final = 10_000
_Key = tuple[str | None, int | None]


@dataclass(frozen=True, slots=True)
class Holder:
    """Another ledger that holds the same events; `path` is None where it is not at hand."""

    ledger_id: str
    run_id: str
    path: str | None
    events: tuple[int, ...]


@dataclass(slots=True)
class Holders:
    """`copied` are ledgers that took events over, `sources` those that they were taken from.

    `unread` are ledgers that could not be read, `many` says that there were too many to look at.
    """

    copied: list[Holder] = field(default_factory=list)
    sources: list[Holder] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    many: bool = False


def find_holders(view: LedgerView, sequence: Iterable[int], place: Path) -> Holders:
    """Look for the events `sequence` of `view` in every ledger under `place`, and in its sources.

    Copies that were erased themselves are left out.
    """
    wanted = frozenset(sequence)
    found = Holders(sources=list(_sources(view, wanted)))
    ledger_id = view.ledger_id.hex()
    ledgers = list(islice(_ledgers(place), MOST_LEDGERS + 1))
    found.many = len(ledgers) > MOST_LEDGERS
    for path in ledgers[:MOST_LEDGERS]:
        if path.resolve() == view.path.resolve():
            continue
        try:
            with LedgerView.open(path) as other:
                holder = _copied(other, ledger_id, wanted)
        except (AclError, OSError):
            found.unread.append(str(path))
        else:
            found.copied += [holder] if holder is not None else []
    return found


def _ledgers(place: Path) -> Iterator[Path]:
    for path in sorted(place.rglob(LEDGER_NAME)):
        if not any(part.startswith(".") for part in path.relative_to(place).parts):
            yield path


def _copied(view: LedgerView, ledger_id: str, wanted: frozenset[int]) -> Holder | None:
    """The copies that a ledger holds of events of another one."""
    run_id, events = "", []
    there: dict[_Key, Iterator[int]] = {}
    for recorded in view.events():
        event = recorded.event
        if recorded.seq == 0:
            run_id = getattr(event, "run_id", "")
        if isinstance(event, TasksSelected) and not there and not _reuses(view, recorded.seq):
            return None
        if recorded.copied:
            numbers = there.get((recorded.task, None)) or there.get(_key(recorded))
            was_named = numbers is not None and next(numbers, None) in wanted
            if was_named and not recorded.erased:
                events.append(recorded.seq)
        elif isinstance(event, TaskReused | AttemptReused):
            told = _told_of(view, event, ledger_id)
            if told is not None:
                there[_key(recorded)] = iter(told)
    if not events:
        return None
    return Holder(view.ledger_id.hex(), run_id, str(view.path.parent), tuple(events))


def _reuses(view: LedgerView, before: int) -> bool:
    """Whether a run says, ahead of its first tasks, that it reuses another; if that can be told."""
    opening = list(view.events(until=before))
    frozen = [one for one in opening if one.type == "reuse.frozen"]
    return any(one.event is None or _names_source(one.event) for one in frozen)


def _names_source(event: object) -> bool:
    return isinstance(event, ReuseFrozen) and event.run_id is not None


def _key(recorded: Recorded) -> _Key:
    return recorded.task, recorded.attempt


def _told_of(view: LedgerView, event: TaskReused | AttemptReused, ledger_id: str) -> Any:
    """The numbers that the copies of a reuse had in a ledger; None if it was no source of it."""
    if event.source_ledger_id == ledger_id:
        return event.sequence
    lineage = event.lineage if isinstance(event.lineage, Mapping) else {}
    for told in lineage.values():
        if isinstance(told, Mapping) and told.get("source_ledger_id") == ledger_id:
            sequence = view.resolve(told.get("sequence"))
            return sequence if isinstance(sequence, list) else None
    return None


def _sources(view: LedgerView, wanted: frozenset[int]) -> Iterator[Holder]:
    """The ledgers from which events of `view` were copied, as it says itself."""
    reuses: dict[_Key, tuple[TaskReused | AttemptReused, Iterator[int]]] = {}
    held: dict[str, tuple[TaskReused | AttemptReused, list[int]]] = {}
    for recorded in view.events():
        event = recorded.event
        if recorded.copied:
            reuse = reuses.get((recorded.task, None)) or reuses.get(_key(recorded))
            number = None if reuse is None else next(reuse[1], None)
            if reuse is not None and number is not None and recorded.seq in wanted:
                held.setdefault(reuse[0].source_ledger_id, (reuse[0], []))[1].append(number)
        elif isinstance(event, TaskReused | AttemptReused):
            reuses[_key(recorded)] = event, iter(event.sequence)
    for ledger_id, (event, events) in held.items():
        yield Holder(ledger_id, event.source_run_id, event.source_path, tuple(events))
