"""What an event passes before it is stored: secrets are masked, what no ledger holds is cut out."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from ledger import canonical
from ledger.errors import ValueRefused
from ledger.events import AnyEvent, Part
from runtime.redact import Redactor

# What ties events together, and our own words: no text from outside stands there.
_OURS: Final = frozenset(
    {"type", "task", "attempt", "lease", "redactions", "task_id", "call_id", "run_id"}
    | {"source_run_id", "ledger_id", "source_ledger_id", "root", "size", "sequence"}
    | {"status", "phase", "previous", "scope", "mode", "source", "leaves", "lineage", "checkpoint"}
)
# Values that are no parts of an event and hold none, as most do.
_PLAIN: Final = frozenset({str, int, float, bool, list})
# Keys there are paths of files, which say nothing of what the files hold.
_BY_PATH: Final = frozenset({"contents"})


def redact_event(event: AnyEvent, redactor: Redactor) -> AnyEvent:
    """Return `event` without its secrets; `redactions` counts them, if there were any."""
    if are_clean([event], redactor):
        return event
    total = 0
    changed: dict[str, Any] = {}
    for name, value in _fields(event):
        kept, count = _redacted(name, value, redactor)
        if count:
            changed[name] = kept
            total += count
    if not total:
        return event
    changed["redactions"] = total + (event.redactions or 0)
    return event.model_copy(update=changed)


def are_clean(events: Iterable[AnyEvent], redactor: Redactor) -> bool:
    """True only if `redact_event` would return each of `events` as it is; looks at all at once."""
    values = list(map(_all_of, events))
    return redactor.are_clean_json(values) or redactor.is_clean(values)


def prune_event(event: AnyEvent) -> tuple[AnyEvent, list[ValueRefused]]:
    """Return `event` without the values that no ledger holds, and a refusal for each.

    Refusals name the place in the event: `$.trajectory[3].x`. A field that every such event must
    have stays as it is, and with it the event is refused.
    """
    refusals: list[ValueRefused] = []
    changed: dict[str, Any] = {}
    for name, value in _fields(event):
        if isinstance(value, str) and type(value) is not str:
            # A subclass (of an Enum, say) whose text is all that matters.
            changed[name] = str.__str__(value)
            continue
        if isinstance(value, Part) or _is_parts(value):
            continue
        kept, refused = canonical.prune(value)
        if kept is None and type(event).model_fields[name].is_required():
            continue
        if refused:
            changed[name] = kept
            refusals += [ValueRefused(f"$.{name}{one.path[1:]}", one.why) for one in refused]
    return (event.model_copy(update=changed) if changed else event), refusals


def _fields(part: Part) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in part.__dict__.items()
        if value is not None and name not in _OURS
    ]


def _all_of(part: Part) -> dict[str, Any]:
    """Everything that `redact_event` looks at."""
    return {
        name: value if type(value) in _PLAIN else _seen(name, value)
        for name, value in part.__dict__.items()
        if value is not None and name not in _OURS
    }


def _seen(name: str, value: Any) -> Any:
    if isinstance(value, Part):
        return _all_of(value)
    if _is_parts(value):
        return list(map(_all_of, value))
    if name in _BY_PATH and isinstance(value, dict):
        return [dict.fromkeys(value), *value.values()]
    return value


def _redacted(name: str, value: Any, redactor: Redactor) -> tuple[Any, int]:
    if isinstance(value, Part):
        return _each(lambda part: _redacted_part(part, redactor), [value], lambda found: found[0])
    if _is_parts(value):
        return _each(lambda part: _redacted_part(part, redactor), value, tuple)
    if name in _BY_PATH and isinstance(value, dict):
        return _redacted_files(value, redactor)
    if isinstance(value, str | dict | list | tuple):
        # The field's own name counts: numbers below `metrics` are results.
        kept, count = redactor.redact({name: value})
        return (_as(type(value), kept[name]) if count else value), count
    return value, 0


def _redacted_files(files: dict[str, Any], redactor: Redactor) -> tuple[dict[str, Any], int]:
    contents, inside = redactor.redact(list(files.values()))
    paths, in_paths = redactor.redact(dict.fromkeys(files))
    count = inside + in_paths
    return (dict(zip(paths, contents, strict=True)) if count else files), count


def _redacted_part(part: Part, redactor: Redactor) -> tuple[Part, int]:
    total = 0
    changed: dict[str, Any] = {}
    for name, value in _fields(part):
        kept, count = _redacted(name, value, redactor)
        if count:
            changed[name] = kept
            total += count
    return (part.model_copy(update=changed) if total else part), total


def _each(
    redact: Callable[[Any], tuple[Any, int]], parts: Any, together: Callable[[list[Any]], Any]
) -> tuple[Any, int]:
    done = [redact(part) for part in parts]
    return together([part for part, _ in done]), sum(count for _, count in done)


def _is_parts(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Part)


def _as(kind: type, value: Any) -> Any:
    return tuple(value) if kind is tuple else value
