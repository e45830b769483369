"""Attacks on keys and checkpoints, and on what was before: cuts, older copies, other files."""

import shutil
from base64 import b64encode
from hashlib import sha256

from ledger import note, sidefile
from ledger.keys import SigningKey
from tests.attacks.attack import Attack, Scene
from tests.attacks.forging import (
    certify,
    notes,
    put_beside,
    records_of_rows,
    replace_events,
    replace_notes,
)
from tests.attacks.on_recording import another_verdict
from tests.attacks.runs import LAB, LEDGER_ID, record, story

HISTORY, KEYS = "history", "keys and checkpoints"
THIEF = SigningKey.generate("thief.example", entropy=lambda n: b"T" * n)
NAMESAKE = SigningKey.generate(LAB.name, entropy=lambda n: b"N" * n)


class Impostor:
    """Has the name and the id of the lab's key, and signs with another one."""

    name = LAB.name
    key_id = LAB.key_id

    def sign(self, text: bytes) -> bytes:
        return NAMESAKE.sign(text)


def sign_anew(key: SigningKey | Impostor):
    """An attack that has all checkpoints signed by another key."""
    return lambda scene: certify(scene.path, key)  # type: ignore[arg-type]


def _all_notes(scene: Scene, change) -> None:
    changed = [change(data) for data in notes(scene.path)]
    replace_notes(scene.path, changed)
    put_beside(scene.path, changed[-1])


def strip_signatures(scene: Scene) -> None:
    certify(scene.path, None)


def edit_root(scene: Scene) -> None:
    """In the last checkpoint, in the ledger and beside it."""
    held = notes(scene.path)
    origin, size, _, *rest = held[-1].split(b"\n")
    wrong = b64encode(sha256(b"wrong").digest())
    held[-1] = b"\n".join([origin, size, wrong, *rest])
    replace_notes(scene.path, held)
    put_beside(scene.path, held[-1])


def edit_size(scene: Scene) -> None:
    """A checkpoint beside the ledger that claims one event more."""
    origin, size, *rest = notes(scene.path)[-1].split(b"\n")
    put_beside(scene.path, b"\n".join([origin, b"%d" % (int(size) + 1), *rest]))


def edit_signature(scene: Scene) -> None:
    def change(data: bytes) -> bytes:
        signed = note.parse_note(data)
        (line,) = signed.signatures
        wrong = bytes([line.signature[0] ^ 1]) + line.signature[1:]
        return note.format_note(
            note.SignedNote(signed.text, (note.Signature(line.name, line.key_id, wrong),))
        )

    _all_notes(scene, change)


def edit_origin(scene: Scene) -> None:
    _all_notes(scene, lambda data: data.replace(LEDGER_ID.hex().encode(), b"0" * 32))


def drop_checkpoint(scene: Scene) -> None:
    from tests.ledger_checks import forge

    forge(scene.path, "DELETE FROM checkpoint WHERE id = 1")


def drop_last_checkpoint(scene: Scene) -> None:
    replace_notes(scene.path, notes(scene.path)[:-1])


def drop_last_checkpoint_and_side(scene: Scene) -> None:
    drop_last_checkpoint(scene)
    put_beside(scene.path, None)


def drop_all_checkpoints(scene: Scene) -> None:
    replace_notes(scene.path, [])
    put_beside(scene.path, None)


def swap_checkpoints(scene: Scene) -> None:
    held = notes(scene.path)
    replace_notes(scene.path, [held[1], held[0], *held[2:]])


def _cut(scene: Scene, size: int) -> None:
    kept = records_of_rows(scene.path)[:size]
    held = [one for one in notes(scene.path) if sidefile.parse(one).checkpoint.size <= size]
    replace_notes(scene.path, [])
    put_beside(scene.path, None)
    replace_events(scene.path, kept)
    replace_notes(scene.path, held)
    put_beside(scene.path, held[-1])


def cut_last(scene: Scene) -> None:
    """The last event, and every checkpoint that knows of it."""
    _cut(scene, len(records_of_rows(scene.path)) - 1)


def cut(scene: Scene) -> None:
    """Down to the second event of the second task."""
    _cut(scene, sidefile.parse(notes(scene.path)[1]).checkpoint.size + 2)


def cut_to_checkpoint(scene: Scene) -> None:
    """Everything behind the checkpoint after the second task."""
    _cut(scene, sidefile.parse(notes(scene.path)[2]).checkpoint.size)


def cut_and_sign(scene: Scene) -> None:
    """The last three events; the lab signs what is left."""
    _cut(scene, len(records_of_rows(scene.path)) - 3)
    certify(scene.path, LAB)


def roll_back_file(scene: Scene) -> None:
    """The ledger as it was, beside today's checkpoint file."""
    for suffix in ("", "-wal", "-shm"):
        today, before = (run / f"ledger.sqlite{suffix}" for run in (scene.run, scene.older))
        today.unlink(missing_ok=True)
        if before.exists():
            shutil.copyfile(before, today)


def roll_back(scene: Scene) -> None:
    shutil.rmtree(scene.run)
    shutil.copytree(scene.older, scene.run)


def replace_file(scene: Scene) -> None:
    """The ledger of another run, beside this run's checkpoint file."""
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        (scene.run / name).unlink(missing_ok=True)
        if (scene.other / name).exists():
            shutil.copyfile(scene.other / name, scene.run / name)


def replace_run(scene: Scene) -> None:
    shutil.rmtree(scene.run)
    shutil.copytree(scene.other, scene.run)


def fork(scene: Scene) -> None:
    """A second history from the first task on, signed by the lab, for this auditor only."""
    events = story()
    shutil.rmtree(scene.run)
    record(scene.run, seal=scene.sealed, events=another_verdict(events))


ATTACKS = [
    Attack(
        "edit-root",
        "changes the root in the last checkpoint",
        edit_root,
        KEYS,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_root",),
    ),
    Attack(
        "edit-size",
        "claims one event more in the checkpoint file",
        edit_size,
        KEYS,
        "broken",
        "broken",
        "broken",
        codes=("rolled_back",),
    ),
    Attack(
        "edit-signature",
        "changes the signatures of all checkpoints",
        edit_signature,
        KEYS,
        "unseen",
        "broken",
        "unseen",
    ),
    Attack(
        "edit-origin",
        "gives all checkpoints the origin of another ledger",
        edit_origin,
        KEYS,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_origin",),
    ),
    Attack(
        "strip-signatures",
        "puts unsigned checkpoints in the place of the signed ones",
        strip_signatures,
        KEYS,
        "unseen",
        "unproven",
        "unseen",
    ),
    Attack(
        "sign-with-another-key",
        "signs all checkpoints with a key of another name",
        sign_anew(THIEF),
        KEYS,
        "unseen",
        "unproven",
        "unseen",
    ),
    Attack(
        "sign-as-namesake",
        "signs all checkpoints with another key of the same name",
        sign_anew(NAMESAKE),
        KEYS,
        "unseen",
        "unproven",
        "unseen",
    ),
    Attack(
        "sign-as-impostor",
        "signs all checkpoints with another key, and claims the id of the lab's",
        sign_anew(Impostor()),
        KEYS,
        "unseen",
        "broken",
        "unseen",
    ),
    Attack(
        "drop-checkpoint",
        "deletes the row of a checkpoint",
        drop_checkpoint,
        KEYS,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_missing",),
    ),
    Attack(
        "drop-last-checkpoint",
        "deletes the row of the last checkpoint",
        drop_last_checkpoint,
        KEYS,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_missing",),
    ),
    Attack(
        "drop-last-checkpoint-and-file",
        "deletes the row of the last checkpoint, and the checkpoint file",
        drop_last_checkpoint_and_side,
        KEYS,
        ("broken", "unproven"),
        ("broken", "unproven"),
        ("broken", "unseen"),
    ),
    Attack(
        "drop-all-checkpoints",
        "deletes all checkpoints",
        drop_all_checkpoints,
        KEYS,
        ("broken", "unproven"),
        ("broken", "unproven"),
        ("broken", "unseen"),
    ),
    Attack(
        "swap-checkpoints",
        "swaps two checkpoints",
        swap_checkpoints,
        KEYS,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint",),
    ),
    Attack(
        "cut-last",
        "drops the last event and every checkpoint that knows of it",
        cut_last,
        HISTORY,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "cut",
        "drops the last events, down to between two checkpoints",
        cut,
        HISTORY,
        "unproven",
        "unproven",
        "broken",
    ),
    Attack(
        "cut-to-checkpoint",
        "drops everything behind an older checkpoint",
        cut_to_checkpoint,
        HISTORY,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "cut-and-sign",
        "the lab drops the last events and signs what is left",
        cut_and_sign,
        HISTORY,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "roll-back-file",
        "puts an older copy of the ledger beside today's checkpoint file",
        roll_back_file,
        HISTORY,
        "broken",
        "broken",
        "broken",
        codes=("rolled_back",),
    ),
    Attack(
        "roll-back",
        "puts an older copy of the whole directory in its place",
        roll_back,
        HISTORY,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "replace-file",
        "puts the ledger of another run beside this run's checkpoint file",
        replace_file,
        HISTORY,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_origin",),
    ),
    Attack(
        "replace-run",
        "puts the directory of another run in the place of this one",
        replace_run,
        HISTORY,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "fork",
        "the lab signs two histories, and shows the auditor the second",
        fork,
        HISTORY,
        "unseen",
        "unseen",
        "broken",
    ),
]
