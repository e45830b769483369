"""What goes over the recorder's socket: frames, messages, and the tokens that name an attempt.

A frame is the length of its body, 4 bytes, big-endian, and the body in canonical form. The client
sends `StartMessage`, `EndMessage` or `StrayMessage`, each with its token, and reads one `Reply` for
each. A token is the coordinates of an attempt and their HMAC-SHA-256 (RFC 2104) under a key that
only the recorder has, both in URL-safe base64: who has the token of one attempt can tell nothing
of another.

>>> token = seal_token(Coordinates("r", "t", 1), b"key")
>>> open_token(token, b"key")
Coordinates(run_id='r', task='t', attempt=1)
"""

import base64
import binascii
import hashlib
import hmac
import socket
import struct
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from ledger import canonical
from ledger.canonical import Binary, SpilledBinary, SpilledList, SpilledText
from ledger.errors import LedgerDamaged, UsageError
from ledger.events import ErrorInfo, Part, Usage
from ledger.events.base import LISTED, Text
from runtime.call_records import CallEnd, CallStart, Coordinates, Unattributed

SOCKET_VARIABLE: Final = "ACL_CALLS_SOCKET"
TOKEN_VARIABLE: Final = "ACL_CALLS_TOKEN"  # noqa: S105 - the name of a variable
MAX_FRAME: Final = 64 * 1024 * 1024
MAX_TOKEN: Final = 128 * 1024
"""Longer than that of any task id, which a ledger limits to 60,000 bytes."""
FRAME_SECONDS: Final = 30.0
"""How long a frame may take from its first byte to its last."""

_LENGTH: Final = struct.Struct(">I")
_CHUNK: Final = 1024 * 1024
_REFERENCES: Final = (SpilledText, SpilledList, SpilledBinary, Binary)

Token = Annotated[str, Field(max_length=MAX_TOKEN)]
CallId = Annotated[Text, Field(min_length=1, max_length=512)]
Flags = Annotated[tuple[Annotated[str, Field(max_length=64)], ...], LISTED, Field(max_length=32)]
Name = Annotated[Text, Field(max_length=1024)]


class StartMessage(Part):
    """A call is about to be sent; `call_index` is the recorder's to give."""

    kind: Literal["started"] = "started"
    token: Token
    call_id: CallId
    provider: Name
    model: Name
    params: dict[Text, Any]
    messages: list[Any]

    def call(self) -> CallStart:
        """What it says, as a record."""
        return CallStart(
            self.call_id, 0, self.provider, self.model, dict(self.params), self.messages
        )


class EndMessage(Part):
    """A call ended; the fields are those of `CallEnd`."""

    kind: Literal["finished"] = "finished"
    token: Token
    call_id: CallId
    success: bool
    response: dict[Text, Any] | None
    usage: Usage | None
    cost_usd: float | None
    cost_source: Name
    started_at: Name | None
    finished_at: Name | None
    duration_ms: Annotated[float, Field(ge=0)] | None
    ttft_ms: Annotated[float, Field(ge=0)] | None
    provider_request_id: Name | None
    error: ErrorInfo | None
    flags: Flags = ()

    def call(self) -> CallEnd:
        """What it says, as a record."""
        names = type(self).model_fields.keys() - {"kind", "token"}
        return CallEnd(**{name: getattr(self, name) for name in names})


class StrayMessage(Part):
    """A call was made in the agent's process that names no attempt."""

    kind: Literal["unattributed"] = "unattributed"
    token: Token
    call_id: CallId
    provider: Name
    model: Name
    reason: Name

    def call(self) -> Unattributed:
        """What it says, as a record."""
        return Unattributed(self.call_id, self.provider, self.model, self.reason)


Message = StartMessage | EndMessage | StrayMessage
_MESSAGES: Final[TypeAdapter[Message]] = TypeAdapter(
    Annotated[Message, Field(discriminator="kind")]
)


class Reply(Part):
    """The answer to one message: it is durable, or it is not, and why."""

    ok: bool
    error: str = ""
    message: Text = ""
    hint: Text = ""


def start_message(token: str, call: CallStart) -> StartMessage:
    """The message for a start."""
    return StartMessage(
        token=token,
        call_id=call.call_id,
        provider=call.provider,
        model=call.model,
        params=call.params,
        messages=call.messages,
    )


def end_message(token: str, call: CallEnd) -> EndMessage:
    """The message for an end."""
    names = EndMessage.model_fields.keys() - {"kind", "token"}
    return EndMessage(token=token, **{name: getattr(call, name) for name in names})


def stray_message(token: str, call: Unattributed) -> StrayMessage:
    """The message for a call that names no attempt."""
    return StrayMessage(token=token, **asdict(call))


# -- bodies -------------------------------------------------------------------------------------


def encode_message(message: Message | Reply) -> bytes:
    """The body of a frame. Raises ValueRefused, naming the place, for what no ledger can hold."""
    return canonical.encode(message.model_dump())


def decode_message(body: bytes) -> Message:
    """Read what a client sent; raise UsageError for anything but one well-formed message."""
    try:
        return _MESSAGES.validate_python(_value(body))
    except ValidationError as error:
        # The input itself is not repeated: it may be large, and is nobody's to log.
        fault = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def decode_reply(body: bytes) -> Reply:
    """Read what the recorder answered; raise UsageError if it is no answer."""
    try:
        return Reply.model_validate(_value(body))
    except ValidationError:
        raise UsageError("the recorder's answer cannot be read") from None


def _value(body: bytes) -> Any:
    try:
        value = canonical.decode(body)
    except LedgerDamaged as error:
        raise UsageError(error.message) from None
    if not canonical.is_canonical(body):
        raise UsageError("the message is not in canonical form")
    if canonical.has_envelopes(body):
        _refuse_references(value)
    return value


def _refuse_references(value: Any) -> None:
    """Refuse references to blobs: by one an agent could get at what other attempts stored."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _REFERENCES):
            raise UsageError("the message refers to stored pieces")
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


# -- frames -------------------------------------------------------------------------------------


def send_frame(connection: socket.socket, body: bytes) -> None:
    """Send one frame; raise UsageError if the body is too large, OSError if that breaks."""
    if len(body) > MAX_FRAME:
        raise UsageError(f"a message of {len(body):,} bytes is over {MAX_FRAME:,}")
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive_frame(connection: socket.socket, idle: float | None, within: float) -> bytes | None:
    """The body of the next frame; None if the other side has closed.

    Waits `idle` seconds for it to begin, without end if that is None, then `within` seconds for
    each further part. Raises UsageError for a length over the limit, EOFError for half a frame.
    """
    connection.settimeout(idle)
    first = connection.recv(1)
    if not first:
        return None
    connection.settimeout(within)
    rest = _receive(connection, _LENGTH.size - 1)
    (length,) = _LENGTH.unpack(first + rest)
    if length > MAX_FRAME:
        raise UsageError(f"a message of {length:,} bytes is over {MAX_FRAME:,}")
    return _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytes:
    body = bytearray()
    # By what comes, not by what is announced: a length alone takes no memory.
    while len(body) < length:
        part = connection.recv(min(_CHUNK, length - len(body)))
        if not part:
            raise EOFError(f"a frame ended after {len(body)} of {length} bytes")
        body += part
    return bytes(body)


# -- tokens -------------------------------------------------------------------------------------


def seal_token(where: Coordinates, key: bytes) -> str:
    """The token of an attempt."""
    told = canonical.encode([where.run_id, where.task, where.attempt])
    return f"{_base64(told)}.{_base64(hmac.digest(key, told, hashlib.sha256))}"


def open_token(token: str, key: bytes) -> Coordinates:
    """The attempt that a token names; raise UsageError unless it was made with `key`."""
    told, code = _parts(token)
    if not hmac.compare_digest(hmac.digest(key, told, hashlib.sha256), code):
        raise UsageError("the token is not of this recorder")
    return _coordinates(told)


def read_token(token: str) -> Coordinates:
    """The attempt that a token names, for who cannot check it; raise UsageError if it is none."""
    return _coordinates(_parts(token)[0])


def _coordinates(told: bytes) -> Coordinates:
    try:
        match canonical.decode(told):
            case [str(run_id), str(task), int(attempt)]:
                return Coordinates(run_id, task, attempt)
    except LedgerDamaged:
        pass
    raise UsageError("the token names no attempt")


def _parts(token: str) -> tuple[bytes, bytes]:
    told, dot, code = token.partition(".")
    try:
        if dot:
            return _unbase64(told), _unbase64(code)
    except (binascii.Error, ValueError):
        pass
    raise UsageError("the token is malformed")


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
