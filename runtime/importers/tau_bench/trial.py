"""One trial as an attempt."""

from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from ledger import events as ev
from runtime.importers.foreign import UNKNOWN, ForeignAttempt, ForeignCall, ForeignVerdict
from runtime.importers.jsontext import NotARecord
from runtime.importers.numbers import is_number
from runtime.importers.tau_bench.results import FORMAT
from runtime.importers.times import read_time

NEAR: Final = 1e-6
"""Rewards this near to 1 are successes, as in the metrics of the source."""

_TRIAL: Final = ("task_id", "trial", "reward", "info", "traj")
_OF_SIMULATION: Final = (
    "task_id",
    "trial",
    "reward_info",
    "messages",
    "start_time",
    "end_time",
    "duration",
    "agent_cost",
)
_BROKEN: Final = frozenset(
    {
        "too_many_errors",
        "agent_error",
        "user_error",
        "infrastructure_error",
        "context_window_exceeded",
        "unexpected_error",
    }
)
_MOST_DOLLARS: Final = 1e15

_UNFINISHED: Final = ev.Issue(
    severity="info",
    code="no_reward_info",
    message="the trial ended before a reward was computed, which then is 0",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """Which attempt a trial is, and its reward: None where nobody gave one."""

    task_id: str
    attempt: int
    reward: float | int | None


def read_trial(value: dict[str, Any], *, newer: bool = False) -> Trial:
    """Read who and what; NotARecord names the field that is none."""
    task, trial = value.get("task_id"), value.get("trial")
    if not (type(task) is int or (isinstance(task, str) and task)):
        raise NotARecord(f"its task_id is {task!r}")
    if newer and trial is None:
        trial = 0
    if type(trial) is not int or not 0 <= trial < 2**32 - 1:
        raise NotARecord(f"its trial is {trial!r}: trials count from 0")
    reward = _reward(value, newer=newer)
    if reward is not None and not is_number(reward):
        raise NotARecord(f"its reward is {reward!r}, which is no finite number")
    return Trial(str(task), trial + 1, reward)


def attempt_of(value: dict[str, Any], trial: Trial) -> ForeignAttempt:
    """A trial of tau-bench. One that an exception ended has the reward 0, which is no verdict."""
    info = object_of(value.get("info"))
    error = _error(info)
    task = object_of(info.get("task"))
    meta = {
        name: item
        for name, item in info.items()
        if name not in ("task", "reward_info", "error", "traceback")
    }
    extra = {name: item for name, item in value.items() if name not in _TRIAL}
    if error is not None:
        extra["reward"] = trial.reward
    if "info" in value and not isinstance(value["info"], dict):
        extra["info"] = value["info"]
    return ForeignAttempt(
        number=trial.attempt,
        ground_truth={name: task[name] for name in ("actions", "outputs") if name in task} or None,
        trajectory={"messages": value.get("traj")},
        error=error,
        meta=meta or None,
        extra=extra or None,
        verdict=None if error is not None else _verdict(trial, info.get("reward_info")),
        issues=() if error is not None or info.get("reward_info") is not None else (_UNFINISHED,),
    )


def simulation_of(value: dict[str, Any], trial: Trial, task: dict[str, Any]) -> ForeignAttempt:
    """A trial of tau2-bench, with the task of the file's list that it is about."""
    reason = value.get("termination_reason")
    error = None
    if trial.reward is None or reason in _BROKEN:
        words = str(reason) if reason else "no reward"
        error = ev.ErrorInfo(code=words, message="the simulation ended without a result")
    judged = trial.reward is not None
    cost = value.get("agent_cost")
    call = ForeignCall(
        model=None,
        cost_usd=cost if _is_cost(cost) else None,
        started_at=read_time(value.get("start_time"))[0],
        finished_at=read_time(value.get("end_time"))[0],
        flags=("total_of_attempt",),
    )
    known = {*_OF_SIMULATION} - ({"agent_cost"} if call.cost_usd is None else set())
    return ForeignAttempt(
        number=trial.attempt,
        ground_truth=task.get("evaluation_criteria"),
        trajectory={"messages": value.get("messages")},
        error=error,
        meta={name: value[name] for name in ("start_time", "end_time", "duration") if name in value}
        or None,
        extra={name: item for name, item in value.items() if name not in known} or None,
        calls=(call,) if call.cost_usd is not None else (),
        verdict=_verdict(trial, value.get("reward_info")) if judged else None,
    )


def contradiction(value: dict[str, Any], trial: Trial) -> str | None:
    """What a trial says of its reward in another place, where that is another number."""
    told = object_of(object_of(value.get("info")).get("reward_info")).get("reward")
    if told is None or told == trial.reward:
        return None
    return f"its reward is {trial.reward}, and its reward_info says {told!r}"


def object_of(value: Any) -> dict[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _reward(value: dict[str, Any], *, newer: bool) -> Any:
    if newer:
        return object_of(value.get("reward_info")).get("reward")
    if value.get("reward") is None:
        raise NotARecord("it has no reward")
    return value["reward"]


def _verdict(trial: Trial, told: Any) -> ForeignVerdict:
    assert trial.reward is not None
    return ForeignVerdict(
        evaluator=ev.Evaluator(id=f"import:{FORMAT}", version=UNKNOWN),
        correct=abs(trial.reward - 1) <= NEAR,
        score=trial.reward,
        extra=told,
    )


def _is_cost(value: Any) -> TypeGuard[float]:
    """True for a number of dollars."""
    return is_number(value) and 0 <= value < _MOST_DOLLARS


def _error(info: dict[str, Any]) -> ev.ErrorInfo | None:
    error = info.get("error")
    if error is None:
        return None
    traceback = info.get("traceback")
    return ev.ErrorInfo(
        code="exception",
        message=error if isinstance(error, str) else repr(error),
        traceback=traceback if isinstance(traceback, str) else None,
    )
