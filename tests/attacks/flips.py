"""One flipped bit after another: each is detected, or nothing that anybody can read has changed.

`python -m tests.attacks.flips` tries every byte of the small ledgers and prints both counts.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from ledger import events as ev
from ledger.errors import AclError
from ledger.verify import verify
from tests import events_of as say
from tests.attacks.attack import content
from tests.attacks.runs import LAB, Events, record, story

_FIELDS = ("application_id", "user_version", "journal_mode")
_TABLES = ("sqlite_schema", "event", "segment", "blob", "blobsegment", "erasure", "checkpoint")
# What SQLite reads of a file's first page besides its rows: these are always tried in full.
_HEADER_BYTES = 100


@dataclass
class Counts:
    """How many flips were detected, and how many changed nothing."""

    detected: int = 0
    harmless: int = 0

    def __str__(self) -> str:
        return f"{self.detected + self.harmless} flips: {self.detected} detected, {self.harmless} harmless"


class Victim:
    """A run directory, one file of which is damaged bit by bit in a copy."""

    def __init__(self, run: Path, name: str, scratch: Path) -> None:
        self._run = run
        self._damaged = scratch / f"{name}-damaged"
        self._name = name
        self.data = (run / name).read_bytes()
        self._content = _all_content(run)
        # SQLite keeps a database in memory only if it needs no -wal.
        self._rows = None if (run / "ledger.sqlite-wal").exists() else rows_of(self.data)

    def flip(self, place: int) -> bool:
        """Flip one bit of the byte at `place`; return whether that is detected.

        Raises AssertionError if it is not, and something changed.
        """
        data = bytearray(self.data)
        data[place] ^= 1 << place % 8
        if self._rows is not None and place >= _HEADER_BYTES and rows_of(data) == self._rows:
            return False
        shutil.rmtree(self._damaged, ignore_errors=True)
        shutil.copytree(self._run, self._damaged)
        target = self._damaged / self._name
        target.chmod(0o644)
        target.write_bytes(data)
        if is_detected(self._damaged):
            return True
        unchanged = _all_content(self._damaged) == self._content
        assert unchanged, f"byte {place} of {self._name}"
        return False

    def try_all(self, places: Iterable[int]) -> Counts:
        """Flip one bit at each place."""
        counts = Counts()
        for place in places:
            if self.flip(place):
                counts.detected += 1
            else:
                counts.harmless += 1
        return counts


def _all_content(run: Path) -> object:
    """What a reader can get out of a run, and the checkpoint files beside its ledger."""
    return content(run), [path.read_bytes() for path in sorted(run.glob("*.checkpoint*"))]


def is_detected(run: Path) -> bool:
    """Whether verify says that something is broken, or refuses to read at all."""
    try:
        return any(finding.severity == "broken" for finding in verify(run))
    except AclError:
        return True


def rows_of(data: bytes | bytearray) -> object:
    """Every row of every table of a database, and what an index finds; None if it is malformed.

    Ledgers that are equal in this are equal in all that is made of them.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        try:
            connection.deserialize(bytes(data))
            found: list[object] = [
                connection.execute(f"PRAGMA {name}").fetchall() for name in _FIELDS
            ]
            found += [connection.execute(f"SELECT * FROM {name}").fetchall() for name in _TABLES]
            digests = connection.execute("SELECT digest FROM blob NOT INDEXED").fetchall()
            by_index = "SELECT id, seg, off, len FROM blob WHERE digest = ?"
            found += [connection.execute(by_index, digest).fetchall() for digest in digests]
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            return None
        return found


def smallest(run: Path, *, seal: bool) -> Path:
    """A run of hardly anything: the last of four events is in a session of its own."""
    marks = [ev.AnnotationAdded(text=str(number), author="a") for number in range(3)]
    record(run, seal=seal, events=[say.created(), *marks])
    return run


def small(run: Path, *, seal: bool) -> Path:
    """A whole run of three tasks, with large values."""
    record(run, seal=seal)
    return run


def large(run: Path) -> Path:
    """Some hundred tasks; a megabyte."""
    random = Random(0)
    events: Events = story()[:2]
    names = [f"task {number}" for number in range(120)]
    events.append(say.selected(*names))
    for name in names:
        answer = random.randbytes(3000).hex()
        events += say.whole_task(name, say.attempt(name, answer=answer))
    record(run, seal=True, events=[*events, *say.ending()], key=LAB)
    return run


def main() -> None:
    """Try every byte of the small ledgers, in the file and in the -wal."""
    kinds: dict[str, Callable[[Path], Path]] = {
        "smallest, sealed": partial(smallest, seal=True),
        "smallest, not sealed": partial(smallest, seal=False),
        "small, sealed": partial(small, seal=True),
        "small, not sealed": partial(small, seal=False),
    }
    for kind, make in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            run = make(Path(folder) / "run")
            for path in sorted(run.glob("ledger.*")):
                if path.name.endswith((".lock", "-shm")):
                    continue
                victim = Victim(run, path.name, Path(folder))
                print(f"{kind}, {path.name}: {victim.try_all(range(len(victim.data)))}", flush=True)


if __name__ == "__main__":
    main()
