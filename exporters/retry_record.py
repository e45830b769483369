"""Discarded tries: one file each, beside the records and never counted as one of them."""

from collections.abc import Iterator

from exporters import OutFile
from exporters.identity import Identity
from exporters.jsontext import JsonText
from exporters.names import normalise
from exporters.reading import Reading, error_fields, error_text
from ledger.events import AttemptRetried
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs

SCHEMA = "agentcompass.retry.v1"
_MAX_STAGE = 40


def retry_files(task: TaskState, name: str, state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """One file for each discarded try of the task, copied ones included, in order."""
    for number in sorted(task.attempts):
        for seq in task.attempts[number].retries:
            yield retry_file(task, task.attempts[number], seq, name, state, blobs)


def retry_file(
    task: TaskState,
    attempt: AttemptState,
    seq: int,
    name: str,
    state: RunState,
    blobs: Blobs,
) -> OutFile:
    """The file of the try that event `seq` discarded; `name` is the task's record name.

    A name ends in `.attempt<N>.retry<M>.<stage>`, and a stage has no dots: two are never the same.
    """
    reading = Reading(state, blobs)
    recorded = blobs.event(seq)
    event = recorded.event
    assert isinstance(event, AttemptRetried)  # an erased one is not in `attempt.retries`
    # An attempt that came alone may have been made anew in this run.
    copied = attempt.copied if attempt.origin is None else recorded.copied
    more: dict[str, object] = {
        "event": {"seq": seq, "address": recorded.address.hex()},
        "copied": copied,
        "error_info": error_fields(event.error),
    }
    document: dict[str, object] = {
        "schema": SCHEMA,
        "task_id": task.id,
        "category": task.category,
        "attempt": attempt.number,
        "retry": event.retry,
        "max_retries": event.max_retries,
        "retry_delay_seconds": event.retry_delay_seconds,
        "stage": event.stage,
        "scope": event.scope,
        "matched_pattern": event.matched_pattern,
        "error": error_text(event.error),
        "discarded_result": reading.value(seq, event.discarded_result),
    }
    if reading.gaps:
        more["erased"] = reading.told()
    document["acl"] = Identity.of(state).trailer(**more)
    stage = normalise(event.stage).replace(".", "_")[:_MAX_STAGE] or "stage"
    path = f"retry_details/{name}.attempt{attempt.number}.retry{event.retry}.{stage}.json"
    return OutFile(path, JsonText(document))
