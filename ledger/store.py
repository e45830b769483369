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
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

from ledger import database, note, resume, sidefile
from ledger.erasure import Plan, plan_erasure
from ledger.errors import (
    AclError,
    AlreadySealed,
    LedgerDead,
    NotStored,
    ProofInvalid,
    RunNotFound,
    UsageError,
)
from ledger.events import LedgerSealed, PayloadErased
from ledger.lock import NO_LOCKS, WAIT, WriterLock, lock_path
from ledger.memory import Memory
from ledger.opening import Source, ledger_file
from ledger.records import Records
from ledger.refusals import told_as_failure
from ledger.segment import RUNNING, Packing
from ledger.tail import Clock, Copy, Entropy, Receipt
from ledger.view import LedgerView
from ledger.writer import Item, Writer

__all__ = ["Clock", "Copy", "Entropy", "Erased", "Ledger", "Receipt"]


def system_clock() -> tuple[int, int]:
    """Wall clock since 1970 UTC and monotonic clock, in nanoseconds."""
    return time.time_ns(), time.monotonic_ns()


class Erased(NamedTuple):
    """What was erased, and the number of the event that tells of it."""

    seq: int
    plan: Plan


class _Ticket:
    """A batch that waits for the writer, and what became of it."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self.items = items
        self.outcome: Receipt | AclError | None = None
        self.is_alone = False
        """Whether it was in a commit that broke off, and is not stored: it is tried by itself."""


class Ledger:
    """A ledger open for writing; every method is thread-safe. Use `create` or `open`.

    `size`, `root` and `sealed` tell what is on disk; only a commit moves them.
    """

    def __init__(
        self, lock: WriterLock, writer: Writer, memory: Memory | None, *, amends: bool = False
    ) -> None:
        self.path = writer.path
        self._amends = amends
        self._writer_lock = lock
        self._memory = Memory() if memory is None else memory
        self._signed: note.Checkpoint | None = None
        self._lock = Lock()
        self._waiting: deque[_Ticket] = deque()
        self._writer = writer

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        clock: Clock = system_clock,
        entropy: Entropy = os.urandom,
        wait: float = WAIT,
        memory: Memory | None = None,
        packing: Packing = RUNNING,
    ) -> Self:
        """Make an empty ledger at `path` (a file, or a directory that exists) and open it.

        The same clock and entropy give the same roots. `memory` holds what the signers of its
        checkpoints have signed, by default that of this user. Raises LedgerExists, LedgerLocked
        after `wait` seconds, or UsageError where the file system cannot hold one.
        """
        file = ledger_file(path)
        lock = _take_lock(file, wait)
        try:
            with told_as_failure(file):
                database.create(file)
                return cls(lock, Writer(file, clock, entropy, packing=packing), memory)
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
        resumes: bool = False,
        amends: bool = False,
    ) -> Self:
        """Open a ledger to go on with it, after reading it whole: tree, machines, checkpoints.

        With `resumes` a registry is read from its last checkpoint on, if `keep` was called then.
        Raises LedgerLocked after `wait` seconds, NotALedger, VersionUnsupported, LedgerRolledBack,
        LedgerDamaged. A sealed ledger is folded, if that was still to be done, and then refused
        with AlreadySealed. With `amends` it is opened to be annotated or to have something erased,
        and folded again when it is closed.
        """
        file = ledger_file(path)
        with told_as_failure(file):
            if not lock_path(file).exists():
                # What is no ledger gets no lock beside it.
                Source(file).close()
        lock = _take_lock(file, wait)
        try:
            with told_as_failure(file):
                writer = Writer(file, clock, entropy, resumes=resumes, amends=amends)
                ledger = cls(lock, writer, memory, amends=amends)
        except BaseException:
            lock.release()
            raise
        if ledger.sealed and not amends:
            with ledger:
                ledger._finish_seal()
            raise AlreadySealed(str(file), ledger.size)
        return ledger

    @property
    def ledger_id(self) -> bytes:
        """The 16 bytes that name this ledger."""
        return self._writer.tail.ledger_id

    @property
    def size(self) -> int:
        """How many events are on disk."""
        return self._writer.committed.size

    @property
    def sealed(self) -> bool:
        """Whether the ledger was sealed."""
        return self._writer.committed.sealed

    def root(self) -> bytes:
        """Return the root of the tree over all events on disk."""
        return self._writer.committed.root

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
            outcomes = self._writer.store([ticket.items for ticket in tickets])
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
        staged, promised = self._writer.tail.frontier, self._writer.promised
        try:
            self._writer.recover(reopen=True)
        except (AclError, sqlite3.Error) as error:
            promised = [self._writer.die(f"the writer broke off; then {error}")] * len(tickets)
        else:
            if self._writer.tail.frontier != staged:
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
            return self._writer.store(batches)

    def checkpoint(self, *signers: note.Signer) -> note.Checkpoint:
        """Write down size and root of all that is on disk, in the ledger and beside it.

        Without a signer the checkpoint is unsigned, under an origin that says so; else the origin
        names the first signer. Returns once both are durable; UsageError while there is no event,
        SignatureRefused where the ledger does not extend what was signed of it before.
        """
        with self._lock:
            self._writer.require_usable()
            return self._checkpoint(signers)

    def _checkpoint(self, signers: tuple[note.Signer, ...]) -> note.Checkpoint:
        writer = self._writer
        size, root = writer.committed.size, writer.committed.root
        if not size:
            raise UsageError(f"{self.path} has no event yet")
        if signers:
            origin = sidefile.signed_origin(signers[0].name, self.ledger_id)
        else:
            origin = note.unsigned_origin(self.ledger_id)
        checkpoint = note.Checkpoint(origin, size, root)
        data = checkpoint.text
        try:
            if signers:
                data = self._memory.sign(checkpoint, signers, self._root_at)
                self._signed = checkpoint
            writer.store_checkpoint(size, data)
            sidefile.write(self.path, data, signed=bool(signers))
        except OSError as error:
            raise NotStored(f"the checkpoint at {size} was not written: {error}") from error
        return checkpoint

    def keep(self, memo: Any) -> None:
        """Keep the tree beside the ledger, for an opening that resumes; `memo` is any JSON value.

        Call it after a checkpoint. What is kept is a hint: without it everything is read.
        """
        with self._lock, suppress(OSError, AclError):
            self._writer.require_usable()
            resume.write(self.path, self._writer.tail.frontier, memo)

    def _root_at(self, size: int) -> bytes:
        if self._signed is not None and self._signed.size == size:
            return self._signed.root
        with told_as_failure(self.path):
            return self._writer.root_at(size)

    def adopt(self, data: bytes) -> None:
        """Store the newest checkpoint once more, now that others have signed it too.

        It is also written beside the ledger. ProofInvalid if it is of another ledger, or there is
        a newer one.
        """
        with self._lock:
            self._writer.require_usable()
            claim = sidefile.parse(data)
            size, root = claim.checkpoint.size, claim.checkpoint.root
            last = self._writer.tail.last_size
            if not (last <= size <= self.size and claim.is_of(self.ledger_id)):
                raise ProofInvalid(f"this is not the newest checkpoint of {self.path}")
            if self._root_at(size) != root:
                raise ProofInvalid(f"{self.path} has another root at {size} events")
            self._writer.store_checkpoint(size, data)
            sidefile.write(self.path, data, signed=True)

    def seal(self, *signers: note.Signer) -> note.Checkpoint:
        """End the ledger: `ledger.sealed`, a checkpoint, and one read-only file of it all.

        While a reader is connected the file is not folded; the next opening for writing, or another
        call, does it. Every step may have been done before. RunNotFound if there is no event.
        """
        with self._lock:
            self._writer.require_usable()
            if not self.size:
                raise RunNotFound(
                    f"{self.path} holds no event yet", hint="there is nothing to seal"
                )
            if not self.sealed:
                (outcome,) = self._writer.store([[LedgerSealed()]])
                if isinstance(outcome, AclError):
                    raise outcome
            checkpoint = self._checkpoint(signers)
            self._writer.database.fold()
            return checkpoint

    def _finish_seal(self) -> None:
        """Do what a writer that died in `seal` had left to do."""
        tail = self._writer.tail
        if tail.last_size < self.size:
            self._checkpoint(())
        elif all(one.claim.checkpoint.size < self.size for one in sidefile.read(self.path)):
            with told_as_failure(self.path):
                signed = sidefile.parse(tail.last_note).signed is not None
                sidefile.write(self.path, tail.last_note, signed=signed)
        self._writer.database.fold()

    def erase(
        self,
        sequence: Iterable[int] = (),
        *,
        blobs: Iterable[str] = (),
        reason: str,
        everywhere: bool = False,
        redactions: int | None = None,
    ) -> Erased:
        """Erase the bodies of events, and pieces of large values, for good, or change nothing.

        `blobs` are named by their digest in hex. A piece that other events need stays, unless it
        goes `everywhere`. A checkpoint should follow. Raises RunNotFound, UsageError for what
        cannot be erased and while somebody reads the ledger, NotStored where the disk failed.
        """
        with self._lock, told_as_failure(self.path):
            self._writer.require_usable()
            records = Records(self._writer.database.query, indexed=self._writer.database.indexed)
            with closing(records):
                plan = plan_erasure(records, sequence, blobs, everywhere=everywhere)
            event = PayloadErased(
                sequence=plan.sequence,
                blobs=tuple(digest.hex() for digest in plan.blobs),
                reason=reason,
                redactions=redactions,
            )
            return Erased(self._writer.erase(plan.places, event).first, plan)

    def view(self) -> LedgerView:
        """Open a reader of this ledger; it sees what is committed when it is asked."""
        return LedgerView.open(self.path)

    def close(self) -> None:
        """Close the file and let go of the lock; may be called again."""
        with self._lock:
            self._writer.database.close()
            self._writer_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._amends and self.sealed and not self._writer.database.closed:
                self._finish_seal()
        except (AclError, sqlite3.Error):
            if error is None:
                raise
        finally:
            self.close()


def _take_lock(file: Path, wait: float) -> WriterLock:
    try:
        return WriterLock(file, wait)
    except OSError as error:
        raise UsageError(
            f"{file.parent} cannot be written ({error.strerror})",
            hint="write to a local disk" if error.errno in NO_LOCKS else "",
        ) from error
