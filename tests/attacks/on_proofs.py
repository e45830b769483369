"""Attacks on proof files: what somebody shows instead of a ledger."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ledger import LedgerView, sidefile, tlog
from ledger.errors import ProofInvalid
from ledger.keys import SigningKey
from ledger.proof import (
    Inclusion,
    checking,
    format_inclusion,
    inclusion,
    pack_entry,
    parse_inclusion,
    unpack_entry,
)
from tests.attacks.attack import Scene
from tests.attacks.forging import Record, checkpoint, edit, notes, records, relink
from tests.attacks.on_content import ANSWERED, ANSWERS
from tests.attacks.on_history import NAMESAKE, THIEF, Impostor
from tests.attacks.runs import LAB, LEDGER_ID

Answer = Literal["refused", "accepted"]


@dataclass(frozen=True)
class ProofAttack:
    """A proof file of something that is not so; `alone` and `key` say what its reader says.

    `key` is with the verifier key of the lab.
    """

    name: str
    does: str
    make: Callable[[Scene], bytes]
    alone: Answer
    key: Answer


def honest(scene: Scene) -> bytes:
    """The proof of the result of the task `wrong`."""
    return _proof(scene, _answer(records(scene.path)))


def _answer(held: list[Record]) -> int:
    (seq,) = [n for n, (_, body) in enumerate(held) if ANSWERED in body or ANSWERS in body]
    return seq


def _proof(scene: Scene, seq: int) -> bytes:
    with LedgerView.open(scene.run) as view:
        return inclusion(view, seq, notes(scene.path)[-1])


def _changed(scene: Scene, **fields: object) -> bytes:
    return format_inclusion(dataclasses.replace(parse_inclusion(honest(scene)), **fields))  # type: ignore[arg-type]


def another_event(scene: Scene) -> bytes:
    """The path of one event under the header and body of another."""
    other = parse_inclusion(_proof(scene, _answer(records(scene.path)) + 1))
    return _changed(scene, extra=other.extra)


def another_event_and_index(scene: Scene) -> bytes:
    other = parse_inclusion(_proof(scene, _answer(records(scene.path)) + 1))
    return _changed(scene, extra=other.extra, index=other.index)


def another_index(scene: Scene) -> bytes:
    return _changed(scene, index=parse_inclusion(honest(scene)).index + 1)


def _entry(scene: Scene) -> Record:
    entry = unpack_entry(parse_inclusion(honest(scene)).extra or b"")
    return entry.head, entry.body or b""


def edited_body(scene: Scene) -> bytes:
    head, body = _entry(scene)
    return _changed(scene, extra=pack_entry(head, body.replace(ANSWERED, ANSWERS)))


def edited_event(scene: Scene) -> bytes:
    held = edit(records(scene.path), ANSWERED, ANSWERS)
    return _changed(scene, extra=pack_entry(*relink(held)[_answer(held)]))


def edited_path(scene: Scene) -> bytes:
    path = parse_inclusion(honest(scene)).path
    return _changed(scene, path=(bytes(32), *path[1:]))


def shorter_path(scene: Scene) -> bytes:
    return _changed(scene, path=parse_inclusion(honest(scene)).path[1:])


def another_size(scene: Scene) -> bytes:
    """The checkpoint claims another size than the path was made for."""
    proof = parse_inclusion(honest(scene))
    origin, size, rest = proof.note.split(b"\n", 2)
    return _changed(scene, note=b"\n".join([origin, b"%d" % (int(size) * 4), rest]))


def inner_node(scene: Scene) -> bytes:
    """A node of the tree passed off as an event: what it hashes are 64 bytes of two hashes."""
    with LedgerView.open(scene.run) as view:
        leaves = view.leaves()
    return _changed(scene, index=0, extra=leaves[:64], path=parse_inclusion(honest(scene)).path[1:])


def another_run(scene: Scene) -> bytes:
    """An event of another run under the checkpoint of this one."""
    head, body = records(scene.other / "ledger.sqlite")[_answer(records(scene.path))]
    return _changed(scene, extra=pack_entry(head, body))


def forged(key: SigningKey | Impostor | None) -> Callable[[Scene], bytes]:
    """A proof from a ledger with another answer, whose checkpoint is signed by `key`."""

    def make(scene: Scene) -> bytes:
        held = relink(edit(records(scene.path), ANSWERED, ANSWERS))
        leaves = b"".join(tlog.leaf_hash(head) for head, _ in held)
        seq, size = _answer(held), len(held)
        path = tlog.prove_inclusion(seq, size, tlog.subtrees(leaves)).path
        data = checkpoint(LEDGER_ID, size, tlog.root_of(leaves), key)  # type: ignore[arg-type]
        return format_inclusion(Inclusion(seq, path, data, pack_entry(*held[seq])))

    return make


def answer(data: bytes, *, with_key: bool) -> Answer:
    """What a reader of a proof file says."""
    trust = checking.Trust([LAB.verifier] if with_key else [])
    try:
        checking.check_event(parse_inclusion(data), trust)
    except ProofInvalid:
        return "refused"
    return "accepted"


def other_origin(scene: Scene) -> bytes:
    """The lab's signature over a checkpoint of another of its logs."""
    proof = parse_inclusion(honest(scene))
    size, root = proof.claim.checkpoint.size, proof.claim.checkpoint.root
    other = notes(scene.other / "ledger.sqlite")[-1]
    assert sidefile.parse(other).checkpoint.size == size
    assert sidefile.parse(other).checkpoint.root != root
    return _changed(scene, note=other)


PROOF_ATTACKS: Final = (
    ProofAttack(
        "proof-of-another-event",
        "uses a proof for another event",
        another_event,
        "refused",
        "refused",
    ),
    ProofAttack(
        "proof-moved",
        "uses a proof for another event, with the number of that one",
        another_event_and_index,
        "refused",
        "refused",
    ),
    ProofAttack(
        "proof-index", "changes the number of the event", another_index, "refused", "refused"
    ),
    ProofAttack(
        "proof-body",
        "changes an answer in the event that is proven",
        edited_body,
        "refused",
        "refused",
    ),
    ProofAttack(
        "proof-event",
        "changes an answer in the event that is proven, and the commitment to it",
        edited_event,
        "refused",
        "refused",
    ),
    ProofAttack("proof-path", "changes a hash of the path", edited_path, "refused", "refused"),
    ProofAttack("proof-shorter", "leaves a hash out", shorter_path, "refused", "refused"),
    ProofAttack(
        "proof-size", "changes the size in the checkpoint", another_size, "refused", "refused"
    ),
    ProofAttack(
        "proof-inner-node",
        "passes an inner node of the tree off as an event",
        inner_node,
        "refused",
        "refused",
    ),
    ProofAttack(
        "proof-another-run", "shows an event of another run", another_run, "refused", "refused"
    ),
    ProofAttack(
        "proof-another-log",
        "shows the checkpoint of another run",
        other_origin,
        "refused",
        "refused",
    ),
    ProofAttack(
        "proof-forged",
        "proves a changed answer under an unsigned checkpoint",
        forged(None),
        "accepted",
        "refused",
    ),
    ProofAttack(
        "proof-another-key",
        "proves a changed answer under a checkpoint signed with a key of another name",
        forged(THIEF),
        "accepted",
        "refused",
    ),
    ProofAttack(
        "proof-namesake",
        "proves a changed answer under one signed with another key of the same name",
        forged(NAMESAKE),
        "accepted",
        "refused",
    ),
    ProofAttack(
        "proof-impostor",
        "proves a changed answer under one that claims the id of the lab's key",
        forged(Impostor()),
        "accepted",
        "refused",
    ),
    ProofAttack(
        "proof-forked",
        "the lab signs a second history and proves an answer from it",
        forged(LAB),
        "accepted",
        "accepted",
    ),
)
