"""Results of tau-bench and tau2-bench become runs with the rewards as verdicts."""

import json
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.errors import UsageError
from runtime.replay import replay
from tests.foreign_sources import SHARED, lost, recognised, take, told, write_json
from tests.importer_runs import events, originals, state_of

PUBLISHED = Path(__file__).resolve().parents[2] / "data" / "tau_bench" / "gpt-4o-airline.json"
REAL = SHARED / "tau_bench" / "gpt-4o-airline.json"


def trial(task=0, number=0, reward=1.0, **fields):
    info = {
        "task": {"user_id": "u", "instruction": "do", "actions": [{"name": "a"}], "outputs": []},
        "source": "user",
        "user_cost": 0.5,
        "reward_info": {"reward": reward, "info": {}, "actions": []},
    }
    return {
        "task_id": task,
        "reward": reward,
        "info": info,
        "traj": [{"role": "user", "content": "hi"}],
        "trial": number,
        **fields,
    }


def taken(tmp_path, value, name="run.json"):
    path = tmp_path / name
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        write_json(path, value)
    return take(path, tmp_path / "results")


def metrics(report):
    with LedgerView.open(report.path) as view:
        return replay(view).metrics.metrics


@pytest.mark.parametrize("path", [PUBLISHED, REAL])
def test_published_results_give_the_published_numbers(tmp_path, path):
    if not path.exists():
        pytest.skip("the samples are not at hand")
    report = take(path, tmp_path / "results")
    assert (report.records_in, report.records_out, lost(report)) == (200, 200, [])
    found = metrics(report)
    numbers = [found[f"correct.pass^{k}"] for k in (1, 2, 3, 4)]
    assert numbers == pytest.approx([0.420, 0.273, 0.220, 0.200], abs=5e-4)
    assert report.path.parent.name == "gpt-4o"
    assert report.path.parent.parent.name == "tau_bench_airline"


def test_a_trial_is_an_attempt_counted_from_1(tmp_path):
    report = taken(tmp_path, [trial(7, 0), trial(7, 1, 0.0)])
    first, second = events(report, "result.recorded")
    assert (first.task, first.attempt, second.attempt) == ("7", 1, 2)
    assert first.ground_truth == {"actions": [{"name": "a"}], "outputs": []}
    assert first.trajectory == {"messages": [{"role": "user", "content": "hi"}]}
    assert first.meta == {"source": "user", "user_cost": 0.5}
    assert state_of(report).tasks["7"].metadata == {"user_id": "u", "instruction": "do"}
    verdicts = events(report, "evaluation.finished")
    assert [(one.correct, one.score) for one in verdicts] == [(True, 1.0), (False, 0.0)]
    assert verdicts[0].extra["reward"] == 1.0
    assert state_of(report).finished.status == "completed"


def test_a_reward_near_1_is_a_success_and_a_part_is_none(tmp_path):
    report = taken(tmp_path, [trial(0, 0, 1 - 1e-7), trial(1, 0, 0.5), trial(2, 0, 1)])
    assert [one.correct for one in events(report, "evaluation.finished")] == [True, False, True]


def test_an_exception_is_an_error_and_no_verdict(tmp_path):
    broken = trial(1, 0, 0.0, info={"error": "boom", "traceback": "Traceback"}, traj=[])
    report = taken(tmp_path, [trial(), broken])
    attempt = state_of(report).tasks["1"].attempts[1]
    assert (attempt.status, attempt.correct) == ("run_error", None)
    (result,) = (one for one in events(report, "result.recorded") if one.task == "1")
    assert (result.error.code, result.error.message) == ("exception", "boom")
    assert result.error.traceback == "Traceback"
    assert result.extra == {"reward": 0.0}
    assert metrics(report)["correct.avg@1"] == 0.5
    assert metrics(report)["correct.accuracy[exclude]"] == 1.0


def test_a_reward_that_its_own_details_deny_is_told(tmp_path):
    odd = trial(1)
    odd["info"]["reward_info"]["reward"] = 0.0
    report = taken(tmp_path, [trial(), odd])
    assert told(report) == ["run.json[1]: its reward is 1.0, and its reward_info says 0.0"]


@pytest.mark.parametrize(
    "change",
    [
        {"reward": "1"},
        {"reward": None},
        {"reward": True},
        {"trial": -1},
        {"trial": None},
        {"trial": "0"},
        {"task_id": None},
        {"task_id": True},
    ],
)
def test_a_trial_that_is_none_is_damage(tmp_path, change):
    odd = trial(1)
    odd["info"]["reward_info"] = {}
    report = taken(tmp_path, [trial(), {**odd, **change}])
    assert report.damaged
    assert lost(report)[0].startswith("run.json[1]: no trial: ")
    assert state_of(report).finished is None


@pytest.mark.parametrize("odd", ["null", "[]", "3", '{"task_id": 1, "task_id": 2}'])
def test_an_element_that_is_no_trial_is_damage(tmp_path, odd):
    report = taken(tmp_path, f"[{json.dumps(trial())}, {odd}]".encode())
    assert report.damaged
    assert (report.records_in, report.records_out) == (2, 1)


def test_a_trial_that_is_there_twice_counts_once_and_two_of_one_number_never(tmp_path):
    report = taken(tmp_path, [trial(), trial()])
    assert told(report) == ["run.json[1]: the same as [0]: counted once"]
    other = taken(tmp_path, [trial(), trial(reward=0.0)], "other.json")
    assert other.damaged
    assert lost(other) == ["other.json[1]: task 0 has a trial 0 already, at [0]"]


@pytest.mark.parametrize("lacking", [1, 3, 40, 200])
def test_a_file_that_breaks_off_is_placed_as_far_as_it_goes(tmp_path, lacking):
    text = json.dumps([trial(0, 0), trial(0, 1), trial(1, 0)], ensure_ascii=False)
    report = taken(tmp_path, text[:-lacking].encode())
    assert not report.damaged
    assert all(one.torn for one in report.unplaced)
    assert any("torn" in one for one in lost(report))
    assert state_of(report).finished is None
    assert state_of(report).tasks["0"].attempts.keys() == {1, 2}


def test_tasks_with_fewer_trials_than_others_are_named(tmp_path):
    report = taken(tmp_path, [trial(0, 0), trial(0, 1), trial(1, 0)])
    assert lost(report) == ["run.json: 1 tasks lack trials of 2: 1"]
    assert state_of(report).finished is None


def test_the_name_that_the_program_gives_tells_agent_and_model(tmp_path):
    name = "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0101000000.json"
    report = taken(tmp_path, [trial()], name)
    request = state_of(report).request
    assert (request["model"]["id"], request["harness"]["id"]) == ("gpt-4o", "tool-calling")


def test_several_files_are_several_runs(tmp_path):
    for name in ("a", "b"):
        write_json(tmp_path / "source" / f"{name}.json", [trial()])
    with pytest.raises(UsageError, match=r"a\.json, b\.json"):
        take(tmp_path / "source", tmp_path / "results")


def test_a_file_of_no_known_kind_is_named_and_kept(tmp_path):
    source = tmp_path / "s"
    write_json(source / "run.json", [trial()])
    (source / "notes.txt").write_text("mine")
    (source / "more.jsonl").write_text('{"task_id": "a", "correct": true}\n')
    report = take(source, tmp_path / "results")
    why = "it is no part of the results, and only kept"
    assert lost(report) == [f"more.jsonl: {why}"]
    assert told(report) == [f"notes.txt: {why}"]
    assert (report.records_in, report.records_out) == (3, 2)
    assert set(originals(report)) >= {"more.jsonl", "notes.txt"}


def test_nan_is_kept_and_told(tmp_path):
    text = json.dumps([trial(), trial(1, info={"user_cost": float("nan")})])
    report = taken(tmp_path, text.encode())
    assert told(report) == ["run.json: [1] hold NaN, which is not JSON: kept"]


@pytest.mark.parametrize(
    "value",
    [
        [],
        [{"task_id": 1}],
        [{"role": "user"}],
        {"results": []},
        {"simulations": []},
        [1, 2],
        None,
    ],
)
def test_other_json_is_not_taken(tmp_path, value):
    assert "tau_bench" not in recognised(write_json(tmp_path / "x.json", value))


# -- tau2-bench -------------------------------------------------------------------------------


def simulation(task="t1", number=0, reward=1.0, **fields):
    return {
        "id": f"{task}-{number}",
        "task_id": task,
        "trial": number,
        "start_time": "2026-01-02T03:04:05+00:00",
        "end_time": "2026-01-02T03:05:05+00:00",
        "duration": 60.0,
        "termination_reason": "user_stop",
        "agent_cost": 0.25,
        "user_cost": 0.5,
        "reward_info": {"reward": reward, "reward_breakdown": {"DB": reward}},
        "messages": [{"role": "user", "content": "hi"}],
        "seed": 5,
        **fields,
    }


def newer(*simulations, trials=1, tasks=("t1",)):
    return {
        "timestamp": "2026-01-02T03:04:05",
        "info": {
            "num_trials": trials,
            "agent_info": {"implementation": "llm_agent", "llm": "gpt-4.1"},
            "user_info": {"llm": "gpt-4.1"},
            "environment_info": {"domain_name": "telecom"},
        },
        "tasks": [{"id": one, "evaluation_criteria": {"actions": [1]}} for one in tasks],
        "simulations": list(simulations),
    }


def test_simulations_of_tau2_are_attempts(tmp_path):
    report = taken(
        tmp_path, newer(simulation(), simulation(number=1, reward=0.0), trials=2), "sim.json"
    )
    assert lost(report) == []
    request = state_of(report).request
    assert request["benchmark"]["id"] == "tau2_bench_telecom"
    assert (request["model"]["id"], request["harness"]["id"]) == ("gpt-4.1", "llm_agent")
    assert [one.correct for one in events(report, "evaluation.finished")] == [True, False]
    first = events(report, "result.recorded")[0]
    assert first.ground_truth == {"actions": [1]}
    assert first.extra["termination_reason"] == "user_stop"
    call = events(report, "call.finished")[0]
    assert (call.cost_usd, call.started_at) == (0.25, "2026-01-02T03:04:05Z")
    assert metrics(report)["correct.pass^1"] == 0.5


def test_a_simulation_without_reward_is_an_error(tmp_path):
    broken = simulation(reward_info=None, termination_reason="infrastructure_error")
    attempt = state_of(taken(tmp_path, newer(broken))).tasks["t1"].attempts[1]
    assert (attempt.status, attempt.correct) == ("run_error", None)


def test_tasks_that_were_listed_and_not_tried_are_named(tmp_path):
    report = taken(tmp_path, newer(simulation(), tasks=("t1", "t2")))
    assert lost(report) == ["run.json: task t2 is listed and was not tried"]
    assert state_of(report).counts().missing == 1


def test_simulations_in_files_of_their_own_are_held_against_their_list(tmp_path):
    source = tmp_path / "s"
    value = newer(trials=2)
    del value["simulations"]
    value["simulation_index"] = [{"id": "t1-0"}, {"id": "t1-1"}]
    write_json(source / "results.json", value)
    write_json(source / "simulations" / "t1-0.json", simulation())
    write_json(source / "simulations" / "t1-1.json", simulation(number=1, reward=0.0))
    report = take(source, tmp_path / "results")
    assert (lost(report), report.records_in, report.records_out) == ([], 2, 2)
    assert metrics(report)["correct.pass^1"] == 0.5
    (source / "simulations" / "t1-1.json").write_text("[]")
    damaged = take(source, tmp_path / "results")
    assert damaged.damaged
    assert lost(damaged)[0] == (
        "results.json:simulations/t1-1.json: no trial: holds a list, not an object"
    )
    (source / "simulations" / "t1-1.json").unlink()
    lacking = take(source, tmp_path / "results")
    assert "simulation t1-1 is listed" in lost(lacking)[0]
    assert state_of(lacking).finished is None


def test_a_simulation_that_nobody_numbered_is_the_first(tmp_path):
    report = taken(tmp_path, newer(simulation(trial=None)))
    assert list(state_of(report).tasks["t1"].attempts) == [1]
