"""The witness over HTTP: POST /add-checkpoint, GET /<SHA-256 of an origin>/checkpoint."""

import logging
import re
import socket
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from ledger import note
from ledger.errors import AclError
from ledger.keys import CosigningKey, LogKey
from runtime.witness.connections import Connections
from runtime.witness.judge import Answer, Refused, check_growth, check_log, cosign, parse_request
from runtime.witness.store import WitnessStore

_MOST_BODY: Final = 64 * 1024
_PATIENCE: Final = 30.0
_MOST_CONNECTIONS: Final = 64
_MONITORED: Final = re.compile(r"/([0-9a-f]{64})/checkpoint")
_LENGTH: Final = re.compile(r"[0-9]{1,6}")

_log = logging.getLogger(__name__)


class Witness:
    """Signs checkpoints of `logs` with `key`; `clock` gives seconds since 1970."""

    def __init__(
        self,
        key: CosigningKey,
        logs: Sequence[LogKey],
        store: WitnessStore,
        clock: Callable[[], int],
    ) -> None:
        self._key = key
        self._logs = tuple(logs)
        self._store = store
        self._clock = clock

    def add_checkpoint(self, body: bytes) -> Answer:
        """Answer a request: 200 with a signature line, once what it covers is remembered for good.

        Nothing is signed and nothing changes with any other status. Raises OSError or
        LedgerDamaged where what was seen before cannot be read, or this not be kept.
        """
        try:
            request = parse_request(body)
            check_log(request, self._logs)
            # Look, compare and replace are one step: two clients cannot both extend one size.
            with self._store.locked(request.checkpoint.origin) as slot:
                check_growth(request, slot.read())
                line = cosign(request, self._key, self._clock())
                slot.replace(note.format_note(note.with_lines(request.signed, [line])))
        except Refused as refused:
            return refused.answer
        return Answer(200, note.format_line(line))

    def latest(self, name: str) -> Answer:
        """Answer what was seen last of the log whose origin has the SHA-256 `name`."""
        found = self._store.latest(name)
        return Answer(404, b"no checkpoint of that log\n") if found is None else Answer(200, found)


class WitnessServer(ThreadingHTTPServer):
    """Serves a witness at (host, port); port 0 takes a free one.

    `most` connections are open at once, and each request has `patience` seconds in all.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        witness: Witness,
        *,
        most: int = _MOST_CONNECTIONS,
        patience: float = _PATIENCE,
    ) -> None:
        self.witness = witness
        self.connections = Connections(most, patience)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, if there is room."""
        if self.connections.enter(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        # First: what is closed must not be shut, its number may be that of another by then.
        self.connections.leave(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Drop who is too slow; the loop calls this twice a second."""
        self.connections.drop_overdue()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base's
        """Log what went wrong with a connection; that a client went away is nothing wrong."""
        error = sys.exception()
        if isinstance(error, ConnectionError):
            _log.info("%s went away", client_address[0])
        else:
            _log.error("a request of %s failed", client_address[0], exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: WitnessServer
    timeout = _PATIENCE
    protocol_version = "HTTP/1.1"
    server_version = "acl-witness"
    sys_version = ""
    connection: socket.socket

    def handle_one_request(self) -> None:
        """Serve one request; its time begins now."""
        self.server.connections.renew(self.connection)
        super().handle_one_request()

    def do_POST(self) -> None:
        """Take a checkpoint."""
        lengths = self.headers.get_all("Content-Length", [])
        length = lengths[0] if len(lengths) == 1 else ""
        if "Transfer-Encoding" in self.headers:
            # Whoever stands in front may see another end of the request than this does.
            length = ""
        if not _LENGTH.fullmatch(length) or int(length) > _MOST_BODY:
            self.close_connection = True
            self._answer(Answer(413 if length.isdigit() else 411, b"a small body is wanted\n"))
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            # The client, or its time, is gone: a part of a request is none.
            self.close_connection = True
            return
        if self.path != "/add-checkpoint":
            self._answer(Answer(404, b"POST goes to /add-checkpoint\n"))
        else:
            self._try(lambda: self.server.witness.add_checkpoint(body))

    def do_GET(self) -> None:
        """Show what was seen last of a log."""
        matched = _MONITORED.fullmatch(self.path)
        if matched is None:
            self._answer(Answer(404, b"there is /<sha256 of an origin>/checkpoint\n"))
        else:
            self._try(lambda: self.server.witness.latest(matched[1]))

    def _try(self, act: Callable[[], Answer]) -> None:
        try:
            answer = act()
        except (AclError, OSError):
            _log.exception("the witness cannot keep what it signs")
            answer = Answer(500, b"the witness cannot keep what it signs; nothing was signed\n")
        self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Write a line about a request to the log; a request may hold commands for terminals."""
        told = format % args
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in told)
        _log.info("%s %s", self.address_string(), shown)
