"""Events to header and body, and back.

The body is position-independent: canonical JSON of the event's own fields, a random salt, and the
version of its model. Its content address is the SHA-256 of exactly its bytes. The header binds the
body to a place in one ledger; its exact bytes are the Merkle leaf. Header, all big-endian::

    0   u8   format, 1                       44  u32  session: 0 at create, +1 per writing open
    1   u8   flags: bit 0 copied             48  u32  lease
    2   u16  type code                       52  u32  attempt, 0 = none
    4   16 B ledger id                       56  u64  body length
    20  u64  sequence number, from 0         64  32 B SHA-256 of the body
    28  u64  wall clock, ns since 1970 UTC   96  u16  task length, 0xFFFF = no task
    36  u64  monotonic clock, ns             98  task id, UTF-8, surrogates in three bytes each
"""

import functools
import re
import struct
from typing import Any, Final, NamedTuple, cast

import orjson
from pydantic import ValidationError

from ledger import canonical
from ledger.errors import LedgerDamaged, ValueRefused, VersionUnsupported
from ledger.events import BY_CODE, TYPE_NAMES, AnyEvent, Event, Part
from ledger.events.base import CUT
from ledger.upcast import upcast

FORMAT: Final = 1
SALT_BYTES: Final = 16
_SALT: Final = re.compile(r"[0-9a-f]{32}")
MAX_TASK: Final = 60_000
_LAYOUT: Final = struct.Struct(">BBH16sQQQIIIQ32sH")
HEADER_BYTES: Final = _LAYOUT.size
_TASK_LENGTH: Final = struct.Struct(">H")
_COPIED: Final = 1
_NO_TASK: Final = 0xFFFF
_DEEP: Final = canonical.MAX_DEPTH
# Fields that stand in the header, or are said by the type code.
_IN_HEADER: Final = frozenset({"type", "task", "attempt", "lease"})
_SCALARS: Final = frozenset({str, int, float, bool})


class Header(NamedTuple):
    """Where and when a body was recorded. `address` is the SHA-256 of the body."""

    code: int
    copied: bool
    ledger_id: bytes
    seq: int
    wall_ns: int
    mono_ns: int
    session: int
    lease: int
    attempt: int | None
    body_length: int
    address: bytes
    task: str | None

    def encode(self) -> bytes:
        """Write the header; raise ValueRefused for a task id of more than 60,000 bytes."""
        task = b"" if self.task is None else self.task.encode("utf-8", "surrogatepass")
        if len(task) > MAX_TASK:
            raise ValueRefused(
                "$.task", f"a task id has at most {MAX_TASK} bytes, this one {len(task)}"
            )
        fixed = _LAYOUT.pack(
            FORMAT,
            _COPIED if self.copied else 0,
            self.code,
            self.ledger_id,
            self.seq,
            self.wall_ns,
            self.mono_ns,
            self.session,
            self.lease,
            self.attempt or 0,
            self.body_length,
            self.address,
            _NO_TASK if self.task is None else len(task),
        )
        return fixed + task

    def copied_to(self, ledger_id: bytes, seq: int) -> "Header":
        """The header of a copy of this event, as event `seq` of another ledger."""
        # By place: `_replace` takes three times as long, and runs reuse events by the thousand.
        return Header(self.code, True, ledger_id, seq, *self[4:])

    @classmethod
    def decode(cls, data: bytes) -> "Header":
        """Read exactly what `encode` writes.

        Raises VersionUnsupported for a format or type code of a newer release, and LedgerDamaged
        for bytes that no release writes.
        """
        if len(data) < HEADER_BYTES:
            raise LedgerDamaged(f"a header of {len(data)} bytes is cut")
        (
            version,
            flags,
            code,
            ledger_id,
            seq,
            wall,
            mono,
            session,
            lease,
            attempt,
            body_length,
            address,
            task_length,
        ) = _LAYOUT.unpack_from(data)
        if len(data) != _header_length(task_length):
            raise LedgerDamaged(f"a header of {len(data)} bytes is cut or too long")
        if version != FORMAT:
            raise VersionUnsupported(f"event {seq} has header format {version}")
        if code not in BY_CODE:
            raise VersionUnsupported(f"event {seq} has the unknown type code {code}")
        if flags & ~_COPIED:
            raise LedgerDamaged(f"event {seq} has the unknown flags {flags}", seq=seq)
        try:
            task = data[HEADER_BYTES:].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise LedgerDamaged(f"the task id of event {seq} is not UTF-8", seq=seq) from error
        return cls(
            code,
            bool(flags),
            ledger_id,
            seq,
            wall,
            mono,
            session,
            lease,
            attempt or None,
            body_length,
            address,
            None if task_length == _NO_TASK else task,
        )


def header_length(fixed: bytes) -> int:
    """The length of the whole header that begins with the 98 bytes `fixed`, or LedgerDamaged."""
    return _header_length(_TASK_LENGTH.unpack_from(fixed, HEADER_BYTES - _TASK_LENGTH.size)[0])


def _header_length(task_length: int) -> int:
    if task_length == _NO_TASK:
        return HEADER_BYTES
    if task_length > MAX_TASK:
        raise LedgerDamaged(f"a header claims a task id of {task_length} bytes")
    return HEADER_BYTES + task_length


def is_header_of(data: bytes, seq: int) -> bool:
    """Tell whether bytes that `Header.decode` does not know at least name event `seq`.

    Then a newer release wrote them; else they are no header at all.
    """
    return int.from_bytes(data[20:28], "big") == seq


def encode_body(event: Event, salt: bytes, spill: canonical.Spill) -> bytes:
    """Write the body of `event`; pieces of large values go to `spill`.

    Raises ValueRefused with the path of the first value that has no canonical form.
    """
    cut = _cut(type(event))
    members = _members(event, salt, cut)
    if cut.isdisjoint(members):
        try:
            # Nothing is cut: one pass writes it all.
            return canonical.encode(members)
        except ValueRefused:
            pass  # and is named below, with the path in the event
    encoded = []
    for name in sorted(members):
        try:
            value = canonical.encode(members[name], spill if name in cut else None)
        except ValueRefused as error:
            raise ValueRefused(f"$.{name}{error.path[1:]}", error.why) from error
        encoded.append(b'"%s":%s' % (name.encode(), value))
    return b"{" + b",".join(encoded) + b"}"


def decode_event(header: Header, body: bytes) -> AnyEvent:
    """Read the event of `header`; large values may be `canonical.Spilled*` objects.

    Raises VersionUnsupported for a body of a newer release, LedgerDamaged for one that no release
    writes.
    """
    try:
        return _event(header, body, _decode_members(body))
    except (LedgerDamaged, ValidationError) as error:
        raise _invalid(header, error) from error


def decode_event_strictly(header: Header, body: bytes) -> tuple[AnyEvent, bool]:
    """Read the event of `header`, and tell whether its body is spelled as `encode_body` would.

    Raises the same as `decode_event`.
    """
    try:
        fields, spelled = canonical.decode_with_spelling(body)
    except LedgerDamaged:
        spelled = None
    if spelled is None:
        # Nested deeper than is read and written at once, or no body of ours.
        return decode_event(header, body), is_canonical_spelling(body)
    try:
        return _event(header, body, fields), spelled == body
    except (LedgerDamaged, ValidationError) as error:
        raise _invalid(header, error) from error


def _event(header: Header, body: bytes, fields: object) -> AnyEvent:
    """The event that has these members; they are used up."""
    if not isinstance(fields, dict) or len(body) != header.body_length:
        raise LedgerDamaged("is not an object of the length that its header names")
    _check_salt(fields.pop("salt", None))
    fields = upcast(header.code, fields.pop("v", None), fields)
    if not _IN_HEADER.isdisjoint(fields):
        raise LedgerDamaged("repeats a field of its header")
    fields["task"], fields["attempt"], fields["lease"] = header.task, header.attempt, header.lease
    # What `model_validate` comes to, without the choices that it offers.
    model = BY_CODE[header.code]
    return cast("AnyEvent", model.__pydantic_validator__.validate_python(fields))


def _invalid(header: Header, error: LedgerDamaged | ValidationError) -> LedgerDamaged:
    why = error.message if isinstance(error, LedgerDamaged) else _first_fault(error)
    name = TYPE_NAMES[header.code]
    return LedgerDamaged(f"the body of event {header.seq} ({name}): {why}", seq=header.seq)


def is_canonical_body(body: bytes) -> bool:
    """Tell whether `body` is spelled as `encode_body` would: the only spelling of its content."""
    try:
        return isinstance(_decode_members(body), dict) and is_canonical_spelling(body)
    except LedgerDamaged:
        return False


def is_canonical_spelling(body: bytes) -> bool:
    """Tell of a body that can be decoded whether it is spelled as `encode_body` would.

    Envelopes are decoded in one spelling only: all else is JSON with its keys in order.
    """
    spelled = canonical.spelled_again(body)
    # None: envelopes nest deeper than can be written at once.
    return (_spell_members(body) if spelled is None else spelled) == body


def _spell_members(body: bytes) -> bytes | None:
    fields = _decode_members(body)
    assert isinstance(fields, dict)
    try:
        members = [canonical.encode(key) + b":" + canonical.encode(fields[key]) for key in fields]
    except ValueRefused:
        return None
    return b"{" + b",".join(members) + b"}" if list(fields) == sorted(fields) else None


def _decode_members(body: bytes) -> object:
    """Read a body whose members may each be nested as deep as a value: the body is one level."""
    try:
        return canonical.decode(body)
    except LedgerDamaged:
        try:
            tree = orjson.loads(body) if body.count(b"[") + body.count(b"{") > _DEEP else None
        except orjson.JSONDecodeError:
            tree = None
        if not isinstance(tree, dict):
            raise
        return {key: canonical.decode(orjson.dumps(item)) for key, item in tree.items()}


def _check_salt(salt: object) -> None:
    if not isinstance(salt, str) or not _SALT.fullmatch(salt):
        raise LedgerDamaged("has no salt of 32 hex digits")


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _members(event: Event, salt: bytes, cut: frozenset[str]) -> dict[str, object]:
    """The members of a body as plain objects; those that are cut are as they were given."""
    members: dict[str, object] = {"salt": salt.hex(), "v": event.v}
    for name, value in event.__dict__.items():
        if value is not None and name not in _IN_HEADER:
            is_plain = name in cut or type(value) in _SCALARS
            members[name] = value if is_plain else _tree(value)
    return members


@functools.cache
def _cut(model: type[Event]) -> frozenset[str]:
    """The fields of an event type whose large values are cut."""
    return frozenset(n for n, field in model.model_fields.items() if CUT in field.metadata)


def _tree(value: Any) -> object:
    """The parts of an event as plain objects without their absent fields; all else as it is."""
    if isinstance(value, Part):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return {name: _tree(item) for name, item in fields.items() if item is not None}
    if isinstance(value, tuple):
        return [_tree(item) for item in value]
    if isinstance(value, dict) and any(isinstance(item, Part) for item in value.values()):
        return {key: _tree(item) for key, item in value.items()}
    return value
