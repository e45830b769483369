"""The recorder's Unix socket: agents in other processes tell their model calls here.

>>> with CallServer() as server, run.attempt("task") as attempt:  # doctest: +SKIP
...     with server.attempt(attempt.calls) as variables:
...         subprocess.run(command, env={**os.environ, **variables}, check=True)

One thread serves each connection, and answers a message when what it tells is durable. Whatever a
client does, it can tell calls of its own attempt and nothing else: the token that it was given says
which attempt that is, and cannot be made for another. A client that is killed leaves its calls
open, and they are lost when the attempt ends.
"""

import logging
import os
import selectors
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ledger.closing import Closing, discard
from ledger.errors import AclError, UsageError
from runtime.call_records import CallSink, Coordinates
from runtime.call_socket_wire import (
    FRAME_SECONDS,
    SOCKET_VARIABLE,
    TOKEN_VARIABLE,
    EndMessage,
    Message,
    Reply,
    StartMessage,
    decode_message,
    encode_message,
    open_token,
    receive_frame,
    seal_token,
    send_frame,
)

MAX_CONNECTIONS: Final = 256
_KEY_BYTES: Final = 32
# The least that any system allows, macOS, with the zero at its end.
_LONGEST_PATH: Final = 103
_JOIN_SECONDS: Final = 5.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Place:
    """An attempt that clients may tell calls of; when it is over, only ends of calls."""

    calls: CallSink
    over: bool = False


class CallServer(Closing):
    """A socket in a directory of its own that only this user may enter; a context manager.

    `frame_seconds` is how long a client may take from one part of a message to the next.
    """

    def __init__(
        self,
        *,
        entropy: Callable[[int], bytes] = os.urandom,
        frame_seconds: float = FRAME_SECONDS,
    ) -> None:
        self._key = entropy(_KEY_BYTES)
        self._frame_seconds = frame_seconds
        self._lock = threading.Lock()
        self._places: dict[Coordinates, _Place] = {}
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._closing = False
        self._wake, self._woken = socket.socketpair()
        self._directory = Path(tempfile.mkdtemp(prefix="acl-"))
        self.path = self._directory / "calls"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(target=self._accept, name="acl-calls", daemon=True)

    def __enter__(self) -> Self:
        try:
            if len(os.fsencode(self.path)) > _LONGEST_PATH:
                raise UsageError(
                    f"{self.path} is too long for a socket", hint="set TMPDIR to a shorter path"
                )
            self._listener.bind(str(self.path))
            self._listener.listen()
        except BaseException:
            self._release()
            raise
        self._thread.start()
        return self

    def close(self) -> None:
        """End all connections and remove the socket; may be called again."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
        self._wake.send(b"x")
        self._thread.join()
        # Now that nobody lets in any more: one may have come in until then.
        with self._lock:
            connections = dict(self._connections)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in connections.values():
            thread.join(_JOIN_SECONDS)
        self._release()

    def _release(self) -> None:
        for one in (self._listener, self._wake, self._woken):
            one.close()
        discard(self._directory)

    @contextmanager
    def attempt(self, calls: CallSink) -> Iterator[dict[str, str]]:
        """Let in the calls of one attempt while the block runs; gives the agent's variables.

        After the block no call begins. The end of one that began is taken for as long as the
        server runs.
        """
        place = _Place(calls)
        with self._lock:
            self._places[calls.coordinates] = place
        try:
            yield {
                SOCKET_VARIABLE: str(self.path),
                TOKEN_VARIABLE: seal_token(calls.coordinates, self._key),
            }
        finally:
            place.over = True

    # -- connections ----------------------------------------------------------------------------

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                selector.select()
                if self._closing:
                    return
                try:
                    connection, _ = self._listener.accept()
                except OSError as error:  # a client that left, or no descriptors: others may come
                    _log.warning("a connection was not accepted: %s", error)
                    continue
                self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        thread = threading.Thread(
            target=self._serve, args=(connection,), name="acl-calls-client", daemon=True
        )
        with self._lock:
            full = len(self._connections) >= MAX_CONNECTIONS
            if not full:
                self._connections[connection] = thread
        if full:
            _log.warning("more than %d agents are connected: one is refused", MAX_CONNECTIONS)
            connection.close()
        else:
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer messages until the client leaves or sends what is no frame."""
        try:
            with connection:
                while (body := receive_frame(connection, None, self._frame_seconds)) is not None:
                    send_frame(connection, encode_message(self._answer(body)))
        except UsageError as error:
            _log.warning("an agent is cut off: %s", error.message)
        except (OSError, EOFError) as error:
            if not self._closing:
                _log.warning("an agent's connection broke: %s", error)
        finally:
            with self._lock:
                self._connections.pop(connection, None)

    # -- messages -------------------------------------------------------------------------------

    def _answer(self, body: bytes) -> Reply:
        try:
            self._record(decode_message(body))
        except AclError as error:
            return Reply(
                ok=False, error=type(error).__name__, message=error.message, hint=error.hint
            )
        except Exception:  # noqa: BLE001 - the edge of the thread: other agents go on
            _log.exception("a message of an agent could not be handled")
            return Reply(ok=False, error="AclError", message="the recorder failed")
        return Reply(ok=True)

    def _record(self, message: Message) -> None:
        where = open_token(message.token, self._key)
        with self._lock:
            place = self._places.get(where)
        if place is None:
            raise UsageError("the attempt of this token is not known")
        if isinstance(message, EndMessage):
            place.calls.finished_sync(message.call())
            return
        if place.over:
            raise UsageError("the attempt of this token is over")
        if isinstance(message, StartMessage):
            place.calls.started_sync(message.call())
        else:
            place.calls.unattributed_sync(message.call())
