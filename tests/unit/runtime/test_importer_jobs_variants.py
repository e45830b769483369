"""Jobs that were killed, torn or changed, and jobs of other shapes than the samples'."""

import json

import pytest

from ledger import LedgerView
from ledger.errors import UsageError
from runtime.replay import replay
from tests.harbor_jobs import (
    ATIF,
    do_import,
    job,
    planned,
    raised,
    reasons,
    sample,
    span,
    trial,
    write,
)
from tests.importer_runs import events, originals, state_of


def recorded(report):
    with LedgerView.open(report.path) as view:
        return replay(view)


def evals(**fields):
    return {"n_completed_trials": 2, "evals": {"oracle__gpt-x__tasks": fields}}


# -- whose fault ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "code", "fatal"),
    [
        ("AgentTimeoutError", "run_error", "run_timeout", False),
        ("VerifierTimeoutError", "eval_error", "evaluation_timeout", False),
        ("RewardFileEmptyError", "eval_error", "no_verdict", False),
        ("AddTestsDirError", "eval_error", "AddTestsDirError", True),
        ("EnvironmentStartTimeoutError", "run_error", "timeout", True),
        ("SandboxBuildFailedError", "run_error", "environment_start_failed", True),
        ("ApiRateLimitError", "run_error", "provider_rate_limited", False),
        ("CancelledError", "cancelled", "CancelledError", False),
    ],
)
def test_the_type_of_an_exception_says_who_is_to_blame(tmp_path, kind, status, code, fatal):
    bad = trial("a__1", verifier_result=None, exception_info=raised(kind))
    report = do_import(job(tmp_path / "job", [bad]), tmp_path / "results")
    attempt = state_of(report).tasks["a"].attempts[1]
    assert (attempt.status, attempt.correct, attempt.score) == (status, None, None)
    (end,) = events(report, "attempt.finished")
    assert (end.error.code, end.error.fatal) == (code, fatal)


@pytest.mark.parametrize(
    ("parts", "status", "phase"),
    [
        ({}, "eval_error", "evaluate"),
        ({"verifier": None}, "run_error", "run_harness"),
        ({"verifier": None, "agent_execution": None}, "run_error", "start_harness"),
        (
            {"verifier": None, "agent_execution": None, "agent_setup": None},
            "run_error",
            "open_environment",
        ),
    ],
)
def test_an_unknown_exception_is_judged_by_how_far_the_trial_had_come(
    tmp_path, parts, status, phase
):
    bad = trial("a__1", verifier_result=None, exception_info=raised("OddError"), **parts)
    report = do_import(job(tmp_path / "job", [bad]), tmp_path / "results")
    (end,) = events(report, "attempt.finished")
    assert (end.status, end.error.code, end.error.phase) == (status, "OddError", phase)


def test_a_step_that_failed_counts_where_the_trial_tells_no_exception(tmp_path):
    step = {"step_name": "one", "exception_info": raised("AgentTimeoutError")}
    told = trial("a__1", step_results=[step], verifier_result={"rewards": {"reward": 0.5}})
    report = do_import(job(tmp_path / "job", [told]), tmp_path / "results")
    attempt = state_of(report).tasks["a"].attempts[1]
    assert (attempt.status, attempt.score) == ("run_error", 0.5)


def test_a_verifier_that_failed_and_gave_a_reward_all_the_same_has_both(tmp_path):
    told = trial("a__1", exception_info=raised("VerifierTimeoutError"))
    report = do_import(job(tmp_path / "job", [told]), tmp_path / "results")
    attempt = state_of(report).tasks["a"].attempts[1]
    assert (attempt.status, attempt.score) == ("eval_error", 1.0)


# -- rewards -------------------------------------------------------------------------------------


def test_named_rewards_are_metrics_and_the_one_called_reward_is_the_score(tmp_path):
    told = trial("a__1", verifier_result={"rewards": {"reward": 0.5, "style": 2, "tests": 0.25}})
    report = do_import(job(tmp_path / "job", [told]), tmp_path / "results")
    attempt = state_of(report).tasks["a"].attempts[1]
    assert (attempt.score, attempt.metrics) == (0.5, {"style": 2, "tests": 0.25})


def test_among_rewards_of_other_names_none_is_the_score(tmp_path):
    told = trial("a__1", verifier_result={"rewards": {"style": 1, "tests": 0}})
    report = do_import(job(tmp_path / "job", [told]), tmp_path / "results")
    attempt = state_of(report).tasks["a"].attempts[1]
    assert (attempt.correct, attempt.score) == (None, None)
    assert attempt.metrics == {"style": 1, "tests": 0}


def test_several_means_are_compared_by_the_names_of_the_rewards(tmp_path):
    pairs = [{"reward": 1.0, "style": 0.5}, {"reward": 0.0, "style": 0.0}]
    trials = [trial(f"t{n}__1", verifier_result={"rewards": one}) for n, one in enumerate(pairs)]
    stats = evals(n_trials=2, n_errors=0, metrics=[{"reward": 0.5, "style": 0.25}])
    report = do_import(job(tmp_path / "job", trials, stats=stats), tmp_path / "results")
    found = recorded(report)
    assert found.recorded.metrics == {"score.avg@1": 0.5, "style.avg@1": 0.25}
    assert found.equal


def test_a_reward_that_is_no_number_is_kept_and_is_no_score(tmp_path):
    text = json.dumps(trial("a__1")).replace('"reward": 1.0', '"reward": NaN')
    source = job(tmp_path / "job", [trial("a__1")])
    (source / "a__1" / "result.json").write_text(text)
    report = do_import(source, tmp_path / "results")
    (verdict,) = events(report, "evaluation.finished")
    assert verdict.score is None
    assert str(verdict.extra) == "{'reward': nan}"
    assert any("holds NaN" in one for one in reasons(report)["a__1/result.json"])


@pytest.mark.parametrize(
    ("name", "data", "damaged"),
    [
        ("reward.txt", "1", False),
        ("reward.txt", "1.0\n", False),
        ("reward.json", '{"reward": 1}', False),
        ("reward.txt", "0", True),
        ("reward.json", '{"reward": 0.5}', True),
        ("reward.txt", "", False),
        ("reward.txt", "one", False),
        ("reward.json", '{"reward', False),
    ],
)
def test_the_verifiers_file_must_say_what_the_result_says(tmp_path, name, data, damaged):
    source = job(tmp_path / "job", [trial("a__1")])
    write(source / "a__1" / "verifier" / name, data)
    report = do_import(source, tmp_path / "results")
    assert report.damaged is damaged
    assert (f"a__1/verifier/{name}" in reasons(report)) is (
        damaged or data in ("", "one", '{"reward')
    )
    assert state_of(report).tasks["a"].attempts[1].score == 1.0


def test_a_trial_that_nobody_judged_has_no_verdict(tmp_path):
    source = job(tmp_path / "job", [trial("a__1", verifier_result=None, verifier=None)])
    report = do_import(source, tmp_path / "results")
    attempt = state_of(report).tasks["a"].attempts[1]
    assert (attempt.status, attempt.verdict) == ("completed", False)


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stats", "words"),
    [
        (evals(n_trials=3), "n_trials is 3; its trials give 2"),
        (evals(n_errors=1), "n_errors is 1; its trials give 0"),
        (evals(metrics=[{"mean": 0.75}]), "mean is 0.75; its trials give 0.5"),
        (evals(pass_at_k={"2": 1.0}), "pass@2 is 1.0; its trials give None"),
        (
            evals(reward_stats={"reward": {"1.0": ["a__1", "b__1"], "0.0": []}}),
            "reward_stats has b__1 under reward 1.0; the trials do not say so",
        ),
        (
            evals(exception_stats={"AgentTimeoutError": ["a__1"]}),
            "exception_stats has a__1 under AgentTimeoutError; the trials do not say so",
        ),
        ({"n_completed_trials": 7}, "n_completed_trials is 7; its trials give 2"),
        ({"n_trials": 7}, "n_completed_trials is 7; its trials give 2"),
        ({"n_input_tokens": 5, "n_completed_trials": 2}, "n_input_tokens is 5; its trials give"),
        ({"evals": {"x__y__z": {"n_trials": 1}}}, "stats.evals.x__y__z: n_trials is 1"),
    ],
)
def test_numbers_of_the_job_that_its_trials_do_not_give_are_told(tmp_path, stats, words):
    trials = [trial("a__1"), trial("b__1", verifier_result={"rewards": {"reward": 0.0}})]
    report = planned(job(tmp_path / "job", trials, stats=stats))
    assert any(words in one for one in reasons(report)["result.json"])


def test_an_edited_mean_is_told_and_replay_differs(tmp_path):
    source = sample(tmp_path, "binary-k5")
    text = (source / "result.json").read_text()
    (source / "result.json").write_text(text.replace('"mean": 0.45', '"mean": 0.95'))
    report = do_import(source, tmp_path / "results")
    assert any(
        "mean is 0.95; its trials give 0.45" in one for one in reasons(report)["result.json"]
    )
    found = recorded(report)
    assert found.equal is False
    assert [one.name for one in found.differences] == ["metrics/score.avg@5"]


def test_an_edited_trial_is_told_by_the_jobs_numbers_and_by_the_verifiers_file(tmp_path):
    source = sample(tmp_path, "binary-k5")
    path = next(source.glob("always-fail__*/result.json"))
    path.write_text(path.read_text().replace('"reward": 0.0', '"reward": 1.0'))
    report = do_import(source, tmp_path / "results")
    assert report.damaged
    told = reasons(report)
    assert any("mean is 0.45; its trials give 0.5" in one for one in told["result.json"])
    assert any(name.endswith("verifier/reward.txt") for name in told)


def test_with_unequal_numbers_of_trials_the_mean_over_trials_is_told_by_harbors_name(tmp_path):
    zero = {"rewards": {"reward": 0.0}}
    trials = [trial("a__1"), trial("a__2"), trial("b__1", verifier_result=zero)]
    stats = evals(metrics=[{"mean": 2 / 3}])
    report = do_import(job(tmp_path / "job", trials, stats=stats), tmp_path / "results")
    found = recorded(report)
    assert found.recorded.metrics == {"harbor.mean": 2 / 3}
    assert list(found.not_compared) == ["harbor.mean"]


# -- jobs that did not end -----------------------------------------------------------------------


def test_a_killed_job_keeps_what_it_had_and_has_no_end(tmp_path):
    source = sample(tmp_path, "sample-job")
    result = json.loads((source / "result.json").read_text())
    (source / "result.json").write_text(json.dumps({**result, "finished_at": None}))
    running = next(source.glob("flaky-half__*"))
    (running / "result.json").unlink()
    report = do_import(source, tmp_path / "results")
    assert not report.damaged
    state = state_of(report)
    assert state.finished is None
    assert not state.metrics
    attempts = state.tasks["flaky-half"].attempts
    assert sorted(one.finished is not None for one in attempts.values()) == [
        False, True, True, True,
    ]  # fmt: skip
    assert attempts[4].finished is None
    assert state.tasks["always-pass"].stage == "done"
    told = reasons(report)
    assert told[running.name] == ["it has no result.json: it did not end"]
    assert any("of its last save" in one for one in told["result.json"])


def test_planned_trials_that_a_killed_job_did_not_come_to_leave_their_task_open(tmp_path):
    source = sample(tmp_path, "binary-k5")
    result = json.loads((source / "result.json").read_text())
    (source / "result.json").write_text(json.dumps({**result, "finished_at": None}))
    for path in source.glob("always-pass__*/*"):
        _remove(path)
    for path in list(source.glob("flaky-half__*"))[:2]:
        _remove(path)
    report = do_import(source, tmp_path / "results")
    state = state_of(report)
    assert state.tasks["always-pass"].stage == "pending"
    assert state.tasks["flaky-half"].stage == "running"
    assert len(state.tasks["flaky-half"].attempts) == 3
    assert state.counts().missing == 1


def _remove(path):
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink()


def test_a_job_that_ended_and_lacks_trials_is_damaged(tmp_path):
    source = sample(tmp_path, "binary-k5")
    _remove(next(source.glob("always-fail__*")))
    report = do_import(source, tmp_path / "results")
    assert report.damaged
    assert any("not all of its trials are here" in one for one in reasons(report)["result.json"])
    assert reasons(report)["lock.json"] == [
        "1 tasks have fewer trials than were planned: always-fail (4 of 5)"
    ]
    assert state_of(report).finished is None


def test_a_job_without_any_file_of_its_own_is_read_from_its_trials(tmp_path):
    source = job(tmp_path / "job", [trial("a__1"), trial("a__2"), trial("b__1")])
    for name in ("result.json", "config.json"):
        (source / name).unlink()
    report = do_import(source, tmp_path / "results")
    assert (report.run_id, report.damaged) == ("job", False)
    state = state_of(report)
    assert {task.id: len(task.attempts) for task in state.tasks.values()} == {"a": 2, "b": 1}
    assert (state.k, state.finished) == (2, None)


@pytest.mark.parametrize(
    ("data", "damaged"),
    [(b"", False), (b'{"id": "5e0c', False), (b"[]", True), (b"null", True), (b"{}}", True)],
)
def test_a_result_that_is_none_leaves_its_trial_open(tmp_path, data, damaged):
    source = job(tmp_path / "job", [trial("a__1"), trial("b__1")], finished_at=None)
    write(source / "a__1" / "result.json", data)
    report = do_import(source, tmp_path / "results")
    assert report.damaged is damaged
    assert "a__1/result.json" in reasons(report)
    state = state_of(report)
    assert state.tasks["a"].attempts[1].finished is None
    assert state.tasks["b"].attempts[1].correct is True
    assert originals(report)["a__1/result.json"].content == data


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_jobs_result_that_was_cut_short_is_named_and_its_trials_are_placed(tmp_path, cut):
    source = sample(tmp_path, "binary-k5")
    data = (source / "result.json").read_bytes()
    (source / "result.json").write_bytes(data[:cut])
    report = do_import(source, tmp_path / "results")
    assert not report.damaged
    assert (report.records_in, report.records_out) == (164, 163)
    assert state_of(report).counts().evaluated == 3


def test_a_trial_of_which_only_the_name_is_left_belongs_to_the_task_of_that_beginning(tmp_path):
    long = "a-task-whose-name-is-longer-than-thirty-two-characters"
    told = trial("x__1", task_name=long, trial_name=f"{long[:32]}__abc")
    source = job(tmp_path / "job", [told], finished_at=None)
    write(source / f"{long[:32].rstrip('-')}__xyzXYZ1" / "agent" / "oracle.txt", "")
    report = do_import(source, tmp_path / "results")
    (task,) = state_of(report).tasks.values()
    assert task.id == long
    assert len(task.attempts) == 2
    told = reasons(report)[f"{long[:32].rstrip('-')}__xyzXYZ1"]
    assert "nothing but the name of its directory tells of its task" in told


def test_a_name_without_random_characters_is_the_tasks(tmp_path):
    source = job(tmp_path / "job", [trial("x__1", task_name="org__lib-1")], finished_at=None)
    write(source / "org__lib-1" / "agent" / "log.txt", "")
    write(source / "org__lib-2" / "agent" / "log.txt", "")
    assert sorted(task.task_id for task in planned(source).selected.tasks) == [
        "org__lib-1",
        "org__lib-2",
    ]


# -- order, times, kinds -------------------------------------------------------------------------


def test_attempts_that_say_no_time_come_last_and_equal_times_go_by_name(tmp_path):
    at = "2026-01-02T03:04:05Z"
    trials = [
        trial("a__d", started_at=None),
        trial("a__c", started_at=at),
        trial("a__b", started_at="2026-01-02T04:04:04.5+01:00"),
        trial("a__a", started_at=at),
    ]
    report = do_import(job(tmp_path / "job", trials), tmp_path / "results")
    order = [one.meta["trial_name"] for one in events(report, "result.recorded")]
    assert order == ["a__b", "a__a", "a__c", "a__d"]


def test_a_trial_whose_time_has_no_zone_is_named(tmp_path):
    told = trial("a__1", started_at="2026-01-02T03:04:05", finished_at=1767323045)
    report = do_import(job(tmp_path / "job", [told]), tmp_path / "results")
    assert len(reasons(report)["a__1/result.json"]) == 2
    (result,) = events(report, "result.recorded")
    assert result.meta["started_at"] == "2026-01-02T03:04:05"


def test_several_agents_are_one_run_with_a_category_each(tmp_path):
    other = {"name": "nop", "version": "1", "model_info": None}
    zero = {"rewards": {"reward": 0.0}}
    trials = [trial("a__1"), trial("a__2", agent_info=other, verifier_result=zero)]
    stats = {
        "n_completed_trials": 2,
        "evals": {
            "oracle__gpt-x__tasks": {"n_trials": 1, "n_errors": 0, "metrics": [{"mean": 1.0}]},
            "nop__tasks": {"n_trials": 1, "n_errors": 0, "metrics": [{"mean": 0.0}]},
        },
    }
    report = do_import(job(tmp_path / "job", trials, stats=stats), tmp_path / "results")
    state = state_of(report)
    assert {task.id: task.category for task in state.tasks.values()} == {
        "nop/a": "nop__tasks",
        "oracle__gpt-x/a": "oracle__gpt-x__tasks",
    }
    found = recorded(report)
    assert found.recorded.metrics == {"oracle__gpt-x__tasks.mean": 1.0, "nop__tasks.mean": 0.0}
    categories = found.metrics.extra["categories"]
    assert categories["oracle__gpt-x__tasks"]["correct.accuracy"]["value"] == 1.0
    assert categories["nop__tasks"]["correct.accuracy"]["value"] == 0.0


def test_tasks_of_one_name_in_two_datasets_stay_apart(tmp_path):
    trials = [trial("a__1"), trial("a__2", source="others", task_id={"path": "others/a"})]
    report = do_import(job(tmp_path / "job", trials), tmp_path / "results")
    assert sorted(state_of(report).tasks) == ["others/a", "tasks/a"]


def test_a_task_that_changed_on_the_way_is_named(tmp_path):
    trials = [trial("a__1"), trial("a__2", task_checksum="another")]
    report = planned(job(tmp_path / "job", trials))
    assert any("2 checksums" in one for told in reasons(report).values() for one in told)


def test_several_jobs_are_refused_by_name_and_one_below_is_found(tmp_path):
    one = job(tmp_path / "jobs" / "one", [trial("a__1")])
    assert do_import(tmp_path, tmp_path / "results").run_id == "one"
    job(tmp_path / "jobs" / "two", [trial("a__1")])
    with pytest.raises(UsageError, match=r"holds 2 jobs: .*one, .*two"):
        do_import(tmp_path / "jobs", tmp_path / "results")
    with pytest.raises(UsageError, match="one trial of a job"):
        do_import(one / "a__1", tmp_path / "results")


def test_files_of_no_known_kind_are_named_and_kept(tmp_path):
    source = job(tmp_path / "job", [trial("a__1")])
    write(source / "notes.txt", "mine")
    write(source / "a__1" / "extra.bin", b"\x00\xff")
    write(source / "analysis" / "report_failed.json", "{}")
    report = do_import(source, tmp_path / "results")
    assert reasons(report) == {
        "notes.txt": ["no file of this layout"],
        "a__1/extra.bin": ["no file of this layout"],
        **{name: told for name, told in reasons(report).items() if name == "result.json"},
    }
    assert (report.records_in, report.records_out) == (7, 5)
    assert originals(report)["a__1/extra.bin"].content == b"\x00\xff"


# -- what the agent left -------------------------------------------------------------------------


def with_agent_files(tmp_path, files, **fields):
    source = job(tmp_path / "job", [trial("a__1", **fields)])
    for name, value in files.items():
        write(source / "a__1" / name, value)
    return do_import(source, tmp_path / "results")


def test_tokens_of_an_agent_that_tells_no_calls_are_one_call_that_says_so(tmp_path):
    told = {"n_input_tokens": 100, "n_cache_tokens": 40, "n_output_tokens": 7, "cost_usd": 0.5}
    report = with_agent_files(tmp_path, {}, agent_result=told)
    (call,) = events(report, "call.finished")
    assert list(call.flags) == ["sum_of_calls"]
    assert (call.usage.input_tokens, call.usage.cached_tokens, call.cost_usd) == (100, 40, 0.5)
    (result,) = events(report, "result.recorded")
    assert result.metrics == told
    counted, _ = state_of(report).spend()
    assert (counted.input_tokens, counted.output_tokens, counted.cost_usd) == (100, 7, 0.5)


def test_a_trajectory_gives_calls_answer_and_steps_and_is_compared_with_the_sums(tmp_path):
    first, second = sorted(ATIF.iterdir(), reverse=True)
    files = {
        "agent/trajectory.json": first.read_bytes(),
        "agent/trajectory.cont-1.json": second.read_bytes(),
    }
    sums = {"n_input_tokens": 7802, "n_output_tokens": 690}
    report = with_agent_files(tmp_path, files, agent_result=sums)
    assert len(events(report, "call.finished")) == 7
    told = reasons(report)["a__1/result.json"]
    assert told == ["n_input_tokens is 7802; its calls give 6502"]
    (result,) = events(report, "result.recorded")
    assert result.metrics["copied_steps"] == 4
    assert "Final confirmation" in result.final_answer


def test_the_log_of_calls_goes_before_the_trajectory(tmp_path):
    line = {
        "success": True,
        "request_time": 1767323045000,
        "request_body": {"messages": [{"role": "user", "content": "?"}], "model": "gpt-x"},
        "response_body": {"choices": [{"message": {"role": "assistant", "content": "!"}}]},
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    first, _ = sorted(ATIF.iterdir(), reverse=True)
    files = {
        "agent/litellm-trajectory.jsonl": json.dumps(line) + "\n" + '{"success": tr',
        "agent/trajectory.json": first.read_bytes(),
    }
    report = with_agent_files(tmp_path, files)
    (start,) = events(report, "call.started")
    assert start.messages == [{"role": "user", "content": "?"}]
    assert not report.damaged
    (torn,) = reasons(report)["a__1/agent/litellm-trajectory.jsonl"]
    assert torn.startswith("line 2: the last line is torn: cut off")


def test_steps_of_a_trial_are_told_one_after_another(tmp_path):
    document = json.loads(max(ATIF.iterdir()).read_text())
    del document["continued_trajectory_ref"]
    files = {
        "steps/1-begin/agent/trajectory.json": document,
        "steps/2-end/agent/trajectory.json": document,
    }
    report = with_agent_files(tmp_path, files)
    assert len(events(report, "call.finished")) == 6
    (result,) = events(report, "result.recorded")
    assert len(result.trajectory["steps"]) == 10


@pytest.mark.parametrize(
    ("data", "damaged", "named"),
    [
        (b"[1, 2]", False, False),
        (b'{"messages": []}', False, False),
        (b'{"schema_version": "ATIF-v1.8", "steps": [', False, True),
        (b'{"schema_version": "ATIF-v1.8", "steps": [}', True, True),
        (b'{"schema_version": "ATIF-v9.0", "steps": []}', False, True),
    ],
)
def test_a_trajectory_that_cannot_be_read_is_kept_and_stops_nothing(tmp_path, data, damaged, named):
    report = with_agent_files(tmp_path, {"agent/trajectory.json": data})
    assert report.damaged is damaged
    assert ("a__1/agent/trajectory.json" in reasons(report)) is named
    assert state_of(report).tasks["a"].attempts[1].correct is True


def test_what_the_verifier_printed_stands_in_the_verdict(tmp_path):
    files = {
        "verifier/test-stdout.txt": "1 passed\n",
        "verifier/test-stderr.txt": b"\xff",
        "verifier/report.json": {"a": {"resolved": True, "tests_status": {"FAIL_TO_PASS": {}}}},
    }
    report = with_agent_files(tmp_path, files)
    (verdict,) = events(report, "evaluation.finished")
    assert verdict.stdout == "1 passed\n"
    assert verdict.tests_status == {"FAIL_TO_PASS": {}}
    assert verdict.evaluator.id == "harbor"


def test_the_phases_of_a_trial_are_kept_in_utc(tmp_path):
    away = {"started_at": "2026-01-02T05:04:08+02:00", "finished_at": "2026-01-02T03:04:09Z"}
    report = with_agent_files(tmp_path, {}, agent_execution=away)
    (result,) = events(report, "result.recorded")
    assert result.meta["agent_execution"] == {
        "started_at": "2026-01-02T03:04:08Z",
        "finished_at": "2026-01-02T03:04:09Z",
    }
    assert result.meta["verifier"] == dict.fromkeys(span(9), "2026-01-02T03:04:09Z")
