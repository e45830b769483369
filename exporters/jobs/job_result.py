"""The job's `result.json`: Harbor's JobResult (harbor 0.25.0) without the trials themselves."""

import math
from datetime import datetime

from exporters import OutFile
from exporters.identity import Identity
from exporters.jobs.numbers import dollars, percent
from exporters.jobs.sums import Tasks, TaskSums, TrialSums
from exporters.jobs.trial import dataset, harness_id, model_id, uuid_of
from exporters.jsontext import json_bytes
from ledger.state import RunState
from ledger.statistics import wilson

PATH = "result.json"
RUNNING = "running"


def job_result(state: RunState, tasks: Tasks, trials: TrialSums, *, live: bool = False) -> OutFile:
    """The file, from what is known of the trials so far; `live`: its writer is at work.

    `tasks` has followed the state.
    """
    running = live and state.finished is None
    sums = tasks.sums(state)
    mean_over_graded = trials.mean_over_graded()
    document = {
        "id": uuid_of(state.run_id),
        "started_at": started_at(state),
        "updated_at": state.last_at,
        "finished_at": _readable(state.ended_at),
        "n_total_trials": sums.planned,
        "stats": {
            **_progress(sums, running=running),
            "evals": {_eval_key(state): _evaluation(state, trials, mean_over_graded)},
            "n_input_tokens": trials.input_tokens,
            "n_cache_tokens": trials.cached_tokens,
            "n_output_tokens": trials.output_tokens,
            "cost_usd": dollars(math.fsum(trials.costs)) if trials.costs else None,
        },
        "acl": Identity.of(state).trailer(
            status=RUNNING if running else state.status,
            **_resolution(state, sums),
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


def _progress(sums: TaskSums, *, running: bool) -> dict[str, object]:
    open_now = sums.begun - sums.ended if running else 0
    return {
        "n_completed_trials": sums.ended,
        "n_errored_trials": sums.errored,
        "n_running_trials": open_now,
        "n_pending_trials": max(sums.planned - sums.ended - open_now, 0),
        "n_cancelled_trials": sums.cancelled,
        "n_retries": sums.retries,
    }


def _eval_key(state: RunState) -> str:
    parts = (harness_id(state), model_id(state), dataset(state))
    return "__".join(part for part in parts if part is not None)


def _evaluation(
    state: RunState, trials: TrialSums, mean_over_graded: float | None
) -> dict[str, object]:
    over_all = trials.mean_over_all()
    return {
        "n_trials": len(trials.rewards),
        "n_errors": trials.failed,
        "metrics": [] if over_all is None else [{"mean": over_all}],
        "pass_at_k": _pass_at_k(state, trials),
        "reward_stats": trials.by_reward(),
        "exception_stats": trials.by_exception(),
        "acl": {"mean_over_graded": mean_over_graded},
    }


def _pass_at_k(state: RunState, trials: TrialSums) -> dict[str, float | None]:
    """The estimates of pass@k.

    Nothing where a reward is not 0 or 1, and where attempts stopped with the first correct one:
    how many there are depends then on how they went, and the estimate would be wrong.
    """
    if state.k == 1 or state.strategy == "stop_on_correct" or not trials.are_binary():
        return {}
    return trials.pass_at_k()


def _resolution(state: RunState, sums: TaskSums) -> dict[str, object]:
    """How many tasks are resolved of those that have an attempt which counts, and of how many.

    Rates are in percent.
    """
    interval = wilson(sums.resolved, sums.judged)
    return {
        "n_tasks": len(state.tasks),
        "n_counted_tasks": sums.judged,
        "n_resolved": sums.resolved,
        "resolve_rate": percent(sums.resolved / sums.judged) if sums.judged else None,
        "resolve_rate_ci95": None if interval is None else [percent(end) for end in interval],
    }
