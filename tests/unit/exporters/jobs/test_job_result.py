"""The job's `result.json`."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from exporters.jobs.job import TrialFiles, job_trials
from exporters.jobs.job_result import job_result
from exporters.jobs.sums import Tasks, TrialSums
from ledger import events as ev
from tests import job_runs as say

HARBOR = Path(__file__).resolve().parents[3] / "data" / "harbor_binary_k5.json"


def result(path: Path) -> dict[str, Any]:
    return say.document(say.exported(path))


def stats(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = result(path)["stats"]
    return found


def the_eval(path: Path) -> dict[str, Any]:
    (found,) = stats(path)["evals"].values()
    return found


def run(tmp_path: Path, *events: ev.AnyEvent, **sections: Any) -> Path:
    tasks = dict.fromkeys(event.task for event in events if event.task is not None)
    return say.write(tmp_path / "run", *say.opening(*tasks, **sections), *events, *say.ending())


def test_the_result_has_harbors_fields_in_their_order_and_ours_last(tmp_path: Path) -> None:
    found = result(run(tmp_path, *say.whole("t1", say.attempt("t1"))))
    assert list(found) == [
        *("id", "started_at", "updated_at", "finished_at", "n_total_trials", "stats", "acl")
    ]
    assert list(found["stats"]) == [
        *("n_completed_trials", "n_errored_trials", "n_running_trials", "n_pending_trials"),
        *("n_cancelled_trials", "n_retries", "evals"),
        *("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd"),
    ]
    assert list(found["acl"])[:11] == [
        *("schema", "run_id", "ledger_id", "size", "root"),
        *("status", "n_tasks", "n_counted_tasks"),
        *("n_resolved", "resolve_rate", "resolve_rate_ci95"),
    ]
    assert found["id"] == str(uuid.uuid5(uuid.NAMESPACE_URL, "acl:run-1"))
    assert found["started_at"] == say.STARTED
    assert (found["updated_at"], found["finished_at"]) == ("2025-06-15T15:06:50.000000Z",) * 2


def test_the_key_of_an_evaluation_names_agent_model_and_versioned_dataset(tmp_path: Path) -> None:
    events = say.whole("t1", say.attempt("t1"))
    assert list(stats(run(tmp_path / "1", *events))["evals"]) == ["agent__model-1__bench@3"]
    alone = run(tmp_path / "2", *events, version=None, model={"id": "none"})
    assert list(stats(alone)["evals"]) == ["agent__bench"]


def test_the_numbers_of_harbors_own_job_come_out_the_same(tmp_path: Path) -> None:
    """The same twenty trials as in a real job of Harbor, by their tasks, rewards and exceptions."""
    data = json.loads(HARBOR.read_text())
    told = data["job"]
    attempts: dict[str, list[list[ev.AnyEvent]]] = {}
    for trial in data["trials"]:
        task = trial["task_name"]
        number = len(attempts.setdefault(task, [])) + 1
        if trial["rewards"] is None:
            attempts[task].append(say.broken(task, number, code=trial["exception_type"]))
        else:
            solved = trial["rewards"]["reward"] == 1
            attempts[task].append(say.attempt(task, number, correct=solved))
    events = [event for task, made in attempts.items() for event in say.whole(task, *made)]
    found = result(run(tmp_path, *events, execution={"k": 5}))
    (theirs,) = told["stats"]["evals"].values()
    (ours,) = found["stats"]["evals"].values()
    for name in ("n_trials", "n_errors", "metrics", "pass_at_k"):
        assert ours[name] == theirs[name], name
    counted = {value: len(names) for value, names in theirs["reward_stats"]["reward"].items()}
    assert {v: len(names) for v, names in ours["reward_stats"]["reward"].items()} == counted
    assert {k: len(v) for k, v in ours["exception_stats"].items()} == {
        k: len(v) for k, v in theirs["exception_stats"].items()
    }
    for name in ("n_completed_trials", "n_errored_trials", "n_pending_trials"):
        assert found["stats"][name] == told["stats"][name], name
    assert found["n_total_trials"] == told["n_total_trials"]


def test_k_attempts_are_k_trials_and_pass_at_k_is_over_all_of_them(tmp_path: Path) -> None:
    """Upstream keeps the last trial of a task only."""
    first = [say.attempt("a", n, correct=n == 1) for n in (1, 2, 3, 4)]
    second = [say.attempt("b", n, correct=False) for n in (1, 2, 3, 4)]
    path = run(tmp_path, *say.whole("a", *first), *say.whole("b", *second), execution={"k": 4})
    found = the_eval(path)
    assert found["n_trials"] == 8
    assert found["reward_stats"]["reward"]["1.0"] == ["a__1"]
    # 1 - C(3,2)/C(4,2) = 1/2 and 1 - 0 = 1 for `a`; 0 for `b`
    assert found["pass_at_k"] == {"2": 0.25, "4": 0.5}
    assert result(path)["acl"]["n_resolved"] == 1


@pytest.mark.parametrize(
    ("k", "expected"),
    [(1, []), (2, ["2"]), (3, ["2"]), (5, ["2", "4", "5"]), (10, ["2", "4", "5", "8", "10"])],
)
def test_pass_at_k_is_told_for_powers_of_two_and_multiples_of_five(
    tmp_path: Path, k: int, expected: list[str]
) -> None:
    attempts = [say.attempt("a", number) for number in range(1, k + 1)]
    path = run(tmp_path, *say.whole("a", *attempts), execution={"k": k})
    assert list(the_eval(path)["pass_at_k"]) == expected


def test_partial_rewards_have_no_pass_at_k_and_are_not_lost(tmp_path: Path) -> None:
    attempts = [say.attempt("a", n, correct=None, score=s) for n, s in ((1, 0.5), (2, 1.0))]
    found = the_eval(run(tmp_path, *say.whole("a", *attempts), execution={"k": 2}))
    assert found["pass_at_k"] == {}
    assert found["reward_stats"]["reward"] == {"0.5": ["a__1"], "1.0": ["a__2"]}
    assert found["metrics"] == [{"mean": 0.75}]


def test_a_trial_without_a_reward_counts_zero_in_the_mean_and_not_in_that_over_graded(
    tmp_path: Path,
) -> None:
    path = run(
        tmp_path,
        *say.whole("a", say.attempt("a")),
        *say.whole("b", say.broken("b")),
        *say.whole("c", say.broken("c")),
    )
    found = the_eval(path)
    assert (found["n_trials"], found["n_errors"]) == (1, 2)
    assert found["metrics"] == [{"mean": 0.333333}]
    assert found["acl"] == {"mean_over_graded": 1.0}
    assert result(path)["acl"]["mean_over_graded"] == 1.0
    assert found["exception_stats"] == {"AgentTimeoutError": ["b", "c"]}


def test_stopping_at_the_first_correct_answer_plans_only_what_may_still_be_made(
    tmp_path: Path,
) -> None:
    execution = {"k": 3, "strategy": "stop_on_correct"}
    events = [
        *say.opening("a", "b", "c", execution=execution),
        *say.whole("a", say.attempt("a", 1, correct=False), say.attempt("a", 2), early=True),
        ev.TaskStarted(task="b"),
        *say.attempt("b", 1, correct=False),
        ev.AttemptStarted(task="b", attempt=2),
    ]
    path = say.write(tmp_path / "open", *events)
    found = result(path)
    # a: two made; b: one, one open, one possible; c: three possible
    assert (found["n_total_trials"], found["stats"]["n_pending_trials"]) == (8, 5)
    (told,) = found["stats"]["evals"].values()
    assert told["pass_at_k"] == {}


def test_nothing_at_all_is_counts_of_zero_and_numbers_that_are_null(tmp_path: Path) -> None:
    path = say.write(tmp_path, *say.opening(), ev.RunFinished(status="failed", exit_code=1))
    found = result(path)
    assert found["n_total_trials"] == 0
    (told,) = found["stats"]["evals"].values()
    assert told == {
        "n_trials": 0,
        "n_errors": 0,
        "metrics": [],
        "pass_at_k": {},
        "reward_stats": {},
        "exception_stats": {},
        "acl": {"mean_over_graded": None},
    }
    assert [found["acl"][name] for name in ("status", "n_resolved")] == ["failed", 0]
    assert found["acl"]["resolve_rate"] is None
    assert found["acl"]["resolve_rate_ci95"] is None
    assert [found["stats"][name] for name in ("n_input_tokens", "cost_usd")] == [None, None]


def test_the_rate_of_a_run_that_was_cut_short_says_of_how_many_tasks_it_is(tmp_path: Path) -> None:
    selected = say.opening("a", "b", "c", "d")
    made = [*say.whole("a", say.attempt("a")), *say.whole("b", say.cancelled("b"))]
    told = result(say.write(tmp_path, *selected, *made))["acl"]
    names = ("n_tasks", "n_counted_tasks", "n_resolved", "resolve_rate")
    assert [told[name] for name in names] == [4, 1, 1, 100.0]


def test_one_task_has_a_wilson_interval_in_percent(tmp_path: Path) -> None:
    found = result(run(tmp_path, *say.whole("a", say.attempt("a"))))["acl"]
    # 1 of 1: [0.206549, 1]
    assert (found["resolve_rate"], found["resolve_rate_ci95"]) == (100.0, [20.7, 100.0])


def test_tokens_and_costs_are_sums_of_what_trials_know(tmp_path: Path) -> None:
    first = say.attempt("a", 1, *say.call("a", 1, 0), *say.call("a", 1, 1))
    second = say.attempt("b", 1, *say.call("b", 1, 0, usage=None, cost_usd=None))
    found = stats(run(tmp_path, *say.whole("a", first), *say.whole("b", second)))
    assert [found[name] for name in ("n_input_tokens", "n_cache_tokens", "n_output_tokens")] == [
        200,
        80,
        20,
    ]
    assert found["cost_usd"] == 0.5


def test_retries_are_counted_and_have_no_trial(tmp_path: Path) -> None:
    during = [say.retried("a", 1, 1), say.retried("a", 1, 2)]
    found = stats(run(tmp_path, *say.whole("a", say.attempt("a", 1, *during, retries=2))))
    assert (found["n_retries"], found["n_completed_trials"]) == (2, 1)


def interrupted(tmp_path: Path) -> Path:
    return say.write(
        tmp_path / "run",
        *say.opening("a", "b", "c", "d"),
        *say.whole("a", say.attempt("a")),
        ev.TaskStarted(task="b"),
        *say.cancelled("b"),
        ev.TaskCancelled(task="b", reason="SIGINT"),
        ev.TaskStarted(task="c"),
        ev.AttemptStarted(task="c", attempt=1),
    )


def test_without_an_end_a_run_is_interrupted_and_nothing_of_it_runs(tmp_path: Path) -> None:
    found = result(interrupted(tmp_path))
    told = found["stats"]
    names = ("completed", "errored", "running", "pending", "cancelled")
    assert [told[f"n_{name}_trials"] for name in names] == [2, 0, 0, 2, 1]
    assert (found["finished_at"], found["acl"]["status"]) == (None, "interrupted")
    (evaluation,) = told["evals"].values()
    assert evaluation["exception_stats"] == {"CancelledError": ["b"]}
    # b does not count: one of one is resolved
    assert found["acl"]["resolve_rate"] == 100.0


def test_while_its_writer_is_at_work_a_run_is_running(tmp_path: Path) -> None:
    with say.opened(interrupted(tmp_path)) as (state, view):
        known = TrialSums.of(TrialFiles.of(trial, view).facts() for trial in job_trials(state))
        data = job_result(state, Tasks.of(state), known, live=True).data
    assert isinstance(data, bytes)
    found = json.loads(data)
    assert found["acl"]["status"] == "running"
    assert [found["stats"][f"n_{name}_trials"] for name in ("running", "pending")] == [1, 1]


@pytest.mark.parametrize("status", ["completed", "failed", "timed_out", "cancelled"])
def test_the_status_is_that_of_the_runs_end(tmp_path: Path, status: ev.RunStatus) -> None:
    events = [*say.opening("a"), *say.whole("a", say.attempt("a")), *say.ending(status, 1)]
    assert result(say.write(tmp_path, *events))["acl"]["status"] == status


def test_measures_of_the_evaluation_are_rewards_of_their_own(tmp_path: Path) -> None:
    verdict = {"metrics": {"lines": 3, "ok": True, "share": 1 / 3, "reward": 9.0}}
    found = the_eval(run(tmp_path, *say.whole("a", say.attempt("a", verdict=verdict))))
    assert found["reward_stats"] == {
        "lines": {"3.0": ["a"]},
        "ok": {"1.0": ["a"]},
        "reward": {"1.0": ["a"]},
        "share": {"0.333333": ["a"]},
    }


def test_where_nothing_was_judged_the_mean_is_zero_and_nothing_is_graded(tmp_path: Path) -> None:
    path = run(tmp_path, *say.whole("a", say.broken("a")), *say.whole("b", say.broken("b")))
    found = the_eval(path)
    assert (found["n_trials"], found["metrics"], found["reward_stats"]) == (0, [{"mean": 0.0}], {})
    told = result(path)["acl"]
    assert (told["n_resolved"], told["resolve_rate"], told["mean_over_graded"]) == (0, 0.0, None)


@pytest.mark.parametrize("phase", ["open_environment", "start_harness", "run_harness", "evaluate"])
def test_an_error_in_any_phase_is_one_trial_with_an_exception(tmp_path: Path, phase: str) -> None:
    path = run(tmp_path, *say.whole("a", say.broken("a", code="TimeoutError", phase=phase)))
    found = the_eval(path)
    assert found["n_errors"] == 1
    ((kind, names),) = found["exception_stats"].items()
    assert kind.endswith("TimeoutError")
    assert names == ["a"]
    assert stats(path)["n_errored_trials"] == 1
