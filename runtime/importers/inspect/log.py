"""One Inspect log, whichever file it stands in: its header, and its samples one by one."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledger.errors import UsageError, VersionUnsupported
from runtime.importers.inspect.bytesource import ByteSource
from runtime.importers.inspect.fields import section, text
from runtime.importers.jsontext import NotARecord, Record, read_record
from runtime.importers.plan import Original, Remark
from runtime.importers.source import SourceFile

NEWEST: Final = 3
"""The newest log version that is read: 2 is what Inspect writes, 3 was that of some development
releases of 2025."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive bytes of a log: a member of its archive, or a range of its text."""

    name: str
    read: Callable[[], bytes]

    def original(self, task: str | None = None, attempt: int | None = None) -> Original:
        """The bytes as an original of their own."""
        data = self.read()
        file = SourceFile(self.name, len(data), hashlib.sha256(data).digest())
        return Original(file, task, attempt, content=data)


@dataclass(frozen=True, slots=True)
class SampleRef:
    """Where one sample stands, in one piece or several; `load` gives it as one record.

    `load` raises NotARecord if there is none.
    """

    name: str
    pieces: tuple[Piece, ...]
    load: Callable[[], Record]


@dataclass(slots=True)
class Log:
    """A log that was found. `names` are those of the records that it is made of.

    `pieces` are those of no sample. `keep_file` says that the file as a whole is the original.
    `summaries` are those that the log itself repeats of its samples.
    """

    data: ByteSource
    header: dict[str, Any]
    samples: list[SampleRef]
    names: set[str]
    pieces: list[Piece] = field(default_factory=list)
    keep_file: bool = False
    reductions: list[Any] | None = None
    summaries: list[Any] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    crashed: bool = False

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.names)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.data.file.path

    @property
    def status(self) -> str:
        """The state that the log says it is in; without a header it was only started."""
        return "started" if self.crashed else text(self.header.get("status")) or "started"

    def tell(self, reason: str, *, placed: bool = True, damage: bool = False) -> None:
        """Add a remark on the log as a whole."""
        self.remarks.append(Remark(self.name, reason, placed=placed, damage=damage))


def check_header(name: str, header: Mapping[str, Any]) -> None:
    """Raise VersionUnsupported for a newer log, UsageError for what is no header of a log."""
    version = header.get("version", 1)
    if type(version) is int and version > NEWEST:
        raise VersionUnsupported(
            f"{name} is an Inspect log of version {version}; known are those up to {NEWEST}"
        )
    if type(version) is not int or version < 1:
        raise UsageError(f"{name} says that its version is {version!r}, which no Inspect log does")
    if not isinstance(header.get("status", ""), str):
        raise UsageError(f"{name} says that its status is {header['status']!r}")
    if not isinstance(header.get("eval"), dict):
        raise UsageError(f"{name} does not say what was evaluated: it has no object `eval`")
    if not isinstance(section(header, "eval").get("task"), str):
        raise UsageError(f"{name} does not name the task that was evaluated")


def read_value(data: bytes) -> Any:
    """Any JSON value, as strictly as a record; raises NotARecord."""
    whole = read_record(b'{"value":' + data + b"}").value
    if list(whole) != ["value"]:
        raise NotARecord("not one JSON value")
    return whole["value"]


def read_list(data: bytes) -> list[Any]:
    """A JSON list; raises NotARecord."""
    value = read_value(data)
    if not isinstance(value, list):
        raise NotARecord(f"holds {json.dumps(value)[:40]}, not a list")
    return value
