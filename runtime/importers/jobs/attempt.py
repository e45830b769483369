"""One trial as an attempt: how it ended, who is to blame, what it took, and what was judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from ledger import events as ev
from runtime.importers.foreign import ForeignAttempt, ForeignCall, ForeignRetry, ForeignVerdict
from runtime.importers.jobs.agent_files import Work, work_of
from runtime.importers.jobs.facts import Facts, Spent
from runtime.importers.jobs.failures import CANCELLED, error_of, is_of_verdict, reached
from runtime.importers.jobs.layout import TrialFiles
from runtime.importers.jobs.verdict import check_rewards, verdict_of
from runtime.importers.plan import Remark
from runtime.importers.source import Source
from runtime.importers.times import utc

SUM_OF_CALLS: Final = "sum_of_calls"
"""Flags a call that stands for all of an attempt, of which only the sums are known."""

_SPANS: Final = ("environment_setup", "agent_setup", "agent_execution", "verifier")
_IN_META: Final = ("trial_name", "id", "agent_info", "verifier_environment_mode")
_TIMES: Final = ("started_at", "finished_at")
_OF_AGENT: Final = ("metadata", "model_usage")
_STATUSES: Final = get_args(ev.AttemptStatus)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an attempt needs to know of its job."""

    source: Source
    binary: bool
    version: str


def attempt_of(
    around: Circumstances,
    files: TrialFiles,
    facts: Facts,
    result: Mapping[str, Any] | None,
    number: int,
    retries: tuple[ForeignRetry, ...],
    remarks: list[Remark],
) -> ForeignAttempt:
    """The attempt; what does not add up goes to `remarks`. Without a result it did not end."""
    work = work_of(around.source, files)
    remarks += work.remarks
    remarks += check_rewards(around.source, files, result)
    originals = tuple(files.files[path] for path in sorted(files.files))
    if result is None:
        return ForeignAttempt(
            number, calls=tuple(work.calls), originals=originals, ended=False, retries=retries
        )
    path = files.files["result.json"].path
    remarks += [Remark(path, reason, placed=True) for reason in _spent_otherwise(work, facts)]
    remarks += [Remark(path, reason, placed=True) for reason in _odd_times(result)]
    error, verdict_error = _errors(result)
    verdict = verdict_of(
        around.source,
        files,
        result,
        binary=around.binary,
        version=around.version,
        error=verdict_error,
    )
    if verdict is not None and verdict.error is None and verdict_error is not None:
        error = error or verdict_error  # there is a reward all the same, and it counts
    return ForeignAttempt(
        number=number,
        final_answer=work.final_answer,
        trajectory=work.trajectory,
        metrics=_measures(work, facts.spent),
        error=error,
        meta=_meta(result),
        extra=_extra(result),
        calls=tuple(work.calls) or _sums(facts, result),
        verdict=verdict,
        originals=originals,
        status=_status(result, error, verdict),
        retries=_own_retries(result, retries),
    )


def _errors(result: Mapping[str, Any]) -> tuple[ev.ErrorInfo | None, ev.ErrorInfo | None]:
    """The error of the run, and that of the verdict: the trial's own, else its first step's."""
    infos = [result.get("exception_info")]
    steps = result.get("step_results")
    infos += [
        step.get("exception_info")
        for step in (steps if isinstance(steps, list) else [])
        if isinstance(step, dict)
    ]
    info = next((one for one in infos if isinstance(one, dict)), None)
    if info is None:
        return None, None
    error = error_of(info, reached(result))
    of_verdict = is_of_verdict(error) and error.code != CANCELLED
    return (None, error) if of_verdict else (error, None)


def _status(
    result: Mapping[str, Any], error: ev.ErrorInfo | None, verdict: ForeignVerdict | None
) -> ev.AttemptStatus | None:
    """The status where it is not what error and verdict make of it."""
    ours = result.get("acl")
    if isinstance(ours, dict) and ours.get("status") in _STATUSES:
        status: ev.AttemptStatus = ours["status"]
        return status
    if error is not None and error.code == CANCELLED:
        return "cancelled"
    judged = verdict is not None and verdict.error is None
    return "eval_error" if error is not None and judged and is_of_verdict(error) else None


def _own_retries(
    result: Mapping[str, Any], retries: tuple[ForeignRetry, ...]
) -> tuple[ForeignRetry, ...]:
    """The discarded tries; of those that an export of ours counts nothing else is known."""
    ours = result.get("acl")
    told = ours.get("retries") if isinstance(ours, dict) else None
    if type(told) is not int or retries:
        return retries
    error = ev.ErrorInfo(code="unknown", message="the layout does not tell why it was discarded")
    return tuple(ForeignRetry(error, max_retries=told) for _ in range(min(told, 1000)))


def _sums(facts: Facts, result: Mapping[str, Any]) -> tuple[ForeignCall, ...]:
    """Where no call is told, one that holds what all of them took together, if that is known."""
    spent = facts.spent
    if spent == Spent():
        return ()
    usage = ev.Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cached_tokens=spent.cached_tokens,
    )
    span = result.get("agent_execution")
    times = span if isinstance(span, dict) else {}
    return (
        ForeignCall(
            model=facts.kind.model,
            provider=facts.provider,
            usage=None if usage == ev.Usage() else usage,
            cost_usd=spent.cost_usd,
            started_at=utc(times.get("started_at")),
            finished_at=utc(times.get("finished_at")),
            flags=(SUM_OF_CALLS,),
        ),
    )


def _measures(work: Work, spent: Spent) -> dict[str, Any]:
    """The agent's own measures: what it counted, and what its trajectory counts up to."""
    told = {
        "n_input_tokens": spent.input_tokens,
        "n_cache_tokens": spent.cached_tokens,
        "n_output_tokens": spent.output_tokens,
        "cost_usd": spent.cost_usd,
    }
    return {**work.measures, **{name: value for name, value in told.items() if value is not None}}


def _spent_otherwise(work: Work, facts: Facts) -> Iterator[str]:
    """Where the agent's sums are not those of its calls."""
    ended = [call for call in work.calls if call.ended and call.error is None]
    usages = [call.usage for call in ended if call.usage is not None]
    for name, told, given in (
        ("n_input_tokens", facts.spent.input_tokens, [one.input_tokens for one in usages]),
        ("n_cache_tokens", facts.spent.cached_tokens, [one.cached_tokens for one in usages]),
        ("n_output_tokens", facts.spent.output_tokens, [one.output_tokens for one in usages]),
        ("cost_usd", facts.spent.cost_usd, [one.cost_usd for one in ended]),
    ):
        known = [value for value in given if value is not None]
        if told is not None and known and abs(sum(known) - told) > 1e-6:
            yield f"{name} is {told}; its calls give {sum(known):.10g}"


def _odd_times(result: Mapping[str, Any]) -> Iterator[str]:
    for name in _TIMES:
        value = result.get(name)
        if value is not None and utc(value) is None:
            yield f"{name} is {value!r}, no ISO-8601 time with a zone"


def _meta(result: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies the trial, and when its parts began and ended: UTC where a zone is told."""
    meta = {name: result[name] for name in _IN_META if result.get(name) is not None}
    meta |= {name: utc(result.get(name)) or result.get(name) for name in _TIMES}
    for name in _SPANS:
        span = result.get(name)
        if isinstance(span, dict):
            meta[name] = {key: utc(span.get(key)) or span.get(key) for key in _TIMES}
    info = result.get("exception_info")
    if isinstance(info, dict) and info.get("occurred_at") is not None:
        meta["exception"] = {
            "type": info.get("exception_type"),
            "occurred_at": utc(info["occurred_at"]) or info["occurred_at"],
        }
    return meta


def _extra(result: Mapping[str, Any]) -> dict[str, Any] | None:
    agent, steps = result.get("agent_result"), result.get("step_results")
    told = agent if isinstance(agent, dict) else {}
    extra = {name: told[name] for name in _OF_AGENT if told.get(name) is not None}
    return {**extra, **({"step_results": steps} if steps else {})} or None
