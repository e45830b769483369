"""What an importer gives the door: where the run belongs, and its events, one after another."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ledger import events as ev
from runtime.importers.source import Source, SourceFile


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a record that an import has to tell.

    `placed` is False if no event but its original stands for the record. `damage` is True for
    what neither the source program nor a crash of it can produce, `torn` for what its crash left.
    """

    source: str
    reason: str
    placed: bool = False
    damage: bool = False
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Original:
    """A file to keep beside the events it belongs to.

    `repeated` says that an event holds its content too: the file is then kept only where
    originals are kept unredacted. `in_parts` says that what is in it, such as the members of an
    archive, follows in originals that have a `content`, where the redaction gate can look into
    it: of the file itself size and digest are told. Where originals are kept unredacted, it is
    the other way round.
    """

    file: SourceFile
    task: str | None = None
    attempt: int | None = None
    repeated: bool = False
    in_parts: bool = False
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """The metrics that the source computed; the door adds the prefix that they are told at.

    `source` is `import` unless they were computed by our own rules, which replay can apply again.
    """

    metrics: dict[str, Any]
    counts: dict[str, int]
    details: dict[str, Any]
    extra: dict[str, Any]
    reducers: tuple[ev.ReducerUse, ...]
    source: Literal["evaluation", "replay", "import"] = "import"


@dataclass(frozen=True, slots=True)
class OwnMetrics:
    """The source tells no metrics: the door measures the prefix by our own rules.

    The default set is taken, and `uses` in the words of `acl replay --reducer` besides.
    """

    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The source ended by itself; the door adds the counts."""

    status: ev.RunStatus
    error: ev.ErrorInfo | None
    exit_code: int


Item = ev.AnyEvent | Original | SourceMetrics | OwnMetrics | SourceEnd


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """One foreign run, understood. `items` reads the source again, one task at a time.

    `run_name`, `benchmark`, `model` and `run_id` are the source's own, empty where it has none.
    `request` is the complete request in our words, with the source's own words below `source`.
    Every file of the source is a record, or every line where a format is one of lines;
    `records_out` counts those that were placed.
    """

    format: str
    format_version: str | None
    run_name: str
    benchmark: str
    model: str
    run_id: str
    request: dict[str, Any]
    persistence_params: dict[str, Any]
    selected: ev.TasksSelected
    items: Callable[[], Iterator[Item]]
    records_in: int
    records_out: int
    frozen: ev.ReuseFrozen | None = None
    source_status: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    remarks: tuple[Remark, ...] = field(default=())


class Importer(Protocol):
    """Reads one foreign format; named by an entry point of the group `acl.importers`.

    An importer neither writes nor redacts: it says what the source holds, and the door does both.
    """

    name: str

    def recognises(self, source: Source) -> bool:
        """True if the source is, or was, a run in this format."""

    def plan(self, source: Source) -> ImportPlan:
        """Understand the source; raises AclError if it cannot be read at all."""
