"""Attacks on what is recorded: one event, one blob, or all of it, with all that hangs on it."""

from ledger.events import AnnotationAdded
from ledger.store import Ledger
from tests.attacks.attack import Attack, Scene
from tests.attacks.forging import (
    Record,
    certify,
    edit,
    pieces,
    put_beside,
    records,
    relink,
    replace_events,
    replace_notes,
    replace_pieces,
)
from tests.attacks.runs import LAB, another_machine
from tests.ledger_checks import forge

CONTENT = "content"
# The verdict on the task `wrong`, and its answer, on which no number depends.
WAS, IS = b'"correct":false,"evaluator"', b'"correct":true,"evaluator"'
ANSWERED, ANSWERS = b'"final_answer":"41"', b'"final_answer":"42"'


def _forget_checkpoints(scene: Scene) -> None:
    replace_notes(scene.path, [])
    put_beside(scene.path, None)


def edit_body(scene: Scene) -> None:
    """With the rows and all that is derived put right, but not the commitment in the header."""
    replace_events(scene.path, edit(records(scene.path), WAS, IS))


def edit_header(scene: Scene) -> None:
    """One hour later."""
    new = records(scene.path)
    head, body = new[6]
    at = int.from_bytes(head[28:36], "big") + 3600 * 10**9
    new[6] = head[:28] + at.to_bytes(8, "big") + head[36:], body
    replace_events(scene.path, new)


def _edited(scene: Scene) -> list[Record]:
    return relink(edit(records(scene.path), ANSWERED, ANSWERS))


def edit_event(scene: Scene) -> None:
    replace_events(scene.path, _edited(scene))


def edit_event_bare(scene: Scene) -> None:
    replace_events(scene.path, _edited(scene))
    _forget_checkpoints(scene)


def edit_event_certified(scene: Scene) -> None:
    replace_events(scene.path, _edited(scene))
    certify(scene.path, None)


def edit_event_signed(scene: Scene) -> None:
    replace_events(scene.path, _edited(scene))
    certify(scene.path, LAB)


def swap_events(scene: Scene) -> None:
    """Two that may stand in either order, numbered anew."""
    new = records(scene.path)
    new[1:3] = new[1:3][::-1]
    replace_events(scene.path, relink(new))


def swap_events_certified(scene: Scene) -> None:
    """Two tasks in the other order, numbered anew."""
    new = records(scene.path)
    first = next(n for n, (head, _) in enumerate(new) if head[98:] == b"wrong")
    second = next(n for n, (head, _) in enumerate(new) if head[98:] == b"lost")
    end = max(n for n, (head, _) in enumerate(new) if head[98:] == b"lost") + 1
    replace_events(
        scene.path, relink(new[:first] + new[second:end] + new[first:second] + new[end:])
    )
    certify(scene.path, None)


def drop_events(scene: Scene) -> None:
    """The retry of `wrong`, with what follows numbered anew; the transitions forbid it."""
    new = records(scene.path)
    retry = next(n for n, (head, _) in enumerate(new) if head[2:4] == (39).to_bytes(2, "big"))
    replace_events(scene.path, relink(new[:retry] + new[retry + 1 :]))
    certify(scene.path, None)


def insert_event(scene: Scene) -> None:
    """The annotation, once more and with other words, before the last event."""
    new = records(scene.path)
    (mark,) = [pair for pair in new if b'"text":"looked at"' in pair[1]]
    other = mark[0], mark[1].replace(b"looked at", b"all right")
    replace_events(scene.path, relink([*new[:-1], other, new[-1]]))
    certify(scene.path, None)


def append(scene: Scene) -> None:
    """A remark, and a checkpoint of it that nobody signed."""
    with another_machine(), Ledger.open(scene.run, amends=True) as ledger:
        ledger.append(AnnotationAdded(text="all of this is true", author="the lab"))
        ledger.checkpoint()


def append_bare(scene: Scene) -> None:
    with another_machine(), Ledger.open(scene.run, amends=True) as ledger:
        ledger.append(AnnotationAdded(text="all of this is true", author="the lab"))


def foreign_event(scene: Scene) -> None:
    """An event of another run in the place of this run's."""
    new = records(scene.path)
    new[0] = records(scene.other / "ledger.sqlite")[0]
    replace_events(scene.path, new)


def edit_blob(scene: Scene) -> None:
    """The first piece of a trajectory, under its old digest."""
    replace_pieces(scene.path, _edited_pieces(scene), keep_digests=True)


def edit_blob_digest(scene: Scene) -> None:
    replace_pieces(scene.path, _edited_pieces(scene))


def _edited_pieces(scene: Scene) -> list[bytes]:
    held = pieces(scene.path)
    return [held[0][:-1] + bytes([held[0][-1] ^ 1]), *held[1:]]


def drop_blob(scene: Scene) -> None:
    replace_pieces(scene.path, pieces(scene.path)[1:])


def swap_blobs(scene: Scene) -> None:
    """Two whole blobs, with their digests: what refers to them finds them all the same."""
    held = pieces(scene.path)
    replace_pieces(scene.path, [held[1], held[0], *held[2:]])


def hide_bytes(scene: Scene) -> None:
    new = records(scene.path)
    head, body = new[-1]
    replace_events(scene.path, [*new[:-1], (head, body + b"hidden")])


def _erased(scene: Scene) -> list[Record]:
    return [
        (head, bytes(len(body)) if b'"reason":' in body or WAS in body else body)
        for head, body in records(scene.path)
    ]


def erase_silently(scene: Scene) -> None:
    replace_events(scene.path, _erased(scene))


def erase_without_event(scene: Scene) -> None:
    """With the rows of an erasure, but without the event that would tell of it."""
    new = _erased(scene)
    replace_events(scene.path, new)
    offset, row = 0, 0
    for head, body in new:
        if body and not any(body):
            start = offset + len(head)
            forge(scene.path, f"INSERT INTO erasure VALUES ({row}, 0, 0, {start}, {len(body)}, 3)")
            row += 1
        offset += len(head) + len(body)


ATTACKS = [
    Attack(
        "edit-body",
        "changes a verdict in a body, and all places and checks with it",
        edit_body,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("body_altered",),
    ),
    Attack(
        "edit-header",
        "changes the time in the header of an event",
        edit_header,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_root",),
    ),
    Attack(
        "edit-event",
        "changes an answer and the commitment to it",
        edit_event,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_root",),
    ),
    Attack(
        "edit-event-bare",
        "changes an answer and the commitment to it, and deletes all checkpoints",
        edit_event_bare,
        CONTENT,
        ("broken", "unproven"),
        ("broken", "unproven"),
        "broken",
    ),
    Attack(
        "edit-event-certified",
        "changes an answer, all that hangs on it, and all checkpoints, without a key",
        edit_event_certified,
        CONTENT,
        "unseen",
        "unproven",
        "broken",
    ),
    Attack(
        "edit-event-signed",
        "the lab changes an answer and all that hangs on it, and signs it",
        edit_event_signed,
        CONTENT,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "swap-events",
        "swaps two events and numbers them anew",
        swap_events,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("checkpoint_root",),
    ),
    Attack(
        "swap-events-certified",
        "swaps two tasks, with all numbers and all checkpoints, without a key",
        swap_events_certified,
        CONTENT,
        "unseen",
        "unproven",
        "broken",
    ),
    Attack(
        "drop-event-certified",
        "drops a retry, with all numbers and all checkpoints, without a key",
        drop_events,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("illegal",),
    ),
    Attack(
        "insert-event-certified",
        "adds an event, with all numbers and all checkpoints, without a key",
        insert_event,
        CONTENT,
        "unseen",
        "unproven",
        "broken",
    ),
    Attack(
        "append",
        "adds a remark at the end, without a checkpoint",
        append_bare,
        CONTENT,
        ("unseen", "unproven"),
        "unproven",
        "unproven",
        note="where it is sealed, a checkpoint that nobody signed comes by itself",
    ),
    Attack(
        "append-certified",
        "adds a remark at the end, with a checkpoint that nobody signed",
        append,
        CONTENT,
        "unseen",
        "unproven",
        "unproven",
    ),
    Attack(
        "foreign-event",
        "puts an event of another run in the place of this run's",
        foreign_event,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("event_foreign",),
    ),
    Attack(
        "edit-blob",
        "changes a blob under its old digest",
        edit_blob,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("blob_altered",),
    ),
    Attack(
        "edit-blob-and-digest",
        "changes a blob and its digest",
        edit_blob_digest,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("blob_missing",),
    ),
    Attack(
        "drop-blob",
        "drops a blob, and moves all others up",
        drop_blob,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("blob_missing",),
    ),
    Attack(
        "swap-blobs",
        "swaps two blobs with their digests",
        swap_blobs,
        CONTENT,
        "unseen",
        "unseen",
        "unseen",
        harmless=True,
    ),
    Attack(
        "hide-bytes",
        "adds bytes that no event names",
        hide_bytes,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("segment_hidden",),
    ),
    Attack(
        "erase-silently",
        "fills bodies with zeros",
        erase_silently,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("body_altered",),
    ),
    Attack(
        "erase-without-event",
        "fills bodies with zeros, with the rows of an erasure that no event tells of",
        erase_without_event,
        CONTENT,
        "broken",
        "broken",
        "broken",
        codes=("erased_silently", "erasure"),
    ),
]
