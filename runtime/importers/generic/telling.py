"""A record as an attempt: every field has a place, be it `extra`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from ledger import events as ev
from runtime.importers.foreign import UNKNOWN, ForeignAttempt, ForeignCall, ForeignVerdict
from runtime.importers.generic.header import FORMAT
from runtime.importers.generic.record import GenericRecord
from runtime.importers.numbers import is_number, split_measures
from runtime.importers.times import NO_TIME, NO_ZONE, read_time

NOT_OURS: Final = "fields that the form does not know, kept in extra"
ODD_SCORE: Final = "a score that is not finite is no verdict: kept in extra"

_ALIASES: Final = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
_MOST_DOLLARS: Final = 1e15
_OF_A_TASK: Final = ("category", "checksum", "metadata")
_OF_THE_RUN: Final = ("model", "benchmark", "harness")


@dataclass(slots=True)
class Telling:
    """One record on its way; `told` are the reasons of what was put elsewhere."""

    record: GenericRecord
    told: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def attempt(self, number: int, model: str) -> ForeignAttempt:
        """The attempt of this number."""
        record = self.record
        self.rest = {name: item for name, item in record.rest.items() if item is not None}
        for name in _OF_A_TASK:
            self.rest.pop(name, None)
        measures = self._measures()
        verdict = self._verdict(measures) if record.judged else None
        calls = self._calls(model)
        meta = self._meta()
        return ForeignAttempt(
            number=number,
            final_answer=self.rest.pop("final_answer", None),
            ground_truth=self.rest.pop("ground_truth", None),
            trajectory=self._trajectory(),
            metrics={} if verdict is not None else measures,
            telemetry=self.rest.pop("telemetry", None),
            error=record.error,
            meta=meta or None,
            calls=calls,
            verdict=verdict,
            extra=self._extra() or None,
        )

    def _take(self, name: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
        """The value of a field, or None if there is none or another than `wanted`."""
        value = self.rest.pop(name, None)
        if value is None or fits(value):
            return value
        self.told.append(f"{name} is not {wanted}: kept in extra")
        self.extra[name] = value
        return None

    def _measures(self) -> dict[str, bool | int | float]:
        measures, others = split_measures(self._take("metrics", "an object", _is_object))
        if others:
            self.told.append("metrics that are no finite numbers: kept in extra")
            self.extra["metrics"] = others
        return measures

    def _verdict(self, measures: dict[str, bool | int | float]) -> ForeignVerdict:
        record = self.record
        return ForeignVerdict(
            evaluator=self._evaluator(),
            correct=record.correct,
            score=record.score,
            metrics=measures,
            reason=self._take("reason", "a text", _is_text),
            error=record.evaluation_error,
            tests_status=self.rest.pop("tests_status", None),
            stdout=self._take("stdout", "a text", _is_text),
            stderr=self._take("stderr", "a text", _is_text),
        )

    def _evaluator(self) -> ev.Evaluator:
        value = self._take("evaluator", "a text or {id, version}", _is_evaluator)
        named = {"id": value} if isinstance(value, str) else value or {}
        return ev.Evaluator.model_validate({"id": f"import:{FORMAT}", "version": UNKNOWN, **named})

    def _calls(self, model: str) -> tuple[ForeignCall, ...]:
        """One call that stands for all, where tokens or cost are told."""
        usage = self._usage()
        cost = self._take("cost_usd", "a number of at least 0", _is_cost)
        if usage is None and cost is None:
            return ()
        own = self.rest.get("model")
        return (
            ForeignCall(
                model=own if isinstance(own, str) else model or None,
                usage=usage,
                cost_usd=cost,
                flags=("total_of_attempt",),
            ),
        )

    def _usage(self) -> ev.Usage | None:
        value = self._take("usage", "an object", _is_object)
        if not value:
            return None
        known: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, item in value.items():
            ours = _ALIASES.get(name, name)
            fits = ours in ev.Usage.model_fields and ours not in known
            (known if fits else others)[ours if fits else name] = item
        try:
            usage = ev.Usage.model_validate(known)
        except ValidationError:
            self.told.append("usage holds what is no count of tokens: kept in extra")
            self.extra["usage"] = value
            return None
        if others:
            self.extra["usage"] = others
        return usage if known else None

    def _meta(self) -> dict[str, Any]:
        given = self._take("meta", "an object", _is_object)
        meta = dict(given) if given else {}
        for name in ("started_at", "finished_at"):
            value = self.rest.pop(name, None)
            time, odd = (None, None) if value is None else read_time(value)
            if odd is not None:
                self.told.append(f"{odd}: kept as they are" if time is None else odd)
            if value is not None:
                meta[name] = time or value
        for name in _OF_THE_RUN:
            value = self._take(name, "a text", _is_text)
            if value is not None:
                meta[name] = value
        return meta

    def _trajectory(self) -> Any:
        """`trajectory`, or `messages` in its place."""
        if "trajectory" in self.rest:
            return self.rest.pop("trajectory")
        messages = self.rest.pop("messages", None)
        return None if messages is None else {"messages": messages}

    def _extra(self) -> dict[str, Any]:
        given = self.rest.pop("extra", None)
        if self.record.odd_score is not None:
            self.told.append(ODD_SCORE)
            self.extra["score"] = self.record.odd_score
        if self.rest:
            self.told.append(f"{NOT_OURS}: {', '.join(sorted(self.rest))}")
        mine = {**self.rest, **self.extra}
        if given is None:
            return mine
        if not isinstance(given, dict) or given.keys() & mine.keys():
            return {**mine, "extra": given}
        return {**given, **mine}


def times_of(record: GenericRecord) -> list[str]:
    """The times of a record that are known in UTC."""
    found = [read_time(record.rest.get(name)) for name in ("started_at", "finished_at")]
    return [time for time, odd in found if time is not None and odd not in (NO_ZONE, NO_TIME)]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_cost(value: Any) -> bool:
    return is_number(value) and 0 <= value < _MOST_DOLLARS


def _is_evaluator(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    known = isinstance(value, dict) and value.keys() <= ev.Evaluator.model_fields.keys()
    return known and bool(value) and all(map(_is_text, value.values()))
