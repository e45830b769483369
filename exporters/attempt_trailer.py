"""What `acl` tells of one attempt: what proves it, and what an import needs to rebuild it.

Each part is left out where there is nothing to tell:

    result, evaluation   addresses of the bodies that were judged and that judge; always there
    reused_from          the run that the attempt alone was taken over from
    measured             which of the record's `metrics` the evaluation gave; the harness the rest
    fatal                true where the attempt's error was the house's
    redactions           how many secrets were replaced in the result
    calls                the model calls without their texts, discarded tries included
"""

from collections.abc import Iterator

from exporters.reading import Reading, error_fields
from ledger import events as ev
from ledger.state import AttemptState, Origin

_OF_START = ("call_id", "call_index", "provider", "model")
_OF_END = (
    "success",
    "cost_usd",
    "cost_source",
    "started_at",
    "finished_at",
    "duration_ms",
    "ttft_ms",
    "provider_request_id",
)


def attempt_trailer(attempt: AttemptState, reading: Reading) -> dict[str, object]:
    """The attempt's part of `acl` in its task's record, or in `run_info.json` if it has none."""
    told: dict[str, object] = {
        "result": _hex(attempt.result_address),
        "evaluation": _hex(attempt.evaluation_address),
    }
    result = reading.event(attempt.result, ev.ResultRecorded)
    more = {
        "reused_from": source(None if attempt.anew else attempt.origin or attempt.claim),
        "measured": sorted(attempt.metrics),
        "fatal": attempt.fatal,
        "redactions": result.redactions if result else None,
        "calls": list(_calls(attempt, reading)),
    }
    return told | {name: value for name, value in more.items() if value}


def source(origin: Origin | ev.Claim | None) -> dict[str, object] | None:
    """Where something was reused from, as files tell it.

    Of exported files that is the ledger that they name: that of their import is not kept.
    """
    if isinstance(origin, Origin) and origin.claim is not None:
        origin = origin.claim
    if origin is None:
        return None
    return {
        "run_id": origin.run_id,
        "ledger_id": origin.ledger_id,
        "size": origin.size,
        "root": origin.root,
    }


def _hex(address: bytes | None) -> str | None:
    return None if address is None else address.hex()


def _calls(attempt: AttemptState, reading: Reading) -> Iterator[dict[str, object]]:
    """Each call by its start, with what was last told of its end; `retry` counts earlier tries."""
    rows: list[dict[str, object]] = []
    latest: dict[str, dict[str, object]] = {}
    ends = set(attempt.call_ends)
    for seq in sorted([*attempt.calls, *ends]):
        if seq not in ends:
            start = reading.event(seq, ev.CallStarted)
            if start is not None:
                row: dict[str, object] = {name: getattr(start, name) for name in _OF_START}
                row["retry"] = sum(retry < seq for retry in attempt.retries) or None
                rows.append(row)
                latest[start.call_id] = row
            continue
        end = reading.either(seq, ev.CallFinished, ev.CallLost)
        if end is not None and end.call_id in latest:
            latest[end.call_id].pop("lost", None)
            latest[end.call_id] |= _end(end)
    for row in rows:
        yield {name: value for name, value in row.items() if value is not None}


def _end(end: ev.CallFinished | ev.CallLost) -> dict[str, object]:
    if isinstance(end, ev.CallLost):
        return {"lost": True}
    row: dict[str, object] = {name: getattr(end, name) for name in _OF_END}
    row["usage"] = end.usage.model_dump(exclude_none=True) if end.usage else None
    row["error"] = error_fields(end.error) if end.error else None
    row["flags"] = list(end.flags) or None
    return row
