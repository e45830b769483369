"""What a sample says once and refers to elsewhere: attachments, and pools of messages.

Texts over 100 characters and images stand in `attachments` under a hash, and `attachment://<hash>`
in their place (`tc://<hash>` in logs of 2024). Model events name their input by ranges (first,
first behind) of `message_pool`, later `events_data.messages`; requests likewise of
`events_data.calls`. Chunked samples name attachments by their index.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.importers.inspect.fields import listed, section

_PREFIXES: Final = ("attachment://", "tc://")


@dataclass(slots=True)
class Resolver:
    """Puts texts back where a sample refers to them; `missing` collects what it does not hold."""

    attachments: Mapping[str, Any]
    messages: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, sample: Mapping[str, Any]) -> "Resolver":
        """The resolver of one sample, whose pools are themselves resolved."""
        found = {
            **section(sample.get("transcript"), "content"),
            **section(sample.get("attachments")),
        }
        resolver = cls(found)
        pools = section(sample.get("events_data"))
        messages = listed(sample.get("message_pool")) or listed(pools.get("messages"))
        calls = listed(sample.get("call_pool")) or listed(pools.get("calls"))
        resolver.messages = resolver.resolve(messages)
        resolver.calls = resolver.resolve(calls)
        return resolver

    def resolve(self, value: Any) -> Any:
        """The value with every reference replaced; parts without one are the same objects."""
        match value:
            case str():
                return self._text(value)
            case dict():
                kept = {key: self.resolve(item) for key, item in value.items()}
                return kept if any(kept[key] is not value[key] for key in kept) else value
            case list():
                items = [self.resolve(item) for item in value]
                pairs = zip(items, value, strict=True)
                return items if any(new is not old for new, old in pairs) else value
            case _:
                return value

    def input(self, event: Mapping[str, Any]) -> Any:
        """The messages that a model event was called with."""
        refs = event.get("input_refs")
        if refs is None:
            return self.resolve(event.get("input"))
        return self._ranges(refs, self.messages, "message")

    def request(self, call: Mapping[str, Any]) -> Any:
        """The request that went over the wire, of a model event's `call`."""
        request = self.resolve(call.get("request"))
        refs = call.get("call_refs")
        if refs is None or not isinstance(request, dict):
            return request
        key = call.get("call_key")
        name = key if isinstance(key, str) else "messages"
        return {**request, name: self._ranges(refs, self.calls, "request message")}

    def _text(self, value: str) -> Any:
        for prefix in _PREFIXES:
            if value.startswith(prefix):
                found = self.attachments.get(value.removeprefix(prefix))
                if found is None:
                    self.missing.add(value[:100])
                    return value
                return found
        return value

    def _ranges(self, refs: Any, pool: list[Any], what: str) -> list[Any]:
        found, missing = expand(refs, pool)
        self.missing |= {f"{what} {ref!r}"[:100] for ref in missing}
        return found


def expand(refs: Any, pool: list[Any]) -> tuple[list[Any], list[Any]]:
    """The elements of a pool that ranges name, and the ranges that it does not hold."""
    found: list[Any] = []
    missing = []
    for ref in listed(refs):
        if _is_range(ref) and ref[1] <= len(pool):
            found += pool[ref[0] : ref[1]]
        else:
            missing.append(ref)
    return found, missing


def _is_range(ref: Any) -> bool:
    return (
        isinstance(ref, list)
        and len(ref) == 2
        and all(type(at) is int for at in ref)
        and 0 <= ref[0] <= ref[1]
    )
