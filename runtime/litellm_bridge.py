"""Records the model calls of agents that use LiteLLM; needs the extra `litellm`.

>>> with run.attempt("task") as attempt, LiteLLMCalls(attempt.calls) as acl:  # doctest: +SKIP
...     litellm.completion(model="openai/gpt-4o", messages=messages, **acl)

The start of a call is durable before LiteLLM sends it, and its end is recorded once, however often
and however late LiteLLM reports it. A call belongs to the attempt that its `metadata` names, and to
no other. LiteLLM swallows what a callback raises, so whatever goes wrong here is logged.

Importing this module imports LiteLLM, which takes seconds, and keeps it from fetching its price
list from the network, unless the environment says otherwise.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version
from types import TracebackType
from typing import Any, Final

from ledger.errors import UsageError
from runtime.call_book import CallBook
from runtime.call_records import CallSink
from runtime.litellm_payload import acl_metadata, call_id_of, read_end, read_start

SETTLE_SECONDS: Final = 5.0
"""How long the end of an attempt waits for reports of calls that are open."""

_FLUSH_AFTER_SECONDS: Final = 1.0
_FLUSH_SECONDS: Final = 0.25
_PAUSE_SECONDS: Final = 0.01
_log = logging.getLogger(__name__)


def _load() -> tuple[Any, Any, Any]:
    """LiteLLM, its base class of callbacks, and the queue of its asynchronous reports."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")
    try:
        litellm = import_module("litellm")
    except ModuleNotFoundError as error:
        if error.name != "litellm":
            raise
        raise UsageError(
            "LiteLLM is not installed", hint="pip install 'agentcompass-ledger[litellm]'"
        ) from None
    base = import_module("litellm.integrations.custom_logger").CustomLogger
    worker = import_module("litellm.litellm_core_utils.logging_worker").GLOBAL_LOGGING_WORKER
    return litellm, base, worker


_litellm, _CustomLogger, _worker = _load()
_VERSION: Final = version("litellm")


class _Reports(_CustomLogger):  # type: ignore[misc,valid-type]
    """Reports of LiteLLM, which go into `book`; nothing that goes wrong here gets out."""

    def __init__(self, book: CallBook) -> None:
        super().__init__()
        self.book = book

    def begin(self, kwargs: Any) -> None:
        """Record a start; return once it is durable."""
        _guarded(partial(self._begin, kwargs))

    def end(self, kwargs: Any, *, success: bool) -> None:
        """Record an end."""
        _guarded(partial(self._end, kwargs, success))

    def _begin(self, kwargs: Mapping[str, Any]) -> None:
        self.book.begin(read_start(kwargs), asynchronous=_is_asynchronous(kwargs))

    def _end(self, kwargs: Mapping[str, Any], success: bool) -> None:
        read = partial(read_end, kwargs, success=success, version=_VERSION, count=_count)
        self.book.end(read_start(kwargs), success=success, read=read)


class AclLogger(_Reports):
    """The callback for starts, and for ends as LiteLLM reports them from threads.

    Because it has no asynchronous hook for good ends, it is told of those of asynchronous calls in
    a thread too: what is queued for an event loop is lost when the loop closes. LiteLLM passes the
    parameters of its hooks by name, so they are named as it names them.
    """

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:  # noqa: ARG002
        """Record the start; LiteLLM sends the request when this returns."""
        self.begin(kwargs)

    async def async_log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:  # noqa: ARG002
        """Record the start, unless the other hook did."""
        if not self.book.is_open(call_id_of(kwargs)):
            self.begin(kwargs)

    def log_success_event(
        self,
        kwargs: Any,
        response_obj: Any,  # noqa: ARG002
        start_time: Any,  # noqa: ARG002
        end_time: Any,  # noqa: ARG002
    ) -> None:
        """Record a good end; of a stream, with the answer put together."""
        self.end(kwargs, success=True)

    def log_failure_event(
        self,
        kwargs: Any,
        response_obj: Any,  # noqa: ARG002
        start_time: Any,  # noqa: ARG002
        end_time: Any,  # noqa: ARG002
    ) -> None:
        """Record a bad end."""
        self.end(kwargs, success=False)


class AclAsyncLogger(_Reports):
    """The callback for ends that LiteLLM reports in the event loop: those of streams, above all.

    They are recorded at once, in the loop's own thread, as the loop may be about to close.
    """

    async def async_log_success_event(
        self,
        kwargs: Any,
        response_obj: Any,  # noqa: ARG002
        start_time: Any,  # noqa: ARG002
        end_time: Any,  # noqa: ARG002
    ) -> None:
        """Record a good end."""
        self.end(kwargs, success=True)

    async def async_log_failure_event(
        self,
        kwargs: Any,
        response_obj: Any,  # noqa: ARG002
        start_time: Any,  # noqa: ARG002
        end_time: Any,  # noqa: ARG002
    ) -> None:
        """Record a bad end."""
        self.end(kwargs, success=False)


class LiteLLMCalls:
    """Records the calls of one attempt while its block runs, `with` or `async with`.

    Gives the arguments that each call needs: the coordinates of the attempt, and no retries inside
    LiteLLM, which would hide all requests but the last. The end of the block waits `settle_seconds`
    at most for calls that are open; what ends later is still recorded. In a coroutine use `async
    with`: a plain `with` cannot wait there for calls of its own loop.

    `whole_process` takes in calls without coordinates too, for a process that does nothing else.
    """

    def __init__(
        self,
        calls: CallSink,
        *,
        settle_seconds: float = SETTLE_SECONDS,
        whole_process: bool = False,
    ) -> None:
        self._calls = calls
        self._settle_seconds = settle_seconds
        self._whole_process = whole_process

    def __enter__(self) -> dict[str, Any]:
        _install()
        BOOK.join(self._calls, whole_process=self._whole_process)
        return {**acl_arguments(self._calls), "max_retries": 0, "num_retries": 0}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._settle_here()
        finally:
            self._leave()

    async def __aenter__(self) -> dict[str, Any]:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._settle(self._settle_seconds)
        finally:
            self._leave()

    def _leave(self) -> None:
        BOOK.leave(self._calls, whole_process=self._whole_process)
        if not _is_installed():
            _log.warning("LiteLLM's callbacks were replaced: calls may be missing")

    def _settle_here(self) -> None:
        """Wait in this thread, whose loop, if one runs in it, stands still meanwhile."""
        seconds = self._settle_seconds
        if _has_loop():
            BOOK.wait(self._calls, seconds, asynchronous=False)
            if left := BOOK.open_calls(self._calls, asynchronous=True):
                _log.warning("%d model calls are not waited for: use `async with`", len(left))
            return
        first = min(seconds, _FLUSH_AFTER_SECONDS)
        if BOOK.wait(self._calls, first):
            return
        if BOOK.open_calls(self._calls, asynchronous=True):
            # In a thread of its own, as `asyncio.run` leaves its thread without a current loop.
            settling = threading.Thread(target=lambda: asyncio.run(self._settle(seconds - first)))
            settling.start()
            settling.join()
        else:
            BOOK.wait(self._calls, seconds - first)

    async def _settle(self, seconds: float) -> None:
        """Wait until all calls of the attempt have ended, or time is up.

        Reports come from threads and from tasks of this loop. Only what they leave out is to be
        got from LiteLLM's queue, which moves to whichever loop used it last: whoever waits for it
        waits in vain if another thread has a loop, so never for long.
        """
        begun = time.monotonic()
        while BOOK.open_calls(self._calls):
            waited = time.monotonic() - begun
            if waited >= seconds:
                break
            if waited >= _FLUSH_AFTER_SECONDS and BOOK.open_calls(self._calls, asynchronous=True):
                with suppress(TimeoutError):
                    await asyncio.wait_for(_worker.flush(), _FLUSH_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)


def acl_arguments(calls: CallSink) -> dict[str, Any]:
    """The arguments that say to which attempt a call belongs."""
    return {"metadata": acl_metadata(calls.coordinates)}


BOOK: Final = CallBook()
"""The calls of this process, as LiteLLM's callbacks are of the process."""
_OURS: Final = (AclLogger(BOOK), AclAsyncLogger(BOOK))
_installing = threading.Lock()


def _install() -> None:
    with _installing:
        for ours in _OURS:
            if not any(callback is ours for callback in _litellm.callbacks):
                _litellm.callbacks.append(ours)


def _is_installed() -> bool:
    # LiteLLM spreads its callbacks over several lists when a call is made.
    return any(callback is _OURS[0] for callback in (*_litellm.callbacks, *_litellm.input_callback))


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _guarded(act: Callable[[], None]) -> None:
    try:
        act()
    except Exception:  # noqa: BLE001 - the border to another library's callbacks
        # LiteLLM would swallow it, with a message of its own.
        _log.exception("a report of LiteLLM could not be read")


def _is_asynchronous(kwargs: Mapping[str, Any]) -> bool:
    return str(kwargs.get("call_type", "")).startswith("a")


def _count(model: str, messages: list[Any], text: str) -> tuple[int, int] | None:
    """What LiteLLM counts for want of the provider's word."""
    try:
        prompt = _litellm.token_counter(model=model, messages=messages)
        answer = _litellm.token_counter(model=model, text=text, count_response_tokens=True)
    except Exception:  # noqa: BLE001 - tokenizers of third parties
        return None
    return prompt, answer
