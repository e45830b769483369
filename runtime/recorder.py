"""The one road into a ledger: each event is redacted once, and on disk when its caller is told.

One thread writes. It takes whatever waits and stores it in one transaction, so that many callers
share one sync. Where the disk is full it says so once and waits for room; nobody is told that an
event is stored before it is.
"""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ledger.errors import AclError, LedgerDead, NotStored, UsageError, ValueRefused
from ledger.events import AnyEvent
from ledger.fold import fold
from ledger.note import Signer
from ledger.state import RunState
from ledger.store import Copy, Ledger, Receipt
from ledger.view import LedgerView
from runtime.calls import Key, Moves, OpenCalls
from runtime.containment import contained
from runtime.gate import are_clean, prune_event, redact_event
from runtime.inbox import Inbox
from runtime.promise import Promise, Told, hear, promise_to_thread, tell, to_the_end
from runtime.redact import Redactor

T = TypeVar("T")
Item = AnyEvent | Copy
Stream = Callable[[], Iterable[Item]]
"""Gives the items of one batch, anew at every call."""

CHECKPOINT_EVENTS: Final = 256
CHECKPOINT_SECONDS: Final = 10.0
_QUEUE: Final = 1024
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Batch:
    """Events that are stored together, and what their caller was promised."""

    events: list[AnyEvent]
    done: Promise[Receipt]
    moves: Moves = field(default_factory=Moves)
    pruned: bool = False


@dataclass(slots=True)
class _Order:
    """Something else to be done by the writing thread, in its turn."""

    act: Callable[[], Any]
    done: "Future[Any]" = field(default_factory=promise_to_thread)


class Recorder:
    """Records into `ledger`, which it closes in the end; its methods may be called in any thread.

    `patience` is how many seconds a full disk is waited for before NotStored is raised.
    """

    def __init__(
        self,
        ledger: Ledger,
        redactor: Redactor,
        *,
        signers: Sequence[Signer] = (),
        patience: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger = ledger
        self.redactor = redactor
        self._signers = tuple(signers)
        self._patience = patience
        self._monotonic = monotonic
        self._inbox: Inbox[_Batch | _Order] = Inbox(_QUEUE)
        self._calls = OpenCalls()
        self._refused: dict[Key | None, list[ValueRefused]] = {}
        self._covered = 0
        self._covered_at = 0.0
        self._without_room = False
        self._gave_up = False
        self._closing = threading.Event()
        self._state = RunState()
        self._view: LedgerView | None = None
        self._reading = threading.RLock()
        # The log of the run finds its records by context, those of this thread too.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._write,), name="acl-recorder", daemon=True
        )
        self._thread.start()

    # -- callers --------------------------------------------------------------------------------

    async def record(self, *events: AnyEvent) -> Receipt:
        """Record `events` in order; return once all are on disk, or raise and record none.

        A caller that is cancelled meanwhile gets its CancelledError when they are on disk: then
        they are, unless another error is raised. Raises what `Ledger.append` raises; a value that
        no ledger holds is left out and named by `refusals`.
        """
        told: Told[Receipt] = Told()
        batch = _Batch(list(events), told)
        if not self._inbox.offer(batch):
            try:
                await to_the_end(asyncio.to_thread(self._inbox.put, batch))
            except asyncio.CancelledError:
                await hear(told)
                raise
        return await hear(told)

    def record_sync(self, *events: AnyEvent) -> Receipt:
        """`record` for callers without an event loop."""
        told: Future[Receipt] = promise_to_thread()
        self._inbox.put(_Batch(list(events), told))
        return told.result()

    async def record_streams(self, streams: Sequence[Stream]) -> list[Receipt | AclError]:
        """Record several batches, copies among them, in one transaction, one after another.

        A batch that is refused is left out alone; its error stands in its place.
        """
        return await to_the_end(asyncio.to_thread(self._do, lambda: self._append_streams(streams)))

    def checkpoint(self) -> None:
        """Write a checkpoint of all that is on disk."""
        self._do(self._checkpoint)

    def cover(self) -> None:
        """Write a checkpoint before anything is shown; log one that fails."""
        # Not by the writing thread: whoever shows the state holds it still, and sealing waits.
        if self.ledger.size > self._covered and not self.ledger.sealed:
            self._try_checkpoint()

    def seal(self) -> None:
        """Seal the ledger, after all that was recorded."""
        self._do(self._seal)

    def close(self) -> None:
        """Store what waits, and close the ledger; may be called again."""
        self._closing.set()
        self._inbox.close(UsageError(f"the recorder of {self.ledger.path} is closed"))
        self._thread.join()
        self._close_view()
        self.cover()
        self.ledger.close()

    def refusals(self, task: str | None = None, attempt: int | None = None) -> list[ValueRefused]:
        """Return, once, which values of the events of an attempt were left out, and why.

        Without an attempt: of all events of no attempt.
        """
        key = None if task is None or attempt is None else (task, attempt)
        return self._refused.pop(key, [])

    def state(self) -> RunState:
        """Return what all that is on disk amounts to: one live object, caught up by each call."""
        with self.reading() as (state, _):
            return state

    @contextmanager
    def reading(self) -> Iterator[tuple[RunState, LedgerView]]:
        """Hold the state still, caught up, together with a reader of the ledger."""
        with self._reading:
            if self._view is None:
                self._view = LedgerView.open(self.ledger.path)
            fold(self._view.events(since=self._state.size), self._state)
            yield self._state, self._view

    def _close_view(self) -> None:
        with self._reading:
            if self._view is not None:
                self._view.close()
                self._view = None

    def _do(self, act: Callable[[], T]) -> T:
        order = _Order(act)
        self._inbox.put(order)
        result: T = order.done.result()
        return result

    # -- the writing thread ---------------------------------------------------------------------

    def _write(self) -> None:
        items: list[_Batch | _Order] = []
        try:
            while (taken := self._inbox.take(self._until_due())) is not None:
                items = taken
                self._handle(items)
                # What is stored is not kept until something else comes: it can be large.
                items = taken = []
                if self._is_due():
                    self._try_checkpoint()
        except BaseException as error:  # noqa: BLE001 - the edge of the thread: who waits is told
            dead = LedgerDead(f"the recorder of {self.ledger.path} failed: {error!r}")
            self._inbox.close(dead)
            items += self._inbox.take(0) or []
            tell((item.done, dead) for item in items)
            _log.critical("%s", dead.message, exc_info=error)

    def _handle(self, items: list[_Batch | _Order]) -> None:
        batches: list[_Batch] = []
        for item in items:
            if isinstance(item, _Batch):
                batches.append(item)
                continue
            self._append(batches)
            batches = []
            try:
                found = item.act()
            except BaseException as error:  # noqa: BLE001 - whoever gave the order is told
                item.done.set_exception(error)
            else:
                item.done.set_result(found)
        self._append(batches)

    def _append(self, batches: list[_Batch]) -> None:
        waits = self._waits()
        clean = self._are_clean(batches)
        batches = [batch for batch in batches if self._prepare(batch, clean)]
        while batches:
            outcomes = self._stored([batch.events for batch in batches])
            again: list[_Batch] = []
            told: list[tuple[Promise[Receipt], Receipt | BaseException]] = []
            for batch, outcome in zip(batches, outcomes, strict=True):
                if self._is_tried_again(batch, outcome):
                    again.append(batch)
                else:
                    told.append(self._end(batch, outcome))
            tell(told)
            batches = again
            full = [outcome for outcome in outcomes if isinstance(outcome, NotStored)]
            if full and not self._wait_for_room(full[0], waits):
                tell([self._end(batch, full[0]) for batch in batches])
                return

    def _stored(self, batches: Sequence[Iterable[Item]]) -> list[Receipt | AclError]:
        try:
            outcomes = self.ledger.append_group(batches)
        except AclError as error:
            return [error] * len(batches)
        except BaseException as error:  # noqa: BLE001 - our own fault: nobody may wait for ever
            _log.exception("events could not be stored")
            doubt = f"whether events of {self.ledger.path} are stored is not known: {error!r}"
            return [LedgerDead(doubt)] * len(batches)
        if self._without_room and any(isinstance(outcome, Receipt) for outcome in outcomes):
            # As loud as the complaint: whoever read that waits for this.
            _log.error("%s: there is room again, events are stored", self.ledger.path)
            self._without_room = self._gave_up = False
        return outcomes

    def _are_clean(self, batches: list[_Batch]) -> bool:
        """Tell whether nothing in any batch is to be redacted, as mostly."""
        try:
            with contained():
                return are_clean((event for one in batches for event in one.events), self.redactor)
        except Exception:  # noqa: BLE001 - objects of plug-ins may do anything: whose it is shows next
            return False

    def _prepare(self, batch: _Batch, clean: bool) -> bool:
        """Redact a batch that is not clean; where that fails tell its caller, and return False."""
        try:
            if not clean:
                with contained():
                    batch.events = [redact_event(event, self.redactor) for event in batch.events]
        except Exception as error:  # noqa: BLE001 - objects of plug-ins may do anything
            tell([(batch.done, error)])
            return False
        batch.events = list(self._calls.follow(batch.events, batch.moves))
        return True

    def _is_tried_again(self, batch: _Batch, outcome: Receipt | AclError) -> bool:
        """Tell whether a batch that was not stored may be stored yet; prunes it if that helps."""
        if isinstance(outcome, ValueRefused):
            return not batch.pruned and self._prune(batch)
        return isinstance(outcome, NotStored)

    def _end(
        self, batch: _Batch, outcome: Receipt | AclError
    ) -> tuple[Promise[Receipt], Receipt | BaseException]:
        """What the caller of a batch is to be told, after what it moved was put back if need be."""
        if not isinstance(outcome, Receipt):
            self._calls.undo(batch.moves)
        return batch.done, outcome

    def _prune(self, batch: _Batch) -> bool:
        """Leave out what no ledger holds, and note it; tell whether there was anything."""
        batch.pruned = True
        found = False
        for position, event in enumerate(batch.events):
            kept, refusals = prune_event(event)
            found = found or kept is not event
            batch.events[position] = kept
            if refusals:
                known = event.task is not None and event.attempt is not None
                key = (str(event.task), int(event.attempt or 0)) if known else None
                self._refused.setdefault(key, []).extend(refusals)
                _log.warning("%s: %s", event.type, "; ".join(one.message for one in refusals))
        return found

    def _append_streams(self, streams: Sequence[Stream]) -> list[Receipt | AclError]:
        waits = self._waits()
        while True:
            outcomes = self._stored([self._items(stream) for stream in streams])
            full = [outcome for outcome in outcomes if isinstance(outcome, NotStored)]
            if not full or not self._wait_for_room(full[0], waits):
                return outcomes

    def _items(self, stream: Stream) -> Iterator[Item]:
        for item in stream():
            yield item if isinstance(item, Copy) else redact_event(item, self.redactor)

    # -- a full disk ----------------------------------------------------------------------------

    def _waits(self) -> Iterator[float]:
        """The pauses between tries, for as long as patience lasts."""
        begun, wait = self._monotonic(), _FIRST_WAIT
        while not self._gave_up and self._monotonic() - begun < self._patience:
            yield wait
            wait = min(2 * wait, _LONGEST_WAIT)

    def _wait_for_room(self, error: NotStored, waits: Iterator[float]) -> bool:
        """Say once that the disk is full, and wait a little; False if that is to be given up."""
        if not self._without_room:
            _log.error("%s: %s; waiting for room", self.ledger.path, error.message)
            self._without_room = True
        wait = next(waits, None)
        if wait is None or self._closing.is_set():
            # From now on nobody waits again before something could be stored.
            self._gave_up = True
            return False
        self._closing.wait(wait)
        return True

    # -- checkpoints ----------------------------------------------------------------------------

    def _until_due(self) -> float | None:
        if self.ledger.size <= self._covered:
            return None
        return max(0.0, self._covered_at + CHECKPOINT_SECONDS - self._monotonic())

    def _is_due(self) -> bool:
        """After the first event, then after every so many events or seconds."""
        news = self.ledger.size - self._covered
        if news <= 0 or self.ledger.sealed:
            return False
        return not self._covered or news >= CHECKPOINT_EVENTS or self._until_due() == 0.0

    def _try_checkpoint(self) -> None:
        # A checkpoint that fails leaves the events as they are; the next one covers them.
        self._covered, self._covered_at = self.ledger.size, self._monotonic()
        try:
            self._checkpoint()
        except Exception as error:  # noqa: BLE001 - whatever it is, events go on being stored
            _log.warning("no checkpoint was written: %s", error)

    def _checkpoint(self) -> None:
        self.ledger.checkpoint(*self._signers)
        self._covered, self._covered_at = self.ledger.size, self._monotonic()

    def _seal(self) -> None:
        # A ledger that somebody reads cannot be folded into one file.
        self._close_view()
        waits = self._waits()
        while True:
            try:
                self.ledger.seal(*self._signers)
            except NotStored as error:
                if not self._wait_for_room(error, waits):
                    raise
            else:
                return
