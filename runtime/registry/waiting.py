"""Words of runs that wait to be entered: whoever has the lock next enters all of them in one turn.

A word is a file in `registry.waiting`, named by the ledger id of the run. It stays where its run
waits in vain or dies, and whoever enters something later enters that, too.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from ledger import canonical, sidefile
from ledger.errors import LedgerDamaged
from ledger.events import RegistryOpened, RegistrySealed
from ledger.events.base import LISTED, Count, Part
from runtime.registry.owed import Failure
from runtime.registry.places import WAITING_NAME, ledger_in, locate

_MOST_WAITING: Final = 512
_MOST_BYTES: Final = 65_536
_STALE_SECONDS: Final = 3600.0

_Entry = Annotated[RegistryOpened | RegistrySealed, Field(discriminator="type")]


class Word(Part):
    """What is to be entered of one ledger; none of it is among the first `since` events."""

    since: Count
    entries: Annotated[tuple[_Entry, ...], LISTED, Field(min_length=1)]

    @property
    def ledger_id(self) -> str:
        """The ledger that it is a word of."""
        return self.entries[0].ledger_id

    @property
    def keys(self) -> list[tuple[str, int]]:
        """Ledger id and code of each entry."""
        return [(entry.ledger_id, entry.code) for entry in self.entries]


def leave_word(results_dir: Path, word: Word, *, durable: bool) -> str | None:
    """Leave word of what is to be entered, over what was left of the same ledger.

    A word that is not `durable` outlives the process, and no loss of power. Returns why it cannot
    be left, or None.
    """
    folder = results_dir / WAITING_NAME
    if os.path.lexists(folder) and not _is_own(folder):
        return f"{folder} is not a directory"
    try:
        folder.mkdir(exist_ok=True)
        data = canonical.encode(word.model_dump(exclude_none=True))
        sidefile.replace(folder / word.ledger_id, data, durable=durable)
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}"
    return None


def waits(results_dir: Path, word: Word) -> bool:
    """Tell whether a word that was left is still there."""
    return os.path.lexists(results_dir / WAITING_NAME / word.ledger_id)


def take_back(results_dir: Path, ledger_id: str) -> None:
    """Take the word of a ledger back: it is entered."""
    folder = results_dir / WAITING_NAME
    with suppress(OSError):
        if _is_own(folder):
            (folder / ledger_id).unlink(missing_ok=True)


def _is_own(folder: Path) -> bool:
    """Tell whether a directory is here, and not where somebody's link leads."""
    return folder.is_dir() and not folder.is_symlink()


def words(results_dir: Path) -> Iterator[tuple[str, Word | None]]:
    """Yield the ledger ids that wait, with the word of each; None where it became void."""
    folder = results_dir / WAITING_NAME
    try:
        places = sorted(folder.iterdir())[:_MOST_WAITING] if _is_own(folder) else []
    except OSError:
        return
    for place in places:
        with suppress(*Failure):
            word = _read(results_dir, place)
            if word is not None or time.time() - place.lstat().st_mtime > _STALE_SECONDS:
                yield place.name, word


def _read(results_dir: Path, place: Path) -> Word | None:
    """The word at `place`, if it is of the ledger of that name, and that is where it says."""
    data = sidefile.content(place, _MOST_BYTES)
    try:
        word = Word.model_validate(canonical.decode(data))
    except (LedgerDamaged, ValueError):
        return None
    is_there = all(
        entry.ledger_id == place.name and _is_there(results_dir, entry) for entry in word.entries
    )
    return word if is_there else None


def _is_there(results_dir: Path, entry: RegistryOpened | RegistrySealed) -> bool:
    """Tell whether a ledger is where its entry says; one that has a checkpoint tells which it is.

    An import leaves word before it has its place, and may never get it.
    """
    directory = locate(results_dir, entry.path)
    if directory is None or not ledger_in(directory).exists():
        return False
    ledger_id = bytes.fromhex(entry.ledger_id)
    return all(one.claim.is_of(ledger_id) for one in sidefile.read(ledger_in(directory)))
