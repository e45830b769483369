"""The layout `tiles`: the ledger as a C2SP tlog-tiles directory, which any log reader can audit.

    checkpoint                    the newest, signed if one is; written last
    tile/<L>/<N>[.p/<W>]          hashes
    tile/entries/<N>[.p/<W>]      the exact bytes of the events' headers
    body/<address in hex>         the body of each event: its SHA-256 is in the header
    blob/<digest in hex>          the pieces of large values, under their SHA-256

What was erased is not there. A directory is its own manifest: each file of it is committed to by
the checkpoint. Memory is bounded by the largest single value.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from exporters import OutFile
from exporters.folder import Folder
from exporters.tile_layout import TILE_PATH, Tiler
from ledger import canonical, note, proof, sidefile, tlog
from ledger.errors import ExportRefused, ProofInvalid, RunNotFound, UsageError
from ledger.events import AnyEvent, PayloadErased
from ledger.proof.history import ledger_of
from ledger.state import RunState
from ledger.view import Blobs, Recorded

LAYOUT: Final = "tiles"
CHECKPOINT: Final = "checkpoint"

_HINT: Final = "make one with `acl checkpoint`"
_MOST_BYTES: Final = 65_536
_REMEMBERED: Final = 65_536
# There are as many files as events; where `sync` waits for the disk, once is enough for all.
_EACH_IS_SYNCED: Final = sys.platform != "linux"
_ADDRESSED: Final = re.compile(r"(body|blob)/[0-9a-f]{64}")


@runtime_checkable
class Log(Protocol):
    """What a log of tiles is made from; a `LedgerView` is one."""

    @property
    def ledger_id(self) -> bytes:
        """The 16 bytes that name the ledger."""
        ...

    def event(self, seq: int) -> Recorded:
        """Return one event."""
        ...

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Recorded]:
        """Yield the events from `since` on, before `until`."""
        ...

    def raw(self, seq: int) -> tuple[bytes, bytes]:
        """Return the exact bytes of header and body."""
        ...

    def blob(self, digest: bytes) -> bytes:
        """Return one piece of a large value."""
        ...

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first `size` events."""
        ...

    def published(self) -> Iterator[tuple[int, str]]:
        """Yield (size, note) of each checkpoint, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the directory; `data` is None for one that must not be there any more.

    What several events may name is `addressed`: it comes again for each, and is always the same.
    """

    path: str
    data: Callable[[], bytes] | None
    addressed: bool = False


@dataclass(slots=True)
class Published:
    """What was written: a checkpoint, how many files changed, and events whose bodies are gone."""

    claim: sidefile.Claim
    written: int = 0
    kept: int = 0
    erased: list[int] = field(default_factory=list)
    seen: dict[str, None] = field(default_factory=dict, repr=False)
    """Pieces that were looked at last, oldest first: many events name the same."""


def export_tiles(state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """Project the events of `state` into a log of tiles, under a checkpoint of as many events.

    The entry point of the layout; `publish` writes a directory. Raises UsageError where there is
    no such checkpoint, or `blobs` does not give stored bytes as they are: a `LedgerView` does.
    """
    if not isinstance(blobs, Log):
        raise UsageError("tiles are made from a ledger itself", hint="give the LedgerView")
    checkpoint = newest(blobs, most=state.size, least=state.size)
    for part in parts(blobs, sidefile.parse(checkpoint).checkpoint):
        if part.data is not None:
            yield OutFile(part.path, part.data())
    yield OutFile(CHECKPOINT, checkpoint)


def newest(log: Log, *, most: int | None = None, least: int = 1) -> bytes:
    """Return the checkpoint to publish: the newest one, signed if any is; UsageError for none."""
    found = proof.covering(log, least, most=most)
    if found is None:
        raise UsageError("the ledger holds no checkpoint to publish", hint=_HINT)
    return found


def publish(log: Log, directory: Path) -> Published:
    """Write or extend the directory of a log, up to its newest checkpoint, which comes last.

    Full tiles never change, and partial ones of earlier checkpoints stay, so that a reader who
    holds one of those can go on. Raises ExportRefused for a directory that holds anything else:
    another log, a later state of this one, or a state that this ledger does not extend.
    """
    checkpoint = newest(log)
    told = Published(sidefile.parse(checkpoint))
    root = directory.resolve()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportRefused(f"{root} cannot be made: {error.strerror}") from error
    with Folder.open(root) as folder, folder.locked():
        _check_occupant(folder, log, told.claim)
        folder.clear_temporaries()
        for part in parts(log, told.claim.checkpoint, told.erased.append):
            _write(folder, part, told)
        _settle(folder)
        # Whoever reads it finds everything that it covers.
        _write(folder, Part(CHECKPOINT, lambda: checkpoint), told)
        folder.sync()
    return told


def parts(
    log: Log, checkpoint: note.Checkpoint, erased: Callable[[int], None] = lambda _: None
) -> Iterator[Part]:
    """Yield every file but the checkpoint; `erased` hears of the events whose bodies are gone.

    Raises ProofInvalid, at the end, if the checkpoint has another root than these events.
    """
    tiler, tree = Tiler(), tlog.Frontier()
    for recorded in log.events(0, checkpoint.size):
        head = recorded.header.encode()
        assert tlog.leaf_hash(head) == recorded.leaf, "headers are written as they were read"
        tree.append(recorded.leaf)
        body = f"body/{recorded.address.hex()}"
        if recorded.event is None:
            erased(recorded.seq)
            yield Part(body, None)
        else:
            yield Part(body, partial(_body, log, recorded.seq))
            yield from _pieces(log, recorded.event)
        for path, data in tiler.add(head):
            yield Part(path, partial(_given, data))
    for path, data in tiler.rest():
        yield Part(path, partial(_given, data))
    # What was erased since goes too, although the event that tells of it is not published yet.
    for recorded in log.events(checkpoint.size):
        yield from _gone(log, recorded.event)
    if (tree.size, tree.root()) != (checkpoint.size, checkpoint.root):
        raise ProofInvalid(f"the checkpoint of {checkpoint.size} events has another root than they")


def _body(log: Log, seq: int) -> bytes:
    return log.raw(seq)[1]


def _given(data: bytes) -> bytes:
    return data


def _pieces(log: Log, event: AnyEvent) -> Iterator[Part]:
    """The pieces of the large values of an event, and of none that were erased."""
    for _, value in event:
        try:
            for digest in canonical.reachable(value, log.blob):
                yield Part(f"blob/{digest.hex()}", partial(log.blob, digest), addressed=True)
        except RunNotFound:
            # A list piece is gone, and with it the names of those that it held.
            continue
    yield from _gone(log, event)


def _gone(log: Log, event: AnyEvent | None) -> Iterator[Part]:
    """The pieces that an erasure took."""
    for spelled in event.blobs if isinstance(event, PayloadErased) else ():
        if _is_gone(log, bytes.fromhex(spelled)):
            yield Part(f"blob/{spelled}", None)


def _is_gone(log: Log, digest: bytes) -> bool:
    try:
        log.blob(digest)
    except RunNotFound:
        return True
    return False


def _write(folder: Folder, part: Part, told: Published) -> None:
    if part.data is None:
        folder.remove(part.path)
        return
    if part.path in told.seen:
        return
    if part.addressed:
        told.seen[part.path] = None
        if len(told.seen) > _REMEMBERED:
            del told.seen[next(iter(told.seen))]
    try:
        data = part.data()
    except RunNotFound:
        # A piece of a value whose event stays was erased.
        return
    if _stands(folder, part.path, data):
        told.kept += 1
    else:
        durable = _EACH_IS_SYNCED or part.path == CHECKPOINT
        folder.replace(OutFile(part.path, data), durable=durable)
        told.written += 1


def _settle(folder: Folder) -> None:
    """Have everything on disk that was written."""
    folder.sync()
    if not _EACH_IS_SYNCED:
        os.sync()


def _stands(folder: Folder, path: str, data: bytes) -> bool:
    """Whether a file has this content already."""
    try:
        with folder.reading(path) as file:
            return file.read(len(data) + 1) == data
    except FileNotFoundError:
        return False


def _check_occupant(folder: Folder, log: Log, claim: sidefile.Claim) -> None:
    """Raise ExportRefused for a directory that holds anything but an earlier state of this log."""
    published = read_checkpoint(folder)
    if published is None:
        # A first export that was killed published nothing; its tiles may be of another log.
        for path in list(folder.files()):
            if TILE_PATH.fullmatch(path):
                folder.remove(path)
            elif not _ADDRESSED.fullmatch(path):
                raise ExportRefused(f"{folder.path} holds {path!r}, which is of no log of tiles")
        return
    there = published.checkpoint
    if ledger_of(there.origin) != log.ledger_id.hex():
        raise ExportRefused(f"{folder.path} holds another log, {there.origin}")
    if there.size > claim.checkpoint.size:
        raise ExportRefused(
            f"{folder.path} holds a later state, of {there.size} events;"
            f" the newest checkpoint here is of {claim.checkpoint.size}"
        )
    if log.root(there.size) != there.root:
        raise ExportRefused(
            f"{folder.path} holds another history: at {there.size} events its root differs",
            hint=f"`acl prove RUN --from {folder.path / CHECKPOINT}` reports it",
        )


def read_checkpoint(folder: Folder) -> sidefile.Claim | None:
    """The checkpoint that a directory was published under, as it stands there; None for none.

    Raises ExportRefused for a file of that name that is no checkpoint.
    """
    try:
        with folder.reading(CHECKPOINT) as file:
            return sidefile.parse(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return None
    except ProofInvalid as error:
        raise ExportRefused(
            f"{folder.path / CHECKPOINT} is no checkpoint: {error.message}"
        ) from error
