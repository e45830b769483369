"""One sample in one epoch as one attempt of one task."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledger import events as ev
from runtime.importers.foreign import ForeignAttempt, ForeignRetry, ForeignVerdict
from runtime.importers.inspect.calls import calls_of, flat_events
from runtime.importers.inspect.fields import count, listed, section, text
from runtime.importers.inspect.resolving import Resolver
from runtime.importers.inspect.scores import Scorers, measures, value_at
from runtime.importers.inspect.values import read_value
from runtime.importers.numbers import is_number

EVALUATOR: Final = "import:inspect"

# Told by calls and tools, or repeated by what else is told of the sample.
_TOLD_ELSEWHERE: Final = frozenset({"model", "tool", "state", "store", "sample_init"})
_CANCELLED: Final = ("CancelledError(", "Cancelled(")
_META: Final = (
    "id",
    "epoch",
    "uuid",
    "metadata",
    "sandbox",
    "files",
    "setup",
    "choices",
    "description",
    "started_at",
    "completed_at",
    "limit",
    "invalidation",
    "token_limit",
    "message_limit",
    "time_limit",
)
_USAGE: Final = ("model_usage", "role_usage", "model_fallbacks")
_TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_tokens_cache_read",
    "input_tokens_cache_write",
    "reasoning_tokens",
)


@dataclass(frozen=True, slots=True)
class SampleReader:
    """Reads the samples of one log, whose scorers are known; `version` is that of its program."""

    scorers: Scorers
    version: str
    max_retries: int | None = None

    def attempt(self, sample: Mapping[str, Any], resolver: Resolver) -> ForeignAttempt:
        """The attempt that the sample tells of."""
        error = _error(sample)
        verdict = self._verdict(sample, resolver, error)
        judge_failed = verdict is not None and verdict.error is not None
        events = list(
            flat_events(sample.get("events") or section(sample, "transcript").get("events"))
        )
        tries = listed(sample.get("error_retries"))
        return ForeignAttempt(
            number=sample["epoch"],
            final_answer=self._answer(sample, resolver),
            ground_truth=sample.get("target"),
            trajectory=_trajectory(sample, resolver),
            metrics=_measures(sample),
            telemetry=resolver.resolve({n: sample[n] for n in _USAGE if sample.get(n)}) or None,
            error=None if judge_failed else error,
            status="cancelled" if error is not None and error.code == "cancelled" else None,
            meta=resolver.resolve({n: sample[n] for n in _META if sample.get(n) not in (None, {})}),
            extra=_extra(sample, events, resolver),
            calls=(
                *_retried_calls(tries, resolver),
                *calls_of(events, resolver, retry=len(tries)),
            ),
            verdict=verdict,
            issues=tuple(_issues(sample)),
            retries=tuple(self._retries(tries)),
        )

    def _verdict(
        self, sample: Mapping[str, Any], resolver: Resolver, error: ev.ErrorInfo | None
    ) -> ForeignVerdict | None:
        scores = self.scorers.scores(sample)
        main = self.scorers.main
        name = main.scorer if main is not None else self.scorers.first
        evaluator = ev.Evaluator(id=f"{EVALUATOR}:{name}", version=self.version)
        if not scores:
            if error is None or not _was_scoring(sample):
                return None
            return ForeignVerdict(
                evaluator,
                error=error.model_copy(update={"code": "scorer_error", "phase": "evaluate"}),
            )
        value = None if main is None else value_at(scores, main)
        truth = main is not None and self.scorers.gives_truth(main)
        reading = read_value(value, truth=truth)
        score = section(scores, name)
        return ForeignVerdict(
            evaluator,
            correct=reading.correct,
            score=reading.score,
            metrics=measures(scores, main),
            reason=text(resolver.resolve(score.get("explanation"))) or None,
            extra={"scores": resolver.resolve(scores)},
        )

    def _answer(self, sample: Mapping[str, Any], resolver: Resolver) -> Any:
        main = self.scorers.main
        score = section(self.scorers.scores(sample), main.scorer if main else self.scorers.first)
        if isinstance(score.get("answer"), str):
            return resolver.resolve(score["answer"])
        output = section(sample.get("output"))
        if text(output.get("completion")):
            return resolver.resolve(output["completion"])
        choices = listed(output.get("choices"))
        return resolver.resolve(section(choices[0] if choices else None, "message").get("content"))

    def _retries(self, tries: list[Any]) -> Iterator[ForeignRetry]:
        for told in tries:
            yield ForeignRetry(
                error=_error_info(told, "sample_error"),
                max_retries=max(self.max_retries or 0, len(tries)),
                stage="run_harness",
            )


def _retried_calls(tries: list[Any], resolver: Resolver) -> Iterator[Any]:
    for number, told in enumerate(tries):
        yield from calls_of(list(flat_events(section(told).get("events"))), resolver, number)


def _error(sample: Mapping[str, Any]) -> ev.ErrorInfo | None:
    error = sample.get("error")
    if error is None:
        return None
    told = _error_info(error, "sample_error")
    if told.message.startswith(_CANCELLED):
        return told.model_copy(update={"code": "cancelled"})
    return told


def _error_info(error: Any, code: str) -> ev.ErrorInfo:
    """Inspect's own errors: words and a traceback; its colours are left out."""
    told = section(error)
    message = text(told.get("message")) or (error if isinstance(error, str) else "")
    return ev.ErrorInfo(
        code=code,
        message=message or "the log tells of an error without words",
        phase="run_harness",
        traceback=text(told.get("traceback")) or None,
    )


def _was_scoring(sample: Mapping[str, Any]) -> bool:
    """True if scorers had begun: an error of the solver keeps them from it."""
    return any(
        event.get("event") in ("span_begin", "step")
        and event.get("type") in ("scorer", "scorers")
        and event.get("action") in (None, "begin")
        for event in listed(sample.get("events"))
        if isinstance(event, dict)
    )


def _trajectory(sample: Mapping[str, Any], resolver: Resolver) -> Any:
    messages = resolver.resolve(listed(sample.get("messages")))
    return {"messages": messages} if messages else None


def _extra(
    sample: Mapping[str, Any], events: list[dict[str, Any]], resolver: Resolver
) -> dict[str, Any] | None:
    extra: dict[str, Any] = {"input": resolver.resolve(sample.get("input"))}
    for name in ("output", "store", "timelines"):
        if sample.get(name):
            extra[name] = resolver.resolve(sample[name])
    kept = [resolver.resolve(e) for e in events if text(e.get("event")) not in _TOLD_ELSEWHERE]
    if kept:
        extra["events"] = kept
    known = {*_META, *_USAGE, *_KNOWN}
    extra |= {name: resolver.resolve(sample[name]) for name in sample if name not in known}
    return {name: value for name, value in extra.items() if value is not None} or None


_KNOWN: Final = frozenset(
    {
        *("input", "target", "messages", "output", "scores", "score", "store", "events"),
        *("transcript", "timelines", "error", "error_retries", "attachments", "events_data"),
        *("message_pool", "call_pool", "total_time", "working_time", "turn_count"),
    }
)


def _measures(sample: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("total_time", "working_time", "turn_count"):
        if is_number(sample.get(name)):
            found[name] = sample[name]
    usages = [section(usage) for usage in section(sample.get("model_usage")).values()]
    for name in _TOKENS:
        told = [usage[name] for usage in usages if count(usage.get(name)) is not None]
        if told:
            found[name] = sum(told)
    costs = [usage["total_cost"] for usage in usages if is_number(usage.get("total_cost"))]
    if costs:
        found["total_cost"] = sum(costs)
    return found


def _issues(sample: Mapping[str, Any]) -> Iterator[ev.Issue]:
    limit = section(sample.get("limit"))
    if limit:
        kind = text(limit.get("type")) or "unknown"
        why = text(limit.get("reason"))
        reached = f"the sample was stopped by its {kind} limit ({limit.get('limit')})"
        yield ev.Issue(
            severity="warning",
            phase="run_harness",
            code=f"limit_{kind}",
            message=f"{reached}: {why}" if why else reached,
        )
    invalid = section(sample.get("invalidation"))
    if invalid:
        who, why = text(invalid.get("author")), text(invalid.get("reason"))
        message = f"invalidated by {who or 'somebody'}" + (f": {why}" if why else "")
        yield ev.Issue(severity="error", phase="evaluate", code="invalidated", message=message)
