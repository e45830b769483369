"""Jobs of several agents, of steps, with trajectories, and killed ones, as Harbor wrote them."""

import json

import pytest

from ledger import LedgerView
from runtime.importers.jobs import Jobs
from runtime.replay import replay
from tests.harbor_jobs import do_import, planned, reasons, sample
from tests.importer_runs import events, state_of


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    base = tmp_path_factory.mktemp("more")
    return {name: sample(base, name) for name in ("variety", "solo", "killed")}


@pytest.fixture(scope="module")
def imported(source, tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    return {name: do_import(path, results) for name, path in source.items()}


def replayed(report):
    with LedgerView.open(report.path) as view:
        return replay(view)


@pytest.mark.parametrize(("name", "files"), [("variety", 280), ("solo", 76), ("killed", 59)])
def test_every_file_is_placed_and_nothing_is_damaged(imported, name, files):
    report = imported[name]
    assert (report.records_in, report.records_out, report.damaged) == (files, files, False)


def test_the_numbers_of_each_agent_are_those_of_its_category(source, imported):
    evals = json.loads((source["variety"] / "result.json").read_text())["stats"]["evals"]
    found = replayed(imported["variety"])
    categories = found.metrics.extra["categories"]
    assert categories.keys() == evals.keys()
    for key, told in evals.items():
        assert categories[key]["score.avg@2"]["value"] == pytest.approx(
            told["metrics"][0]["reward"]
        )


def test_an_agent_is_who_it_says_that_it_is_not_where_it_was_imported_from(imported):
    state = state_of(imported["variety"])
    assert {task.category for task in state.tasks.values()} == {
        "oracle__gpt-x__tasks",
        "talker__claude-y__tasks",
    }
    assert state.counts().missing == 0


def test_one_agent_alone_is_compared_with_its_job(imported):
    found = replayed(imported["solo"])
    assert found.recorded.metrics == {"score.avg@2": 0.6875}
    assert found.equal is True
    assert {one.split(" ")[0] for one in reasons(imported["solo"])["result.json"]} == {
        "started_at",
        "finished_at",
    }


def test_tokens_and_cost_of_the_trajectories_are_those_of_the_job(source, imported):
    stats = json.loads((source["solo"] / "result.json").read_text())["stats"]
    spent, _ = state_of(imported["solo"]).spend()
    assert spent.input_tokens == stats["n_input_tokens"]
    assert spent.output_tokens == stats["n_output_tokens"]
    assert spent.cost_usd == pytest.approx(stats["cost_usd"])


def test_a_killed_job_has_an_open_attempt_and_no_end(imported):
    report = imported["killed"]
    state = state_of(report)
    assert state.finished is None
    assert [
        task.id
        for task in state.tasks.values()
        for attempt in task.attempts.values()
        if attempt.finished is None
    ] == ["slowtest"]
    assert state.tasks["stepped"].stage == "pending"
    assert state.k == 3
    assert reasons(report)["lock.json"][0].startswith("8 tasks have fewer trials than were planned")


def test_calls_of_a_trial_that_did_not_end_are_told(imported):
    calls = [one for one in events(imported["killed"], "call.finished") if one.task == "slowtest"]
    assert [call.usage.input_tokens for call in calls] == [100, 120]


def test_every_cut_of_a_trials_result_leaves_it_open_and_the_others_whole(tmp_path):
    path = sample(tmp_path, "solo")
    victim = next(path.glob("good__*/result.json"))
    data = victim.read_bytes()
    for size in range(0, len(data), 701):
        victim.write_bytes(data[:size])
        plan = planned(path)
        (remark,) = [
            one for one in plan.remarks if one.source.endswith(f"{victim.parent.name}/result.json")
        ]
        assert (remark.torn, remark.damage, remark.placed) == (True, False, False)
        assert Jobs().name == plan.format
