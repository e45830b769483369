"""Events of one task."""

from typing import Annotated, ClassVar, Literal

from ledger.events.base import LISTED, Claim, Count, TaskEvent, Text, Value


class Takeover(TaskEvent):
    """What follows was copied from another ledger, which is told here as far as it was seen.

    `sequence` are the copies' sequence numbers there; `leaves` is Binary of the source's leaf
    hashes (32 bytes each) up to `size`, with `root` their tree's root, and zeros up to whole
    pieces: so it is one blob, whoever names it. `chained` says that the source's own copies were
    copies; `lineage` maps then the id of each ledger in the chain to what it told, in these
    fields, of its own source. `checkpoint` is the last checkpoint that the source holds.
    """

    source_run_id: Text
    source_path: Text | None = None
    source_ledger_id: str
    size: Count
    root: str
    leaves: Value
    sequence: Annotated[tuple[Count, ...], LISTED]
    checkpoint: Text | None = None
    chained: bool = False
    lineage: Value = None


class TaskReused(Takeover):
    """The copies that follow are this task's events in another ledger.

    `source_checksum` is given where the task's input had another checksum there, `claim` where
    the source was read from exported files: the ledger that they say they come from.
    """

    type: Literal["task.reused"] = "task.reused"
    code: ClassVar[int] = 16

    source_checksum: Text | None = None
    claim: Claim | None = None


class TaskStarted(TaskEvent):
    """Work on the task begins. `claim` is given by imports of runs that reused the task."""

    type: Literal["task.started"] = "task.started"
    code: ClassVar[int] = 17

    claim: Claim | None = None


class TaskFinished(TaskEvent):
    """All attempts that were to be made are terminal; `error` tells whether any ended in one."""

    type: Literal["task.finished"] = "task.finished"
    code: ClassVar[int] = 18

    reason: Literal["all_attempts", "stopped_early"]
    error: bool


class TaskCancelled(TaskEvent):
    """The task was given up before all its attempts were made."""

    type: Literal["task.cancelled"] = "task.cancelled"
    code: ClassVar[int] = 19

    reason: Text
