"""The job's own numbers beside what its trials add up to: each difference in one sentence."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from runtime.importers.atif.counting import number
from runtime.importers.jobs.facts import Facts
from runtime.importers.jobs.failures import CANCELLED, error_of, is_of_verdict
from runtime.importers.jobs.sums import Sums, k_of, sums_of

_TOLERANCE: Final = 1e-6
_FEW: Final = 3


def differences(
    job: Mapping[str, Any], trials: Sequence[Facts], retries: int | None, *, ours: bool
) -> Iterator[str]:
    """Where `result.json` of a job does not say what its trials do.

    `trials` are those that ended, `retries` the discarded tries that its log tells of, None without
    a log.
    """
    stats = _object(job.get("stats"))
    if not ours:
        yield from _counts(job, stats, trials)
        yield from _retries(stats, retries)
    yield from _spent(stats, trials)
    if not isinstance(stats.get("evals"), dict):
        return
    evals = stats["evals"]
    by_key: dict[str, list[Facts]] = {}
    for facts in trials:
        by_key.setdefault(facts.kind.key, []).append(facts)
    # An export of ours that has one evaluation may call its dataset in a way of its own.
    if len(evals) == len(by_key) == 1:
        by_key = dict(zip(evals, by_key.values(), strict=True))
    for key in sorted(by_key.keys() - evals.keys()):
        yield f"stats.evals does not tell of {key}, which has {len(by_key[key])} trials"
    for key, told in sorted(evals.items()):
        if key not in by_key:
            if _object(told).get("n_trials") or _object(told).get("n_errors"):
                yield f"stats.evals tells of {key}, which has no trials"
            continue
        found = sums_of(by_key[key], ours=ours)
        yield from (f"stats.evals.{key}: {words}" for words in _evaluation(_object(told), found))


def zeros(trials: Sequence[Facts]) -> str | None:
    """What the means and pass@k count as 0 although nobody judged it; None if there is nothing."""
    unjudged = [facts for facts in trials if facts.rewards is None]
    judged = [facts for facts in trials if facts.rewards is not None]
    if not unjudged or not judged:
        return None
    not_its_own = sum(_is_not_the_agents(facts) for facts in unjudged)
    means = ", ".join(f"{name} {value:.6g}" for name, value in sums_of(judged).means.items())
    return (
        f"its means and pass@k count {len(unjudged)} of {len(trials)} trials as 0 that have no "
        f"reward, {not_its_own} of them by a fault of the verifier, the sandbox or Harbor; over "
        f"the {len(judged)} that were judged: {means}"
    )


def _is_not_the_agents(facts: Facts) -> bool:
    if facts.exception is None:
        return False
    error = error_of({"exception_type": facts.exception}, None)
    return error.fatal or is_of_verdict(error)


def _counts(
    job: Mapping[str, Any], stats: Mapping[str, Any], trials: Sequence[Facts]
) -> Iterator[str]:
    ours = {
        "n_completed_trials": ("n_trials", len(trials)),
        "n_errored_trials": ("n_errors", sum(one.exception is not None for one in trials)),
        "n_cancelled_trials": ("", sum(one.exception == CANCELLED for one in trials)),
    }
    for name, (older, count) in ours.items():
        told = stats.get(name, stats.get(older))
        if told is not None and told != count:
            yield f"{name} is {told!r}; its trials give {count}"
    total = job.get("n_total_trials")
    if type(total) is int and total < len(trials):
        yield f"n_total_trials is {total}; {len(trials)} trials are there"


def _retries(stats: Mapping[str, Any], retries: int | None) -> Iterator[str]:
    told = stats.get("n_retries")
    if type(told) is not int or told == (retries or 0):
        return
    if retries is None:
        yield f"n_retries is {told}; there is no job.log, so which trials were retried is not known"
    else:
        yield f"n_retries is {told}; job.log tells of {retries} discarded tries"


def _spent(stats: Mapping[str, Any], trials: Sequence[Facts]) -> Iterator[str]:
    for name, values in (
        ("n_input_tokens", [one.spent.input_tokens for one in trials]),
        ("n_cache_tokens", [one.spent.cached_tokens for one in trials]),
        ("n_output_tokens", [one.spent.output_tokens for one in trials]),
        ("cost_usd", [one.spent.cost_usd for one in trials]),
    ):
        known = [value for value in values if value is not None]
        found = sum(known) if known else None
        told = stats.get(name)
        if name in stats and not _is(told, found):
            yield f"{name} is {told!r}; its trials give {found!r}"


def _evaluation(told: Mapping[str, Any], found: Sums) -> Iterator[str]:
    for name, count in (("n_trials", found.n_trials), ("n_errors", found.n_errors)):
        if name in told and told[name] != count:
            yield f"{name} is {told[name]!r}; its trials give {count}"
    metrics = told.get("metrics")
    for metric in metrics if isinstance(metrics, list) else []:
        for name, value in _object(metric).items():
            # Others than means are computed by rules that the job does not tell.
            if name in found.means and not _is(value, found.means[name]):
                yield f"{name} is {value!r}; its trials give {found.means[name]!r}"
    estimates = _object(told.get("pass_at_k"))
    for k, value in sorted(estimates.items()):
        mine = found.pass_at_k.get(k_of(k) or 0)
        if not _is(value, mine):
            yield f"pass@{k} is {value!r}; its trials give {mine!r}"
    yield from _lists("reward_stats", _flat(told.get("reward_stats")), _of(found))
    kinds = _object(told.get("exception_stats"))
    yield from _lists(
        "exception_stats",
        {kind: _names(names) for kind, names in kinds.items()},
        {kind: frozenset(names) for kind, names in found.exception_stats.items()},
    )


def _flat(stats: Any) -> dict[str, frozenset[str]]:
    return {
        f"{name} {_plain(value)}": _names(names)
        for name, values in _object(stats).items()
        for value, names in _object(values).items()
    }


def _of(found: Sums) -> dict[str, frozenset[str]]:
    return {
        f"{name} {_plain(value)}": frozenset(names)
        for name, values in found.reward_stats.items()
        for value, names in values.items()
    }


def _plain(value: Any) -> str:
    """A reward as it is compared: keys of JSON are texts, and 1 is 1.0."""
    try:
        return repr(round(float(value), 6) + 0.0)
    except ValueError:
        return str(value)


def _lists(
    what: str, told: Mapping[str, frozenset[str]], found: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    for key in sorted(told.keys() | found.keys()):
        theirs, mine = told.get(key, frozenset()), found.get(key, frozenset())
        if theirs - mine:
            yield f"{what} has {_some(theirs - mine)} under {key}; the trials do not say so"
        if mine - theirs:
            yield f"{what} lacks {_some(mine - theirs)} under {key}"


def _some(names: frozenset[str]) -> str:
    first = ", ".join(sorted(names)[:_FEW])
    return first if len(names) <= _FEW else f"{first} and {len(names) - _FEW} more"


def _is(told: Any, found: float | None) -> bool:
    if found is None or number(told) is None:
        return told is None and found is None
    return math.isclose(told, found, rel_tol=1e-9, abs_tol=_TOLERANCE)


def _names(value: Any) -> frozenset[str]:
    names = value if isinstance(value, list) else []
    return frozenset(name for name in names if isinstance(name, str))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
