"""What a run remembers of the registry: where it was entered, and the tree that it saw then."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from runtime.audit.report import Problem
from runtime.registry import Readings


class _Told(BaseModel):
    """The payload of `acl.registered`."""

    model_config = ConfigDict(frozen=True, strict=True)

    registry: str
    seq: int
    size: int
    root: str


def told_of_registry(payload: Any, registry: Readings | None, ledger_id: str) -> Iterator[Problem]:
    """Yield what contradicts between a run's memory of the registry and the registry there is.

    `payload` is that of `acl.registered`, None where the run has none.
    """
    if payload is None:
        return
    try:
        told = _Told.model_validate(payload)
    except ValidationError:
        yield Problem("memory", "broken", "what it says of its entry cannot be read")
        return
    if registry is None:
        message = f"it was entered in registry {told.registry}, which is not here"
        yield Problem("registry_gone", "failed", message)
    elif registry.ledger_id != told.registry:
        message = f"it was entered in another registry, {told.registry}"
        yield Problem("registry_other", "failed", message)
    else:
        yield from _compare(told, registry, ledger_id)


def _compare(told: _Told, registry: Readings, ledger_id: str) -> Iterator[Problem]:
    """Hold the registry of the same id against what it was when the run began."""
    if registry.size < told.size:
        message = f"the registry had {told.size} entries when it began, now {registry.size}"
        yield Problem("registry_rolled_back", "broken", message)
    elif not 0 < told.size <= len(registry.roots):
        return
    elif registry.roots[told.size - 1].hex() != told.root:
        message = f"the first {told.size} entries are not those that it saw when it began"
        yield Problem("registry_rewritten", "broken", message)
    elif registry.number_of(ledger_id) != told.seq:
        message = f"it says that it is entry {told.seq}, which tells of another run"
        yield Problem("entry_other", "broken", message)
