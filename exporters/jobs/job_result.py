"""The job's `result.json`: Harbor's JobResult (harbor 0.25.0) without the trials themselves."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from exporters import OutFile
from exporters.identity import Identity
from exporters.jobs.numbers import dollars, mean, percent, rounded, total
from exporters.jobs.resolution import (
    countable_attempts,
    is_ended,
    is_task_resolved,
)
from exporters.jobs.rewards import REWARD
from exporters.jobs.trial import dataset, harness_id, model_id, uuid_of
from exporters.jobs.trial_result import Facts
from exporters.jsontext import json_bytes
from ledger.state import RunState, TaskState
from ledger.statistics import pass_at_k, wilson

PATH = "result.json"
RUNNING = "running"


def job_result(state: RunState, trials: Sequence[Facts], *, live: bool = False) -> OutFile:
    """The file, from what is known of the trials so far; `live`: its writer is at work."""
    running = live and state.finished is None
    planned = sum(_planned(task, state) for task in state.tasks.values())
    mean_over_graded = rounded(mean(facts.rewards[REWARD] for facts in trials if facts.rewards))
    document = {
        "id": uuid_of(state.run_id),
        "started_at": started_at(state),
        "updated_at": state.last_at,
        "finished_at": _readable(state.ended_at),
        "n_total_trials": planned,
        "stats": {
            **_progress(state, planned, running=running),
            "evals": {_eval_key(state): _evaluation(state, trials, mean_over_graded)},
            "n_input_tokens": total(facts.spent.input_tokens for facts in trials),
            "n_cache_tokens": total(facts.spent.cached_tokens for facts in trials),
            "n_output_tokens": total(facts.spent.output_tokens for facts in trials),
            "cost_usd": _cost(trials),
        },
        "acl": Identity.of(state).trailer(
            status=RUNNING if running else state.status,
            **_resolution(state),
            mean_over_graded=mean_over_graded,
        ),
    }
    return OutFile(PATH, json_bytes(document, unicode=True))


def started_at(state: RunState) -> str | None:
    """When the run began; where an import tells no readable time, when it was imported."""
    return _readable(state.started_at) or state.created_at


def _readable(text: str | None) -> str | None:
    try:
        datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return text


def _planned(task: TaskState, state: RunState) -> int:
    """The attempts of a task: made, taken over, and those that may still be made."""
    made = len(task.attempts)
    if task.reused:
        return made
    if state.strategy == "stop_on_correct":
        over = state.finished is not None or task.stage in {"done", "error", "cancelled"}
        if over or task.solved_at is not None:
            return made
    return max(made, state.k)


def _progress(state: RunState, planned: int, *, running: bool) -> dict[str, object]:
    attempts = [attempt for _, attempt in state.attempts()]
    completed = sum(map(is_ended, attempts))
    open_now = len(attempts) - completed if running else 0
    return {
        "n_completed_trials": completed,
        "n_errored_trials": sum(attempt.error for attempt in attempts),
        "n_running_trials": open_now,
        "n_pending_trials": max(planned - completed - open_now, 0),
        "n_cancelled_trials": sum(attempt.status == "cancelled" for attempt in attempts),
        "n_retries": sum(len(attempt.retries) for attempt in attempts),
    }


def _eval_key(state: RunState) -> str:
    parts = (harness_id(state), model_id(state), dataset(state))
    return "__".join(part for part in parts if part is not None)


def _evaluation(
    state: RunState, trials: Sequence[Facts], mean_over_graded: float | None
) -> dict[str, object]:
    rewards = [0.0 if facts.rewards is None else facts.rewards[REWARD] for facts in trials]
    over_all = rounded(mean(rewards))
    return {
        "n_trials": sum(facts.rewards is not None for facts in trials),
        "n_errors": sum(facts.exception is not None for facts in trials),
        "metrics": [] if over_all is None else [{"mean": over_all}],
        "pass_at_k": _pass_at_k(state, trials),
        "reward_stats": _reward_stats(trials),
        "exception_stats": _exception_stats(trials),
        "acl": {"mean_over_graded": mean_over_graded},
    }


def _pass_at_k(state: RunState, trials: Sequence[Facts]) -> dict[str, float | None]:
    """The unbiased estimate for each k up to the least number of trials that a task has.

    Nothing where a reward is not 0 or 1, and where attempts stopped with the first correct one:
    how many there are depends then on how they went, and the estimate would be wrong.
    """
    given = {facts.rewards[REWARD] for facts in trials if facts.rewards is not None}
    if state.k == 1 or state.strategy == "stop_on_correct" or not given <= {0.0, 1.0}:
        return {}
    made = Counter(facts.task for facts in trials)
    solved = Counter(f.task for f in trials if f.rewards is not None and f.rewards[REWARD] == 1)
    found: dict[str, float | None] = {}
    for k in _ks(min(made.values(), default=0)):
        values = (pass_at_k(n, solved[task], k) for task, n in made.items())
        found[str(k)] = rounded(mean(value for value in values if value is not None))
    return found


def _ks(most: int) -> Iterator[int]:
    """2, 4, 8, … and 5, 10, 15, …, in order."""
    powers = {2**exponent for exponent in range(1, max(most, 1).bit_length())}
    yield from sorted(k for k in powers | set(range(5, most + 1, 5)) if k <= most)


def _reward_stats(trials: Sequence[Facts]) -> dict[str, dict[str, list[str]]]:
    """Which trials have which reward, by the reward's name and its value as Python writes it."""
    stats: dict[str, dict[str, list[str]]] = {}
    for facts in trials:
        for name, value in (facts.rewards or {}).items():
            stats.setdefault(name, {}).setdefault(repr(value), []).append(facts.name)
    return {
        name: {value: sorted(names) for value, names in sorted(values.items())}
        for name, values in sorted(stats.items())
    }


def _exception_stats(trials: Sequence[Facts]) -> dict[str, list[str]]:
    stats: dict[str, list[str]] = {}
    for facts in trials:
        if facts.exception is not None:
            stats.setdefault(facts.exception, []).append(facts.name)
    return {kind: sorted(names) for kind, names in sorted(stats.items())}


def _cost(trials: Sequence[Facts]) -> float | None:
    known = [facts.spent.cost_usd for facts in trials if facts.spent.cost_usd is not None]
    return dollars(math.fsum(known)) if known else None


def _resolution(state: RunState) -> dict[str, object]:
    """How many tasks are resolved of those that have an attempt which counts, and of how many.

    Rates are in percent.
    """
    judged = [task for task in state.tasks.values() if countable_attempts(task)]
    resolved = sum(map(is_task_resolved, judged))
    interval = wilson(resolved, len(judged))
    return {
        "n_tasks": len(state.tasks),
        "n_counted_tasks": len(judged),
        "n_resolved": resolved,
        "resolve_rate": percent(resolved / len(judged)) if judged else None,
        "resolve_rate_ci95": None if interval is None else [percent(end) for end in interval],
    }
