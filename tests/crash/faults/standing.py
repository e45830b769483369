"""What a program under test is, and what must stand when it ended in whatever way."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from ledger import LedgerView
from ledger.errors import AclError, RunNotFound
from tests.ledger_checks import check_ledger

Tell = Callable[..., None]


@dataclass(frozen=True)
class Ended:
    """How a program ended: what it told meanwhile, its status, or that it was killed.

    `error` is the name of what it raised, `said` all that it printed; `fault` is what it must never
    say or do, a traceback, say. `unread` tells that the disk did not give what is stored, `lasting`
    that whoever tries again in new threads may meet the fault in each of them.
    """

    told: list[Any]
    killed: bool
    status: int | None
    error: str | None
    said: str
    fault: str | None
    unread: bool = False
    lasting: bool = False

    def has_status(self, *statuses: int) -> bool:
        """Whether it ended with one of these, or was killed.

        Bytes that the disk does not give are damage, as far as anybody can tell: 4.
        """
        return self.killed or self.status in (*statuses, *([4] if self.unread else []))

    def is_told_in_one_line(self, *statuses: int) -> None:
        """A command that did not succeed ended with one of these, and said why in one line."""
        if self.killed or self.status == 0:
            return
        assert self.has_status(*statuses), (self.status, self.said)
        lines = [line for line in self.said.splitlines() if line.startswith("acl: ")]
        # What is left out is told besides.
        lines = [line for line in lines if "has no analysis" not in line]
        assert len(lines) == 1, self.said
        assert "Traceback" not in self.said
        assert "fault of acl" not in self.said


class Program(Protocol):
    """A small program; `prepare` makes in an empty directory what it begins with.

    `act` does the work and tells what was acknowledged to it; its status is 0 where nothing fails.
    `check` raises AssertionError where what stands there is wrong, and goes on from there. With
    `threads` the order of calls is not always the same, so that a fault may miss.
    """

    name: str
    threads: bool

    def prepare(self, area: Path) -> None: ...

    def act(self, area: Path, tell: Tell) -> int | None: ...

    def check(self, area: Path, ended: Ended) -> None: ...


def again(act: Callable[[], Any]) -> Any:
    """Do something that a fault may keep from being done, until it is done.

    One fault meets each thread of a program once, so that it can come up a few times.
    """
    for _ in range(4):
        try:
            return act()
        except AclError:
            continue
    return act()


def check_standing(path: Path, told: list[Any], sizes: Collection[int]) -> int:
    """A ledger is whole, ends with a batch, and holds all that was told: [size, root] each."""
    check_ledger(path)
    if 0 in sizes and is_empty(path):
        assert not told
        return 0
    with LedgerView.open(path) as view:
        assert view.size in sizes, view.size
        for size, root in told:
            assert view.size >= size
            assert view.root(size).hex() == root
        return view.size


def is_empty(ledger: Path) -> bool:
    """Whether a ledger holds no event yet."""
    try:
        with LedgerView.open(ledger):
            return False
    except RunNotFound:
        return True


def names_in(run: Path) -> set[str]:
    """What stands in a run's directory; whoever reads an open ledger leaves -wal and -shm behind."""
    found = {path.relative_to(run).as_posix() for path in run.rglob("*")}
    if (run / "ledger.sqlite").stat().st_mode & 0o222:
        found -= {"ledger.sqlite-wal", "ledger.sqlite-shm"}
    return found


def contents(directory: Path) -> dict[str, str]:
    """The digest of each file below a directory."""
    return {
        path.relative_to(directory).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
