"""The agent's side of the recorder's socket: tells the model calls of one attempt.

An agent that calls models by itself tells each call in two halves; one that uses LiteLLM leaves it
to `runtime.litellm_bridge`::

    with CallClient.from_environ() as calls:
        calls.started_sync(start)  # returns when it is on disk: send the request now
        calls.finished_sync(end)
"""

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from typing import Final, Self

from ledger import errors
from ledger.closing import Closing
from ledger.errors import AclError, LedgerDead, LedgerStateError, NotStored, UsageError
from runtime.call_records import CallEnd, CallStart, Coordinates, Unattributed
from runtime.call_socket_wire import (
    SOCKET_VARIABLE,
    TOKEN_VARIABLE,
    Message,
    decode_reply,
    encode_message,
    end_message,
    read_token,
    receive_frame,
    send_frame,
    start_message,
    stray_message,
)

ANSWER_SECONDS: Final = 120.0
"""Longer than the recorder waits for room on a full disk."""

_RAISED: Final = (UsageError, LedgerStateError, NotStored, LedgerDead)


class CallClient(Closing):
    """Tells calls to the recorder at `path`, under `token`; any thread may use it.

    It is a `CallSink`, and with `started` and `finished` the `CallRecorder` of `runtime.llm` too.
    """

    def __init__(self, path: str, token: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._path = path
        self._token = token
        self._answer_seconds = answer_seconds
        self._coordinates = read_token(token)
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._process = os.getpid()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The client for what the starter of this process left in its environment."""
        found = os.environ if environ is None else environ
        path, token = found.get(SOCKET_VARIABLE), found.get(TOKEN_VARIABLE)
        if not path or not token:
            raise UsageError(
                f"{SOCKET_VARIABLE} and {TOKEN_VARIABLE} are not set",
                hint="start the agent with the variables of `CallServer.attempt`",
            )
        return cls(path, token)

    def close(self) -> None:
        """End the connection; another call makes a new one."""
        with self._lock:
            self._drop()

    @property
    def coordinates(self) -> Coordinates:
        """The attempt whose calls these are."""
        return self._coordinates

    def started_sync(self, call: CallStart) -> None:
        """Return once the start is on disk. `call_index` is given by the recorder."""
        self._tell(start_message(self._token, call))

    def finished_sync(self, call: CallEnd) -> None:
        """Return once the end is on disk."""
        self._tell(end_message(self._token, call))

    def unattributed_sync(self, call: Unattributed) -> None:
        """Record in the run that a call was made which names no attempt."""
        self._tell(stray_message(self._token, call))

    async def started(self, call: CallStart) -> None:
        """`started_sync`, in a thread."""
        await asyncio.to_thread(self.started_sync, call)

    async def finished(self, call: CallEnd) -> None:
        """`finished_sync`, in a thread."""
        await asyncio.to_thread(self.finished_sync, call)

    def _tell(self, message: Message) -> None:
        """Send one message and wait for its answer.

        Raises what the recorder raised; NotStored if it cannot be reached or does not answer: then
        nobody can tell here whether it is stored, and it must not be told again.
        """
        body = encode_message(message)
        with self._lock:
            try:
                connection = self._connected()
                send_frame(connection, body)
                answer = receive_frame(connection, self._answer_seconds, self._answer_seconds)
            except (OSError, EOFError) as error:
                self._drop()
                raise NotStored(
                    f"the recorder at {self._path} did not answer: {error}",
                    hint="the run that started this agent must still be running",
                ) from None
        if answer is None:
            self.close()
            raise NotStored(f"the recorder at {self._path} closed the connection")
        reply = decode_reply(answer)
        if not reply.ok:
            kind = getattr(errors, reply.error, AclError)
            raise (kind if kind in _RAISED else AclError)(reply.message, hint=reply.hint)

    def _connected(self) -> socket.socket:
        if self._process != os.getpid():
            # A forked child must not speak on its parent's connection.
            self._drop()
            self._process = os.getpid()
        if self._connection is None:
            self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._connection.settimeout(self._answer_seconds)
            self._connection.connect(self._path)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
