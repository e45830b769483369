"""The runs of a results directory, to be read together: found, checked, each ledger once."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from acl.progress import counting
from exporters.identity import Identity, Salvaged
from exporters.tables import Row, Table
from exporters.tables.results import LeftOut
from ledger import LedgerView, RunState, sidefile
from ledger.errors import AclError, IntegrityError
from ledger.opening import LEDGER_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

ROOM: Final = 50_000
"""Attempts of how many runs may be kept folded; others are folded again for each table."""

_NAMES: Final = frozenset({LEDGER_NAME, *(side.name for side in sidefile.paths(Path(LEDGER_NAME)))})


def is_results_dir(path: str) -> bool:
    """Whether a path is a directory and no run directory, not even of a ledger that is gone."""
    directory = Path(path)
    return directory.is_dir() and not any((directory / name).exists() for name in _NAMES)


@dataclass(slots=True)
class StoredRun:
    """A run whose ledger is opened whenever rows of it are wanted, at the prefix first seen."""

    path: Path
    place: str
    identity: Identity
    created_at: str
    state: RunState | None = None
    """Kept where there is room for it."""

    def rows(self, table: Table) -> Iterator[Row]:
        """Yield the run's rows of a table; raises LedgerDamaged where bytes changed since."""
        with LedgerView.open(self.path) as view:
            state = self.state or _state(view, self.identity.size, self.identity.damaged_at)
            yield from table.rows(state, view)


@dataclass(slots=True)
class Found:
    """The runs in the order in which they were made, and what is no run or cannot be trusted.

    `copies` says in words which ledgers are not read since a longer copy of each is.
    """

    runs: list[StoredRun] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The exit status: 4 where anything is damaged, 1 where anything else is left out."""
        if any(one.damaged for one in self.left_out):
            return 4
        return 1 if self.left_out else 0


def find_runs(results_dir: Path, damage: "Callable[[str], int | None]" = lambda _: None) -> Found:
    """Find every ledger below a directory, hidden directories apart; each ledger counts once.

    `damage` is asked first: it says at which event a ledger is damaged that is to be salvaged, and
    raises for one that is not. Of copies of a ledger the longest stays.
    """
    found = Found()
    room = ROOM
    unread: list[OSError] = []
    directories = list(_ledgers(results_dir, unread))
    for error in unread:
        directory = Path(str(error.filename))
        found.left_out.append(_left_out(directory, _place(directory, results_dir), error))
    with counting("runs") as progress:
        for number, directory in enumerate(directories):
            if progress is not None:
                progress(number, len(directories))
            place = _place(directory, results_dir)
            try:
                run = _stored(directory, place, damage(str(directory)))
            except (AclError, OSError) as error:
                found.left_out.append(_left_out(directory, place, error))
                continue
            room -= _keep(run, room)
            found.runs.append(run)
    _leave_out_copies(found)
    return found


def _left_out(directory: Path, place: str, error: AclError | OSError) -> LeftOut:
    reason = error.message if isinstance(error, AclError) else error.strerror or str(error)
    # Where the results directory itself stands is nobody's business.
    for spelling in (str(directory.absolute()), str(directory)):
        reason = reason.replace(spelling, place)
    return LeftOut(place, isinstance(error, IntegrityError), reason)


def _keep(run: StoredRun, room: int) -> int:
    """Drop the state of a run if it has more attempts than there is room; return what it takes."""
    assert run.state is not None
    attempts = sum(len(task.attempts) for task in run.state.tasks.values())
    if attempts <= room:
        return attempts
    run.state = None
    return 0


def _place(directory: Path, results_dir: Path) -> str:
    return directory.relative_to(results_dir).as_posix()


def _ledgers(results_dir: Path, unread: list[OSError]) -> Iterator[Path]:
    """Directories with a ledger, or what was beside one; what cannot be read goes to `unread`."""
    for folder, directories, files in os.walk(results_dir, onerror=unread.append):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        if not _NAMES.isdisjoint(files):
            yield Path(folder)


def _stored(directory: Path, place: str, damaged_at: int | None) -> StoredRun:
    with LedgerView.open(directory) as view:
        state = _state(view, view.size if damaged_at is None else damaged_at, damaged_at)
    return StoredRun(directory, place, Identity.of(state), state.created_at or "", state)


def _state(view: LedgerView, size: int, damaged_at: int | None) -> RunState:
    from acl.verdict import state_at

    state = state_at(view, size)
    return state if damaged_at is None else Salvaged.of(state, damaged_at)


def _leave_out_copies(found: Found) -> None:
    """Keep one of the runs that have the same ledger: rows of copies would count twice."""
    kept: dict[str, StoredRun] = {}
    for run in sorted(found.runs, key=lambda run: (-run.identity.size, run.place)):
        first = kept.setdefault(run.identity.ledger_id, run)
        if first is run:
            continue
        if _extends(first, run):
            found.copies.append(f"{run.place} is a copy of {first.place}, which counts")
        else:
            why = f"it holds another history of the ledger in {first.place}"
            found.left_out.append(LeftOut(run.place, True, why))
    found.runs = sorted(kept.values(), key=lambda run: (run.created_at, run.identity.ledger_id))
    found.left_out.sort(key=lambda one: one.place)


def _extends(longer: StoredRun, shorter: StoredRun) -> bool:
    with LedgerView.open(longer.path) as view:
        return view.root(shorter.identity.size).hex() == shorter.identity.root
