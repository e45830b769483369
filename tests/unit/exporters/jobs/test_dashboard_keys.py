"""The keys that the known dashboard reads of a job and its trials, over an exported job.

Those of the analysis are checked with the analysis.
"""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from exporters.jobs.place import write_job
from tests import job_runs as say


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("dashboard")
    say.agents(scratch / "run")
    with say.opened(scratch / "run") as (state, view):
        return write_job(scratch / "artifacts", state, view).directory


def is_trial(directory: Path) -> bool:
    """How the dashboard tells trials from other directories."""
    marks = ("result.json", "config.json", "agent")
    return directory.name != "analysis" and any((directory / mark).exists() for mark in marks)


def trials(job: Path) -> list[Path]:
    return sorted(entry for entry in job.iterdir() if entry.is_dir() and is_trial(entry))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_the_name_of_the_job_holds_the_start_of_the_run(job: Path) -> None:
    (digits,) = re.findall(r"(?<!\d)\d{14}(?!\d)", job.name)
    start = datetime.fromisoformat(read(job / "result.json")["started_at"])
    assert digits == start.strftime("%Y%m%d%H%M%S")


def test_the_configuration_is_harbors_json(job: Path) -> None:
    config = read(job / "config.json")
    assert config["job_name"] == job.name
    assert {"n_attempts", "agents", "datasets"} <= config.keys()


def test_every_directory_is_a_trial_of_which_task_reward_and_times_are_read(job: Path) -> None:
    assert [trial.name for trial in trials(job)] == [
        *("fix__1", "fix__2", "late_one__1", "late_one__2")
    ]
    for trial in trials(job):
        found = read(trial / "result.json")
        assert found["task_name"] in {"fix", "late/one"}
        for name in ("started_at", "finished_at"):
            assert datetime.fromisoformat(found[name]).tzinfo is not None
        assert "exception_info" in found
        if found["verifier_result"] is not None:
            assert isinstance(found["verifier_result"]["rewards"]["reward"], float)
        # Readers take the task's name to be what stands before the last `__`.
        assert trial.name.rsplit("__", 1)[0] in {"fix", "late_one"}


def test_tokens_and_cost_are_read_of_trials_that_called_a_model(job: Path) -> None:
    found = read(job / "fix__1" / "result.json")["agent_result"]
    names = ("n_input_tokens", "n_output_tokens", "cost_usd")
    assert [found[name] for name in names] == [200, 20, 0.5]
    assert read(job / "late_one__2" / "result.json")["agent_result"] is None


def test_the_last_line_holds_the_conversation_the_answer_usage_and_why_it_ended(job: Path) -> None:
    text = (job / "fix__1/agent/litellm-trajectory.jsonl").read_text(encoding="utf-8")
    last = json.loads(text.splitlines()[-1])
    assert [message["role"] for message in last["request_body"]["messages"]] == [
        *("system", "user", "assistant", "tool")
    ]
    choice = last["response_body"]["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("answer 1", "stop")
    usage = last.get("usage") or last["response_body"]["usage"]
    assert usage["total_tokens"] == 110


def test_each_trial_has_a_trajectory_and_a_report_on_its_task(job: Path) -> None:
    for trial in trials(job):
        assert read(trial / "agent/trajectory.json")["schema_version"] == "ATIF-v1.8"
        report = read(trial / "verifier/report.json")
        task = read(trial / "result.json")["task_name"]
        assert isinstance(report[task]["resolved"], bool)


def test_no_trial_is_taken_for_the_analysis() -> None:
    assert not is_trial(Path("/jobs/job/analysis"))
