"""Comparing a published log of tiles with what the ledger says its files must be."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from exporters.folder import Folder
from exporters.tile_layout import TILE_PATH, decode_bundle, encode_bundle
from exporters.tiles import CHECKPOINT, Log, Part, parts, read_checkpoint
from ledger import note, sidefile, tlog
from ledger.errors import ExportRefused, RunNotFound
from ledger.proof.history import ledger_of
from ledger.verify.finding import Finding, broken, remark, unproven


def check_tiles(log: Log, folder: Folder, size: int) -> Iterator[Finding]:
    """Yield a finding for each file that is not what the first events give; there are `size`.

    Bodies and pieces may be left out: the log commits to them all the same. Tiles of earlier
    checkpoints may stand beside those of the present one.
    """
    try:
        claim = read_checkpoint(folder)
    except ExportRefused as error:
        yield broken("tree_manifest", error.message)
        return
    if claim is None:
        yield broken("tree_manifest", f"{folder.path} has no {CHECKPOINT}: nothing is published")
        return
    checkpoint = claim.checkpoint
    why = _not_of(log, checkpoint, size)
    if why is not None:
        yield broken("tree_ledger", why)
        return
    if log.root(checkpoint.size) != checkpoint.root:
        yield broken(
            "tree_root", f"the first {checkpoint.size} events have another root than the log"
        )
        return
    yield from _signed(log, claim)
    yield from _files(log, folder, checkpoint)
    if size > checkpoint.size:
        yield remark("tree_older", f"the log is of the first {checkpoint.size} of {size} events")


def _signed(log: Log, claim: sidefile.Claim) -> Iterator[Finding]:
    """Hold the signatures of the published checkpoint against those that the ledger holds."""
    if not claim.is_of(log.ledger_id):
        yield broken("tree_differs", f"{CHECKPOINT} is not signed by whom its origin names")
        return
    held: dict[tuple[str, bytes], set[bytes]] = {}
    for _, text in log.published():
        one = sidefile.parse(text.encode())
        if one.signed is not None and one.checkpoint == claim.checkpoint:
            for line in one.signed.signatures:
                held.setdefault((line.name, line.key_id), set()).add(line.signature)
    for line in claim.signed.signatures if claim.signed else ():
        if line.signature not in held.get((line.name, line.key_id), ()):
            # A witness signs again at another time, and keys may have signed elsewhere.
            why = f"{CHECKPOINT} has a signature of {line.name} that the ledger does not hold"
            yield unproven("tree_signature", f"{why}: only its key can tell if it is one")


def _files(log: Log, folder: Folder, checkpoint: note.Checkpoint) -> Iterator[Finding]:
    there = list(folder.files())
    earlier = _earlier(there, checkpoint.size)
    wanted, absent = {CHECKPOINT}, 0
    for part in parts(log, checkpoint):
        # Several events may name one piece.
        finding = None if part.path in wanted else _compare(folder, part)
        wanted.add(part.path)
        if finding is not None and finding.code == "tree_absent":
            absent += 1
        elif finding is not None:
            yield finding
        for before in _cut(part, earlier.get(part.path.partition(".p/")[0], {})):
            wanted.add(before.path)
            differs = _compare(folder, before)
            if differs is not None:
                yield differs
    for path in there:
        if path not in wanted:
            yield broken("tree_extra", f"{path} is no file of this log")
    if absent:
        yield unproven("tree_absent", f"{absent} bodies and pieces are not published with the log")


def _earlier(paths: list[str], size: int) -> dict[str, dict[str, int]]:
    """The partial tiles that may be of a checkpoint before that of `size` entries.

    By the path of the full tile, then of the partial one: its width.
    """
    found: dict[str, dict[str, int]] = {}
    for path in paths:
        if _is_earlier(path, size):
            tile, _, width = path.partition(".p/")
            found.setdefault(tile, {})[path] = int(width)
    return found


def _cut(part: Part, earlier: Mapping[str, int]) -> Iterator[Part]:
    """What a tile was when it was narrower."""
    if part.data is None:
        return
    for path, width in earlier.items():
        if path == part.path:
            continue
        whole = part.data()
        if path.startswith("tile/entries/"):
            narrow = encode_bundle(decode_bundle(whole)[:width])
        else:
            narrow = whole[: width * tlog.HASH_BYTES]
        yield replace(part, path=path, data=partial(bytes, narrow))


def _not_of(log: Log, checkpoint: note.Checkpoint, size: int) -> str | None:
    if ledger_of(checkpoint.origin) != log.ledger_id.hex():
        return f"the directory is of another log, {checkpoint.origin}"
    if checkpoint.size > size:
        return f"the log has {checkpoint.size} events, the ledger {size}"
    return None


def _compare(folder: Folder, part: Part) -> Finding | None:
    try:
        data = None if part.data is None else part.data()
    except RunNotFound:
        data = None
    if data is None:
        if folder.holds(part.path):
            return remark("tree_erased", f"{part.path} was erased, and is still published")
        return None
    try:
        with folder.reading(part.path) as file:
            same = file.read(len(data) + 1) == data
    except FileNotFoundError:
        if TILE_PATH.fullmatch(part.path):
            return broken("tree_missing", f"{part.path} is missing")
        return unproven("tree_absent", f"{part.path} is not published")
    except ExportRefused as error:
        return broken("tree_differs", error.message)
    return None if same else broken("tree_differs", f"{part.path} is not what the events give")


def _is_earlier(path: str, size: int) -> bool:
    """Whether a partial tile may be one of a checkpoint before that of `size` entries."""
    tile, _, width = path.partition(".p/")
    if not width or not TILE_PATH.fullmatch(path):
        return False
    _, level, *groups = tile.split("/")
    number = int("".join(group.lstrip("x") for group in groups))
    below = 0 if level == "entries" else int(level)
    return 256 * number + int(width) <= size >> 8 * below
