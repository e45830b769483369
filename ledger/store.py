"""The writing side: `Ledger`, the one writer of a ledger file.

A batch is encoded and admitted by the state machines before anything moves; then everything that
waits is stored in one transaction. Nobody is told that something is stored before it is on disk,
and nobody is told that it is not before the file was asked again.
"""

import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from ledger import database, note, sidefile, tlog, wal
from ledger.database import Database, explain, in_doubt, out_of_room
from ledger.errors import (
    AclError,
    AlreadySealed,
    LedgerDead,
    NotStored,
    RunNotFound,
    UsageError,
)
from ledger.events import AnyEvent, LedgerSealed
from ledger.lock import WAIT, WriterLock, lock_path
from ledger.memory import Memory
from ledger.opening import Source, ledger_file
from ledger.records import Records
from ledger.tail import Clock, Copy, Entropy, Receipt, Tail
from ledger.view import LedgerView

__all__ = ["Clock", "Copy", "Entropy", "Ledger", "Receipt"]

Item = AnyEvent | Copy
# Millions of steps of SQLite's machine for one statement: the last pieces are found among all.
_OPENING_STEPS = 100_000


def system_clock() -> tuple[int, int]:
    """Wall clock since 1970 UTC and monotonic clock, in nanoseconds."""
    return time.time_ns(), time.monotonic_ns()


class _Ticket:
    """A batch that waits for the writer, and what became of it."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self.items = items
        self.outcome: Receipt | AclError | None = None
        self.is_alone = False
        """Whether it was in a commit that broke off, and is not stored: it is tried by itself."""


@dataclass(frozen=True, slots=True)
class _Committed:
    """What is on disk; replaced as a whole after each commit."""

    size: int
    root: bytes
    sealed: bool


class Ledger:
    """A ledger open for writing; every method is thread-safe. Use `create` or `open`.

    `size`, `root` and `sealed` tell what is on disk; only a commit moves them.
    """

    def __init__(
        self, path: Path, lock: WriterLock, clock: Clock, entropy: Entropy, memory: Memory | None
    ) -> None:
        self.path = path
        self._writer_lock = lock
        self._clock = clock
        self._entropy = entropy
        self._memory = Memory() if memory is None else memory
        self._lock = Lock()
        self._waiting: deque[_Ticket] = deque()
        self._dead: str | None = None
        self._stale = False
        self._promised: list[Receipt | AclError] | None = None
        """What becomes of the batches of a commit under way, if it is stored."""
        beside = sidefile.read(path)
        # Nobody writes: the lock is ours, and this process has no connection to write with yet.
        wal.check(path)
        # Closing a connection that could write folds the -wal into the file and deletes it: a
        # ledger that is refused here must keep it.
        with closing(Source(path, locked=True)) as source:
            query = partial(source.query, allowed=_OPENING_STEPS)
            self._tail = Tail(query, clock, entropy, beside)
        self._committed = self._now()
        self._database = Database(path)
        try:
            if not self._committed.sealed:
                self._database.begin_writing()
        except BaseException:
            self._database.close()
            raise

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        clock: Clock = system_clock,
        entropy: Entropy = os.urandom,
        wait: float = WAIT,
        memory: Memory | None = None,
    ) -> Self:
        """Make an empty ledger at `path` (a file, or a directory that exists) and open it.

        The same clock and entropy give the same roots. `memory` holds what the signers of its
        checkpoints have signed, by default that of this user. Raises LedgerExists, LedgerLocked after
        `wait` seconds, or UsageError where the file system cannot hold one.
        """
        file = ledger_file(path)
        lock = _take_lock(file, wait)
        try:
            database.create(file)
            return cls(file, lock, clock, entropy, memory)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Clock = system_clock,
        entropy: Entropy = os.urandom,
        wait: float = WAIT,
        memory: Memory | None = None,
    ) -> Self:
        """Open a ledger to go on with it, after reading it whole: tree, machines, checkpoints.

        Raises LedgerLocked after `wait` seconds, NotALedger, VersionUnsupported, LedgerRolledBack,
        LedgerDamaged. A sealed ledger is folded, if that was still to be done, and then refused
        with AlreadySealed.
        """
        file = ledger_file(path)
        if not lock_path(file).exists():
            # What is no ledger gets no lock beside it.
            Source(file).close()
        lock = _take_lock(file, wait)
        try:
            ledger = cls(file, lock, clock, entropy, memory)
        except BaseException:
            lock.release()
            raise
        if ledger.sealed:
            with ledger:
                ledger._finish_seal()
            raise AlreadySealed(str(file), ledger.size)
        return ledger

    @property
    def ledger_id(self) -> bytes:
        """The 16 bytes that name this ledger."""
        return self._tail.ledger_id

    @property
    def size(self) -> int:
        """How many events are on disk."""
        return self._committed.size

    @property
    def sealed(self) -> bool:
        """Whether the ledger was sealed."""
        return self._committed.sealed

    def root(self) -> bytes:
        """Return the root of the tree over all events on disk."""
        return self._committed.root

    def append(self, *items: Item) -> Receipt:
        """Record `items` in order; return once all are on disk, or record none.

        Callers in several threads share a commit. Raises ValueRefused, LedgerStateError,
        LedgerDamaged (a copy that is not what its header says), NotStored where the disk failed
        and the writer can go on, LedgerDead where only a new opening can tell.
        """
        ticket = _Ticket(items)
        self._waiting.append(ticket)
        with self._lock:
            if ticket.outcome is None:
                self._serve(ticket)
        if isinstance(ticket.outcome, Receipt):
            return ticket.outcome
        raise ticket.outcome or LedgerDead(f"{self.path}: the writer was interrupted")

    def _serve(self, own: _Ticket) -> None:
        """Store all that waits; the lock is held."""
        if own.is_alone:
            tickets = [own]
        else:
            tickets = [self._waiting.popleft() for _ in range(len(self._waiting))]
        outcomes: Sequence[Receipt | AclError]
        try:
            outcomes = self._store([ticket.items for ticket in tickets])
        except AclError as error:
            outcomes = [error] * len(tickets)
        except BaseException as error:
            # The clock, or what a copy brings, is the callers' code, and can fail in any way.
            self._settle(tickets)
            is_own = len(tickets) == 1 or own.outcome is not None
            if is_own or not isinstance(error, Exception):
                raise
            # It can be another's: that one meets it when its own turn comes.
            self._serve(own)
            return
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            ticket.outcome = outcome

    def _settle(self, tickets: list[_Ticket]) -> None:
        """Find out what became of batches whose commit broke off."""
        staged, promised = self._tail.frontier, self._promised
        try:
            self._recover(reopen=True)
        except (AclError, sqlite3.Error) as error:
            promised = [self._die(f"the writer broke off; then {error}")] * len(tickets)
        else:
            if self._tail.frontier != staged:
                promised = None
        if promised is None:
            for ticket in tickets:
                ticket.is_alone = True
        else:
            for ticket, outcome in zip(tickets, promised, strict=True):
                ticket.outcome = outcome

    def append_group(self, batches: Sequence[Iterable[Item]]) -> list[Receipt | AclError]:
        """Record several batches in one transaction; return what became of each.

        A batch that is refused leaves nothing and does not touch the others. The errors are those
        that `append` raises.
        """
        with self._lock:
            return self._store(batches)

    def _store(self, batches: Sequence[Iterable[Item]]) -> list[Receipt | AclError]:
        self._require_usable()
        before = self._tail.size
        outcomes: list[Receipt | AclError] = []
        # An exception between here and the commit leaves the tail ahead of the file.
        self._stale = True
        self._promised = None
        for items in batches:
            try:
                outcomes.append(self._tail.stage(items))
            except AclError as error:
                outcomes.append(error)
        self._promised = outcomes
        failure = self._commit(before) if self._tail.size > before else None
        if failure is not None:
            return [one if isinstance(one, AclError) else failure for one in outcomes]
        self._stale = False
        self._committed = self._now()
        return outcomes

    def _commit(self, before: int) -> AclError | None:
        """Store what is staged; None if it is on disk, else what its callers are to be told."""
        rows, staged = self._tail.take_rows(), self._tail.frontier
        try:
            self._database.store(rows)
        except sqlite3.Error as error:
            why = f"{rows.first_type} was not stored as event {before}: {explain(error)}"
            if in_doubt(error):
                return self._die(f"whether {rows.first_type} at {before} is stored: {error}")
            try:
                self._recover(reopen=not out_of_room(error))
            except (AclError, sqlite3.Error) as second:
                return self._die(f"{why}; then {second}")
            if self._tail.frontier == staged:
                return None
            if self._tail.size != before:
                return self._die(f"{why}; yet there are {self._tail.size} events")
            self._stale = False
            return NotStored(why)
        return None

    def _recover(self, *, reopen: bool) -> None:
        """Read the end of the ledger anew from the file."""
        if reopen:
            self._database.close()
            self._database = Database(self.path)
            self._database.begin_writing()
        else:
            self._database.roll_back()
        session = self._tail.session
        self._tail = Tail(self._database.query, self._clock, self._entropy)
        self._tail.session = session
        self._committed = self._now()
        self._stale = False

    def _require_usable(self) -> None:
        if self._dead is not None:
            raise LedgerDead(self._dead)
        if self._database.closed:
            if self.sealed:
                raise AlreadySealed(str(self.path), self.size)
            raise UsageError(f"{self.path} is closed")
        if self._stale:
            self._recover(reopen=True)

    def _die(self, why: str) -> LedgerDead:
        self._dead = f"{self.path}: {why}"
        self._database.close()
        return LedgerDead(self._dead)

    def _now(self) -> _Committed:
        return _Committed(self._tail.size, self._tail.root, self._tail.machine.sealed)

    def checkpoint(self, *signers: note.Signer) -> note.Checkpoint:
        """Write down size and root of all that is on disk, in the ledger and beside it.

        Without a signer the checkpoint is unsigned, under an origin that says so; else the origin
        names the first signer. Returns once both are durable; UsageError while there is no event,
        SignatureRefused where the ledger does not extend what was signed of it before.
        """
        with self._lock:
            self._require_usable()
            return self._checkpoint(signers)

    def _checkpoint(self, signers: tuple[note.Signer, ...]) -> note.Checkpoint:
        size, root = self._committed.size, self._committed.root
        if not size:
            raise UsageError(f"{self.path} has no event yet")
        if signers:
            origin = sidefile.signed_origin(signers[0].name, self.ledger_id)
        else:
            origin = note.unsigned_origin(self.ledger_id)
        checkpoint = note.Checkpoint(origin, size, root)
        data = checkpoint.text
        if signers:
            data = self._memory.sign(checkpoint, signers, self._root_at)
        try:
            if data != self._tail.last_note:
                self._database.store_checkpoint(self._tail.checkpoints, size, data.decode())
                self._tail.checkpoints += 1
                self._tail.last_note, self._tail.last_size = data, size
            sidefile.write(self.path, data, signed=bool(signers))
        except sqlite3.Error as error:
            if in_doubt(error):
                raise self._die(f"whether the checkpoint at {size} is stored: {error}") from error
            self._stale = True
            raise NotStored(f"the checkpoint at {size} was not stored: {explain(error)}") from error
        except OSError as error:
            raise NotStored(f"the checkpoint at {size} was not written: {error}") from error
        return checkpoint

    def _root_at(self, size: int) -> bytes:
        """The root of the first `size` events on disk."""
        if self._tail.last_size == size and self._tail.last_note:
            return sidefile.parse(self._tail.last_note).checkpoint.root
        records = Records(self._database.query, indexed=False)
        return tlog.Frontier(tlog.leaf_hash(one.head) for one in records.scan(0, size)).root()

    def seal(self, *signers: note.Signer) -> note.Checkpoint:
        """End the ledger: `ledger.sealed`, a checkpoint, and one read-only file of it all.

        While a reader is connected the file is not folded; the next opening for writing, or another
        call, does it. Every step may have been done before. RunNotFound if there is no event.
        """
        with self._lock:
            self._require_usable()
            if not self.size:
                raise RunNotFound(
                    f"{self.path} holds no event yet", hint="there is nothing to seal"
                )
            if not self.sealed:
                (outcome,) = self._store([[LedgerSealed()]])
                if isinstance(outcome, AclError):
                    raise outcome
            checkpoint = self._checkpoint(signers)
            self._database.fold()
            return checkpoint

    def _finish_seal(self) -> None:
        """Do what a writer that died in `seal` had left to do."""
        if self._tail.last_size < self.size:
            self._checkpoint(())
        self._database.fold()

    def view(self) -> LedgerView:
        """Open a reader of this ledger; it sees what is committed when it is asked."""
        return LedgerView.open(self.path)

    def close(self) -> None:
        """Close the file and let go of the lock; may be called again."""
        with self._lock:
            self._database.close()
            self._writer_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _take_lock(file: Path, wait: float) -> WriterLock:
    try:
        return WriterLock(file, wait)
    except OSError as error:
        raise UsageError(f"{file.parent} cannot be written ({error.strerror})") from error
