"""A document with its samples as an attempt: one filter gives the verdict, all give measures."""

from collections.abc import Sequence
from typing import Any, Final

from ledger import events as ev
from runtime.importers.foreign import UNKNOWN, ForeignAttempt, ForeignVerdict
from runtime.importers.lm_eval.files import FORMAT, object_of
from runtime.importers.lm_eval.sample import KNOWN, Sample
from runtime.importers.lm_eval.task import TaskScan

_REPEATED: Final = ("doc_id", "doc", "target", "arguments", "resps")


def attempt_of(scan: TaskScan, samples: Sequence[Sample]) -> ForeignAttempt:
    """The only attempt at a document; `samples` are its lines, one for each filter."""
    first = samples[0]
    metric, key = scan.headline or (None, None)
    headline = next((one for one in samples if one.filter == key), first)
    return ForeignAttempt(
        number=1,
        final_answer=_single(headline.value.get("filtered_resps")),
        ground_truth=first.value.get("target"),
        trajectory=_trajectory(first.value),
        meta={"doc": first.value.get("doc")},
        extra={"filters": {one.filter: _rest(one) for one in samples}},
        verdict=_verdict(scan, samples, headline, metric),
    )


def _verdict(
    scan: TaskScan, samples: Sequence[Sample], headline: Sample, metric: str | None
) -> ForeignVerdict | None:
    """The headline as verdict, and every measure under the name that the aggregates give it."""
    measures = {
        f"{name},{one.filter}": value for one in samples for name, value in one.measures.items()
    }
    value = None if metric is None else headline.measures.get(metric)
    if not measures:
        return None
    return ForeignVerdict(
        evaluator=ev.Evaluator(id=f"import:{FORMAT}", version=UNKNOWN),
        correct=bool(value) if value is not None and scan.judged_by_truth else None,
        score=None if value is None else value if type(value) is not bool else float(value),
        metrics=measures,
        reason=None if metric is None else f"{metric},{headline.filter}",
    )


def _trajectory(value: dict[str, Any]) -> dict[str, Any]:
    """A prompt and its one response as messages; other requests as they stand."""
    requests = [list(object_of(one).values()) for one in object_of(value.get("arguments")).values()]
    if "arguments" in value and not requests:
        return {"arguments": value["arguments"], "responses": value.get("resps")}
    responses = value.get("resps")
    response = _single(_single(responses))
    single = len(requests) == 1 and isinstance(response, str)
    prompt = requests[0][0] if single and requests[0] else None
    if isinstance(prompt, str):
        said = [
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": response},
        ]
        return {"messages": said, "arguments": requests[0][1:]}
    return {"requests": requests, "responses": responses}


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _rest(sample: Sample) -> dict[str, Any]:
    """What only this filter tells, and fields that are not known."""
    told = {
        name: item
        for name, item in sample.value.items()
        if name not in KNOWN and name not in sample.measures
    }
    kept = {name: sample.value[name] for name in KNOWN if name in sample.value}
    return {**{n: item for n, item in kept.items() if n not in (*_REPEATED, "filter")}, **told}
