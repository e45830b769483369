"""Events of the ledger itself, of the registry, and of plug-ins."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ledger.events.base import LISTED, Count, Event, Positive, Text, Value


class PayloadErased(Event):
    """Bytes were removed for good; the headers of the named events, and this event, remain."""

    type: Literal["payload.erased"] = "payload.erased"
    code: ClassVar[int] = 80

    sequence: Annotated[tuple[Count, ...], LISTED]
    blobs: Annotated[tuple[str, ...], LISTED] = ()
    reason: Text


class AnnotationAdded(Event):
    """Somebody's remark, with a name; allowed in every state."""

    type: Literal["annotation.added"] = "annotation.added"
    code: ClassVar[int] = 81

    text: Text
    author: Text


class LedgerSealed(Event):
    """Nothing but erasures and annotations follows."""

    type: Literal["ledger.sealed"] = "ledger.sealed"
    code: ClassVar[int] = 82


class ExtensionRecorded(Event):
    """A plug-in's own fact, named `vendor.thing`."""

    type: Literal["extension.recorded"] = "extension.recorded"
    code: ClassVar[int] = 83

    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_-]+)+$")]
    payload: Value = None


class RegistryOpened(Event):
    """A run was opened under this results root, before its first attempt."""

    type: Literal["registry.opened"] = "registry.opened"
    code: ClassVar[int] = 96

    run_id: Text
    path: Text
    ledger_id: str
    request_digest: str
    planned_tasks: Count
    k: Positive


class RegistrySealed(Event):
    """A run was sealed with this last checkpoint."""

    type: Literal["registry.sealed"] = "registry.sealed"
    code: ClassVar[int] = 97

    run_id: Text
    path: Text
    ledger_id: str
    size: Count
    root: str
    checkpoint: Text
