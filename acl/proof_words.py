"""What a checked proof proves, in words, and what it does not."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from acl.plain import plain_event

if TYPE_CHECKING:
    from ledger import note
    from ledger.proof.checking import ProvenEntry, ProvenEvent, ProvenHistory

Told = dict[str, Any]


def told_of_event(held: "ProvenEvent", signed: "note.SignedNote | None", compared: bool) -> Told:
    """The document of an event that a proof shows: {kind, event, checkpoint, proven, unproven}."""
    from ledger import canonical, tlog
    from ledger.codec import decode_event
    from ledger.view import Recorded

    entry, checkpoint = held.entry, held.checkpoint
    event = None if entry.body is None else decode_event(entry.header, entry.body)
    recorded = Recorded(entry.header, event, tlog.leaf_hash(entry.head))
    proven = [f"event {recorded.seq} stands {_where(checkpoint, held.signers, compared, 'events')}"]
    unproven = ["that what it says is true, and its time: both are the writer's word"]
    if event is None:
        proven.append("its type, task, attempt and time are as shown: its header is in the file")
        unproven.insert(0, "what it says: its body is not in the file; it may have been erased")
    else:
        proven.append("it says exactly what is shown: its header names the SHA-256 of its body")
        pieces = sum(1 for _, value in event for _ in canonical.pieces(value))
        if pieces:
            unproven.append(f"the text of its large values: only the SHA-256 of {pieces} pieces is")
    if recorded.copied:
        unproven.append("where it happened: it was copied from another ledger")
    unproven.append("what else the ledger holds: other attempts, or later events about this one")
    return {
        "kind": "event",
        "ledger_id": entry.header.ledger_id.hex(),
        "event": plain_event(recorded),
        **_under(checkpoint, signed, held.signers, compared, proven, unproven),
    }


def told_of_entry(held: "ProvenEntry", signed: "note.SignedNote | None", compared: bool) -> Told:
    """The document of an entry of any log: {kind, index, checkpoint, proven, unproven}."""
    checkpoint = held.checkpoint
    proven = [f"the entry stands {_where(checkpoint, held.signers, compared, 'entries')}"]
    return {
        "kind": "entry",
        "index": held.index,
        **_under(checkpoint, signed, held.signers, compared, proven, []),
    }


def told_of_history(held: "ProvenHistory", *, is_fork: bool, compared: bool) -> Told:
    """The document of a consistency proof or a fork report: {kind, old, new, proven, unproven}."""
    old, new = held.old, held.new
    names = ", ".join(sorted({one.name for one in held.both}))
    first = f"{old.size} events with root {old.root.hex()}"
    second = f"{new.size} events with root {new.root.hex()}"
    unproven = []
    if is_fork:
        there = f"of which the first {old.size} have root {held.root.hex()}"
        proven = [f"no log has both {first}, and {second}, {there}"]
        if names:
            proven.append(f"{names} signed both: two histories were shown of {old.origin}")
    else:
        proven = [f"the {second} begin with the {first}: nothing of these was changed or taken out"]
        if names:
            proven.append(f"{names} signed both checkpoints of {new.origin}")
        unproven.append("what the events say, and that they are true")
    if not names and held.new_signers:
        who = [", ".join(one.name for one in s) for s in (held.old_signers, held.new_signers)]
        proven.append(f"one checkpoint is signed by {who[0]}, the other by {who[1]}")
        unproven.append("that one hand signed both checkpoints")
    elif not names:
        unproven.append("who signed: no key was given")
    if compared:
        proven.append("one of the checkpoints is the given one")
    return {
        "kind": "fork" if is_fork else "consistency",
        "old": _plain(old),
        "new": _plain(new),
        "signed_by": [one.name for one in held.both],
        "compared": compared,
        "proven": proven,
        "unproven": unproven,
    }


def _where(
    checkpoint: "note.Checkpoint", signers: Sequence["note.Verifier"], compared: bool, what: str
) -> str:
    root = checkpoint.root.hex()
    if signers or compared:
        return f"among the {checkpoint.size} {what} of {checkpoint.origin}, root {root}"
    # A path leads to the root for trees of several sizes: only who signed vouches for the number.
    return f"in the tree with root {root}"


def _under(
    checkpoint: "note.Checkpoint",
    signed: "note.SignedNote | None",
    signers: Sequence["note.Verifier"],
    compared: bool,
    proven: list[str],
    unproven: list[str],
) -> Told:
    proven = [*proven, *_signed(signers, signed, checkpoint.size)]
    if compared:
        proven.append("its checkpoint is the given one")
    if not signers:
        unproven = [_nobody(signed), *unproven]
        if not compared:
            unproven.append(
                f"that the tree is of {checkpoint.origin} and has {checkpoint.size} leaves"
            )
    elif not compared and len(signers) == 1:
        unproven = [*unproven, "that nobody was shown another history: compare the checkpoint"]
    return {
        "checkpoint": _plain(checkpoint),
        "signed_by": [one.name for one in signers],
        "compared": compared,
        "proven": proven,
        "unproven": unproven,
    }


def _signed(
    signers: Sequence["note.Verifier"], signed: "note.SignedNote | None", size: int
) -> Iterator[str]:
    from ledger.keys import WitnessKey

    lines = {} if signed is None else {(s.name, s.key_id): s.signature for s in signed.signatures}
    for one in signers:
        time = None
        if isinstance(one, WitnessKey):
            time = one.time_of(lines[one.name, one.key_id])
        if time is None:
            yield f"{one.name} (key {one.key_id.hex()}) signed the tree of these {size}"
        else:
            yield f"the witness {one.name} saw them, by its clock at {_at(time)}"


def _nobody(signed: "note.SignedNote | None") -> str:
    if signed is None:
        return "who vouches for it: nobody signed; compare the root with one from elsewhere"
    names = ", ".join(line.name for line in signed.signatures)
    return f"who signed: no key was given; the file says {names}"


def _at(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"


def _plain(checkpoint: "note.Checkpoint") -> Told:
    return {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
    }
