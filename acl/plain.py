"""Events and states as plain JSON values, for `--json`."""

from typing import Any

from ledger import canonical
from ledger.view import Recorded


def plain(value: Any) -> Any:
    """A JSON value of `value`: large parts and what JSON cannot say stand as `$acl` envelopes."""
    import orjson

    return orjson.loads(canonical.encode(value))


def plain_event(recorded: Recorded) -> dict[str, Any]:
    """One event as `acl log --json` prints it: {seq, at, type, task, attempt, event}."""
    event = recorded.event
    fields: dict[str, Any] | None = None
    if event is not None:
        fields = {
            name: plain(_dump(getattr(event, name)))
            for name in type(event).model_fields
            if name not in {"task", "attempt", "type"} and getattr(event, name) is not None
        }
    return {
        "seq": recorded.seq,
        "at": recorded.at,
        "type": recorded.type,
        "task": plain(recorded.task),
        "attempt": recorded.attempt,
        "event": fields,
    }


def _dump(value: Any) -> Any:
    from ledger.events import Part

    if isinstance(value, Part):
        return {name: _dump(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, tuple):
        return [_dump(item) for item in value]
    if isinstance(value, dict):
        return {key: _dump(item) for key, item in value.items()}
    return value
