"""Which calls are under way in this process: each is recorded once, where it says it belongs.

What reports the calls may do so late, twice, from any thread, or never. The book keeps each call
under its own id, so that nothing depends on when or in which order a report comes.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ledger.errors import AclError
from runtime.call_records import CallEnd, CallSink, Coordinates, Unattributed
from runtime.litellm_payload import INNER_RETRIES_UNKNOWN, START_UNSEEN, Began, bare_end

_REMEMBERED: Final = 10_000
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Call:
    """A call without an end so far; `stored` once its start is durable."""

    began: Began
    sink: CallSink
    stored: bool = False
    ending: bool = False
    asynchronous: bool = False


class CallBook:
    """The calls of a process and the attempts that they may belong to. Every method is thread-safe.

    `unattributed` counts the calls that belong to no attempt that is known; `failures` the records
    that could not be stored. Both are logged one by one as well.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.unattributed = 0
        self.failures = 0
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._sinks: dict[Coordinates, list[CallSink]] = {}
        self._whole_process: CallSink | None = None
        self._open: dict[str, _Call] = {}
        self._seen: OrderedDict[str, int] = OrderedDict()

    # -- attempts -------------------------------------------------------------------------------

    def join(self, sink: CallSink, *, whole_process: bool = False) -> None:
        """Record calls that name the coordinates of `sink` into it, until it leaves as often.

        With `whole_process` it also gets the calls that name none: for a process that works on one
        attempt only, which its starter must know.
        """
        with self._changed:
            self._sinks.setdefault(sink.coordinates, []).append(sink)
            if whole_process:
                self._whole_process = sink

    def leave(self, sink: CallSink, *, whole_process: bool = False) -> None:
        """Take back one `join`. The ends of calls that began are still recorded."""
        with self._changed:
            joined = self._sinks[sink.coordinates]
            joined.remove(sink)
            if not joined:
                del self._sinks[sink.coordinates]
            if whole_process and self._whole_process is sink:
                self._whole_process = None

    def open_calls(self, sink: CallSink, *, asynchronous: bool | None = None) -> list[str]:
        """Ids of the calls of `sink` that have no end yet; of one kind if it is given."""
        with self._changed:
            return [
                call_id
                for call_id, call in self._open.items()
                if call.sink is sink and asynchronous in (None, call.asynchronous)
            ]

    def is_open(self, call_id: str) -> bool:
        """True if this call began and has no end yet."""
        with self._changed:
            return call_id in self._open

    def wait(self, sink: CallSink, seconds: float, *, asynchronous: bool | None = None) -> bool:
        """Wait until no call of `sink` is open; False if some still are after `seconds`."""
        until = self._monotonic() + seconds
        with self._changed:
            while self.open_calls(sink, asynchronous=asynchronous):
                left = until - self._monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    # -- calls ----------------------------------------------------------------------------------

    def begin(self, began: Began, *, asynchronous: bool = False) -> None:
        """Record that a call begins; return once that is durable. Never raises."""
        call_id = began.start.call_id
        with self._changed:
            if known := self._open.get(call_id):
                # The same call is sent anew inside, and only its last answer will be told.
                flags = known.began.flags | {INNER_RETRIES_UNKNOWN}
                known.began = replace(known.began, flags=flags)
                return
            sink = self._sink_of(began.where)
            if sink is not None:
                began = self._renamed(began)
                call = self._open[call_id] = _Call(began, sink, asynchronous=asynchronous)
        if sink is None:
            self._report(began)
        elif self._try(partial(sink.started_sync, began.start), "start", began):
            with self._changed:
                call.stored = True
                # They are on disk, and the end may never come.
                without = replace(call.began.start, messages=[])
                call.began = replace(call.began, start=without)

    def end(self, began: Began, *, success: bool, read: Callable[[Began], CallEnd]) -> None:
        """Record the end that `read` makes of what is known of the start, once. Never raises.

        `began` counts if the start was never told: it is recorded now then, and marked.
        """
        call_id = began.start.call_id
        with self._changed:
            call = self._open.get(call_id)
            if call_id in self._seen if call is None else call.ending:
                return
            if call is None and (sink := self._sink_of(began.where)) is not None:
                call = self._open[call_id] = _Call(began, sink)
            if call is not None:
                call.ending = True
                self._remember(call_id)
        if call is None:
            self._report(began)
            return
        self._finish(call, success, read)
        with self._changed:
            self._open.pop(call_id, None)
            self._changed.notify_all()

    def _finish(self, call: _Call, success: bool, read: Callable[[Began], CallEnd]) -> None:
        sink, began = call.sink, call.began
        if not call.stored:
            began = replace(began, flags=began.flags | {START_UNSEEN})
            # If it is refused, it may be there: who told it then was not answered.
            self._try(partial(sink.started_sync, began.start), "start", began)
        ends: list[CallEnd] = []
        if not self._try(lambda: ends.append(read(began)), "report of the end", began):
            ends = [bare_end(began, success=success)]
        self._try(partial(sink.finished_sync, ends[0]), "end", began)

    def _sink_of(self, where: Coordinates | None) -> CallSink | None:
        if where is None:
            return self._whole_process
        joined = self._sinks.get(where)
        return joined[-1] if joined else None

    def _renamed(self, began: Began) -> Began:
        """A call that ended and is sent again under its old id is another call to us."""
        times = self._seen.get(began.start.call_id, 0)
        if not times:
            return began
        call_id = f"{began.start.call_id}#{times + 1}"
        return replace(began, start=replace(began.start, call_id=call_id))

    def _remember(self, call_id: str) -> None:
        self._seen[call_id] = self._seen.pop(call_id, 0) + 1
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def _try(self, act: Callable[[], object], what: str, began: Began) -> bool:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the border to another library's callbacks
            # Whoever reports calls swallows errors, so they are told here or nowhere.
            with self._changed:
                self.failures += 1
            named = isinstance(error, AclError)
            _log.error(
                "the %s of model call %s is not recorded: %s",
                what,
                began.start.call_id,
                error if named else repr(error),
                exc_info=None if named else error,
            )
            return False
        return True

    def _report(self, began: Began) -> None:
        """Tell each run of this process, once, of a call that belongs to no attempt known here."""
        start = began.start
        with self._changed:
            if start.call_id in self._seen:
                return
            self._remember(start.call_id)
            self.unattributed += 1
            runs = {where.run_id: joined[-1] for where, joined in self._sinks.items()}
        reason = "it names no attempt" if began.where is None else "its attempt is not open here"
        _log.warning(
            "model call %s (%s) is given to no attempt: %s", start.call_id, start.model, reason
        )
        note = Unattributed(start.call_id, start.provider, start.model, reason)
        for sink in runs.values():
            self._try(partial(sink.unattributed_sync, note), "stray", began)
