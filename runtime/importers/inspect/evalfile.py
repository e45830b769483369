"""`.eval` logs: a zip archive with one member for each sample.

Members: `header.json` (written last), `_journal/start.json` (written first), `samples/
<id>_epoch_<n>.json`, `summaries.json`, `reductions.json`, `_journal/summaries/<n>.json`,
`_journal/config_updates/<n>.json`. A chunked sample is a folder: `sample.json`, `metadata.json`,
and `messages`, `events`, `calls` and `attachments` in pieces named by their first index.
"""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from ledger.errors import UsageError
from runtime.importers.inspect.archive import Archive, Member, read_archive
from runtime.importers.inspect.bytesource import ByteSource
from runtime.importers.inspect.fields import section
from runtime.importers.inspect.log import Log, Piece, SampleRef, check_header, read_list
from runtime.importers.inspect.resolving import expand
from runtime.importers.inspect.unpack import BadMember
from runtime.importers.jsontext import NotARecord, Record, read_record
from runtime.importers.plan import Remark

HEADER: Final = "header.json"
START: Final = "_journal/start.json"
_SAMPLES: Final = "samples/"
_CHUNK: Final = re.compile(r"(messages|events|calls|attachments)/([0-9]+)\.json")
_SIDES: Final = frozenset({"skeleton.json", "events/stats.json", "events/uuids.json"})
_KNOWN: Final = re.compile(
    r"header\.json|summaries\.json|reductions\.json|results\.json|logging\.json|samples/"
    r"|_journal/(?:|start\.json|(?:summaries|config_updates)/(?:[0-9]+\.json)?)"
)


def read_eval(data: ByteSource) -> Log:
    """Find what the archive holds; UsageError if nothing in it says what was evaluated."""
    archive = read_archive(data)
    reader = _Reader(archive)
    header = reader.header()
    check_header(data.file.path, header)
    log = Log(
        data,
        header,
        samples=list(reader.samples()),
        names={reader.named(name) for name in (*archive.members, *archive.torn)},
        pieces=reader.pieces(),
        crashed=HEADER not in archive.members,
    )
    log.reductions = reader.optional("reductions.json")
    log.summaries = reader.summaries()
    # The same list: samples are only read later.
    log.remarks = reader.remarks
    _tell(archive, log)
    return log


class _Reader:
    """Reads the members of one archive; what is wrong with one goes to `remarks`."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.remarks: list[Remark] = []

    def named(self, name: str) -> str:
        return f"{self.archive.data.file.path}/{name}"

    def bytes(self, member: Member) -> bytes:
        try:
            return self.archive.read(member)
        except BadMember as fault:
            raise NotARecord(str(fault), cut=fault.torn) from None

    def piece(self, name: str) -> Piece:
        return Piece(self.named(name), partial(self.archive.read, self.archive.members[name]))

    def pieces(self) -> list[Piece]:
        """The members of no sample that can be read; what cannot is named."""
        found = []
        for name, member in self.archive.members.items():
            if name.startswith(_SAMPLES) and not name.endswith("/"):
                continue
            try:
                self.archive.read(member)
            except BadMember as fault:
                self.blame(name, str(fault))
            else:
                found.append(self.piece(name))
        return found

    def blame(self, name: str, why: str, *, damage: bool = True) -> None:
        """Name a member that has no place, once."""
        remark = Remark(self.named(name), why, damage=damage)
        if remark not in self.remarks:
            self.remarks.append(remark)

    def header(self) -> dict[str, Any]:
        """The header, or what was known at the start."""
        for name in (HEADER, START):
            member = self.archive.members.get(name)
            if member is None:
                continue
            try:
                return read_record(self.bytes(member)).value
            except NotARecord as fault:
                self.blame(name, str(fault))
        raise UsageError(
            f"{self.archive.data.file.path} holds no {HEADER} and no {START} that can be read",
            hint="nothing says what was evaluated",
        )

    def optional(self, name: str) -> list[Any] | None:
        member = self.archive.members.get(name)
        if member is None:
            return None
        try:
            return read_list(self.bytes(member))
        except NotARecord as fault:
            self.blame(name, str(fault))
            return None

    def summaries(self) -> list[Any]:
        """The summaries of the whole log, else of its journal."""
        whole = self.optional("summaries.json")
        if whole is not None:
            return whole
        names = [n for n in self.archive.members if n.startswith("_journal/summaries/")]
        return [
            one for name in names if not name.endswith("/") for one in self.optional(name) or ()
        ]

    def samples(self) -> Iterable[SampleRef]:
        """Every sample, in the order in which they were written."""
        folders: dict[str, list[str]] = {}
        for name in self.archive.members:
            if name.startswith(_SAMPLES) and not name.endswith("/"):
                folder, _, inside = name.removeprefix(_SAMPLES).rpartition("_epoch_")
                number, slash, _ = inside.partition("/")
                key = f"{_SAMPLES}{folder}_epoch_{number}/" if slash else name
                folders.setdefault(key, []).append(name)
        for key, names in folders.items():
            load = (
                partial(self.chunked, key, names)
                if key.endswith("/")
                else partial(self.whole, self.archive.members[key])
            )
            yield SampleRef(self.named(key), tuple(map(self.piece, names)), load)

    def whole(self, member: Member) -> Record:
        return read_record(self.bytes(member))

    def chunked(self, folder: str, names: list[str]) -> Record:
        """A sample put together from its folder; NotARecord if a part of it is missing."""
        sample: dict[str, Any] = {}
        parts: dict[str, dict[int, list[Any]]] = {}
        for name in names:
            inside = name.removeprefix(folder)
            member = self.archive.members[name]
            chunk = _CHUNK.fullmatch(inside)
            if chunk is not None:
                parts.setdefault(chunk[1], {})[int(chunk[2])] = read_list(self.bytes(member))
            elif inside == "sample.json":
                sample |= read_record(self.bytes(member)).value
            elif inside == "metadata.json":
                sample["metadata"] = read_record(self.bytes(member)).value
            else:
                self.look_aside(name, inside)
        if not sample:
            raise NotARecord("it has no sample.json")
        return Record(_put_together(sample, parts))

    def look_aside(self, name: str, inside: str) -> None:
        """See that a file beside a sample can be read; it repeats what the sample tells."""
        if inside not in _SIDES:
            self.blame(name, "no part of a sample of this format", damage=False)
        try:
            self.archive.read(self.archive.members[name])
        except BadMember as fault:
            self.blame(name, str(fault))


def _put_together(sample: dict[str, Any], parts: dict[str, dict[int, list[Any]]]) -> dict[str, Any]:
    joined = {name: _joined(name, chunks) for name, chunks in parts.items()}
    pool = joined.get("messages", [])
    sample["events"] = joined.get("events", [])
    sample["events_data"] = {"messages": pool, "calls": joined.get("calls", [])}
    sample["attachments"] = {
        str(at): value for at, value in enumerate(joined.get("attachments", []))
    }
    if "message_refs" in sample:
        sample["messages"], missing = expand(sample.pop("message_refs"), pool)
        if missing:
            raise NotARecord(f"its messages {missing[0]} are missing")
    return sample


def _joined(name: str, chunks: dict[int, list[Any]]) -> list[Any]:
    items: list[Any] = []
    for start in sorted(chunks):
        if start != len(items):
            raise NotARecord(f"its {name} from {len(items)} to {start} are missing")
        items += chunks[start]
    return items


def _tell(archive: Archive, log: Log) -> None:
    if not archive.whole:
        log.tell("its directory is missing or broken: its members were found by their own headers")
    for name in archive.torn:
        log.remarks.append(Remark(f"{log.name}/{name}", "the file ends in it", torn=True))
    if archive.rest:
        log.tell(archive.rest, placed=False, damage=True)
    for name in dict.fromkeys(archive.replaced):
        log.remarks.append(
            Remark(f"{log.name}/{name}", "it was written anew; the last one stands", placed=True)
        )
    for name in archive.members:
        if not _KNOWN.match(name) or (_KNOWN.fullmatch(name) is None and "_journal" in name):
            log.remarks.append(Remark(f"{log.name}/{name}", "no member of this format"))
    start = section(log.header, "eval")
    if log.crashed:
        log.tell(f"it has no {HEADER}: the evaluation of {start.get('task')!r} never ended")
