"""The file of a ledger and its end in memory, kept in step: what one writer does, one at a time.

Nobody is told that something is stored before it is on disk, and nobody is told that it is not
before the file was asked again.
"""

import os
import sqlite3
import stat
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ledger import opening, rewriting, sidefile, tlog, wal
from ledger.database import Database, explain, in_doubt, out_of_room
from ledger.errors import AclError, AlreadySealed, LedgerDamaged, LedgerDead, NotStored, UsageError
from ledger.events import AnyEvent, PayloadErased
from ledger.opening import Source
from ledger.records import Place, Records
from ledger.refusals import told_as_failure
from ledger.resume import find_start
from ledger.segment import RUNNING, Packing
from ledger.tail import Clock, Copy, Entropy, Receipt, Tail

Item = AnyEvent | Copy
# Millions of steps of SQLite's machine for one statement: the last pieces are found among all.
_OPENING_STEPS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Committed:
    """What is on disk; replaced as a whole after each commit."""

    size: int
    root: bytes
    sealed: bool


class Writer:
    """The one connection that writes, and the tail; the caller holds the lock and takes turns.

    `committed` tells what is on disk; only a commit moves it. `promised` is what becomes of the
    batches of a commit under way, if it is stored.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        entropy: Entropy,
        *,
        packing: Packing = RUNNING,
        resumes: bool = False,
        amends: bool = False,
    ) -> None:
        self.path = path
        self._new_tail = partial(Tail, clock=clock, entropy=entropy, packing=packing)
        self._dead: str | None = None
        self.stale = False
        """Whether the tail is ahead of the file, or the other way round."""
        self.promised: list[Receipt | AclError] | None = None
        beside = sidefile.read(path)
        # Nobody writes: the lock is ours, and this process has no connection to write with yet.
        wal.check(path)
        # Closing a connection that could write folds the -wal into the file and deletes it: a
        # ledger that is refused here must keep it.
        with closing(Source(path, locked=True)) as source:
            query = partial(source.query, allowed=_OPENING_STEPS)
            start = find_start(path, Records(query, indexed=False)) if resumes else None
            self.tail = self._new_tail(query, beside=beside, start=start)
        # What an erasure that broke off left: it never had the name of the ledger.
        rewriting.new_path(path).unlink(missing_ok=True)
        self.committed = self._now()
        if amends and self.committed.sealed:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
        self.database = self._connect()

    def _connect(self) -> Database:
        opened = Database(self.path)
        try:
            if not self.committed.sealed:
                opened.begin_writing()
        except BaseException:
            opened.close()
            raise
        return opened

    def store(self, batches: Sequence[Iterable[Item]]) -> list[Receipt | AclError]:
        """Record several batches in one transaction; return what became of each."""
        self.require_usable()
        before = self.tail.size
        outcomes: list[Receipt | AclError] = []
        # An exception between here and the commit leaves the tail ahead of the file.
        self.stale = True
        self.promised = None
        for items in batches:
            try:
                outcomes.append(self.tail.stage(items))
            except AclError as error:
                outcomes.append(error)
        self.promised = outcomes
        failure = self._commit(before) if self.tail.size > before else None
        if failure is not None:
            return [one if isinstance(one, AclError) else failure for one in outcomes]
        self.stale = False
        self.committed = self._now()
        return outcomes

    def _commit(self, before: int) -> AclError | None:
        """Store what is staged; None if it is on disk, else what its callers are to be told."""
        rows, staged = self.tail.take_rows(), self.tail.frontier
        try:
            self.database.store(rows)
        except sqlite3.Error as error:
            why = f"{rows.first_type} was not stored as event {before}: {explain(error)}"
            if in_doubt(error):
                return self.die(f"whether {rows.first_type} at {before} is stored: {error}")
            try:
                self.recover(reopen=not out_of_room(error))
            except (AclError, sqlite3.Error) as second:
                return self.die(f"{why}; then {second}")
            if self.tail.frontier == staged:
                return None
            if self.tail.size != before:
                return self.die(f"{why}; yet there are {self.tail.size} events")
            self.stale = False
            return NotStored(why)
        if not self.database.in_place():
            return self.die("the ledger or its -wal was moved, replaced or deleted meanwhile")
        return None

    def erase(self, places: Sequence[Place], event: PayloadErased) -> Receipt:
        """Replace the bytes at `places` by zeros and record `event`, or change nothing.

        The file is written anew, compared with what is known of it, and takes the place of the
        old one. Raises UsageError while somebody reads it, or where the old one has other names;
        NotStored where the disk failed, LedgerDead where only a new opening can tell.
        """
        self.require_usable()
        self._require_alone()
        new = rewriting.new_path(self.path)
        # Whatever breaks off from here on leaves the tail ahead of the file.
        self.stale = True
        self.tail.begin_segments(self.database.query)
        receipt = self.tail.stage([event])
        rows, session = self.tail.take_rows(), self.tail.session
        try:
            rewriting.rewrite(
                self.database.query,
                new,
                places,
                rows,
                by_seq=receipt.first,
                indexed=self.committed.sealed,
            )
            with closing(Source(new, locked=True)) as source:
                query = partial(source.query, allowed=_OPENING_STEPS)
                self.tail = self._new_tail(query, beside=sidefile.read(self.path))
            self.tail.session = session
            if (self.tail.size, self.tail.root) != (receipt.size, receipt.root):
                raise LedgerDamaged(f"{new} is not what was to be written")
            self._take_over(new)
        except (OSError, sqlite3.Error) as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise NotStored(f"nothing was erased: {error}") from error
        self.committed = self._now()
        self.stale = False
        return receipt

    def _require_alone(self) -> None:
        """See that nobody reads the file, that all of it is in the file, under one name.

        NotStored where it cannot be put there.
        """
        others = self.path.stat().st_nlink - 1
        if others:
            raise UsageError(
                f"{self.path} has {others} more names (hard links), which would keep everything",
                hint="remove them first",
            )
        try:
            is_single = self.database.single()
        except sqlite3.Error as error:
            self.stale = True
            raise NotStored(f"nothing was erased: {explain(error)}") from error
        if not is_single:
            raise UsageError(
                f"{self.path} is being read by somebody: nothing was erased",
                hint="close whatever reads it (`acl log --follow`, an export) and try again",
            )

    def _take_over(self, new: Path) -> None:
        """Give a new file the name of the ledger; OSError while the old one still has it."""
        self.database.close()
        for beside in opening.companions(self.path):
            if os.path.lexists(beside):
                raise OSError(f"{beside} is still there")
        new.chmod(stat.S_IMODE(self.path.stat().st_mode) | stat.S_IWUSR)
        new.rename(self.path)
        try:
            sidefile.sync_directory(self.path.parent)
            self.database = self._connect()
        except (OSError, sqlite3.Error, AclError) as error:
            raise self.die(f"all is erased, but it cannot be opened again: {error}") from error

    def store_checkpoint(self, size: int, note: bytes) -> None:
        """Add a checkpoint to the ledger, unless it is the last one; LedgerDead or NotStored."""
        tail = self.tail
        if note == tail.last_note:
            return
        try:
            self.database.store_checkpoint(tail.checkpoints, size, note.decode())
        except sqlite3.Error as error:
            if in_doubt(error):
                raise self.die(f"whether the checkpoint at {size} is stored: {error}") from error
            self.stale = True
            raise NotStored(f"the checkpoint at {size} was not stored: {explain(error)}") from error
        tail.checkpoints += 1
        tail.last_note, tail.last_size = note, size

    def root_at(self, size: int) -> bytes:
        """The root of the first `size` events on disk."""
        if self.tail.last_size == size and self.tail.last_note:
            return sidefile.parse(self.tail.last_note).checkpoint.root
        records = Records(self.database.query, indexed=False)
        return tlog.Frontier(tlog.leaf_hash(one.head) for one in records.scan(0, size)).root()

    def recover(self, *, reopen: bool) -> None:
        """Read the end of the ledger anew from the file."""
        if reopen:
            self.database.close()
            self.database = self._connect()
        else:
            self.database.roll_back()
        session = self.tail.session
        self.tail = self._new_tail(self.database.query)
        self.tail.session = session
        self.committed = self._now()
        self.stale = False

    def require_usable(self) -> None:
        """Raise LedgerDead, AlreadySealed or UsageError where nothing more can be written."""
        if self._dead is not None:
            raise LedgerDead(self._dead)
        if self.database.closed:
            if self.committed.sealed:
                raise AlreadySealed(str(self.path), self.committed.size)
            raise UsageError(f"{self.path} is closed")
        if self.stale:
            with told_as_failure(self.path):
                self.recover(reopen=True)

    def die(self, why: str) -> LedgerDead:
        """Close for good, and return the error that says why."""
        self._dead = f"{self.path}: {why}"
        self.database.close()
        return LedgerDead(self._dead)

    def _now(self) -> Committed:
        return Committed(self.tail.size, self.tail.root, self.tail.machine.sealed)
