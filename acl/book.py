"""What a ledger tells of itself: which events were erased, and who remarked what."""

from collections.abc import Iterator
from typing import Any


def remarks(view: Any, state: Any) -> list[dict[str, Any]]:
    """The annotations, in order."""
    found = ((seq, view.event(seq).event) for seq in state.annotations)
    return [
        {"event": seq, "author": event.author, "text": event.text} for seq, event in found if event
    ]


def erasures(view: Any, state: Any) -> list[dict[str, Any]]:
    """Each erasure with the events that it names, in order."""
    found = ((seq, view.event(seq).event) for seq in state.erasures)
    return [
        {"event": seq, "erased": list(event.sequence), "reason": event.reason}
        for seq, event in found
        if event
    ]


def spoken(view: Any, state: Any) -> Iterator[tuple[str, str]]:
    """All of it as labelled lines."""
    for one in erasures(view, state):
        numbers = ", ".join(map(str, one["erased"])) or "none"
        yield "erased:", f"of events {numbers}, by event {one['event']}: {one['reason']}"
    for one in remarks(view, state):
        yield "remark:", f"{one['author']} (event {one['event']}): {one['text']}"
