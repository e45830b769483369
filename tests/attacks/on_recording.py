"""What the holder of the key does: erases, records anew, or records what is not so."""

import shutil

from ledger.store import Ledger
from tests.attacks.attack import Attack, Scene
from tests.attacks.forging import certify, notes, records
from tests.attacks.on_content import ANSWERED, CONTENT
from tests.attacks.runs import LAB, Events, another_machine, record, story


def erase(scene: Scene) -> None:
    """As `acl erase` does it, signed; the last checkpoint was kept before."""
    (seq,) = [n for n, (_, body) in enumerate(records(scene.path)) if ANSWERED in body]
    with another_machine(), Ledger.open(scene.run, amends=True) as ledger:
        ledger.erase([seq], reason="private")
        ledger.checkpoint(LAB)


def false_metrics(scene: Scene) -> None:
    """Recorded anew by the lab itself, with a headline number that the events do not give."""

    def better(fields: dict[str, object]) -> dict[str, object]:
        metrics = dict(fields["metrics"])  # type: ignore[call-overload]
        name = next(name for name in metrics if name.endswith("accuracy"))
        return {**fields, "metrics": {**metrics, name: 0.99}}

    shutil.rmtree(scene.run)
    record(scene.run, seal=scene.sealed, metrics=better)


def truth_left_out(events: Events) -> Events:
    """The story without the try that failed: `wrong` was retried, and nobody says so."""
    kept = [event for event in events if event.type != "attempt.retried"]
    return [
        event.model_copy(update={"retries": 0})
        if event.type == "attempt.finished" and event.task == "wrong"
        else event
        for event in kept
    ]


def another_verdict(events: Events) -> Events:
    """The story in which `wrong` was solved."""

    def told(event: object) -> dict[str, object]:
        types = ("evaluation.finished", "attempt.finished")
        is_it = event.type in types and event.task == "wrong"  # type: ignore[attr-defined]
        return {"correct": True, "score": 1.0} if is_it else {}

    return [event.model_copy(update=told(event)) for event in events]


def rerecord_unsigned(scene: Scene) -> None:
    shutil.rmtree(scene.run)
    record(scene.run, seal=scene.sealed, events=another_verdict(story()))
    certify(scene.path, None)


def rerecord_signed(scene: Scene) -> None:
    shutil.rmtree(scene.run)
    record(scene.run, seal=scene.sealed, events=another_verdict(story()))


def false_at_once(scene: Scene) -> None:
    rerecord_signed(scene)
    scene.kept = notes(scene.path)[-1]


def never_recorded(scene: Scene) -> None:
    shutil.rmtree(scene.run)
    scene.kept = record(scene.run, seal=scene.sealed, events=truth_left_out(story()))


ATTACKS = [
    Attack(
        "erase",
        "the lab erases an answer, and the ledger says so",
        erase,
        CONTENT,
        "told",
        "told",
        "unproven",
        codes=("erased",),
    ),
    Attack(
        "false-metrics",
        "the lab records a headline number that the events do not give",
        false_metrics,
        CONTENT,
        "broken",
        "broken",
        "broken",
        by_command=True,
        codes=("metrics_differ",),
    ),
    Attack(
        "rerecord-unsigned",
        "records the whole run anew, with another verdict, without a key",
        rerecord_unsigned,
        CONTENT,
        "unseen",
        "unproven",
        "broken",
    ),
    Attack(
        "rerecord-signed",
        "the lab records the whole run anew, with another verdict",
        rerecord_signed,
        CONTENT,
        "unseen",
        "unseen",
        "broken",
    ),
    Attack(
        "false-at-once",
        "the lab records another verdict than the true one from the start",
        false_at_once,
        CONTENT,
        "unseen",
        "unseen",
        "unseen",
    ),
    Attack(
        "never-recorded",
        "the lab does not record a try that failed",
        never_recorded,
        CONTENT,
        "unseen",
        "unseen",
        "unseen",
    ),
]
