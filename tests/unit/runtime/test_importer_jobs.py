"""Real Harbor jobs become ledgers: their numbers, errors, retries and times."""

import json
import shutil
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.verify import verify
from runtime.importers import Source
from runtime.importers.agentcompass import AgentCompass
from runtime.importers.atif import Atif
from runtime.importers.details import Details
from runtime.importers.jobs import Jobs
from runtime.replay import replay
from tests import importer_runs
from tests.harbor_jobs import ATIF, do_import, job, reasons, sample, trial
from tests.importer_runs import events, originals, state_of


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Both samples, imported once for all tests that only read."""
    base = tmp_path_factory.mktemp("harbor")
    return {
        name: do_import(sample(base / "source", name), base / "results")
        for name in ("sample-job", "binary-k5")
    }


def replayed(report):
    with LedgerView.open(report.path) as view:
        return replay(view)


@pytest.mark.parametrize(("name", "files"), [("sample-job", 200), ("binary-k5", 164)])
def test_every_file_of_a_real_job_is_placed_and_kept(imported, name, files):
    report = imported[name]
    assert (report.format, report.run_id) == ("jobs", name)
    assert (report.records_in, report.records_out, report.damaged) == (files, files, False)
    assert len(originals(report)) == files
    assert [one for one in verify(report.path) if one.severity == "broken"] == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sample-job", {"score.avg@4": 0.25}),
        (
            "binary-k5",
            {
                "score.avg@5": 0.45,
                "correct.pass@2": 0.5,
                "correct.pass@4": 0.5,
                "correct.pass@5": 0.5,
            },
        ),
    ],
)
def test_replay_gives_the_numbers_of_the_jobs_own_result(imported, name, told):
    found = replayed(imported[name])
    assert found.recorded is not None
    assert found.recorded.metrics == told
    assert found.equal is True
    assert not found.not_compared
    assert {metric: found.metrics.metrics[metric] for metric in told} == pytest.approx(told)


def test_replay_shows_beside_it_what_holds_without_the_verifiers_failures(imported):
    metrics = replayed(imported["sample-job"]).metrics.metrics
    assert metrics["score.avg@4[exclude]"] == pytest.approx(6 / 20)


def test_the_report_says_what_the_mean_counts_as_zero(imported):
    (counted,) = [
        one for one in reasons(imported["sample-job"])["result.json"] if "count 4 of 24" in one
    ]
    assert "4 of them by a fault of the verifier" in counted
    assert "over the 20 that were judged: mean 0.3" in counted


def test_times_without_a_zone_are_named_and_those_of_the_trials_told(imported, tmp_path):
    told = reasons(imported["sample-job"])["result.json"]
    assert sum("which has no zone" in one for one in told) == 2
    (run,) = events(imported["sample-job"], "run.imported")
    paths = sample(tmp_path, "sample-job").glob("*/result.json")
    trials = [json.loads(path.read_text()) for path in paths]
    assert run.started_at == min(one["started_at"] for one in trials)
    assert run.finished_at == max(one["finished_at"] for one in trials)


def test_attempts_are_numbered_by_their_start(imported, tmp_path):
    source = sample(tmp_path, "sample-job")
    started = {}
    for path in source.glob("always-pass__*/result.json"):
        value = json.loads(path.read_text())
        started[value["started_at"]] = value["trial_name"]
    results = [
        one
        for one in events(imported["sample-job"], "result.recorded")
        if one.task == "always-pass"
    ]
    assert [one.attempt for one in results] == [1, 2, 3, 4]
    assert [one.meta["trial_name"] for one in results] == [started[at] for at in sorted(started)]


def test_a_verifier_without_a_reward_is_no_fault_of_the_agent(imported):
    attempts = state_of(imported["sample-job"]).tasks["no-reward-file"].attempts.values()
    assert {attempt.status for attempt in attempts} == {"eval_error"}
    (error, *_) = [
        one.evaluation_error
        for one in events(imported["sample-job"], "evaluation.finished")
        if one.task == "no-reward-file"
    ]
    assert (error.code, error.phase, error.fatal) == ("RewardFileNotFoundError", "evaluate", False)
    assert error.message.startswith("No reward file found at")
    assert error.traceback.startswith("Traceback")


def test_an_agent_out_of_time_has_an_error_and_a_reward(imported):
    attempts = state_of(imported["sample-job"]).tasks["agent-times-out"].attempts.values()
    assert {(attempt.status, attempt.score) for attempt in attempts} == {("run_error", 0.0)}
    ends = [
        one
        for one in events(imported["sample-job"], "attempt.finished")
        if one.task == "agent-times-out"
    ]
    assert {one.error.code for one in ends} == {"run_timeout"}


def test_partial_rewards_are_scores_and_no_verdicts_of_right_and_wrong(imported):
    state = state_of(imported["sample-job"])
    found = {(attempt.correct, attempt.score) for _, attempt in state.attempts() if attempt.verdict}
    assert {correct for correct, _ in found} == {None}
    assert {score for _, score in found} == {0.0, 0.25, 1.0}


def test_rewards_of_zero_and_one_are_verdicts(imported):
    task = state_of(imported["binary-k5"]).tasks["flaky-half"]
    assert sorted(attempt.correct for attempt in task.attempts.values()) == [
        False, True, True, True, True,
    ]  # fmt: skip


def test_tries_that_harbor_deleted_are_told_from_its_log(imported):
    state = state_of(imported["sample-job"])
    retries = {
        task.id: sum(len(attempt.retries) for attempt in task.attempts.values())
        for task in state.tasks.values()
    }
    assert {task: count for task, count in retries.items() if count} == {
        "agent-times-out": 4,
        "no-reward-file": 4,
    }
    first = next(
        one
        for one in events(imported["sample-job"], "attempt.retried")
        if one.task == "no-reward-file"
    )
    assert first.error.code == "RewardFileNotFoundError"
    assert first.error.message.startswith("No reward file found at")
    assert (first.max_retries, first.retry_delay_seconds) == (1, 0.1)


def test_without_a_log_it_is_named_that_tries_are_gone(tmp_path):
    source = job(
        tmp_path / "job",
        [trial("a__1")],
        stats={"n_completed_trials": 1, "n_retries": 5, "evals": {}},
    )
    told = reasons(do_import(source, tmp_path / "results"))["result.json"]
    assert any(one.startswith("n_retries is 5; there is no job.log") for one in told)


def test_the_request_is_that_of_the_job(imported):
    state = state_of(imported["sample-job"])
    request = state.request
    assert request["benchmark"]["id"] == "tasks"
    assert request["harness"]["id"] == "oracle"
    assert request["model"]["id"] == "gpt-x"
    assert state.k == 4
    assert request["source"]["config"]["retry"]["max_retries"] == 1
    assert request["source"]["lock"]["harbor"]["version"] == "0.25.0"


def test_a_copy_under_another_name_is_the_same_import(imported, tmp_path):
    source = sample(tmp_path, "sample-job")
    copy = shutil.copytree(source, tmp_path / "other name")
    first = do_import(source, tmp_path / "results")
    again = do_import(copy, tmp_path / "results")
    assert again.already
    assert again.path == first.path
    numbers = [
        {
            (one.task, one.attempt): one.meta["trial_name"]
            for one in events(report, "result.recorded")
        }
        for report in (imported["sample-job"], first)
    ]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("name", ["sample-job", "binary-k5"])
def test_no_other_importer_takes_a_job(tmp_path, name):
    source = Source.open(sample(tmp_path, name))
    takers = [one for one in (AgentCompass(), Atif(), Details(), Jobs()) if one.recognises(source)]
    assert [one.name for one in takers] == ["jobs"]


def test_it_takes_no_source_of_another_format(tmp_path):
    runs = [importer_runs.sample(tmp_path, name) for name in ("k3-avg", "k3-sigkill")]
    shared = Path(__file__).resolve().parents[4] / "shared" / "samples"
    others = [path for path in shared.glob("*") if path.name != "harbor"]
    for path in [*runs, ATIF, *others, *(one for other in others for one in other.glob("*"))]:
        assert not Jobs().recognises(Source.open(path)), path


@pytest.mark.parametrize(
    "files",
    [
        {"result.json": b""},
        {"result.json": b"[]"},
        {"result.json": b'{"stats": {}}'},
        {"config.json": b"\xff\xfe"},
        {"x/result.json": b"null"},
        {"lock.json": b'{"lockfileVersion": 3, "packages": {}}'},
        {"package.json": b"{}", "x/config.json": b'{"task": 1}'},
    ],
)
def test_other_files_of_the_same_names_are_no_job(tmp_path, files):
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert not Jobs().recognises(Source.open(tmp_path))
