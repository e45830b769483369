"""Where the end of a ledger stands, kept beside it, so that opening it need not read all of it.

`x.resume` beside `x.sqlite` is a JSON object: `size`, `nodes` (the roots of the complete subtrees
of the first `size` events, in hex, from left to right) and `memo`, any value of whoever writes
the ledger. It is a hint. It counts only where its nodes give the root of the last checkpoint in
the ledger, and that checkpoint is of its size: by SHA-256 no other nodes do. Where it is absent or
wrong the ledger is read from the start.

Only a registry goes on from there: in what it may hold next nothing depends on events long ago.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger import sidefile, tlog
from ledger.errors import AclError
from ledger.events import RegistryOpened, RegistrySealed
from ledger.records import Records

_MOST_BYTES: Final = 4 * 1024 * 1024
_REGISTRY: Final = frozenset({RegistryOpened.code, RegistrySealed.code})


@dataclass(frozen=True, slots=True)
class Kept:
    """What stands in the file: a tree, as somebody says, and a memo."""

    tree: tlog.Frontier
    memo: Any


@dataclass(frozen=True, slots=True)
class Start:
    """From where a tail goes on: everything up to `tree.size` is as the last checkpoint says.

    `checkpoints` is how many the ledger holds, `note` the last of them.
    """

    tree: tlog.Frontier
    ledger_id: bytes
    session: int
    checkpoints: int
    note: bytes


def resume_path(ledger: Path) -> Path:
    """Where the file is that belongs to a ledger file."""
    return ledger.with_suffix(".resume")


def write(ledger: Path, tree: tlog.Frontier, memo: Any) -> None:
    """Replace the file, or raise OSError; the holder of the writer lock calls this."""
    nodes = [node.hex() for node in tree.nodes]
    document = {"size": tree.size, "nodes": nodes, "memo": memo}
    data = json.dumps(document, separators=(",", ":")).encode()
    # A hint need not outlive a loss of power, and a registry is locked meanwhile.
    sidefile.replace(resume_path(ledger), data, durable=False)


def read(ledger: Path) -> Kept | None:
    """Return what the file says, or None where it says nothing that can be used."""
    try:
        data = sidefile.content(resume_path(ledger), _MOST_BYTES)
        found = json.loads(data)
        nodes = [bytes.fromhex(node) for node in found["nodes"]]
        return Kept(tlog.Frontier.resume(found["size"], nodes), found["memo"])
    except (AclError, ValueError, TypeError, KeyError, RecursionError):
        return None


def find_start(ledger: Path, records: Records) -> Start | None:
    """Return where the tail of a registry can go on from, or None if it must read everything."""
    kept = read(ledger)
    if kept is None or not kept.tree.size:
        return None
    # What is damaged here is told by who reads everything.
    with suppress(AclError):
        return _start(kept.tree, records)
    return None


def _start(tree: tlog.Frontier, records: Records) -> Start | None:
    last = records.last_checkpoint()
    if last is None:
        return None
    count, size, note = last
    claim = sidefile.parse(note.encode())
    header = records.record(size - 1).header
    agrees = (
        size == tree.size == claim.checkpoint.size <= records.size()
        and claim.checkpoint.root == tree.root()
        and claim.is_of(header.ledger_id)
        and header.code in _REGISTRY
    )
    if not agrees:
        return None
    return Start(tree, header.ledger_id, header.session + 1, count, note.encode())
