"""What every event has, and the field types that events are made of."""

import math
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, InstanceOf

# Text from outside may hold lone surrogates, which pydantic's own `str` refuses.
Text = InstanceOf[str]


class Cut:
    """Marks the fields whose large values the codec cuts into blobs."""


CUT = Cut()

# Any JSON value, large or small. The codec cuts large ones into blobs; read back from a ledger
# it may hold `canonical.Spilled*` objects until `LedgerView.resolve` fills them in.
Value = Annotated[Any, CUT]


def _finite(number: float) -> float:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


# Verdicts and metrics keep the type they were given: 1 stays 1, 1.0 stays 1.0.
Number = Annotated[int | float, AfterValidator(_finite)]
Measure = Annotated[bool | int | float, AfterValidator(_finite)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]

# A tuple field that a JSON list may fill, although models are strict.
LISTED = Field(strict=False)


class Part(BaseModel):
    """A fixed object inside an event: frozen, strict, closed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Event(Part):
    """A fact. `task`, `attempt` and `lease` stand in the header, all other fields in the body.

    Fields that are None are left out of the body. Fields annotated `Value` may be large and are
    cut into blobs; all others stay whole in the body, so that a fold needs no blobs.
    """

    code: ClassVar[int]
    v: ClassVar[int] = 1

    task: Text | None = None
    attempt: Annotated[int, Field(ge=1, lt=2**32)] | None = None
    lease: Annotated[int, Field(ge=1, lt=2**32)] = 1
    redactions: Count | None = None


class TaskEvent(Event):
    """An event of one task."""

    task: Text


class AttemptEvent(TaskEvent):
    """An event of one attempt of one task; attempts count from 1."""

    attempt: Annotated[int, Field(ge=1, lt=2**32)]


class Claim(Part):
    """Where an import was told that something ran: another ledger, at a size with a root.

    Its events are no copies, so nothing of this can be checked.
    """

    run_id: Text
    ledger_id: str
    size: Count
    root: str


class ErrorInfo(Part):
    """What went wrong: where, how it is classified, and in which words.

    `fatal` errors come from the house (planning, environment), others from the agent or verifier.
    """

    code: Text
    message: Text
    phase: Text | None = None
    fatal: bool = False
    traceback: Text | None = None
